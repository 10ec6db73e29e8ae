//! `portolan coverage`: the area above a level, with several certainties.

use portolan::RadioMap;
use portolan::coverage::CERTAINTIES;
use portolan_io::covered::Counted;
use portolan_io::picture::Typeface;
use portolan_io::{FileKind, MomentFormat, ReadOptions, inspect, read_map_part, read_model};

use super::moments::at_moment;
use super::picture::{kind_of, save};
use super::{check_apart, load_map, named_bands, warn_about};
use crate::args::CoverageArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, table, warn};
use crate::watch::watched;

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
        _ if args.moment.at.is_some() => {
            let name = args.input.display();
            return Err(Failure::input(format!("{name}: --at asks a model, this is a map")));
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
        let typeface = Typeface::new();
        let scene = counted.scene(args.title.as_deref(), &typeface)?;
        save(output, kind, &scene, &typeface, None, args.force)?;
    }
    if args.json { emit_json(&counted.json()) } else { emit(&as_table(&counted)) }
}

fn of_model(args: &CoverageArgs) -> Result<Counted, Failure> {
    let model = at_moment(read_model(&args.input)?, &args.moment, &MomentFormat::default())?;
    let grid = args.on.request().on(&model)?;
    let bands = named_bands(args.bands.as_deref(), model.labels(), model.bands(), "model")?;
    Ok(watched("asking", |progress| Counted::of_model(&model, grid, &bands, args.above, progress))?)
}

fn of_map(args: &CoverageArgs) -> Result<Counted, Failure> {
    if let Some(name) = args.on.about_models() {
        let file = args.input.display();
        return Err(Failure::input(format!("{name}: {file} is a map and has its own grid")));
    }
    let options = ReadOptions::default();
    let map: RadioMap = match args.on.region {
        None => load_map(&args.input, &options)?,
        Some(region) => {
            let loaded = read_map_part(&args.input, region, &options)?;
            warn_about(&args.input, &loaded.warnings);
            loaded.value
        }
    };
    let bands = named_bands(args.bands.as_deref(), map.labels(), map.bands(), "map")?;
    Ok(Counted::of_map(&map, &bands, args.above))
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
    header.extend(["expected", "of"]);
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
            let expected = Some(covered.expected_share()).filter(|share| !share.is_nan());
            row.push(expected.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)));
            row.push(area(covered.known as f64 * cell_m2));
            row
        })
        .collect();
    table(&header, &rows)
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
