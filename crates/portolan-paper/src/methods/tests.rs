//! Laws that every method must keep, whatever it does inside, kept by the paper's baselines.

use std::ops::Deref;

use ndarray::{Array2, Array3};
use portolan::estimate::build;
use portolan::model::{Archive, Report};
use portolan::score::score;
use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{
    Context, Emitters, EstimateError, Grid, Model, Progress, RadioMap, Readings, Scale, Site,
    Values,
};

/// A fit and the map that it draws.
#[derive(Debug)]
pub(super) struct Estimate {
    pub model: Model,
    pub map: RadioMap,
}

impl Deref for Estimate {
    type Target = Report;

    fn deref(&self) -> &Report {
        self.model.report()
    }
}

/// Fits a method of the register, and draws on the readings' grid.
pub(super) fn estimate(
    method: &str,
    settings: &[(&str, &str)],
    readings: &Readings,
    context: &Context<'_>,
) -> Result<Estimate, EstimateError> {
    super::register();
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let model = build(method, settings)?.fit(readings, context, &Progress::silent())?;
    let map = model.default_map(&Progress::silent())?;
    Ok(Estimate { model, map })
}

/// Both methods; without its weights `dgm` cannot be fitted.
fn names() -> impl Iterator<Item = &'static str> {
    ["naive_unn", "dgm"].into_iter().filter(|name| cfg!(feature = "dgm-weights") || *name != "dgm")
}

/// A survey in dBm whose places are in general position: two transmitters, four bands.
fn survey(sensors: usize, factor: f64, origin: Site) -> Readings {
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
        factor * (of(0) + of(1)) * (0.3 * ripple).exp()
    });
    let sites: Vec<_> = sites.iter().map(|s| moved(s, origin)).collect();
    Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap()
}

fn moved(site: &Site, by: Site) -> Site {
    Site::new(site.x_m + by.x_m, site.y_m + by.y_m)
}

const HERE: Site = Site { x_m: 0.0, y_m: 0.0, z_m: 0.0 };

fn fitted(name: &str, readings: &Readings) -> Model {
    let settings: &[(&str, &str)] = match name {
        "naive_unn" => &[("iterations", "60")],
        _ => &[],
    };
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    estimate(name, settings, readings, &context)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .model
}

fn asked() -> Vec<Site> {
    (0..60).map(|i| Site::new(0.7 * f64::from(i), 29.0 - 0.43 * f64::from(i))).collect()
}

/// Root mean square difference in dB of two predictions.
fn apart_db(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (10.0 * (a / b).log10()).powi(2)).sum();
    (square / a.len() as f64).sqrt()
}

#[test]
fn the_register_takes_them_once() {
    super::register();
    super::register();
    let own = |name: &&&portolan::estimate::Entry| ["naive_unn", "dgm"].contains(&name.name);
    assert_eq!(portolan::estimate::methods().iter().filter(own).count(), 2);
}

#[test]
fn both_beat_a_flat_map_with_gaps_noise_and_levels() {
    let grid = Grid::new(24, 20, 1.0).unwrap();
    let scenario = Scenario { bands: 12, emitters: 2, seed: 3, ..Scenario::new(grid) };
    let truth = simulate(&scenario).unwrap();
    let exact = Sensing::exact(SensorLayout::Fraction(0.3), 5);
    let quantising = Some(Quantising { bits: 4, edges: None, sigma: 0.3 });
    let logs: Vec<f64> = truth.to_dense().iter().map(|x| (x + 1e-6).ln()).collect();
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    let flat = RadioMap::dense(grid, Array3::from_elem((24, 20, 12), mean), truth.scale()).unwrap();
    let bar = score(&flat, &truth, None).unwrap().rmse_db;
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    for sensing in [
        exact.clone(),
        Sensing { gaps: 0.1, ..exact.clone() },
        Sensing { snr_db: Some(40.0), ..exact.clone() },
        Sensing { quantising, ..exact },
    ] {
        let readings = sense(&truth, &sensing).unwrap();
        for name in names() {
            let map = estimate(name, &[], &readings, &context).unwrap().map;
            let got = score(&map, &truth, None).unwrap().rmse_db;
            assert!(got < 0.6 * bar, "{name}: {got} dB, flat {bar} dB, {sensing:?}");
        }
    }
}

#[test]
fn louder_readings_give_a_map_that_is_louder_by_as_much() {
    let before = fitted("naive_unn", &survey(70, 1.0, HERE));
    let before = before.predict(&asked(), &Progress::silent()).unwrap();
    for db in [-60.0, 7.3, 120.0] {
        let factor = 10f64.powf(db / 10.0);
        let after = fitted("naive_unn", &survey(70, factor, HERE));
        let after = after.predict(&asked(), &Progress::silent()).unwrap();
        let rms = apart_db(&(&before.power * factor), &after.power);
        assert!(rms < 0.2, "{rms} dB apart after {db} dB");
    }
}

#[test]
fn a_survey_elsewhere_gives_the_same_map() {
    let grid = Grid::new(45, 35, 1.0).unwrap().with_origin(Site::new(-1.25, -1.25)).unwrap();
    let here = survey(70, 1.0, HERE).with_grid(Some(grid)).unwrap();
    let a = fitted("naive_unn", &here).predict(&asked(), &Progress::silent()).unwrap();
    for away in [Site::new(1234.5, -77.25), Site::new(-7_654_321.1, 9_876_543.2)] {
        let grid = grid.with_origin(moved(&grid.origin(), away)).unwrap();
        let there = survey(70, 1.0, away).with_grid(Some(grid)).unwrap();
        let asked: Vec<Site> = asked().iter().map(|s| moved(s, away)).collect();
        let b = fitted("naive_unn", &there).predict(&asked, &Progress::silent()).unwrap();
        let rms = apart_db(&a.power, &b.power);
        assert!(rms < 1e-6, "{rms} dB apart after {away:?}");
    }
}

#[test]
fn a_map_is_what_the_model_predicts_at_its_cells() {
    let grid = Grid::new(15, 12, 2.9).unwrap().with_origin(Site::new(-0.5, -0.4)).unwrap();
    let silent = Progress::silent();
    for name in names() {
        let model = fitted(name, &survey(70, 1.0, HERE).with_grid(Some(grid)).unwrap());
        let map = model.map(grid, &silent).unwrap();
        let (sites, dense) = (grid.sites(), map.to_dense());
        for tile in [1, 7, sites.len()] {
            for (t, part) in sites.chunks(tile).enumerate() {
                let found = model.predict_bands(part, &[3, 1], &silent).unwrap();
                for (i, row) in found.power.outer_iter().enumerate() {
                    let cell = grid.cell(t * tile + i);
                    for (out, band) in [(0, 3), (1, 1)] {
                        let off = 10.0 * (row[out] / dense[[cell.row, cell.col, band]]).log10();
                        assert!(off.abs() < 1e-9, "{name}, tiles of {tile}: {off} dB");
                    }
                }
            }
        }
    }
}

#[test]
fn a_model_read_back_predicts_the_same_to_the_last_bit() {
    let silent = Progress::silent();
    for name in names() {
        let model = fitted(name, &survey(70, 1.0, HERE));
        let archive = model.to_archive();
        let again = Model::from_archive(&archive).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (a, b) = (model.predict(&asked(), &silent), again.predict(&asked(), &silent));
        assert_eq!(a.unwrap(), b.unwrap(), "{name}");
        assert_eq!(again.emitters(), model.emitters());
        // Every array that the method wrote counts: without it the model is refused.
        for own in ["params", "latents", "shape", "weights", "levels", "psd", "unit", "floor"] {
            if !archive.has(own) {
                continue;
            }
            let rest = archive.entries().filter(|(name, _)| *name != own);
            let rest = Archive::new(rest.map(|(name, stored)| (name.to_string(), stored.clone())));
            assert!(Model::from_archive(&rest).is_err(), "{name} without {own}");
        }
    }
}

#[test]
fn rows_at_one_place_are_taken() {
    let once = survey(45, 1.0, HERE);
    let order: Vec<usize> = (0..45).chain((0..45).filter(|s| s % 3 == 0)).collect();
    let grid = Grid::new(42, 32, 1.0).unwrap();
    let rows = once.subset(&order).unwrap().with_grid(Some(grid)).unwrap();
    assert_eq!(rows.sensors(), 60);
    for name in names() {
        let found = fitted(name, &rows).predict(&asked(), &Progress::silent()).unwrap();
        assert!(found.power.iter().all(|x| x.is_finite() && *x >= 0.0), "{name}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_and_a_cancelled_job_stops() {
    let readings = survey(40, 1.0, HERE);
    for name in names() {
        let of = |settings: &[(&str, &str)], context: &Context<'_>| {
            estimate(name, settings, &readings, context).expect_err(name)
        };
        let usual = Context::default();
        assert!(of(&[("no_such", "1")], &usual).to_string().contains("no_such"));
        assert!(of(&[("iterations", "0")], &usual).to_string().contains("iterations=0"));
        let stop = |_| false;
        let method = build(name, []).unwrap();
        let result = method.fit(&readings, &usual, &Progress::new(&stop));
        assert!(matches!(result, Err(EstimateError::Cancelled)), "{name}");
        if name == "dgm" {
            let five = Context { emitters: Emitters::Count(5), ..usual };
            assert!(matches!(of(&[], &five), EstimateError::Input(_)));
        }
    }
}
