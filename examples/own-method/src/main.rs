//! The command `portolan` with one method more.

use std::process::ExitCode;

fn main() -> ExitCode {
    portolan::estimate::register(own_method::ENTRY).expect("no method of portolan has its name");
    portolan_cli::run_command()
}
