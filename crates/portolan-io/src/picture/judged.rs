//! Pictures that judge a survey: where new sensors help, and how far held-out sensors were missed.

use ndarray::Array2;
use portolan::advise::{Advice, mean_variance};
use portolan::estimate::Residuals;
use portolan::{Grid, InputError, RadioMap, Readings, Site};

use super::{ColourMap, Figure, HeatPanel, Key, Panel, Sensor};

/// The spread over all bands with the sensors, and crosses where new ones belong.
pub fn advice_figure(
    sensors: &[Site],
    map: &RadioMap,
    advice: &[Advice],
) -> Result<Figure, InputError> {
    let grid = map.grid();
    let variance = mean_variance(map)?;
    let field = Array2::from_shape_fn((grid.rows(), grid.cols()), |(row, col)| {
        variance[row * grid.cols() + col].sqrt()
    });
    let highest = field.iter().copied().fold(1e-3, f64::max);
    let mut panel = HeatPanel::on_grid("spread over all bands", field, grid);
    panel.colours = ColourMap::Spread;
    // From zero, so that dark always means certain.
    panel.limits = (0.0, highest);
    panel.bar = Some("std. dev. [dB]".to_owned());
    let at = |site: &Site| Sensor { at: grid.position(*site), value: None };
    panel.sensors = sensors.iter().map(at).collect();
    panel.emitters = advice.iter().map(|a| [a.cell.row as f64, a.cell.col as f64]).collect();
    Ok(Figure {
        heading: "Where new sensors help most".to_owned(),
        note: format!("crosses: the {} places advised", advice.len()),
        rows: vec![vec![Panel::Heat(panel)]],
        keys: vec![Key::Sensors(sensors.len())],
    })
}

/// Sensors in the colour of their mean error, a panel for each method.
pub fn residuals_figure(
    readings: &Readings,
    methods: &[(&str, &Residuals)],
) -> Result<Figure, InputError> {
    let grid = readings.grid_or_default()?;
    let panels = methods.iter().map(|(label, found)| vec![panel(readings, grid, label, found)]);
    Ok(Figure {
        heading: "Predicted less read at held-out sensors".to_owned(),
        note: "mean over bands; blue: predicted too low, red: too high".to_owned(),
        rows: panels.collect(),
        keys: vec![Key::Sensors(readings.sensors())],
    })
}

/// Mean error of every sensor over its bands; None where it has none.
pub fn mean_errors(residuals: &Residuals, sensors: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0usize); sensors];
    for (sensor, _, error) in &residuals.entries {
        sums[*sensor].0 += error;
        sums[*sensor].1 += 1;
    }
    sums.iter().map(|(sum, count)| (*count > 0).then(|| sum / *count as f64)).collect()
}

fn panel(readings: &Readings, grid: Grid, label: &str, residuals: &Residuals) -> Panel {
    let rmse = residuals.rmse_db().map_or_else(|| "-".into(), |rmse| format!("{rmse:.2}"));
    let nothing = Array2::from_elem((grid.rows(), grid.cols()), f64::NAN);
    let mut panel = HeatPanel::on_grid(format!("{label}\nrmse {rmse} dB"), nothing, grid);
    panel.colours = ColourMap::Error;
    let means = mean_errors(residuals, readings.sensors());
    let sensor = |(site, mean): (&Site, &Option<f64>)| {
        Some(Sensor { at: grid.position(*site), value: Some((*mean)?) })
    };
    panel.sensors = readings.sites().iter().zip(&means).filter_map(sensor).collect();
    let mut sizes: Vec<f64> = panel.sensors.iter().filter_map(|s| s.value).map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let most = sizes.get(sizes.len() * 49 / 50).copied().unwrap_or(1.0).max(0.1);
    panel.limits = (-most, most);
    panel.bar = Some("error [dB]".to_owned());
    Panel::Heat(panel)
}
