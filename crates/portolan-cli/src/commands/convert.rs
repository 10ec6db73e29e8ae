//! `portolan convert`: between file formats.

use portolan_io::{
    Content, Loaded, WriteOptions, read, read_map, read_readings, write_map, write_readings,
};

use super::{check_apart, check_target, warn_about};
use crate::args::{ConvertArgs, KindName};
use crate::failure::Failure;
use crate::output::say;
use crate::watch::check_interrupt;

pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    check_apart(&args.output, &[&args.input])?;
    let options = args.read.options();
    let loaded = match args.kind {
        None => read(&args.input, &options)?,
        Some(KindName::Map) => {
            let Loaded { value, warnings } = read_map(&args.input, &options)?;
            Loaded { value: Content::Map(value), warnings }
        }
        Some(KindName::Readings) => {
            let Loaded { value, warnings } = read_readings(&args.input, &options)?;
            Loaded { value: Content::Readings(value), warnings }
        }
    };
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
        Content::Model(_) => {
            return Err(Failure::input(format!(
                "{}: holds a model: draw a map of it with `portolan predict`",
                args.input.display()
            )));
        }
    };
    say(&format!("{}: {what} from {}", args.output.display(), args.input.display()));
    Ok(())
}
