//! Figures of radio maps.

use ndarray::Array2;
use portolan::{Grid, RadioMap, Readings, Site};

use super::colour::ColourMap;
use super::field::{decibels, robust_limits, symmetric_limits};
use super::figure::{Figure, best_columns};
use super::heat::{HeatPanel, Sensor};
use super::{Bitmap, PictureError};

/// Powers further below the strongest are drawn in the darkest colour.
const WIDEST_DB: f64 = 100.0;
const MOST_ESTIMATES: usize = 22;

/// What [`map_figure`] draws.
#[derive(Clone, Debug)]
pub struct MapFigure<'a> {
    pub map: &'a RadioMap,
    pub truth: Option<&'a RadioMap>,
    pub readings: Option<&'a Readings>,
    /// Counted from 0.
    pub band: usize,
    pub title: Option<String>,
    /// A floor added to powers before they become decibels.
    pub offset: f64,
}

/// One band of a map in dB with its sensors and emitters, and its spread where it has one. With the
/// truth: truth, estimate, their difference, spread.
///
/// ```
/// use portolan::Grid;
/// use portolan::simulate::{Scenario, simulate};
/// use portolan_io::picture::{MapFigure, map_figure};
/// let map = simulate(&Scenario { bands: 4, ..Scenario::new(Grid::new(16, 16, 1.0)?) })?;
/// let figure = MapFigure { map: &map, truth: None, readings: None, band: 2, title: None, offset: 1e-6 };
/// let png = map_figure(&figure)?.png();
/// assert_eq!(&png[1..4], b"PNG");
/// assert!(map_figure(&MapFigure { band: 4, ..figure }).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn map_figure(request: &MapFigure<'_>) -> Result<Bitmap, PictureError> {
    let MapFigure { map, band, offset, .. } = *request;
    let grid = map.grid();
    check_offset(offset)?;
    check_band("the map", map.bands(), band)?;
    if let Some(truth) = request.truth {
        check_band("the truth", truth.bands(), band)?;
        check_grid("the truth", truth.grid(), grid)?;
    }
    if let Some(readings) = request.readings {
        check_bands_of(readings, map)?;
    }
    let estimate = decibels(&map.band(band), offset);
    let truth = request.truth.map(|t| (t, decibels(&t.band(band), offset)));
    let limits = robust_limits(&[truth.as_ref().map_or(&estimate, |t| &t.1)], WIDEST_DB);
    let mut panels = Vec::new();
    let mut error = None;
    if let Some((truth, field)) = truth {
        error = Some(error_panel(&estimate, &field, grid));
        let mut panel = power_panel("truth", field, grid, limits);
        mark_emitters(&mut panel, truth);
        panels.push(panel);
    }
    let name = if error.is_some() { "estimate" } else { "power" };
    let mut panel = power_panel(name, estimate, grid, limits);
    mark_emitters(&mut panel, map);
    panel.sensors = request.readings.map(|r| sensors(r, band, grid)).unwrap_or_default();
    panels.push(panel);
    panels.extend(error);
    panels.extend(map.spread_db().map(|spread| {
        let spread = spread.index_axis(ndarray::Axis(2), band).to_owned();
        spread_panel(spread, grid)
    }));
    let frequencies = map.freq_hz().or_else(|| request.truth.and_then(|t| t.freq_hz()));
    let mut figure = Figure {
        heading: request.title.clone().unwrap_or_else(|| "Radio map".to_owned()),
        note: describe(grid, band, frequencies),
        ..Figure::default()
    };
    let columns = best_columns(panels.len(), grid.rows(), grid.cols());
    figure.add_maps(panels, columns);
    Ok(figure.draw())
}

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
    mark_emitters(&mut first, truth);
    let mut panels = vec![first, sensor_panel(readings, band, offset, limits, grid)];
    panels.extend(estimates.iter().map(|(name, map)| {
        let mut panel = power_panel(name, decibels(&map.band(band), offset), grid, limits);
        mark_emitters(&mut panel, map);
        panel
    }));
    let mut figure = Figure {
        heading: format!("Estimates from {} sensors", readings.sensors()),
        note: describe(grid, band, truth.freq_hz().or(readings.freq_hz())),
        ..Figure::default()
    };
    let columns = best_columns(panels.len(), grid.rows(), grid.cols());
    figure.add_maps(panels, columns);
    Ok(figure.draw())
}

fn mark_emitters(panel: &mut HeatPanel, map: &RadioMap) {
    let grid = map.grid();
    panel.emitters = map.emitters().iter().map(|at| grid.position(*at)).collect();
    let cells = |se: &[f64; 2]| se.map(|s| s / grid.cell_m());
    panel.emitter_se = map.emitter_se_m().iter().map(cells).collect();
    panel.bar = Some(format!("power [{}]", map.scale().decibels()));
}

fn power_panel(title: &str, field: Array2<f64>, grid: Grid, limits: (f64, f64)) -> HeatPanel {
    let mut panel = HeatPanel::on_grid(title, field, grid);
    panel.limits = limits;
    panel
}

fn spread_panel(spread: Array2<f64>, grid: Grid) -> HeatPanel {
    let (_, high) = robust_limits(&[&spread], WIDEST_DB);
    let mut panel = HeatPanel::on_grid("spread", spread, grid);
    panel.colours = ColourMap::Spread;
    // From zero, so that dark always means certain.
    panel.limits = (0.0, high.max(1e-3));
    panel.bar = Some("std. dev. [dB]".to_owned());
    panel
}

fn error_panel(estimate: &Array2<f64>, truth: &Array2<f64>, grid: Grid) -> HeatPanel {
    let error = estimate - truth;
    let known = || error.iter().filter(|e| !e.is_nan());
    let rmse = (known().map(|e| e * e).sum::<f64>() / known().count() as f64).sqrt();
    let limits = symmetric_limits(&error);
    let mut panel = HeatPanel::on_grid("estimate - truth", error, grid);
    panel.colours = ColourMap::Error;
    panel.limits = limits;
    panel.bar = Some("error [dB]".to_owned());
    panel.caption = Some(if rmse.is_nan() {
        "no cell is known in both".to_owned()
    } else {
        format!("rmse {rmse:.2} dB")
    });
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

/// The sensors on the grid that read a band.
fn sensors(readings: &Readings, band: usize, grid: Grid) -> Vec<Sensor> {
    let power = readings.power();
    let silent = |n: usize| readings.not_heard().is_some_and(|silent| silent.entries[[n, band]]);
    let on_grid = |n: usize| grid.cell_at(readings.sites()[n]).is_some();
    let read = |n: &usize| on_grid(*n) && (!power[[*n, band]].is_nan() || silent(*n));
    let at = |n: usize| grid.position(readings.sites()[n]);
    (0..readings.sensors()).filter(read).map(|n| Sensor { at: at(n), value: None }).collect()
}

/// The readings must be of the map's bands, and some of them on the map.
fn check_bands_of(readings: &Readings, map: &RadioMap) -> Result<(), PictureError> {
    if readings.bands() != map.bands() {
        let (found, expected) = (vec![readings.bands()], vec![map.bands()]);
        let what = "the bands of the readings".to_owned();
        return Err(PictureError::Shape { what, found, expected, like: "the map" });
    }
    if readings.sites().iter().all(|site| map.grid().cell_at(*site).is_none()) {
        return Err(PictureError::NoSensor);
    }
    Ok(())
}

fn describe(grid: Grid, band: usize, freq_hz: Option<&[f64]>) -> String {
    let (rows, cols, cell_m) = (grid.rows(), grid.cols(), grid.cell_m());
    format!("{}, {rows} × {cols} cells of {cell_m} m", band_label(band, freq_hz))
}

/// `band 30 (2.437 GHz)`, or without the frequency where it is unknown.
pub fn band_label(band: usize, freq_hz: Option<&[f64]>) -> String {
    let Some(hz) = freq_hz.and_then(|f| f.get(band)) else { return format!("band {band}") };
    let (value, unit) = match *hz {
        hz if hz >= 1e9 => (hz / 1e9, "GHz"),
        hz if hz >= 1e6 => (hz / 1e6, "MHz"),
        hz if hz >= 1e3 => (hz / 1e3, "kHz"),
        hz => (hz, "Hz"),
    };
    let digits = format!("{value:.4}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("band {band} ({digits} {unit})")
}

fn check_band(what: &str, bands: usize, band: usize) -> Result<(), PictureError> {
    if band < bands {
        return Ok(());
    }
    Err(PictureError::Band { what: what.to_owned(), band, bands })
}

fn check_offset(offset: f64) -> Result<(), PictureError> {
    if offset >= 0.0 && offset.is_finite() { Ok(()) } else { Err(PictureError::Offset(offset)) }
}

fn check_grid(what: &str, found: Grid, expected: Grid) -> Result<(), PictureError> {
    let shape = |grid: Grid| vec![grid.rows(), grid.cols()];
    if shape(found) == shape(expected) {
        return Ok(());
    }
    let (found, expected) = (shape(found), shape(expected));
    Err(PictureError::Shape { what: what.to_owned(), found, expected, like: "the map" })
}
