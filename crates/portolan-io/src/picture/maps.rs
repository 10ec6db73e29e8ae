//! Estimates side by side, and what figures of maps check first.

use ndarray::Array2;
use portolan::{BandLabels, Grid, RadioMap, Readings, Site};

use super::field::{decibels, robust_limits};
use super::figure::{Figure, best_columns};
use super::heat::{HeatPanel, Sensor};
use super::{Bitmap, PictureError};

/// Powers further below the strongest are drawn in the darkest colour.
pub const WIDEST_DB: f64 = 100.0;
const MOST_ESTIMATES: usize = 22;

/// The truth, what the sensors saw, and several estimates of one band, all with the same colours.
/// A newline in an estimate's name starts a second, plainer line of its title.
pub fn methods_figure(
    truth: &RadioMap,
    readings: &Readings,
    estimates: &[(String, &RadioMap)],
    band: usize,
    offset: f64,
) -> Result<Bitmap, PictureError> {
    let grid = truth.grid();
    check_offset(offset)?;
    check_band("the truth", truth.bands(), band)?;
    check_band("the readings", readings.bands(), band)?;
    for (name, map) in estimates {
        check_band(name, map.bands(), band)?;
        check_grid(name, map.grid(), grid)?;
    }
    if estimates.len() > MOST_ESTIMATES {
        return Err(PictureError::TooMany { found: estimates.len(), most: MOST_ESTIMATES });
    }
    let field = decibels(&truth.band(band), offset);
    let limits = robust_limits(&[&field], WIDEST_DB);
    let mut first = power_panel("truth", field, grid, limits);
    mark_emitters(&mut first, truth, band);
    let mut panels = vec![first, sensor_panel(readings, band, offset, limits, grid)];
    panels.extend(estimates.iter().map(|(name, map)| {
        let mut panel = power_panel(name, decibels(&map.band(band), offset), grid, limits);
        mark_emitters(&mut panel, map, band);
        panel
    }));
    let mut figure = Figure {
        heading: format!("Estimates from {} sensors", readings.sensors()),
        note: describe(grid, band, labels_of(truth.labels(), readings.labels())),
        ..Figure::default()
    };
    let columns = best_columns(panels.len(), grid.rows(), grid.cols());
    figure.add_maps(panels, columns);
    Ok(figure.draw())
}

fn mark_emitters(panel: &mut HeatPanel, map: &RadioMap, band: usize) {
    let grid = map.grid();
    panel.emitters = map.emitters_of(band).map(|r| grid.position(map.emitters()[r])).collect();
    let cells = |se: &[f64; 2]| se.map(|s| s / grid.cell_m());
    let errors = map.emitter_se_m();
    panel.emitter_se = map.emitters_of(band).filter_map(|r| errors.get(r).map(cells)).collect();
    panel.bar = Some(format!("power [{}]", map.scale().decibels()));
}

fn power_panel(title: &str, field: Array2<f64>, grid: Grid, limits: (f64, f64)) -> HeatPanel {
    let mut panel = HeatPanel::on_grid(title, field, grid);
    panel.limits = limits;
    panel
}

fn sensor_panel(
    readings: &Readings,
    band: usize,
    offset: f64,
    limits: (f64, f64),
    grid: Grid,
) -> HeatPanel {
    let power = readings.power();
    let heard = readings.sites().iter().zip(power.column(band)).filter(|(_, p)| !p.is_nan());
    let at = |site: &Site| grid.position(*site);
    let nothing = Array2::from_elem((grid.rows(), grid.cols()), f64::NAN);
    let mut panel = power_panel("sensors", nothing, grid, limits);
    panel.sensors = heard
        .map(|(s, p)| Sensor { at: at(s), value: Some(10.0 * (p + offset).log10()) })
        .collect();
    panel
}

/// Of two sets of labels, those that say something.
pub(super) fn labels_of<'a>(first: &'a BandLabels, second: &'a BandLabels) -> &'a BandLabels {
    if *first == BandLabels::default() { second } else { first }
}

pub(super) fn describe(grid: Grid, band: usize, labels: &BandLabels) -> String {
    let (rows, cols, cell_m) = (grid.rows(), grid.cols(), grid.cell_m());
    format!("{}, {rows} × {cols} cells of {cell_m} m", band_label(band, labels))
}

/// `band 30 (2.437 GHz)`, or without the frequency where it is unknown; a band that has a name goes
/// by it.
fn band_label(band: usize, labels: &BandLabels) -> String {
    let name = match labels.names().and_then(|names| names.get(band)) {
        Some(name) => name.clone(),
        None => format!("band {band}"),
    };
    let Some(hz) = labels.freq_hz().and_then(|f| f.get(band)) else { return name };
    let (value, unit) = match *hz {
        hz if hz >= 1e9 => (hz / 1e9, "GHz"),
        hz if hz >= 1e6 => (hz / 1e6, "MHz"),
        hz if hz >= 1e3 => (hz / 1e3, "kHz"),
        hz => (hz, "Hz"),
    };
    let digits = format!("{value:.4}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{name} ({digits} {unit})")
}

pub(super) fn check_band(what: &str, bands: usize, band: usize) -> Result<(), PictureError> {
    if band < bands {
        return Ok(());
    }
    Err(PictureError::Band { what: what.to_owned(), band, bands })
}

pub(super) fn check_offset(offset: f64) -> Result<(), PictureError> {
    if offset >= 0.0 && offset.is_finite() { Ok(()) } else { Err(PictureError::Offset(offset)) }
}

pub(super) fn check_grid(what: &str, found: Grid, expected: Grid) -> Result<(), PictureError> {
    let shape = |grid: Grid| vec![grid.rows(), grid.cols()];
    if shape(found) == shape(expected) {
        return Ok(());
    }
    let (found, expected) = (shape(found), shape(expected));
    Err(PictureError::Shape { what: what.to_owned(), found, expected, like: "the map" })
}
