//! `portolan coverage`: how much of an area lies above a level, and how surely.

use std::path::Path;

use ndarray::{Array2, Array3, Axis, s};
use portolan::coverage::{CERTAINTIES, Coverage, Covered};
use portolan::{BandLabels, Crs, Grid, RadioMap, Scale};
use portolan_io::drawn::GridWish;
use portolan_io::picture::{CoverageAbout, CoverageFigure, PictureKind, Typeface};
use portolan_io::{FileKind, ReadOptions, inspect, read_map_part, read_model};
use serde_json::{Value, json};

use super::picture::{kind_of, save};
use super::{check_apart, load_map, named_bands, warn_about};
use crate::args::CoverageArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, table, warn};
use crate::watch::watched;

/// Entries that a model is asked for at once.
const STRIP: usize = 1 << 21;

/// What was counted, and of what.
struct Counted {
    found: Coverage,
    figure: CoverageFigure,
    grid: Grid,
    scale: Scale,
    crs: Option<Crs>,
    labels: Vec<String>,
}

pub fn run(args: &CoverageArgs) -> Result<(), Failure> {
    if !args.above.is_finite() {
        return Err(Failure::input(format!("--above {}: expected a level in dBm", args.above)));
    }
    let kind = args.output.as_ref().map(|output| kind_of(output, args.force)).transpose()?;
    if let Some(output) = &args.output {
        check_apart(output, &[&args.input])?;
    }
    let counted = match inspect(&args.input, &ReadOptions::default())?.kind {
        FileKind::Model => of_model(args)?,
        FileKind::Readings => {
            let name = args.input.display();
            return Err(Failure::input(format!(
                "{name}: holds readings, expected a model or a map: fit them first by portolan fit"
            )));
        }
        _ => of_map(args)?,
    };
    let Counted { found, grid, .. } = &counted;
    let mut notes = Vec::new();
    if !found.spread {
        notes.push(format!("{}: holds no spread: only the plain share", args.input.display()));
    }
    let unknown = found.cells - found.best.known;
    if unknown > 0 {
        let area = area(unknown as f64 * grid.cell_m().powi(2));
        notes.push(format!(
            "unknown cells are left out of the area: {unknown} of {} ({area})",
            found.cells
        ));
    }
    warn(&notes);
    if let (Some(output), Some(kind)) = (&args.output, kind) {
        draw(args, &counted, output, kind)?;
    }
    if args.json { emit_json(&as_json(args, &counted)) } else { emit(&as_table(&counted)) }
}

fn of_model(args: &CoverageArgs) -> Result<Counted, Failure> {
    let model = read_model(&args.input)?;
    let wish =
        GridWish { grid: args.grid, cell_m: args.cell_m, origin: args.origin, region: args.region };
    let grid = wish.on(&model)?;
    let bands = named_bands(args.bands.as_deref(), model.labels(), model.bands(), "model")?;
    let mut counted =
        Counted::new(args.above, grid, model.scale(), model.crs(), (model.labels(), &bands));
    let strip = (STRIP / (grid.cols() * bands.len()).max(1)).clamp(1, grid.rows());
    watched("asking", |progress| {
        for first in (0..grid.rows()).step_by(strip) {
            let last = (first + strip).min(grid.rows());
            let share = |row: usize| row as f64 / grid.rows() as f64;
            let part = progress.part(share(first)..share(last));
            let sites = grid.sites_of_rows(first..last);
            let found = model.predict_bands(&sites, &bands, &part)?;
            let shape = (last - first, grid.cols(), bands.len());
            let cube = |values: Array2<f64>| {
                values.into_shape_with_order(shape).expect("every cell of the strip was asked for")
            };
            counted.add(first, cube(found.power), found.spread_db.map(cube));
        }
        Ok::<(), portolan::EstimateError>(())
    })?;
    Ok(counted)
}

fn of_map(args: &CoverageArgs) -> Result<Counted, Failure> {
    for (given, name) in [
        (args.grid.is_some(), "--grid"),
        (args.cell_m.is_some(), "--cell-m"),
        (args.origin.is_some(), "--origin"),
    ] {
        if given {
            let file = args.input.display();
            return Err(Failure::input(format!("{name}: {file} is a map and has its own grid")));
        }
    }
    let options = ReadOptions::default();
    let map: RadioMap = match args.region {
        None => load_map(&args.input, &options)?,
        Some(region) => {
            let loaded = read_map_part(&args.input, region, &options)?;
            warn_about(&args.input, &loaded.warnings);
            loaded.value
        }
    };
    let bands = named_bands(args.bands.as_deref(), map.labels(), map.bands(), "map")?;
    let grid = map.grid();
    let mut counted =
        Counted::new(args.above, grid, map.scale(), map.crs(), (map.labels(), &bands));
    let shape = (grid.rows(), grid.cols(), bands.len());
    let mut power = Array3::zeros(shape);
    for (slot, band) in bands.iter().enumerate() {
        power.slice_mut(s![.., .., slot]).assign(&map.band(*band));
    }
    let spread = map.spread_db().map(|spread| spread.select(Axis(2), &bands));
    counted.add(0, power, spread);
    Ok(counted)
}

impl Counted {
    fn new(
        above: f64,
        grid: Grid,
        scale: Scale,
        crs: Option<Crs>,
        (labels, bands): (&BandLabels, &[usize]),
    ) -> Self {
        Self {
            found: Coverage::new(bands.len(), above),
            figure: CoverageFigure::new(grid),
            grid,
            scale,
            crs,
            labels: bands.iter().map(|band| labels.label(*band)).collect(),
        }
    }

    /// Counts rows from `first` on.
    fn add(&mut self, first: usize, mut power: Array3<f64>, spread: Option<Array3<f64>>) {
        let offset = self.scale.link().offset();
        power.mapv_inplace(|x| 10.0 * (x + offset).log10());
        let best = self.found.add(power.view(), spread.as_ref().map(|spread| spread.view()));
        self.figure.add_rows(first, &best);
    }

    /// Bands, and the best of them where there are several.
    fn rows(&self) -> Vec<(String, Covered)> {
        let mut rows: Vec<(String, Covered)> =
            self.labels.iter().cloned().zip(self.found.bands.iter().copied()).collect();
        if rows.len() > 1 {
            rows.push(("best server".into(), self.found.best));
        }
        rows
    }

    /// Certainties that are told apart: one where there is no spread.
    fn certainties(&self) -> usize {
        if self.found.spread { CERTAINTIES.len() } else { 1 }
    }
}

fn as_table(counted: &Counted) -> String {
    let cell_m2 = counted.grid.cell_m().powi(2);
    let headers = CERTAINTIES.map(|certainty| format!("{:.0} % sure", 100.0 * certainty));
    let mut header = vec!["band"];
    if counted.found.spread {
        header.extend(headers.iter().flat_map(|name| [name.as_str(), "share"]));
    } else {
        header.extend(["above", "share"]);
    }
    header.push("of");
    let rows: Vec<Vec<String>> = counted
        .rows()
        .into_iter()
        .map(|(label, covered)| {
            let mut row = vec![label];
            let both = covered.above.iter().zip(covered.shares()).take(counted.certainties());
            for (count, share) in both {
                row.push(area(*count as f64 * cell_m2));
                row.push(if share.is_nan() {
                    "-".into()
                } else {
                    format!("{:.1} %", 100.0 * share)
                });
            }
            row.push(area(covered.known as f64 * cell_m2));
            row
        })
        .collect();
    table(&header, &rows)
}

fn as_json(args: &CoverageArgs, counted: &Counted) -> Value {
    let cell_m2 = counted.grid.cell_m().powi(2);
    let one = |covered: &Covered| {
        let count = counted.certainties();
        let above: Vec<f64> = covered.above[..count].iter().map(|n| *n as f64 * cell_m2).collect();
        json!({
            "area_m2": covered.known as f64 * cell_m2,
            "above_m2": above,
            "share": &covered.shares()[..count],
        })
    };
    let bands: Vec<Value> = counted
        .labels
        .iter()
        .zip(&counted.found.bands)
        .map(|(label, covered)| {
            let mut row = one(covered);
            row["label"] = json!(label);
            row
        })
        .collect();
    let unknown = counted.found.cells - counted.found.best.known;
    json!({
        "above_db": args.above,
        "unit": counted.scale.decibels(),
        "cell_m": counted.grid.cell_m(),
        "certainties": counted.found.spread.then_some(CERTAINTIES),
        "unknown_m2": unknown as f64 * cell_m2,
        "bands": bands,
        "best_server": one(&counted.found.best),
    })
}

fn draw(
    args: &CoverageArgs,
    counted: &Counted,
    output: &Path,
    kind: PictureKind,
) -> Result<(), Failure> {
    let (grid, count) = (counted.grid, counted.labels.len());
    let bands = match count {
        1 => counted.labels[0].clone(),
        _ => format!("the best of {count} bands"),
    };
    let (rows, cols, cell_m) = (grid.rows(), grid.cols(), grid.cell_m());
    let level = args.above.to_string().replace('-', "−");
    let about = CoverageAbout {
        title: args.title.as_deref(),
        level: format!("{level} {}", counted.scale.decibels()),
        note: format!("{bands}, {rows} × {cols} cells of {cell_m} m"),
        crs: counted.crs,
    };
    let typeface = Typeface::new();
    let scene = counted.figure.draw(&counted.found, &about, &typeface)?;
    save(output, kind, &scene, &typeface, None, args.force)
}

/// Square metres, or square kilometres where there are many.
fn area(m2: f64) -> String {
    if m2 >= 1e6 {
        format!("{:.3} km2", m2 / 1e6)
    } else if m2 >= 100.0 {
        format!("{m2:.0} m2")
    } else {
        format!("{m2:.2} m2")
    }
}
