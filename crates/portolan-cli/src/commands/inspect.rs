//! `portolan inspect`: the contents of a file.

use portolan_io::inspect;
use portolan_io::json::summary_json;

use super::warn_about;
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};

pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let summary = inspect(&args.file, &args.read.options())?;
    warn_about(&args.file, &summary.warnings);
    if args.json { emit_json(&summary_json(&summary)) } else { emit(&summary.to_string()) }
}
