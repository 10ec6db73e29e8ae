//! `portolan completions`: a script for the user's shell.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::output::emit;

pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "portolan", &mut script);
    emit(&String::from_utf8_lossy(&script))
}
