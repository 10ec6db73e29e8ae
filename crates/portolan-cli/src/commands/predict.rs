//! `portolan predict`: what a model says about places, or a map of any grid.

use std::time::Instant;

use portolan::{Grid, Model, Region, Site};
use portolan_io::{check_output, read_model, read_places, write_predictions};
use serde_json::json;

use super::draw::{MapRequest, check_map, draw_map};
use super::needs::{MapSize, Needs};
use super::parts::mask_of;
use super::{check_apart, check_target, named_bands};
use crate::args::PredictArgs;
use crate::failure::Failure;
use crate::output::{emit_json, say, warn};
use crate::watch::{check_interrupt, set_threads, watched};

pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    set_threads(args.threads)?;
    match &args.places {
        Some(places) => {
            if args.output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("csv")) {
                let name = args.output.display();
                return Err(Failure::input(format!("{name}: expected a .csv name")));
            }
            check_output(&args.output, args.force)?;
            check_apart(&args.output, &[&args.model, places])?;
        }
        None => {
            check_target(&args.output, args.force)?;
            check_apart(&args.output, &[&args.model])?;
        }
    }
    let model = read_model(&args.model)?;
    let bands = named_bands(args.bands.as_deref(), model.labels(), model.bands(), "model")?;
    let start = Instant::now();
    let (asked, notes) = match &args.places {
        Some(path) => {
            let places = read_places(path, model.crs())?;
            let spread = model.gives_spread();
            Needs::of_places(places.sites.len(), bands.len(), spread).check(&args.output)?;
            let found = watched("predicting", |progress| {
                model.predict_bands(&places.sites, &bands, progress)
            })?;
            check_interrupt()?;
            let about = (model.labels(), &bands[..], model.scale());
            write_predictions(&args.output, &places, &found, about, args.force)?;
            (format!("{} places", places.sites.len()), Vec::new())
        }
        None => {
            let wish = GridWish {
                grid: args.grid,
                cell_m: args.cell_m,
                origin: args.origin,
                region: args.region,
            };
            let grid = wish.on(&model)?;
            let (output, force) = (&args.output, args.force);
            let size = MapSize::of_model(&model, grid, bands.len());
            check_map(&size, model.crs(), (output, force), args.f64)?;
            let mask = mask_of(&args.mask, model.sites(), model.crs())?;
            let (model, bands, mask, f64) = (&model, &bands[..], &mask, args.f64);
            let request = MapRequest { model, grid, bands, mask, output, f64, force };
            let notes = draw_map(&request)?;
            (format!("{} x {} cells of {} m", grid.rows(), grid.cols(), grid.cell_m()), notes)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    warn(&notes);
    if args.json {
        return emit_json(&json!({
            "output": args.output, "predict_seconds": seconds, "bands": bands.len(),
            "notes": notes,
        }));
    }
    say(&format!("{}: {asked}, {} band(s) in {seconds:.2} s", args.output.display(), bands.len()));
    Ok(())
}

/// What was said of a grid.
#[derive(Clone, Copy)]
pub struct GridWish {
    pub grid: Option<(usize, usize)>,
    pub cell_m: Option<f64>,
    pub origin: Option<(f64, f64)>,
    pub region: Option<Region>,
}

impl GridWish {
    /// The grid that was asked for; what is left open is the model's own.
    pub fn on(self, model: &Model) -> Result<Grid, Failure> {
        let own = model.grid_or_default()?;
        let cell_m = self.cell_m.unwrap_or(own.cell_m());
        // Said before a region is counted in cells of no size.
        Grid::new(1, 1, cell_m)?;
        let origin = self.origin.map(|(x, y)| Site::new(x, y));
        match (self.region, self.grid) {
            (Some(_), Some(_)) if self.cell_m.is_some() => {
                Err(Failure::input("--region with --grid says the cell size: leave out --cell-m"))
            }
            (Some(_), _) if origin.is_some() => {
                Err(Failure::input("--region says where the map begins: leave out --origin"))
            }
            (Some(region), Some((rows, cols))) => {
                let steps = |n: usize| (n.max(2) - 1) as f64;
                let cell_m = (region.width_m() / steps(rows)).max(region.height_m() / steps(cols));
                Ok(Grid::new(rows, cols, cell_m)?.with_origin(region.low)?)
            }
            (Some(region), None) => Ok(Grid::covering(region, cell_m)?),
            (None, Some((rows, cols))) => {
                Ok(Grid::new(rows, cols, cell_m)?.with_origin(origin.unwrap_or(own.origin()))?)
            }
            (None, None) => {
                // The model's area, in cells of the size asked for.
                let cells = |n: usize| ((n as f64 * own.cell_m() / cell_m).round() as usize).max(1);
                let (rows, cols) = match self.cell_m {
                    Some(_) => (cells(own.rows()), cells(own.cols())),
                    None => (own.rows(), own.cols()),
                };
                Ok(Grid::new(rows, cols, cell_m)?.with_origin(origin.unwrap_or(own.origin()))?)
            }
        }
    }
}
