//! The command `portolan`: arguments in, files and tables out, one line for every mistake.
//!
//! A program of one's own that registers further methods is this command with those methods:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     // portolan::estimate::register(my_method::ENTRY).expect("a new name");
//!     portolan_cli::run_command()
//! }
//! ```

mod args;
mod commands;
mod failure;
mod memory;
mod output;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{Error, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use args::{Cli, Command};
use failure::Failure;
use output::say;

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

/// Runs the command line that the program was started with.
pub fn run_command() -> ExitCode {
    #[cfg(feature = "paper")]
    portolan_paper::register();
    let outcome = memory::check_room().and_then(|()| {
        watch::listen_for_interrupts();
        match parse(std::env::args_os()) {
            Ok((command, threads)) => run(command, threads),
            Err(error) => refuse(&error),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                say(&format!("portolan: {message}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Help and version where they were asked for; any other command line that is not understood gets
/// one line, like every other mistake.
fn refuse(error: &Error) -> Result<(), Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Clap knows the terminal's colours; a reader that has gone away is no mistake.
            let _ = error.print();
            Ok(())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say(&error.render().to_string());
            Err(Failure::input("expected a command"))
        }
        _ => Err(Failure::input(one_line(&error.render().to_string()))),
    }
}

/// What clap says over several lines, less its usage and its tip to quote the argument.
fn one_line(rendered: &str) -> String {
    let told: Vec<&str> = rendered
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .collect();
    let told = told.join(" ");
    format!("{}; try --help", told.strip_prefix("error: ").unwrap_or(&told))
}

/// The command, and the number of threads that was asked for.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<(Command, Option<usize>), Error> {
    let matches = Cli::command().try_get_matches_from(words)?;
    let threads = threads(&matches);
    let format = |error: Error| error.format(&mut Cli::command());
    Ok((Cli::from_arg_matches(&matches).map_err(format)?.command, threads))
}

/// `--threads` of whichever command has it.
fn threads(matches: &ArgMatches) -> Option<usize> {
    let (_, command) = matches.subcommand()?;
    command.try_get_one("threads").ok().flatten().copied()
}

fn run(command: Command, threads: Option<usize>) -> Result<(), Failure> {
    watch::set_threads(threads)?;
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Sense(args) => commands::sense::run(&args),
        Command::Estimate(args) => commands::estimate::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Locate(args) => commands::locate::run(&args),
        Command::Update(args) => commands::update::run(&args),
        Command::Changes(args) => commands::changes::run(&args),
        Command::Difference(args) => commands::difference::run(&args),
        Command::Coverage(args) => commands::coverage::run(&args),
        Command::Explore(args) => commands::explore::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Study(args) => commands::study::run(&args),
        Command::Score(args) => commands::score::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Advise(args) => commands::advise::run(&args),
        Command::Plot(args) => commands::plot::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        #[cfg(feature = "paper")]
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Methods(args) => commands::methods::run(&args),
        #[cfg(feature = "paper")]
        Command::Bound(args) => commands::bound::run(&args),
        #[cfg(feature = "cuda")]
        Command::GpuCheck(args) => commands::gpu_check::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::builder::ValueParser;

    #[test]
    fn a_command_line_that_is_not_understood_gets_one_line() {
        let words = ["portolan", "estimate", "r.npz", "-o", "m.npz", "--metod", "idw"];
        let Err(error) = parse(words.map(OsString::from)) else { panic!("--metod is no option") };
        let Err(Failure::Input(message)) = refuse(&error) else {
            panic!("expected an input error")
        };
        assert!(message.contains("'--metod'") && message.contains("'--method'"), "{message}");
        assert!(!message.contains('\n') && !message.contains("Usage"), "{message}");
    }
    #[test]
    fn threads_are_those_of_any_command_that_takes_them() {
        for line in ["demo --threads 3", "explore map.npz --threads 3", "study --threads 3"] {
            let words = ["portolan"].into_iter().chain(line.split(' ')).map(OsString::from);
            assert_eq!(parse(words).unwrap().1, Some(3), "{line}");
        }
        assert_eq!(parse(["portolan", "methods"].map(OsString::from)).unwrap().1, None);
        // A number of another type would not be found.
        let usual = ValueParser::from(clap::value_parser!(usize)).type_id();
        let command = Cli::command();
        let options = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let options: Vec<_> = options.filter(|option| option.get_id() == "threads").collect();
        assert!(options.len() >= 10, "{}", options.len());
        assert!(options.iter().all(|option| option.get_value_parser().type_id() == usual));
    }
}
