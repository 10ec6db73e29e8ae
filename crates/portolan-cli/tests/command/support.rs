//! A desk to work at: a folder of its own, the command, and what must hold whenever it is used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// The first bytes of every PNG.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Every method, and `auto`.
pub const METHODS: [&str; 6] = ["nearest", "idw", "linear", "thin_plate", "kriging", "auto"];

/// No command of these tests takes a tenth of it.
const LONGEST: Duration = Duration::from_secs(60);

/// A temporary folder in which the command runs.
pub struct Desk(TempDir);

impl Desk {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A desk with `truth.npz` (16 x 14 cells, 5 bands, 2 emitters) and 30 `readings.npz` of it.
    pub fn with_readings() -> Self {
        let desk = Self::new();
        desk.ok("simulate -o truth.npz --grid 16x14 --bands 5 --emitters 2 --seed 3");
        desk.ok("sense truth.npz -o readings.npz --count 30 --seed 4");
        desk
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The files in the folder with their bytes, hidden ones too.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let names = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        names
            .filter(|path| path.is_file())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect()
    }

    /// The command with arguments that are separated by blanks.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("portolan"));
        command.args(args.split_whitespace()).current_dir(self.0.path());
        command
    }

    pub fn run(&self, args: &str) -> Said {
        // A command that hangs is a failure, not a suite that never ends.
        let mut command = assert_cmd::Command::from_std(self.command(args));
        Said::from(command.timeout(LONGEST).output().unwrap())
    }

    /// Runs a command that must succeed.
    pub fn ok(&self, args: &str) -> Said {
        let said = self.run(args);
        assert_eq!(said.code, Some(0), "portolan {args}: {}", said.stderr);
        said
    }

    /// Runs a command that must succeed and print JSON; messages never mix with it.
    pub fn json(&self, args: &str) -> Value {
        let said = self.ok(args);
        serde_json::from_str(&said.stdout)
            .unwrap_or_else(|e| panic!("{args}: {e}: {}", said.stdout))
    }

    /// Runs a command that must be refused: exit 2, one line, no results, no file made or changed.
    /// Returns the line, which must hold every one of `words`.
    pub fn refused(&self, args: &str, words: &[&str]) -> String {
        let before = self.files();
        let said = self.run(args);
        assert_eq!(said.code, Some(2), "portolan {args}: {}", said.stderr);
        assert_eq!(said.stdout, "", "portolan {args}");
        assert!(before == self.files(), "portolan {args}: left or changed a file");
        let line = said.complaint();
        for word in words {
            assert!(line.contains(word), "portolan {args}: expected {word:?} in {line:?}");
        }
        line
    }
}

/// A table that the command wrote.
pub struct Table {
    pub header: Vec<String>,
    records: Vec<csv::StringRecord>,
    pub lines: usize,
}

pub fn table(desk: &Desk, name: &str) -> Table {
    let mut reader = csv::Reader::from_path(desk.path(name)).unwrap();
    let header = reader.headers().unwrap().iter().map(str::to_string).collect();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    Table { header, lines: records.len(), records }
}

impl Table {
    pub fn column(&self, name: &str) -> Vec<&str> {
        let at = self.header.iter().position(|column| column == name);
        let at = at.unwrap_or_else(|| panic!("{name} in {:?}", self.header));
        self.records.iter().map(|record| &record[at]).collect()
    }

    pub fn numbers(&self, name: &str) -> Vec<f64> {
        self.column(name).into_iter().map(|field| field.parse().unwrap()).collect()
    }
}

/// What a run of the command came to.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// The lines on standard error that are no notes.
    pub fn lines(&self) -> Vec<&str> {
        let told = |line: &&str| !line.is_empty() && !line.starts_with("portolan: note: ");
        self.stderr.lines().filter(told).collect()
    }

    /// The one line that says what is wrong.
    pub fn complaint(&self) -> String {
        let lines = self.lines();
        assert_eq!(lines.len(), 1, "expected one line: {}", self.stderr);
        assert!(lines[0].starts_with("portolan: ") && lines[0].len() < 600, "{}", lines[0]);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        lines[0].to_string()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
