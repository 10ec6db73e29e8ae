//! Pictures of experiments: curves over a table's rows, and recovered maps.

use ndarray::Array2;
use portolan_io::picture::{
    Chart, Curve, MapPanel, Scene, Shades, Sheet, Typeface, WIDEST_DB, charts_figure, decibels,
    heard, robust_limits,
};

use crate::error::ReproduceError;
use crate::experiment::{Experiment, PictureKind, Section, TableCell, TrialSetup};
use crate::files::Desk;
use crate::markdown::printed;
use crate::record::{Figures, Metric, Outcome};
use crate::scene::{PreparedScene, Truth};
use crate::summary::{CellSummary, Mean};

/// Maps side by side in the figure of simulated maps.
const COLUMNS: usize = 4;

/// The names of an experiment's pictures.
pub fn names(experiment: &Experiment) -> Vec<String> {
    match experiment.picture {
        PictureKind::Nothing => Vec::new(),
        PictureKind::Curves => {
            experiment.sections.iter().map(|section| curves_name(experiment, section)).collect()
        }
        PictureKind::Maps | PictureKind::Bands => vec![format!("{}.png", experiment.name)],
    }
}

/// All pictures of an experiment that the journal allows, by file name.
pub fn draw(
    experiment: &Experiment,
    desk: &Desk<'_>,
) -> Result<Vec<(String, Scene)>, ReproduceError> {
    if !desk.has(experiment) {
        return Ok(Vec::new());
    }
    let name = format!("{}.png", experiment.name);
    match experiment.picture {
        PictureKind::Nothing => Ok(Vec::new()),
        PictureKind::Curves => Ok(experiment
            .sections
            .iter()
            .map(|section| (curves_name(experiment, section), curves(experiment, section, desk)))
            .collect()),
        PictureKind::Maps => {
            Ok(maps(experiment, desk)?.map(|scene| (name, scene)).into_iter().collect())
        }
        PictureKind::Bands => {
            Ok(bands(experiment, desk)?.map(|scene| (name, scene)).into_iter().collect())
        }
    }
}

fn curves_name(experiment: &Experiment, section: &Section) -> String {
    let part = section.name.to_lowercase().replace(' ', "-");
    if experiment.sections.len() > 1 {
        format!("{}-{part}.png", experiment.name)
    } else {
        format!("{}.png", experiment.name)
    }
}

/// Our means with error bars above, what the paper prints below.
fn curves(experiment: &Experiment, section: &Section, desk: &Desk<'_>) -> Scene {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for (place, column) in section.column_labels().into_iter().enumerate() {
        let cells = || section.cells.iter().filter(|cell| cell.column == column);
        let at = |cell: &TableCell| cell.row.parse::<f64>().unwrap_or(f64::NAN);
        let (colour, dashed) = (place, place >= 8);
        let mut points = Vec::new();
        for cell in cells() {
            let summary = CellSummary::of(cell, desk.journal, desk.first_seed);
            let Some(Mean { mean, error }) = summary.mean(Metric::Ssim) else { continue };
            points.push((at(cell), mean));
            if let Some(error) = error {
                let bar = vec![(at(cell), mean - error), (at(cell), mean + error)];
                ours.push(Curve { name: String::new(), points: bar, colour, dashed: false });
            }
        }
        if !points.is_empty() {
            ours.push(Curve { name: column.into(), points, colour, dashed });
        }
        let points: Vec<(f64, f64)> =
            cells().filter_map(|cell| Some((at(cell), printed(cell, Metric::Ssim)?))).collect();
        let named = cells().find_map(|cell| Some(cell.printed.as_ref()?.column.clone()));
        let once = |name: &String| theirs.iter().all(|curve: &Curve| curve.name != *name);
        if let Some(name) = named.filter(once) {
            theirs.push(Curve { name, points, colour, dashed });
        }
    }
    let chart = |title: &str, curves: Vec<Curve>| Chart {
        title: title.into(),
        x_name: section.rows.into(),
        y_name: "SSIM".into(),
        curves,
        bars: Vec::new(),
        y_limits: None,
    };
    let mut charts = vec![chart("measured here, mean and standard error", ours)];
    if !theirs.is_empty() {
        charts.push(chart("printed in the paper", theirs));
    }
    charts_figure(experiment.title, &section.title, &charts, &Typeface::new())
}

/// The figures of a cell's first trial, where there are any.
fn first<'a>(desk: &'a Desk<'_>, setup: &TrialSetup) -> Option<&'a Figures> {
    match &desk.journal.get(&setup.key(desk.first_seed, 0))?.outcome {
        Outcome::Scored(figures) => Some(figures),
        Outcome::Failed(_) => None,
    }
}

/// Truth, sensors and estimates, a block for each section, all with the same colours.
fn maps(experiment: &Experiment, desk: &Desk<'_>) -> Result<Option<Scene>, ReproduceError> {
    let (mut panels, mut drawn, mut shades) = (Vec::new(), None, None);
    for section in &experiment.sections {
        let setups = || section.cells.iter().filter_map(|cell| Some((cell, cell.setup.as_ref()?)));
        let Some((_, any)) = setups().next() else { continue };
        let prepared = PreparedScene::make(&any.scene, desk.data, desk.first_seed)?;
        let (Truth::Map { map, .. }, Some(&band)) = (&prepared.truth, any.draw.first()) else {
            continue;
        };
        let offset = prepared.offset();
        let truth = decibels(&map.band(band), offset);
        let shades =
            &*shades.get_or_insert_with(|| Shades::power(robust_limits(&[&truth], WIDEST_DB)));
        let bar = |panel: MapPanel| MapPanel { bar: Some("power [dB]".into()), ..panel };
        panels.push(bar(MapPanel {
            emitters: map.emitters().iter().map(|site| (*site, None)).collect(),
            starts_row: true,
            ..MapPanel::new(format!("truth\n{}", section.name), truth, shades.clone())
        }));
        let (grid, readings) = (map.grid(), &prepared.readings);
        let title = format!("sensors\n{} of {} cells", readings.sensors(), grid.cells());
        let sensors = heard(readings, band, offset);
        panels.push(bar(MapPanel::of_sensors(title, sensors, shades.clone())));
        for (cell, setup) in setups() {
            let Some(figures) = first(desk, setup) else { continue };
            let Some((_, field)) = figures.fields.iter().find(|(kept, _)| *kept == band) else {
                continue;
            };
            let score = figures.ssim.map_or("-".into(), |ssim| format!("{ssim:.3}"));
            let title = format!("{}\nSSIM {score}", cell.row);
            panels.push(bar(MapPanel::new(title, field.mapv(f64::from), shades.clone())));
        }
        let (bands, rows, cols) = (map.bands(), grid.rows(), grid.cols());
        let note = format!("band {} of {bands} ({rows} x {cols} m); SSIM over all bands", band + 1);
        drawn = Some((grid, note));
    }
    Ok(drawn.map(|(grid, note)| {
        let typeface = Typeface::new();
        let sheet = Sheet::new(experiment.title, note, grid, panels, &typeface);
        Sheet { columns: Some(COLUMNS), ..sheet }.draw()
    }))
}

/// The floor: bands as rows; what was measured, the sensors and the methods as columns. Cells that
/// nobody measured are masked.
fn bands(experiment: &Experiment, desk: &Desk<'_>) -> Result<Option<Scene>, ReproduceError> {
    let Some(floor) = &desk.data.floor else { return Ok(None) };
    let setups: Vec<(&TableCell, &TrialSetup)> =
        experiment.cells().filter_map(|cell| Some((cell, cell.setup.as_ref()?))).collect();
    let Some((_, any)) = setups.first() else { return Ok(None) };
    let prepared = PreparedScene::make(&any.scene, desk.data, desk.first_seed)?;
    let grid = floor.survey.grid_or_default()?;
    let cells = floor.survey.cells(grid)?;
    let power = floor.survey.power();
    let measured = |band: usize| {
        let mut field = Array2::from_elem((grid.rows(), grid.cols()), f64::NAN);
        for (cell, p) in cells.iter().zip(power.column(band)) {
            field[[cell.row, cell.col]] = 10.0 * p.log10();
        }
        field
    };
    let fields: Vec<Array2<f64>> = any.draw.iter().map(|&band| measured(band)).collect();
    let shades = Shades::power(robust_limits(&fields.iter().collect::<Vec<_>>(), WIDEST_DB));
    let shown: Vec<(&TableCell, &Figures)> =
        setups.iter().filter_map(|(cell, setup)| Some((*cell, first(desk, setup)?))).collect();
    let mut panels = Vec::new();
    for (place, (&band, truth)) in any.draw.iter().zip(&fields).enumerate() {
        let frequency = floor.survey.freq_hz().and_then(|f| f.get(band));
        let name = frequency.map_or(format!("band {band}"), |f| format!("{:.0} MHz", f / 1e6));
        let panel = |method: &str, note: &str, field: Array2<f64>| {
            let title = if place == 0 { format!("{method}\n{note}\n{name}") } else { name.clone() };
            let bar = Some("power [dBm]".into());
            MapPanel { bar, ..MapPanel::new(title, field, shades.clone()) }
        };
        panels.push(panel("measured", "166 cells", truth.clone()));
        let cells = format!("{} cells", prepared.readings.sensors());
        let sensors = heard(&prepared.readings, band, 0.0);
        panels.push(MapPanel { sensors, ..panel("sensors", &cells, Array2::zeros((0, 0))) });
        for (cell, figures) in &shown {
            let Some((_, field)) = figures.fields.iter().find(|(kept, _)| *kept == band) else {
                continue;
            };
            let mut masked = field.mapv(f64::from);
            masked.zip_mut_with(truth, |estimate, known| {
                if known.is_nan() {
                    *estimate = f64::NAN;
                }
            });
            panels.push(panel(&cell.row, &format!("{:.2} dB", figures.rmse_db), masked));
        }
    }
    let note = "one scale; under each name the rmse at held-out measured cells over all bands";
    let columns = Some(panels.len() / any.draw.len().max(1));
    let typeface = Typeface::new();
    let sheet = Sheet::new(experiment.title, note, grid, panels, &typeface);
    Ok(Some(Sheet { columns, ..sheet }.draw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Floor};
    use crate::experiments::{Size, experiments};
    use crate::journal::Journal;

    use portolan::{Grid, Readings, Scale, Values};
    use portolan_io::picture::{Item, Pixels};

    /// The first image of a picture: what is recovered, before any trial has run.
    fn first_image(name: &str, data: &Data) -> (TrialSetup, Pixels) {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let desk = Desk { folder: folder.path(), journal: &journal, data, first_seed: 3 };
        let experiment = experiments(name, Size::Tiny).unwrap().remove(0);
        let draw = if experiment.picture == PictureKind::Maps { maps } else { bands };
        let scene = draw(&experiment, &desk).unwrap().unwrap();
        let image = scene.items.iter().find_map(|item| {
            let Item::Clip { items, .. } = item else { return None };
            items.iter().find_map(|item| match item {
                Item::Image { pixels, .. } => Some(Pixels::clone(pixels)),
                _ => None,
            })
        });
        let setup = experiment.cells().find_map(|cell| cell.setup.clone());
        (setup.unwrap(), image.unwrap())
    }

    /// Every cell has its colour where x goes to the right and y up; so many bands are alike.
    fn assert_upright(image: &Pixels, field: &Array2<f64>, bands: usize) {
        let shades = Shades::power(robust_limits(&vec![field; bands], WIDEST_DB));
        let (rows, cols) = field.dim();
        for ((row, col), value) in field.indexed_iter().filter(|(_, value)| !value.is_nan()) {
            let middle = |place: usize, of: usize, pixels: u32| {
                ((place as f64 + 0.5) / of as f64 * f64::from(pixels)) as u32
            };
            let x = middle(row, rows, image.width());
            let y = middle(cols - 1 - col, cols, image.height());
            let [r, g, b] = shades.of(*value);
            assert_eq!(image.at(x, y), [r, g, b, 255], "{row}, {col}");
        }
    }

    #[test]
    fn simulated_maps_have_x_to_the_right_and_y_up() {
        let data = Data::default();
        let (setup, image) = first_image("figure-maps", &data);
        let prepared = PreparedScene::make(&setup.scene, &data, 3).unwrap();
        let map = prepared.true_map().unwrap();
        assert_upright(&image, &decibels(&map.band(setup.draw[0]), prepared.offset()), 1);
    }

    #[test]
    fn measured_maps_have_x_to_the_right_and_y_up() {
        let grid = Grid::new(34, 14, 1.0).unwrap();
        // One cell in three, the loudest far along x and near along y.
        let measured: Vec<_> = (0..grid.cells()).step_by(3).map(|i| grid.cell(i)).collect();
        let level = |row: usize, col: usize| row as f64 - 2.0 * col as f64 - 60.0;
        let power = Array2::from_shape_fn((measured.len(), 9), |(n, _)| {
            10f64.powf(level(measured[n].row, measured[n].col) / 10.0)
        });
        let sites: Vec<_> = measured.iter().map(|cell| grid.site(*cell)).collect();
        let survey = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
        let survey = survey.with_grid(Some(grid)).unwrap();
        let data = Data { floor: Some(Floor { survey, off_grid: Vec::new() }), city: None };
        let (setup, image) = first_image("figure-real", &data);
        let mut field = Array2::from_elem((34, 14), f64::NAN);
        for cell in measured {
            field[[cell.row, cell.col]] =
                10.0 * 10f64.powf(level(cell.row, cell.col) / 10.0).log10();
        }
        assert_upright(&image, &field, setup.draw.len());
    }
}
