//! Estimates side by side, and what figures of maps check first.

use portolan::{BandLabels, Grid, RadioMap, Readings, Site};

use super::PictureError;
use super::field::{decibels, robust_limits};
use super::scene::{Scene, Typeface};
use super::sheet::{MapPanel, Shades, Sheet};

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
) -> Result<Scene, PictureError> {
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
    let shades = Shades::power(robust_limits(&[&field], WIDEST_DB));
    let bar = Some(format!("power [{}]", truth.scale().decibels()));
    let panel = |name: &str, map: &RadioMap| MapPanel {
        bar: bar.clone(),
        emitters: map.emitters_of(band).map(|r| emitter(map, r)).collect(),
        ..MapPanel::new(name, decibels(&map.band(band), offset), shades.clone())
    };
    let sensors = heard(readings, band, offset);
    let sensors = MapPanel::of_sensors("sensors", sensors, shades.clone());
    let mut panels = vec![panel("truth", truth), MapPanel { bar: bar.clone(), ..sensors }];
    panels.extend(estimates.iter().map(|(name, map)| panel(name, map)));
    let heading = format!("Estimates from {} sensors", readings.sensors());
    let note = describe(grid, band, labels_of(truth.labels(), readings.labels()));
    Ok(Sheet::new(heading, note, grid, panels, &Typeface::new()).draw())
}

/// The sensors that read a band, and what they read in dB.
pub fn heard(readings: &Readings, band: usize, offset: f64) -> Vec<(Site, Option<f64>)> {
    let power = readings.power();
    let heard = readings.sites().iter().zip(power.column(band)).filter(|(_, p)| !p.is_nan());
    heard.map(|(site, p)| (*site, Some(10.0 * (p + offset).log10()))).collect()
}

/// An emitter's place and its confidence ellipse; a place that is known has no ellipse.
pub(super) fn emitter(map: &RadioMap, number: usize) -> (Site, Option<[f64; 2]>) {
    let se = map.emitter_se_m().get(number).copied();
    (map.emitters()[number], se.filter(|se| *se != [0.0; 2]))
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
