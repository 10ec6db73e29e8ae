//! `portolan explore`: a page that shows maps and answers questions about them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use portolan::Emitters;
use portolan_explore::{Explorer, FirstFit, Server, StartError};
use portolan_io::{FileKind, Format, ReadOptions, inspect};

use crate::args::ExploreArgs;
use crate::failure::Failure;
use crate::memory::give_back_large_pieces;
use crate::output::{emit, say, warn};
use crate::watch::check_interrupt;

/// How often Ctrl-C is looked for.
const POLL: Duration = Duration::from_millis(50);
/// Files of a folder that are opened.
const MOST_FILES: usize = 30;

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Input(message) => Failure::Input(message),
            error => Failure::Run(error.to_string()),
        }
    }
}

pub fn run(args: &ExploreArgs) -> Result<(), Failure> {
    give_back_large_pieces();
    let server = Server::start(explorer(args)?, &args.addresses())?;
    let url = server.url();
    emit(&url)?;
    if args.listen.is_some_and(|ip| !ip.is_loopback()) {
        say("portolan: anyone with this address can look and fit; the token is not shown again");
        if args.listen.is_some_and(|ip| ip.is_unspecified()) {
            say(&elsewhere(&server));
        }
    }
    say("portolan: the explorer runs until you press Ctrl-C");
    if !args.no_open {
        open_browser(&url);
    }
    // Ctrl-C is how it ends; the server takes its temporary files with it.
    while server.running() {
        if check_interrupt().is_err() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    Err(Failure::Run("the explorer stopped by itself".into()))
}

/// What to type on another machine, where the server listens on all addresses of this one.
fn elsewhere(server: &Server) -> String {
    let all = server.address().ip();
    // No packet is sent: the system only says which of its addresses would send one.
    let own = UdpSocket::bind((all, 0)).and_then(|socket| {
        let to: IpAddr = match all {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        socket.connect((to, 9))?;
        socket.local_addr()
    });
    let such = match own {
        Ok(own) if !own.ip().is_unspecified() => format!(", such as {}", own.ip()),
        _ => String::new(),
    };
    format!("portolan: on other machines replace {all} by this machine's name or address{such}")
}

/// What is to be explored.
fn explorer(args: &ExploreArgs) -> Result<Explorer, Failure> {
    let words = args.read.words();
    let mut options = ReadOptions::default();
    for (name, value) in &words {
        options.tell(name, value).map_err(Failure::input)?;
    }
    if let (true, Some((name, _))) = (args.files.is_empty(), words.first()) {
        return Err(Failure::input(format!("--{name} is about a file: name one")));
    }
    let mut explorer = if args.files.is_empty() { Explorer::demo()? } else { Explorer::empty() };
    for path in &args.files {
        if path.is_dir() {
            add_folder(&mut explorer, path, &words, &options)?;
        } else {
            add_file(&mut explorer, path, &words)?;
        }
    }
    let emitters = match args.emitters {
        Emitters::Auto => None,
        Emitters::Count(count) => Some(count),
    };
    let (settings, seed) = (args.settings.clone(), args.seed);
    let usual = settings.is_empty() && emitters.is_none() && seed == 0 && args.method.is_none();
    if !(args.files.is_empty() && usual) {
        let method = args.method.clone().unwrap_or_else(|| FirstFit::default().method);
        explorer.fit_first(FirstFit { method, settings, emitters, seed })?;
    }
    Ok(explorer)
}

fn add_file(
    explorer: &mut Explorer,
    file: &Path,
    words: &[(String, String)],
) -> Result<(), StartError> {
    let notes = explorer.add_file(file, words)?;
    warn(&notes.iter().map(|n| format!("{}: {n}", file.display())).collect::<Vec<_>>());
    Ok(())
}

/// Adds the files of a folder that hold readings, models or maps, by name; says what it leaves out.
fn add_folder(
    explorer: &mut Explorer,
    path: &Path,
    words: &[(String, String)],
    options: &ReadOptions,
) -> Result<(), Failure> {
    let mut added = 0;
    let mut skipped = Vec::new();
    for file in files_of(path)? {
        let opened = if added < MOST_FILES {
            held(&file, options)
                .and_then(|()| add_file(explorer, &file, words).map_err(|error| error.to_string()))
        } else {
            Err(format!("{MOST_FILES} files of this folder are open already: name it"))
        };
        match opened {
            Ok(()) => added += 1,
            Err(why) if should_hold(&file) => skipped.push((file.display().to_string(), why)),
            Err(_) => {}
        }
    }
    let told: Vec<String> = skipped.iter().map(|(file, why)| after_name(file, why)).collect();
    if added == 0 {
        let why: String = told.iter().map(|line| format!("; {line}")).collect();
        let path = path.display();
        return Err(Failure::input(format!("{path}: holds no readings, models or maps{why}")));
    }
    warn(&told.iter().map(|line| format!("not opened: {line}")).collect::<Vec<_>>());
    skipped.iter().for_each(|(file, why)| explorer.skip(file, why));
    Ok(())
}

/// A reason behind the name of its file, which most reasons begin with.
fn after_name(file: &str, why: &str) -> String {
    if why.starts_with(file) { why.into() } else { format!("{file}: {why}") }
}

/// The files of a folder, by name.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| Failure::input(format!("{}: {error}", path.display()));
    let mut files: Vec<PathBuf> = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect())
        .map_err(failed)?;
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

/// Refuses a file that holds neither readings nor a model nor a map.
fn held(file: &Path, options: &ReadOptions) -> Result<(), String> {
    match inspect(file, options) {
        Ok(found) if found.kind == FileKind::Arrays => {
            Err("holds arrays, and nothing says what they are".into())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a file should hold something: it is said where such a one is not opened.
fn should_hold(file: &Path) -> bool {
    let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| Format::endings().any(|known| known == ending))
}

/// Asks the desktop to show the page; where it cannot, the address was printed.
fn open_browser(url: &str) {
    let opener = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let quiet = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if quiet.is_err() {
        say("portolan: no browser could be started: open the address above");
    }
}
