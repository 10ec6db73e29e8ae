//! Laws that every method must keep, whatever it does inside.

mod archives;
mod error_bars;
mod maps;
mod repeats;
mod requests;
mod surveys;
mod updates;

use ndarray::{Array2, Array3};

use super::{Capability, Context, Emitters, build, methods};
use crate::error::{EstimateError, InputError};
use crate::fixture::{Estimate, estimate};
use crate::grid::{Cell, Grid};
use crate::map::RadioMap;
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::score::score;
use crate::sense::{Quantising, Sensing, SensorLayout, sense};
use crate::simulate::{Scenario, simulate};
use crate::site::Site;

fn truth() -> RadioMap {
    let grid = Grid::new(24, 20, 1.0).unwrap();
    simulate(&Scenario { bands: 12, emitters: 2, seed: 3, ..Scenario::new(grid) }).unwrap()
}

fn run_with(method: &str, settings: &[(&str, &str)], readings: &Readings) -> Estimate {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    estimate(&*build(method, settings).unwrap(), readings, &context)
        .unwrap_or_else(|error| panic!("{method}: {error}"))
}

fn run(method: &str, readings: &Readings) -> Array3<f64> {
    run_with(method, &[], readings).map.to_dense().into_owned()
}

/// Absolute readings in cells of a grid.
fn on(grid: Grid, cells: &[Cell], power: Array2<f64>) -> Readings {
    let sites: Vec<Site> = cells.iter().map(|&cell| grid.site(cell)).collect();
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    readings.with_grid(Some(grid)).unwrap()
}

fn names() -> impl Iterator<Item = &'static str> {
    methods().into_iter().filter(|m| !m.has(Capability::Truth)).map(|m| m.name)
}

/// The interpolators, which keep stricter laws than methods that fit a model.
const INTERPOLATORS: [&str; 5] = ["nearest", "idw", "linear", "thin_plate", "kriging"];

/// A survey in dBm whose places are in general position: two transmitters, four bands.
fn survey(sensors: usize) -> Readings {
    let sites: Vec<Site> = (0..sensors)
        .map(|i| {
            let (x, y) = (0.754_877_666 * i as f64, 0.569_840_291 * i as f64);
            Site::new(40.0 * x.fract(), 30.0 * y.fract())
        })
        .collect();
    let near = [Site::new(8.0, 9.0), Site::new(31.0, 22.0)];
    let power = Array2::from_shape_fn((sensors, 4), |(n, k)| {
        let ripple = (0.31 * sites[n].x_m).sin() + (0.47 * sites[n].y_m + k as f64).cos();
        let of = |r: usize| {
            let loss = sites[n].distance_m(near[r]).max(2.0).powf(-2.4);
            let psd = if r == 0 { 1.0 / (1.0 + k as f64) } else { 0.1 + 0.4 * k as f64 };
            1e-4 * loss * psd
        };
        (of(0) + of(1)) * (0.3 * ripple).exp()
    });
    Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap()
}

fn fitted(name: &str, readings: &Readings) -> Model {
    let settings: &[(&str, &str)] = match name {
        "unn" => &[("iterations", "60"), ("start_iterations", "100")],
        _ => &[],
    };
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    build(name, settings).unwrap().fit(readings, &context, &Progress::silent()).unwrap()
}

/// Root mean square difference in dB of two predictions, and the largest.
fn apart_db(a: &Array2<f64>, b: &Array2<f64>) -> (f64, f64) {
    let each = a.iter().zip(b).map(|(a, b)| 10.0 * (a / b).log10());
    let (square, most) = each.fold((0.0, 0f64), |(s, m), d| (s + d * d, m.max(d.abs())));
    ((square / a.len() as f64).sqrt(), most)
}

fn asked() -> Vec<Site> {
    (0..60).map(|i| Site::new(0.7 * f64::from(i), 29.0 - 0.43 * f64::from(i))).collect()
}
