//! `portolan convert`: between file formats.

use portolan_io::{Content, WriteOptions, read, write_map, write_readings};

use super::{check_target, warn_about};
use crate::args::ConvertArgs;
use crate::failure::Failure;
use crate::output::say;
use crate::watch::check_interrupt;

pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    let loaded = read(&args.input, &args.read.options())?;
    warn_about(&args.input, &loaded.warnings);
    check_interrupt()?;
    let unit = args.output_unit.map(|u| u.unit());
    let options = WriteOptions { force: args.force, unit, ..WriteOptions::default() };
    let what = match &loaded.value {
        Content::Map(map) => {
            write_map(&args.output, map, &options)?;
            "a map"
        }
        Content::Readings(readings) => {
            write_readings(&args.output, readings, &options)?;
            "readings"
        }
    };
    say(&format!("{}: {what} from {}", args.output.display(), args.input.display()));
    Ok(())
}
