//! The program `portolan`.

use std::process::ExitCode;

fn main() -> ExitCode {
    portolan_cli::run_command()
}
