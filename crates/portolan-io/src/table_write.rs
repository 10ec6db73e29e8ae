//! Wide tables of readings and of maps: `row,col` and a column per band, named by its unit and
//! frequency. Without a frequency the bands are numbered. A band is written in dBm unless it holds
//! a zero, which dBm cannot say: then it is linear. Cell size, factors, spread and emitters are not
//! kept.

use std::io::{self, Write};

use portolan::{Cell, RadioMap, Readings, Values};

use crate::error::{Check, Problem};
use crate::options::Unit;

/// Refuses readings that a table cannot hold.
pub(crate) fn check_readings(readings: &Readings, unit: Option<Unit>) -> Check<()> {
    match readings.values() {
        Values::Levels { .. } => Err(Problem::new(
            "a table cannot hold quantised levels: choose a name that ends in .npz or .mat",
        )),
        Values::Power(power) if unit == Some(Unit::Dbm) && power.iter().any(|v| *v == 0.0) => {
            Err(no_zero())
        }
        Values::Power(_) => Ok(()),
    }
}

/// Refuses a map that a table cannot hold.
pub(crate) fn check_map(map: &RadioMap, unit: Option<Unit>) -> Check<()> {
    if unit == Some(Unit::Dbm) && zeros(map).contains(&true) {
        return Err(no_zero());
    }
    Ok(())
}

fn no_zero() -> Problem {
    Problem::new("a power of zero has no value in dBm: write linear power")
}

pub(crate) fn write_readings(
    readings: &Readings,
    unit: Option<Unit>,
    out: &mut impl Write,
) -> io::Result<()> {
    let power = readings.power();
    let zeros = power.columns().into_iter().map(|band| band.iter().any(|v| *v == 0.0));
    let units: Vec<Unit> = zeros.map(|zero| choose(unit, zero)).collect();
    header(readings.freq_hz(), &units, out)?;
    for (cell, values) in readings.cells().iter().zip(power.rows()) {
        line(*cell, values.iter().copied(), &units, out)?;
    }
    Ok(())
}

pub(crate) fn write_map(
    map: &RadioMap,
    unit: Option<Unit>,
    out: &mut impl Write,
) -> io::Result<()> {
    let units: Vec<Unit> = zeros(map).into_iter().map(|zero| choose(unit, zero)).collect();
    header(map.freq_hz(), &units, out)?;
    let mut spectrum = vec![0.0; map.bands()];
    for index in 0..map.grid().cells() {
        let cell = map.grid().cell(index);
        map.spectrum_into(cell, &mut spectrum);
        line(cell, spectrum.iter().copied(), &units, out)?;
    }
    Ok(())
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

fn choose(unit: Option<Unit>, has_zero: bool) -> Unit {
    unit.unwrap_or(if has_zero { Unit::Linear } else { Unit::Dbm })
}

fn header(freq_hz: Option<&[f64]>, units: &[Unit], out: &mut impl Write) -> io::Result<()> {
    write!(out, "row,col")?;
    for (band, unit) in units.iter().enumerate() {
        let unit = match unit {
            Unit::Linear => "linear",
            Unit::Dbm => "dbm",
        };
        match freq_hz {
            Some(freq_hz) => write!(out, ",{unit}_{}", frequency(freq_hz[band]))?,
            None => write!(out, ",{unit}_band{band}")?,
        }
    }
    writeln!(out)
}

/// A frequency in MHz where that says it exactly, else in Hz.
fn frequency(freq_hz: f64) -> String {
    let megahertz = freq_hz / 1e6;
    if megahertz * 1e6 == freq_hz && format!("{megahertz}").len() <= 12 {
        format!("{megahertz}MHz")
    } else {
        format!("{freq_hz}Hz")
    }
}

fn line(
    cell: Cell,
    values: impl Iterator<Item = f64>,
    units: &[Unit],
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "{},{}", cell.row, cell.col)?;
    for (value, unit) in values.zip(units) {
        if value.is_nan() {
            write!(out, ",")?;
        } else {
            write!(out, ",{}", unit.from_linear(value))?;
        }
    }
    writeln!(out)
}
