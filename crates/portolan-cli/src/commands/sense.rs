//! `portolan sense`: readings of a map.

use portolan::quantiser::AUTHORS_EDGES;
use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::{Cell, Quantiser};
use portolan_io::{Format, WriteOptions, write_readings};

use super::{check_apart, check_target, load_map};
use crate::args::{SenseArgs, parse};
use crate::failure::Failure;
use crate::output::say;
use crate::watch::check_interrupt;

pub fn run(args: &SenseArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    Format::check_readings(&args.output)?;
    check_apart(&args.output, &[&args.truth])?;
    let layout = layout(args)?;
    let quantising = quantising(args)?;
    let truth = load_map(&args.truth, &args.read.options())?;
    if let SensorLayout::Cells(cells) = &layout
        && let Some(off) = cells.iter().find(|cell| !truth.grid().contains(**cell))
    {
        let (row, col, rows, cols) = (off.row, off.col, truth.grid().rows(), truth.grid().cols());
        return Err(Failure::input(format!(
            "--cells: row {row}, col {col} is off the {rows} x {cols} grid"
        )));
    }
    let sensing = Sensing {
        layout,
        snr_db: args.flaws.snr_db,
        gaps: args.flaws.gaps.unwrap_or(0.0),
        cover: args.flaws.cover.unwrap_or(1.0),
        quantising,
        seed: args.seed,
    };
    let readings = sense(&truth, &sensing)?;
    check_interrupt()?;
    let options = WriteOptions { force: args.force, ..WriteOptions::default() };
    write_readings(&args.output, &readings, &options)?;
    say(&format!(
        "{}: {} sensors ({:.1} % of the cells), {} bands",
        args.output.display(),
        readings.sensors(),
        100.0 * readings.places() as f64 / truth.grid().cells() as f64,
        readings.bands()
    ));
    Ok(())
}

fn layout(args: &SenseArgs) -> Result<SensorLayout, Failure> {
    if let Some(count) = args.count {
        return Ok(SensorLayout::Count(count));
    }
    if let Some(list) = &args.cells {
        return Ok(SensorLayout::Cells(cells("--cells", list)?));
    }
    if let Some(step) = args.lattice {
        return Ok(SensorLayout::Lattice(step));
    }
    if let Some(list) = &args.path {
        return Ok(SensorLayout::Path { waypoints: cells("--path", list)?, every: args.every });
    }
    Ok(SensorLayout::Fraction(args.fraction.unwrap_or(0.1)))
}

/// Cells from the words themselves or from the file that they name.
fn cells(option: &str, words: &str) -> Result<Vec<Cell>, Failure> {
    let from_file = words.chars().any(char::is_alphabetic);
    let text = if from_file {
        std::fs::read_to_string(words)
            .map_err(|error| Failure::input(format!("{words}: cannot be read: {error}")))?
    } else {
        words.to_string()
    };
    parse::cells(&text).map_err(|message| Failure::input(format!("{option} {message}")))
}

fn quantising(args: &SenseArgs) -> Result<Option<Quantising>, Failure> {
    let Some(bits) = args.bits else { return Ok(None) };
    let edges = edges(args.edges.as_deref().unwrap_or("quantiles"), bits)?;
    Ok(Some(Quantising { bits, edges, sigma: args.sigma.unwrap_or(1.7) }))
}

/// Where even steps begin and end, in ln(x + 1e-6).
const EVEN: (f64, f64) = (-12.0, -4.0);

/// Edges by name or one by one; None where quantiles make them.
pub(super) fn edges(words: &str, bits: u32) -> Result<Option<Vec<f64>>, Failure> {
    Ok(match words {
        "quantiles" => None,
        "authors" => Some(AUTHORS_EDGES.to_vec()),
        "even" => {
            let steps = Quantiser::levels_for_bits(bits)?;
            let step = (EVEN.1 - EVEN.0) / (steps as f64 - 2.0).max(1.0);
            let first = if steps == 2 { 0.5 * (EVEN.0 + EVEN.1) } else { EVEN.0 };
            Some((0..steps - 1).map(|i| first + step * i as f64).collect())
        }
        list => {
            let parsed: Result<Vec<f64>, _> = list.split(',').map(|e| e.trim().parse()).collect();
            Some(parsed.map_err(|_| {
                Failure::input(format!(
                    "--edges '{list}': expected authors, even, quantiles or numbers e1,e2,.."
                ))
            })?)
        }
    })
}
