//! The command `portolan`: arguments in, files and tables out, one line for every mistake.

mod args;
mod commands;
mod failure;
mod output;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    watch::listen_for_interrupts();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                eprintln!("portolan: {message}");
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Sense(args) => commands::sense::run(&args),
        Command::Estimate(args) => commands::estimate::run(&args),
        Command::Score(args) => commands::score::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Plot(args) => commands::plot::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Methods(args) => commands::methods::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
    }
}
