//! Pictures that judge a survey: where new sensors help, and how far held-out sensors were missed.

use ndarray::Array2;
use portolan::advise::{Advice, mean_variance};
use portolan::estimate::Residuals;
use portolan::{InputError, RadioMap, Readings, Site};

use super::{ColourMap, MapPanel, Scene, Shades, Sheet, Typeface};

/// The spread over all bands with the sensors, and crosses where new ones belong.
pub fn advice_figure(
    sensors: &[Site],
    map: &RadioMap,
    advice: &[Advice],
) -> Result<Scene, InputError> {
    let grid = map.grid();
    let variance = mean_variance(map)?;
    let field = Array2::from_shape_fn((grid.rows(), grid.cols()), |(row, col)| {
        variance[row * grid.cols() + col].sqrt()
    });
    let highest = field.iter().copied().fold(1e-3, f64::max);
    // From zero, so that dark always means certain.
    let shades = Shades::Even { colours: ColourMap::Spread, limits: (0.0, highest) };
    let panel = MapPanel {
        bar: Some("std. dev. [dB]".to_owned()),
        sensors: sensors.iter().map(|site| (*site, None)).collect(),
        emitters: advice.iter().map(|a| (grid.site(a.cell), None)).collect(),
        ..MapPanel::new("spread over all bands", field, shades)
    };
    let note = format!("the best {} places, one after the other", advice.len());
    let heading = "Where new sensors help most";
    let typeface = Typeface::new();
    let sheet = Sheet::new(heading, note, grid, vec![panel], &typeface);
    Ok(Sheet { crs: map.crs(), crosses: "places advised", ..sheet }.draw())
}

/// Sensors in the colour of their mean error, a panel for each method.
pub fn residuals_figure(
    readings: &Readings,
    methods: &[(&str, &Residuals)],
) -> Result<Scene, InputError> {
    let errors = |found: &Residuals| -> Vec<(Site, Option<f64>)> {
        let means = mean_errors(found, readings.sensors());
        let known = readings.sites().iter().zip(means).filter(|(_, mean)| mean.is_some());
        known.map(|(site, mean)| (*site, mean)).collect()
    };
    let errors: Vec<_> = methods.iter().map(|(_, found)| errors(found)).collect();
    let mut sizes: Vec<f64> =
        errors.iter().flatten().filter_map(|(_, e)| *e).map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let most = sizes.get(sizes.len() * 49 / 50).copied().unwrap_or(1.0).max(0.1);
    // One scale for all methods, so that they can be compared.
    let shades = Shades::Even { colours: ColourMap::Error, limits: (-most, most) };
    let panels = methods.iter().zip(errors).map(|((label, found), errors)| {
        let rmse = found.rmse_db().map_or_else(|| "-".into(), |rmse| format!("{rmse:.2}"));
        let title = format!("{label}\nrmse {rmse} dB");
        let panel = MapPanel::of_sensors(title, errors, shades.clone());
        MapPanel { bar: Some("error [dB]".to_owned()), ..panel }
    });
    let (heading, note) = (
        "Predicted minus read at held-out sensors",
        "mean over bands; blue: predicted too low, red: too high",
    );
    let (grid, typeface) = (readings.grid_or_default()?, Typeface::new());
    let sheet = Sheet::new(heading, note, grid, panels.collect(), &typeface);
    Ok(Sheet { crs: readings.crs(), ..sheet }.draw())
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
