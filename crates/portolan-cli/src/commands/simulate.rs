//! `portolan simulate`: a map with a known truth.

use portolan::Grid;
use portolan::simulate::{PsdShape, Scenario, simulate};
use portolan_io::{WriteOptions, write_map};

use super::check_target;
use crate::args::{Psd, SimulateArgs};
use crate::failure::Failure;
use crate::output::say;
use crate::watch::{check_interrupt, watched};

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    let scenario = Scenario {
        grid: Grid::new(args.grid.0, args.grid.1, args.cell_m)?,
        bands: args.bands,
        emitters: args.emitters,
        shadow_db: args.shadow_db,
        decorrelation_m: args.decorrelation,
        psd: match args.psd {
            Psd::Gaussian => PsdShape::Gaussian,
            Psd::Sinc => PsdShape::Sinc,
        },
        seed: args.seed,
    };
    let truth = watched("simulating", |_| simulate(&scenario))?;
    check_interrupt()?;
    let dense = args.factored.then_some(false);
    write_map(&args.output, &truth, &WriteOptions { force: args.force, dense, unit: None })?;
    say(&format!(
        "{}: {} x {} cells, {} bands, {} emitters",
        args.output.display(),
        args.grid.0,
        args.grid.1,
        args.bands,
        args.emitters
    ));
    Ok(())
}
