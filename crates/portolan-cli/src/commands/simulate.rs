//! `portolan simulate`: a map with a known truth.

use portolan::Grid;
use portolan::simulate::{PsdShape, Scenario, simulate};
use portolan_io::{WriteOptions, free_memory, write_map};

use super::check_target;
use crate::args::{Psd, SimulateArgs};
use crate::failure::Failure;
use crate::output::say;
use crate::watch::{check_interrupt, watched};

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    let psd = match args.psd {
        Psd::Gaussian => PsdShape::Gaussian,
        Psd::Sinc => PsdShape::Sinc,
    };
    let grid = Grid::new(args.grid.0, args.grid.1, args.cell_m)?;
    let scenario = Scenario { psd, ..args.scene.scenario(grid, args.seed) };
    check_memory(args)?;
    let truth = watched("simulating", |_| simulate(&scenario))?;
    check_interrupt()?;
    let dense = args.factored.then_some(false);
    let options = WriteOptions { force: args.force, dense, ..WriteOptions::default() };
    write_map(&args.output, &truth, &options)?;
    say(&format!(
        "{}: {} x {} cells, {} bands, {} emitters",
        args.output.display(),
        args.grid.0,
        args.grid.1,
        args.scene.bands,
        args.scene.emitters
    ));
    Ok(())
}

/// Refuses a map whose SLFs alone do not fit the memory.
fn check_memory(args: &SimulateArgs) -> Result<(), Failure> {
    let (rows, cols) = args.grid;
    let sides = [rows, cols, args.scene.emitters].map(|side| side as u64);
    let bytes = sides.into_iter().fold(8, u64::saturating_mul);
    match free_memory() {
        Some(free) if bytes > free => Err(Failure::input(format!(
            "{rows} x {cols} cells and {} emitters take {:.1} GB of memory, {:.1} GB are free",
            args.scene.emitters,
            bytes as f64 / 1e9,
            free as f64 / 1e9
        ))),
        _ => Ok(()),
    }
}
