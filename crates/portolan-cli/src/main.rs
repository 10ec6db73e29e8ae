//! The command `portolan`: arguments in, files and tables out, one line for every mistake.

mod args;
mod commands;
mod failure;
mod memory;
mod output;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{Error, ErrorKind};

use args::{Cli, Command};
use failure::Failure;
use output::say;

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> ExitCode {
    let outcome = memory::check_room().and_then(|()| {
        watch::listen_for_interrupts();
        match Cli::try_parse() {
            Ok(cli) => run(cli.command),
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

/// The number of threads that was asked for.
fn threads(command: &Command) -> Option<usize> {
    match command {
        Command::Demo(args) => args.threads,
        Command::Estimate(args) => args.fit.run.threads,
        Command::Fit(args) => args.fit.run.threads,
        Command::Predict(args) => args.threads,
        Command::Coverage(args) => args.threads,
        Command::Explore(args) => args.threads,
        Command::Validate(args) => args.run.threads,
        Command::Study(args) => args.threads,
        Command::Compare(args) => args.run.threads,
        Command::Advise(args) => args.run.threads,
        #[cfg(feature = "paper")]
        Command::Reproduce(args) => args.threads,
        _ => None,
    }
}

fn run(command: Command) -> Result<(), Failure> {
    watch::set_threads(threads(&command))?;
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Sense(args) => commands::sense::run(&args),
        Command::Estimate(args) => commands::estimate::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
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
        Command::Bound(args) => commands::bound::run(&args),
        #[cfg(feature = "cuda")]
        Command::GpuCheck(args) => commands::gpu_check::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_that_is_not_understood_gets_one_line() {
        let words = ["portolan", "estimate", "r.npz", "-o", "m.npz", "--metod", "idw"];
        let Err(error) = Cli::try_parse_from(words) else { panic!("--metod is no option") };
        let Err(Failure::Input(message)) = refuse(&error) else {
            panic!("expected an input error")
        };
        assert!(message.contains("'--metod'") && message.contains("'--method'"), "{message}");
        assert!(!message.contains('\n') && !message.contains("Usage"), "{message}");
    }
}
