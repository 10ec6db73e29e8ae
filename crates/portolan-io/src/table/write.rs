//! Wide tables: a column per band, named by its unit and frequency or name. Readings have the
//! columns `x_m,y_m` (and `lat,lon` where it is known where on Earth they are), or `row,col` where
//! they stand on the cells of a grid; a map has both, and the spread of every band beside it.
//! Without a frequency or name the bands are numbered. A band is written in decibels unless it holds
//! a zero, which decibels cannot say: then it is linear. An entry that was not heard is a zero.
//! Factors, emitters, floors, and noise and number of readings are not kept.

use std::borrow::Cow;
use std::io::{self, Write};

use portolan::{BandLabels, RadioMap, Readings, Scale, Site, Values};

use crate::error::{Check, Problem};
use crate::gis::earth::{Degrees, Projection};
use crate::options::Unit;

/// Refuses readings that a table cannot hold.
pub(crate) fn check_readings(readings: &Readings, unit: Option<Unit>) -> Check<()> {
    match readings.values() {
        Values::Levels { .. } => Err(Problem::new(
            "a table cannot hold quantised levels: choose a name that ends in .npz or .mat",
        )),
        Values::Power(power) => {
            check_unit(readings.scale(), unit)?;
            let zero = power.iter().any(|v| *v == 0.0) || readings.not_heard().is_some();
            if zero && needs_decibels(readings.scale(), unit) { Err(no_zero()) } else { Ok(()) }
        }
    }
}

/// Refuses a map that a table cannot hold.
pub(crate) fn check_map(map: &RadioMap, unit: Option<Unit>) -> Check<()> {
    check_unit(map.scale(), unit)?;
    map.crs().map(Projection::of).transpose()?;
    if needs_decibels(map.scale(), unit) && zeros(map).contains(&true) {
        return Err(no_zero());
    }
    Ok(())
}

/// A power without calibration is not written as dBm, nor the other way round.
fn check_unit(scale: Scale, unit: Option<Unit>) -> Check<()> {
    let own = Unit::of_scale(scale);
    match (unit, own) {
        (Some(Unit::Dbm | Unit::Linear), Unit::Db | Unit::Relative)
        | (Some(Unit::Db | Unit::Relative), Unit::Dbm) => {
            let name = Unit::NAMED.iter().find(|(_, unit)| *unit == own).map_or("", |(n, _)| n);
            Err(Problem::new(format!("its powers are {name}: another unit would be made up")))
        }
        _ => Ok(()),
    }
}

/// Whether there is no linear unit to fall back on.
fn needs_decibels(scale: Scale, unit: Option<Unit>) -> bool {
    unit.map_or(scale == Scale::Uncalibrated, Unit::is_decibels)
}

fn no_zero() -> Problem {
    Problem::new(
        "a power of zero, or one that was not heard, has no value in decibels: write linear \
         power, or choose a name that ends in .npz or .mat",
    )
}

pub(crate) fn write_readings(
    readings: &Readings,
    unit: Option<Unit>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut power = readings.power();
    if let Some(silent) = readings.not_heard() {
        power.zip_mut_with(&silent.entries, |x, silent| *x = if *silent { 0.0 } else { *x });
    }
    let zeros = power.columns().into_iter().map(|band| band.iter().any(|v| *v == 0.0));
    let units: Vec<Unit> = zeros.map(|zero| choose(readings.scale(), unit, zero)).collect();
    let on_cells = readings.grid().filter(|grid| {
        let centred = |site: &Site| grid.cell_at(*site).is_some_and(|c| grid.site(c) == *site);
        let plain = grid.cell_m() == 1.0 && grid.origin() == Site::new(0.0, 0.0);
        plain && readings.sites().iter().all(centred)
    });
    let projection = readings.crs().and_then(|crs| Projection::of(crs).ok());
    let on_cells = on_cells.filter(|_| projection.is_none());
    write!(out, "{}", if on_cells.is_some() { "row,col" } else { "x_m,y_m" })?;
    write!(out, "{}", if projection.is_some() { ",lat,lon" } else { "" })?;
    header(readings.labels(), &units, out)?;
    writeln!(out)?;
    for (site, values) in readings.sites().iter().zip(power.rows()) {
        match on_cells.and_then(|grid| grid.cell_at(*site)) {
            Some(cell) => write!(out, "{},{}", cell.row, cell.col)?,
            None => write!(out, "{},{}", site.x_m, site.y_m)?,
        }
        degrees(projection.as_ref(), *site, out)?;
        line(values.iter().copied(), &units, out)?;
        writeln!(out)?;
    }
    Ok(())
}

pub(crate) fn write_map(
    map: &RadioMap,
    unit: Option<Unit>,
    out: &mut impl Write,
) -> io::Result<()> {
    let choose = |zero| choose(map.scale(), unit, zero);
    let units: Vec<Unit> = zeros(map).into_iter().map(choose).collect();
    let projection = map.crs().and_then(|crs| Projection::of(crs).ok());
    write!(out, "row,col,x_m,y_m{}", if projection.is_some() { ",lat,lon" } else { "" })?;
    header(map.labels(), &units, out)?;
    if map.spread_db().is_some() {
        for band in 0..map.bands() {
            write!(out, ",{}", escaped(&format!("spread_db_{}", map.labels().label(band))))?;
        }
    }
    writeln!(out)?;
    let mut spectrum = vec![0.0; map.bands()];
    for index in 0..map.grid().cells() {
        let cell = map.grid().cell(index);
        let Site { x_m, y_m, .. } = map.grid().site(cell);
        map.spectrum_into(cell, &mut spectrum);
        write!(out, "{},{},{x_m},{y_m}", cell.row, cell.col)?;
        degrees(projection.as_ref(), Site::new(x_m, y_m), out)?;
        line(spectrum.iter().copied(), &units, out)?;
        if let Some(spread) = map.spread_db() {
            let own = (0..map.bands()).map(|band| spread[[cell.row, cell.col, band]]);
            line(own, &vec![Unit::Linear; map.bands()], out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Latitude and longitude of a place, where it is known where on Earth it is.
fn degrees(projection: Option<&Projection>, at: Site, out: &mut impl Write) -> io::Result<()> {
    match projection.map(|projection| projection.inverse(at)) {
        None => Ok(()),
        Some(Ok(Degrees { lat, lon })) => write!(out, ",{lat},{lon}"),
        Some(Err(_)) => write!(out, ",,"),
    }
}

/// Which bands hold a zero.
fn zeros(map: &RadioMap) -> Vec<bool> {
    let mut zeros = vec![false; map.bands()];
    let mut spectrum = vec![0.0; map.bands()];
    for index in 0..map.grid().cells() {
        map.spectrum_into(map.grid().cell(index), &mut spectrum);
        zeros.iter_mut().zip(&spectrum).for_each(|(zero, v)| *zero |= *v == 0.0);
    }
    zeros
}

fn choose(scale: Scale, unit: Option<Unit>, has_zero: bool) -> Unit {
    unit.unwrap_or(match (Unit::of_scale(scale), has_zero) {
        (Unit::Dbm, true) => Unit::Linear,
        (own, _) => own,
    })
}

fn header(labels: &BandLabels, units: &[Unit], out: &mut impl Write) -> io::Result<()> {
    for (band, unit) in units.iter().enumerate() {
        let name = Unit::NAMED.iter().find(|(_, known)| known == unit).map_or("", |(name, _)| name);
        write!(out, ",{}", escaped(&format!("{name}_{}", labels.label(band))))?;
    }
    Ok(())
}

/// A field in quotes where it needs them.
fn escaped(field: &str) -> Cow<'_, str> {
    match field.contains([',', ';', '"', '\t', '#']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}

fn line(values: impl Iterator<Item = f64>, units: &[Unit], out: &mut impl Write) -> io::Result<()> {
    for (value, unit) in values.zip(units) {
        if value.is_nan() {
            write!(out, ",")?;
        } else {
            write!(out, ",{}", unit.from_linear(value))?;
        }
    }
    Ok(())
}
