//! Pictures of one map: a band with its spread or beside the truth, or all bands.

use ndarray::{Array2, Axis};
use portolan::{RadioMap, Readings, Site};

use super::PictureError;
use super::colour::ColourMap;
use super::field::symmetric_limits;
use super::look::{Layer, Look, spread_limits};
use super::maps::{check_band, check_grid, check_offset, describe, emitter, labels_of};
use super::scene::Scene;
use super::sheet::{Axes, MapPanel, Shades, Sheet};
use crate::difference::Difference;
use crate::gis::MapParts;

/// Panels of one picture.
const MOST_BANDS: usize = 36;

/// What [`map_figure`] draws.
#[derive(Clone, Copy, Debug)]
pub struct MapFigure<'a> {
    pub map: &'a RadioMap,
    pub truth: Option<&'a RadioMap>,
    pub readings: Option<&'a Readings>,
    /// Counted from 0.
    pub band: usize,
    pub title: Option<&'a str>,
    /// A floor added to powers before they become decibels.
    pub offset: f64,
    pub look: &'a Look,
}

/// One band of a map in dB with its sensors and emitters, and its spread where it has one. With the
/// truth: truth, estimate, their difference, spread.
///
/// ```
/// use portolan::Grid;
/// use portolan::simulate::{Scenario, simulate};
/// use portolan_io::picture::{Look, MapFigure, map_figure};
/// let map = simulate(&Scenario { bands: 4, ..Scenario::new(Grid::new(16, 16, 1.0)?) })?;
/// let look = Look::default();
/// let figure = MapFigure {
///     map: &map, truth: None, readings: None, band: 2, title: None, offset: 1e-6, look: &look,
/// };
/// let scene = map_figure(&figure)?;
/// assert_eq!(&scene.png(800)?[1..4], b"PNG");
/// assert!(scene.svg(400.0).starts_with("<svg") && scene.pdf(400.0).starts_with(b"%PDF"));
/// assert!(map_figure(&MapFigure { band: 4, ..figure }).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn map_figure(request: &MapFigure<'_>) -> Result<Scene, PictureError> {
    let MapFigure { map, band, offset, look, .. } = *request;
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
    let estimate = look.field(map, band, offset)?;
    let truth = request.truth.map(|t| Ok((t, look.field(t, band, offset)?))).transpose()?;
    let shades = look.shades(&[truth.as_ref().map_or(&estimate, |t| &t.1)]);
    let panel = |title: &str, field: Array2<f64>, of: &RadioMap| MapPanel {
        bar: Some(look.bar(of)),
        contours: look.contours.clone(),
        emitters: of.emitters_of(band).map(|r| emitter(of, r)).collect(),
        ..MapPanel::new(title, field, shades.clone())
    };
    let mut panels = Vec::new();
    let mut error = None;
    if let Some((truth, field)) = truth {
        error = Some(error_panel(&estimate, &field));
        panels.push(panel("truth", field, truth));
    }
    let name = if error.is_some() { "estimate".to_owned() } else { look.title(map) };
    let mut main = panel(&name, estimate, map);
    main.sensors = request.readings.map(|r| sensors(r, band, map)).unwrap_or_default();
    panels.push(main);
    panels.extend(error);
    if look.layer == Layer::Power {
        panels.extend(map.spread_db().map(|spread| {
            let spread = spread.index_axis(Axis(2), band).to_owned();
            spread_panel(spread, look.spread_colours())
        }));
    }
    let labels = labels_of(map.labels(), request.truth.unwrap_or(map).labels());
    let note = describe(grid, band, labels);
    Ok(sheet(request.title, note, map, look, panels).draw())
}

/// What two maps differ by in one band, and its standard deviation.
pub fn difference_figure(
    found: &Difference,
    band: usize,
    title: Option<&str>,
    look: &Look,
) -> Result<Scene, PictureError> {
    let about = found.about();
    check_band("the difference", about.bands, band)?;
    let field = found.difference_db.index_axis(Axis(2), band).to_owned();
    let limits = look.range.unwrap_or_else(|| symmetric_limits(&field));
    let shades = Shades::Even { colours: ColourMap::Error, limits };
    let share = 100.0 * (found.bands()[band].louder + found.bands()[band].fainter);
    let caption = match found.spread_db {
        Some(_) => format!("significant in {share:.0} % of the area"),
        None => "no standard deviations: significance is unknown".to_owned(),
    };
    let mut panels = vec![MapPanel {
        bar: Some("difference [dB]".to_owned()),
        caption: Some(caption),
        contours: look.contours.clone(),
        ..MapPanel::new("after − before", field, shades)
    }];
    panels.extend(found.spread_db.as_ref().map(|spread| {
        spread_panel(spread.index_axis(Axis(2), band).to_owned(), look.spread_colours())
    }));
    let note = describe(about.grid, band, &about.frame.labels);
    let heading = title.unwrap_or("Difference of two maps");
    let sheet = Sheet {
        crs: about.frame.crs,
        axes: look.axes,
        under: look.under.as_ref(),
        opacity: look.opacity,
        ..Sheet::new(heading, note, about.grid, panels, &look.typeface)
    };
    Ok(sheet.draw())
}

/// Some bands of a map in order of frequency, each in a small panel, all with the same colours. At
/// most 36 are drawn: of more, as many at even steps.
pub fn spectrum_figure(
    map: &RadioMap,
    bands: &[usize],
    readings: Option<&Readings>,
    title: Option<&str>,
    offset: f64,
    look: &Look,
) -> Result<Scene, PictureError> {
    check_offset(offset)?;
    for band in bands {
        check_band("the map", map.bands(), *band)?;
    }
    if let Some(readings) = readings {
        check_bands_of(readings, map)?;
    }
    let mut order = bands.to_vec();
    if let Some(freq_hz) = map.freq_hz() {
        order.sort_by(|a, b| freq_hz[*a].total_cmp(&freq_hz[*b]));
    }
    let all = order.len();
    let shown: Vec<usize> = if all > MOST_BANDS {
        (0..MOST_BANDS).map(|n| order[n * (all - 1) / (MOST_BANDS - 1)]).collect()
    } else {
        order
    };
    let fields: Vec<Array2<f64>> =
        shown.iter().map(|band| look.field(map, *band, offset)).collect::<Result<_, _>>()?;
    let shades = look.shades(&fields.iter().collect::<Vec<_>>());
    let panels: Vec<MapPanel> = shown
        .iter()
        .zip(fields)
        .map(|(band, field)| MapPanel {
            bar: Some(look.bar(map)),
            contours: look.contours.clone(),
            emitters: map.emitters_of(*band).map(|r| emitter(map, r)).collect(),
            sensors: readings.map(|r| sensors(r, *band, map)).unwrap_or_default(),
            ..MapPanel::new(band_title(map, *band), field, shades.clone())
        })
        .collect();
    let grid = map.grid();
    let (rows, cols, cell_m) = (grid.rows(), grid.cols(), grid.cell_m());
    let some = if shown.len() < all { format!("{} of ", shown.len()) } else { String::new() };
    let note = format!("{some}{all} bands, {rows} × {cols} cells of {cell_m} m");
    let mut sheet = sheet(title, note, map, look, panels);
    if shown.len() <= 3 {
        sheet.columns = Some(shown.len());
    } else if shown.len() > 9 {
        let (across, upward) = match look.axes {
            Axes::Xy => (grid.rows(), grid.cols()),
            Axes::Rows => (grid.cols(), grid.rows()),
        };
        let wished = (1.7 * shown.len() as f64 * upward as f64 / across as f64).sqrt();
        let wished = (wished.round() as usize).clamp(1, 8);
        // A column more or less where that leaves fewer holes.
        let holes = |columns: usize| shown.len().next_multiple_of(columns) - shown.len();
        let near = [wished, wished + 1, (wished - 1).max(1)];
        sheet.columns = near.into_iter().min_by_key(|columns| holes(*columns));
    }
    Ok(sheet.draw())
}

fn sheet<'a>(
    title: Option<&str>,
    note: String,
    map: &RadioMap,
    look: &'a Look,
    panels: Vec<MapPanel>,
) -> Sheet<'a> {
    let heading = title.unwrap_or("Radio map");
    Sheet {
        crs: map.crs(),
        axes: look.axes,
        under: look.under.as_ref(),
        opacity: look.opacity,
        ..Sheet::new(heading, note, map.grid(), panels, &look.typeface)
    }
}

/// The name of a band: its name, its frequency, or its number.
fn band_title(map: &RadioMap, band: usize) -> String {
    let label = map.labels().label(band);
    match (map.labels().names(), label.strip_suffix("MHz")) {
        (None, Some(megahertz)) => format!("{megahertz} MHz"),
        _ => label,
    }
}

fn spread_panel(spread: Array2<f64>, colours: ColourMap) -> MapPanel {
    let shades = Shades::Even { colours, limits: spread_limits(&[&spread]) };
    MapPanel { bar: Some("std. dev. [dB]".to_owned()), ..MapPanel::new("spread", spread, shades) }
}

fn error_panel(estimate: &Array2<f64>, truth: &Array2<f64>) -> MapPanel {
    let error = estimate - truth;
    let known = || error.iter().filter(|e| !e.is_nan());
    let rmse = (known().map(|e| e * e).sum::<f64>() / known().count() as f64).sqrt();
    let shades = Shades::Even { colours: ColourMap::Error, limits: symmetric_limits(&error) };
    let caption = if rmse.is_nan() {
        "no cell is known in both".to_owned()
    } else {
        format!("rmse {rmse:.2} dB")
    };
    MapPanel {
        bar: Some("error [dB]".to_owned()),
        caption: Some(caption),
        ..MapPanel::new("estimate − truth", error, shades)
    }
}

/// The sensors on the map that listened to a band.
fn sensors(readings: &Readings, band: usize, map: &RadioMap) -> Vec<(Site, Option<f64>)> {
    let power = readings.power();
    let silent = |n: usize| readings.not_heard().is_some_and(|silent| silent.entries[[n, band]]);
    let sites = readings.sites();
    (0..readings.sensors())
        .filter(|n| map.grid().cell_at(sites[*n]).is_some())
        .filter(|n| !power[[*n, band]].is_nan() || silent(*n))
        .map(|n| (sites[n], None))
        .collect()
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
