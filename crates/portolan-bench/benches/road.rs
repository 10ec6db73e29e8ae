//! From a model to a file: how long the blocks take to draw, how long to write, and both at once. The
//! arguments are a model file, rows and columns, and a folder to write into.

use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use portolan::{Grid, Model, Progress};
use portolan_io::export::{MapRequest, ModelParts, PartFailure, draw_map};
use portolan_io::gis::{MapAbout, MapParts, Mask, Part, write_raster};
use portolan_io::{Element, MapLayout, MapWriter, WriteOptions, read_model};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Parts that are drawn and passed on to nobody; the first one is kept.
struct Kept {
    about: MapAbout,
    part: Part,
}

impl MapParts for Kept {
    type Error = PartFailure;

    fn about(&self) -> &MapAbout {
        &self.about
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part, PartFailure> {
        let shape = (rows.len(), cols.len(), bands.len());
        let whole = &self.part;
        if whole.level_db.dim() == shape {
            return Ok(whole.clone());
        }
        let cut = |all: &ndarray::Array3<f64>| {
            all.slice(ndarray::s![..shape.0, ..shape.1, ..shape.2]).to_owned()
        };
        Ok(Part { level_db: cut(&whole.level_db), spread_db: whole.spread_db.as_ref().map(cut) })
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [model, side, folder] = &arguments[..] else {
        println!("road: skipped, it takes MODEL SIDE FOLDER");
        return Ok(());
    };
    let model = read_model(Path::new(model))?;
    let side: usize = side.parse()?;
    let own = model.grid_or_default()?;
    let cell_m = own.cell_m() * own.rows() as f64 / side as f64;
    let grid = Grid::new(side, side, cell_m)?.with_origin(own.origin())?;
    println!("{side} x {side} x {}", model.bands());
    for round in 0..3 {
        for name in ["road.npz", "road.zarr", "road.tif"] {
            let path = Path::new(folder).join(name);
            let (drawn, written, both) = times(&model, grid, &path)?;
            let ratio = both / drawn.max(written);
            println!(
                "{round} {name}: drawn {drawn:.2} s, written {written:.2} s, both {both:.2} s, \
                 {ratio:.2} of the slower"
            );
        }
    }
    Ok(())
}

fn times(model: &Model, grid: Grid, path: &Path) -> Outcome<(f64, f64, f64)> {
    let bands: Vec<usize> = (0..model.bands()).collect();
    let silent = Progress::silent();
    let (rows, cols) = (grid.rows(), grid.cols());
    let is_npz = path.extension().is_some_and(|ending| ending == "npz");
    // As large as the writers ask for.
    let (high, wide) = match is_npz {
        true => (((1 << 22) / (cols * bands.len())).clamp(1, rows), cols),
        false => (((1 << 22) / (512 * bands.len())).clamp(1, 512), cols.min(512)),
    };
    let start = Instant::now();
    let mut parts = ModelParts::new(model, grid, &bands, &silent)?;
    let mut kept = None;
    for first in (0..rows).step_by(high) {
        for first_col in (0..cols).step_by(wide) {
            let rows = first..(first + high).min(rows);
            let cols = first_col..(first_col + wide).min(cols);
            let part = match is_npz {
                true => {
                    let sites = grid.sites_of_rows(rows.clone());
                    let found = model.predict_bands(&sites, &bands, &silent)?;
                    let shape = (rows.len(), cols.len(), bands.len());
                    let cube = |all: ndarray::Array2<f64>| all.into_shape_with_order(shape);
                    Part {
                        level_db: cube(found.power)?,
                        spread_db: found.spread_db.map(cube).transpose()?,
                    }
                }
                false => parts.part(rows, cols, 0..bands.len())?,
            };
            kept.get_or_insert(part);
        }
    }
    let drawn = start.elapsed().as_secs_f64();
    let about = parts.about().clone();
    let part = kept.ok_or("an empty grid")?;
    let options = WriteOptions { force: true, ..WriteOptions::default() };
    let start = Instant::now();
    if is_npz {
        let arrays = vec!["map", "spread_db", "reading_spread_db"];
        let element = Element::Float64;
        let layout = MapLayout { rows, cols, bands: bands.len(), arrays, element };
        let mut writer = MapWriter::create(path, &layout, &[], true)?;
        for first in (0..rows).step_by(high) {
            let more = ndarray::s![..high.min(rows - first), .., ..];
            let spread = part.spread_db.as_ref().unwrap_or(&part.level_db);
            writer.write_rows("map", part.level_db.slice(more))?;
            writer.write_rows("spread_db", spread.slice(more))?;
            writer.write_rows("reading_spread_db", spread.slice(more))?;
        }
        writer.finish()?;
    } else {
        write_raster(path, &mut Kept { about, part }, &options)?;
    }
    let written = start.elapsed().as_secs_f64();
    let mask = Mask::new(&[], model.sites(), model.crs())?;
    let (bands, mask, output) = (&bands[..], &mask, path);
    let request = MapRequest { model, grid, bands, mask, output, f64: true, force: true };
    let start = Instant::now();
    draw_map(&request, &silent)?;
    Ok((drawn, written, start.elapsed().as_secs_f64()))
}
