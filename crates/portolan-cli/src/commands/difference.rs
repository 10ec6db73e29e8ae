//! `portolan difference`: what two maps or models of one area differ by, and where it is significant.

use std::path::Path;

use portolan::{Grid, Model, RadioMap};
use portolan_io::gis::write_raster;
use portolan_io::picture::{Layer, PictureKind, difference_figure};
use portolan_io::{
    Difference, FileKind, Format, ReadOptions, WriteOptions, check_output, inspect, read_model,
};
use serde_json::json;

use super::picture::{look, save};
use super::{check_apart, load_map};
use crate::args::DifferenceArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table, warn};
use crate::watch::watched;

/// One of the two.
enum Side {
    Map(Box<RadioMap>),
    Model(Box<Model>),
}

/// What the output is.
enum Target {
    Picture(PictureKind),
    Arrays,
    Raster,
}

pub fn run(args: &DifferenceArgs) -> Result<(), Failure> {
    let target = args.output.as_deref().map(|output| target(output, args.force)).transpose()?;
    if let Some(output) = &args.output {
        check_apart(output, &[&args.before, &args.after])?;
    }
    let (before, after) = (load(&args.before)?, load(&args.after)?);
    let grid = grid(args, &before, &after)?;
    let before = drawn(before, grid, "drawing the first")?;
    let after = drawn(after, grid, "drawing the second")?;
    let mut found = Difference::between(&before, &after, args.rate)?;
    if found.spread_db.is_none() {
        warn(&["one of the maps has no standard deviation: significance is unknown".into()]);
    }
    if !found.left_out.is_empty() {
        let some: Vec<&str> = found.left_out.iter().take(5).map(String::as_str).collect();
        let all = found.left_out.len();
        warn(&[format!("{all} band(s) of one map only are left out: {}", some.join(", "))]);
    }
    let bands = found.bands().to_vec();
    let strongest = |band: &usize| bands[*band].rms_db;
    let band = match &args.band {
        Some(name) => bands.iter().position(|band| band.label == *name).ok_or_else(|| {
            let labels: Vec<&str> = bands.iter().take(8).map(|band| band.label.as_str()).collect();
            Failure::input(format!("--band {name}: the bands in common are {}", labels.join(", ")))
        })?,
        None => (0..bands.len())
            .max_by(|a, b| strongest(a).total_cmp(&strongest(b)))
            .unwrap_or_default(),
    };
    if args.significant {
        found = found.significant_only();
    }
    if let (Some(output), Some(target)) = (&args.output, target) {
        match target {
            Target::Picture(kind) => {
                let look = look(&args.look, Layer::Power)?;
                let scene = difference_figure(&found, band, args.title.as_deref(), &look)?;
                save(output, kind, &scene, &look.typeface, args.look.width, args.force)?;
            }
            Target::Arrays => found.write_npz(output, args.force)?,
            Target::Raster => {
                let options = WriteOptions { force: args.force, ..WriteOptions::default() };
                write_raster(output, &mut found, &options)?;
            }
        }
    }
    if args.json {
        let bands: Vec<_> = bands
            .iter()
            .map(|band| {
                json!({
                    "band": band.label, "mean_db": known(band.mean_db),
                    "rms_db": known(band.rms_db), "louder": band.louder, "fainter": band.fainter,
                })
            })
            .collect();
        return emit_json(&json!({
            "before": args.before, "after": args.after, "output": args.output, "rate": args.rate,
            "rows": grid.rows(), "cols": grid.cols(), "cell_m": grid.cell_m(), "bands": bands,
        }));
    }
    let row = |band: &portolan_io::BandDifference| {
        vec![
            band.label.clone(),
            figure(known(band.mean_db), 2),
            figure(known(band.rms_db), 2),
            format!("{:.1}", 100.0 * band.louder),
            format!("{:.1}", 100.0 * band.fainter),
        ]
    };
    say(&format!(
        "after minus before on {} x {} cells; shares of the area where the change is significant at a \
         false discovery rate of {:.0} %",
        grid.rows(),
        grid.cols(),
        100.0 * args.rate
    ));
    let header = ["band", "mean_db", "rms_db", "louder_%", "fainter_%"];
    emit(&table(&header, &bands.iter().map(row).collect::<Vec<_>>()))
}

fn known(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn target(output: &Path, force: bool) -> Result<Target, Failure> {
    let ending = output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let target = match PictureKind::of_ending(ending) {
        Some(kind) => Target::Picture(kind),
        None => match Format::of_output(output)? {
            Format::Npz => Target::Arrays,
            Format::GeoTiff | Format::NetCdf | Format::Zarr => Target::Raster,
            _ => {
                return Err(Failure::input(format!(
                    "{}: a difference is written as .npz, .tif, .nc or .zarr, or drawn as .png, .svg \
                     or .pdf",
                    output.display()
                )));
            }
        },
    };
    check_output(output, force)?;
    Ok(target)
}

fn load(path: &Path) -> Result<Side, Failure> {
    match inspect(path, &ReadOptions::default())?.kind {
        FileKind::Model => Ok(Side::Model(Box::new(read_model(path)?))),
        FileKind::Readings => Err(Failure::input(format!(
            "{}: holds readings, expected a model or a map: fit them first by portolan fit",
            path.display()
        ))),
        _ => Ok(Side::Map(Box::new(load_map(path, &ReadOptions::default())?))),
    }
}

/// The grid of a map; of two models that of the first, or the one asked for.
fn grid(args: &DifferenceArgs, before: &Side, after: &Side) -> Result<Grid, Failure> {
    let (file, map) = match (before, after) {
        (Side::Map(map), _) => (&args.before, map),
        (_, Side::Map(map)) => (&args.after, map),
        (Side::Model(model), _) => return Ok(args.on.request().on(model)?),
    };
    match args.on.about_models().or(args.on.region.map(|_| "--region")) {
        None => Ok(map.grid()),
        Some(name) => {
            let file = file.display();
            Err(Failure::input(format!("{name}: {file} is a map and has its own grid")))
        }
    }
}

fn drawn(side: Side, grid: Grid, what: &str) -> Result<RadioMap, Failure> {
    match side {
        Side::Map(map) => Ok(*map),
        Side::Model(model) => Ok(watched(what, |progress| model.map(grid, progress))?),
    }
}
