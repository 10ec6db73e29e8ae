//! Laws that every method must keep, whatever it does inside.

use ndarray::{Array2, Array3};

use super::{Context, Emitters, Estimate, Progress, build, methods};
use crate::error::{EstimateError, InputError};
use crate::grid::{Cell, Grid};
use crate::map::RadioMap;
use crate::readings::{Readings, Values};
use crate::score::score;
use crate::sense::{Layout, Quantising, Sensing, sense};
use crate::simulate::{Scenario, simulate};

fn truth() -> RadioMap {
    let grid = Grid::new(24, 20, 1.0).unwrap();
    simulate(&Scenario { bands: 12, emitters: 2, seed: 3, ..Scenario::new(grid) }).unwrap()
}

fn run_with(method: &str, settings: &[(&str, &str)], readings: &Readings) -> Estimate {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    build(method, settings)
        .unwrap()
        .estimate(readings, &context, &Progress::silent())
        .unwrap_or_else(|error| panic!("{method}: {error}"))
}

fn run(method: &str, readings: &Readings) -> Array3<f64> {
    run_with(method, &[], readings).map.to_dense().into_owned()
}

fn names() -> impl Iterator<Item = &'static str> {
    methods().iter().filter(|m| !m.needs_truth).map(|m| m.name)
}

/// The interpolators, which keep stricter laws than methods that fit a model.
const INTERPOLATORS: [&str; 5] = ["nearest", "idw", "linear", "thin_plate", "kriging"];

#[test]
fn every_method_beats_a_flat_map_with_gaps_noise_and_levels() {
    let truth = truth();
    let exact = Sensing::exact(Layout::Fraction(0.3), 5);
    let quantising = Some(Quantising { bits: 4, edges: None, sigma: 0.3 });
    let cases = [
        exact.clone(),
        Sensing { gaps: 0.1, ..exact.clone() },
        Sensing { snr_db: Some(40.0), ..exact.clone() },
        Sensing { quantising, ..exact },
    ];
    for sensing in cases {
        let readings = sense(&truth, &sensing).unwrap();
        let logs: Vec<f64> = truth.to_dense().iter().map(|x| (x + 1e-6).ln()).collect();
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let flat = RadioMap::dense(truth.grid(), Array3::from_elem((24, 20, 12), mean)).unwrap();
        let bar = score(&flat, &truth, None).unwrap().rmse_db;
        for name in names() {
            let map = run_with(name, &[], &readings).map;
            let got = score(&map, &truth, None).unwrap().rmse_db;
            assert!(got < 0.6 * bar, "{name}: {got} dB, flat {bar} dB, {sensing:?}");
        }
    }
}

#[test]
fn interpolators_pass_through_exact_readings_in_both_domains() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    for domain in ["log", "linear"] {
        for name in INTERPOLATORS {
            let fixed: &[(&str, &str)] = match name {
                "kriging" => &[("domain", domain), ("nugget", "0")],
                _ => &[("domain", domain)],
            };
            let map = run_with(name, fixed, &readings).map;
            let mut spectrum = vec![0.0; 12];
            for (cell, want) in readings.cells().iter().zip(readings.power().outer_iter()) {
                map.spectrum_into(*cell, &mut spectrum);
                for (got, want) in spectrum.iter().zip(want) {
                    let close = (got - want).abs() < 1e-6 * want + 1e-9;
                    assert!(close, "{name} {domain}: {got} {want}");
                }
            }
        }
    }
}

#[test]
fn the_order_of_sensors_does_not_matter() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    let backwards: Vec<usize> = (0..60).rev().collect();
    let reversed = readings.subset(&backwards).unwrap();
    // The others settle ties on the lattice of cells by the order of sensors.
    for name in ["thin_plate", "kriging"] {
        let (a, b) = (run(name, &readings), run(name, &reversed));
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 1e-5 * a.abs() + 1e-9, "{name}: {a} {b}");
        }
    }
}

#[test]
fn linear_domain_is_linear_in_power() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    let Values::Power(power) = readings.values() else { panic!() };
    let louder =
        Readings::new(readings.grid(), readings.cells().to_vec(), Values::Power(power * 8.0))
            .unwrap();
    for name in ["nearest", "idw", "linear", "thin_plate"] {
        let settings = [("domain", "linear")];
        let a = run_with(name, &settings, &readings).map.to_dense().into_owned();
        let b = run_with(name, &settings, &louder).map.to_dense().into_owned();
        for (a, b) in a.iter().zip(&b) {
            assert!((8.0 * a - b).abs() < 1e-9 * b.abs() + 1e-12, "{name}: {a} {b}");
        }
    }
}

#[test]
fn few_or_odd_sensors_give_a_finite_map() {
    let grid = Grid::new(12, 9, 1.0).unwrap();
    let line: Vec<Cell> = (0..9).map(|c| Cell::new(4, c)).collect();
    let layouts: [(&str, Vec<Cell>); 3] = [
        ("two", vec![Cell::new(0, 0), Cell::new(11, 8)]),
        ("line", line),
        ("corner", vec![Cell::new(0, 0), Cell::new(0, 1), Cell::new(1, 0)]),
    ];
    for (what, cells) in layouts {
        let values = Array2::from_shape_fn((cells.len(), 2), |(i, k)| 0.1 + (i + 2 * k) as f64);
        let varied = Readings::new(grid, cells.clone(), Values::Power(values)).unwrap();
        let same = Array2::from_elem((cells.len(), 2), 0.5);
        let flat = Readings::new(grid, cells, Values::Power(same)).unwrap();
        for name in INTERPOLATORS.into_iter().chain(["auto"]) {
            assert!(run(name, &varied).iter().all(|v| v.is_finite()), "{name} {what}");
            let got = run(name, &flat);
            assert!(got.iter().all(|v| (v - 0.5).abs() < 1e-3), "{name} {what}: not flat");
        }
    }
}

#[test]
fn bands_with_a_single_reading_are_flat() {
    let grid = Grid::new(12, 9, 1.0).unwrap();
    let cells = vec![Cell::new(0, 0), Cell::new(3, 1)];
    let gap = f64::NAN;
    for values in [[[1e-7, 5e-7], [8e-8, gap]], [[1e-7, gap], [gap, 5e-7]]] {
        let values = Values::Power(Array2::from(values.to_vec()));
        let readings = Readings::new(grid, cells.clone(), values).unwrap();
        for name in INTERPOLATORS.into_iter().chain(["auto"]) {
            let map = run(name, &readings);
            let flat =
                map.index_axis(ndarray::Axis(2), 1).iter().all(|v| (v / 5e-7 - 1.0).abs() < 1e-3);
            assert!(flat && map.iter().all(|v| v.is_finite()), "{name}");
        }
    }
}

#[test]
fn neighbourhoods_agree_with_the_whole() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Fraction(0.4), 5)).unwrap();
    for name in ["kriging", "thin_plate"] {
        let whole = run_with(name, &[], &readings);
        let local = run_with(name, &[("neighbours", "60")], &readings);
        assert!(whole.notes.is_empty() && local.notes[0].contains("60 nearest"));
        let apart = score(&local.map, &whole.map, None).unwrap().rmse_db;
        assert!(apart < 0.15, "{name}: {apart} dB");
    }
}

#[test]
fn spread_is_small_at_sensors_and_large_far_away() {
    let cells: Vec<Cell> = (0..30).map(|i| Cell::new(i % 6, i / 6)).collect();
    let readings = sense(&truth(), &Sensing::exact(Layout::Cells(cells), 5)).unwrap();
    let map = run_with("kriging", &[], &readings).map;
    let spread = map.spread_db().unwrap();
    for band in 0..12 {
        assert!(spread[[2, 2, band]] < 0.5 * spread[[23, 19, band]]);
    }
}

#[test]
fn a_cancelled_job_stops() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    for name in names() {
        let stop = |_| false;
        let result = build(name, []).unwrap().estimate(
            &readings,
            &Context::default(),
            &Progress::new(&stop),
        );
        assert_eq!(result.err(), Some(EstimateError::Cancelled), "{name}");
    }
}

#[test]
fn unknown_methods_options_and_values_are_refused() {
    let set = |k: &str, v: &str| vec![(k.to_string(), v.to_string())];
    assert!(matches!(build("krig", []), Err(InputError::UnknownMethod { .. })));
    for name in names() {
        let error = build(name, set("no_such", "1")).err().unwrap().to_string();
        assert!(error.contains("no_such"), "{error}");
    }
    for (method, key, value) in [
        ("kriging", "decorrelation", "-1"),
        ("kriging", "decorrelation", "nan"),
        ("kriging", "covariance", "cubic"),
        ("kriging", "neighbours", "0"),
        ("thin_plate", "smoothing", "x"),
        ("idw", "power", "0"),
        ("nearest", "domain", "db"),
        ("nearest", "offset", "0"),
        ("auto", "folds", "1"),
        ("btd", "rank", "0"),
        ("unn", "kernel", "0"),
        ("unn", "channels", "129"),
        ("unn", "tolerance", "nan"),
        ("unn", "iterations", "0"),
        ("unn", "norm", "layer"),
        ("field", "shadow_db", "-1"),
    ] {
        let error = build(method, set(key, value)).err().expect(key).to_string();
        assert!(error.contains(&format!("{key}={value}")), "{error}");
    }
}

#[test]
fn more_emitters_than_bands_or_sensors_are_refused() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    for name in ["btd", "unn"] {
        let context = Context { emitters: Emitters::Count(13), seed: 1, ..Context::default() };
        let result = build(name, []).unwrap().estimate(&readings, &context, &Progress::silent());
        assert!(matches!(result, Err(EstimateError::Input(_))), "{name}");
    }
}

#[test]
fn a_fit_that_diverges_says_so() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    let wild = [("start", "xavier"), ("lr_network", "1e30"), ("lr_psd", "1e30")];
    let wild = wild.map(|(k, v)| (k.to_string(), v.to_string()));
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let result = build("unn", wild).unwrap().estimate(&readings, &context, &Progress::silent());
    let error = result.expect_err("a rate of 1e30 cannot converge").to_string();
    assert!(error.contains("diverged"), "{error}");
}

#[test]
fn every_start_and_shape_of_the_decoder_draws_a_map() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Fraction(0.3), 5)).unwrap();
    let quick = [("iterations", "30"), ("start_iterations", "30")];
    for (key, value) in [
        ("start", "uniform"),
        ("start", "xavier"),
        ("start", "btd"),
        ("start", "interpolation"),
        ("recipe", "paper"),
        ("blocks", "2"),
        ("channels", "3"),
        ("kernel", "4"),
        ("upsample", "nearest"),
        ("upsample", "none"),
        ("norm", "sample"),
        ("norm", "none"),
        ("pad", "zero"),
        ("output", "sigmoid"),
    ] {
        let plain = run_with("unn", &quick, &readings);
        let other = run_with("unn", &[quick[0], quick[1], (key, value)], &readings);
        assert_ne!(plain.map, other.map, "{key}={value} changes nothing");
        assert!(other.loss.is_some_and(f64::is_finite) && !other.loss_trace.is_empty());
        assert_eq!(other.map.factors().map(|f| f.psd.dim()), Some((2, 12)));
    }
}

#[test]
fn a_start_must_belong_to_the_readings() {
    let readings = sense(&truth(), &Sensing::exact(Layout::Count(60), 5)).unwrap();
    let from = |start: &RadioMap, method: &str, emitters: Emitters, settings: &[(&str, &str)]| {
        let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        let context = Context { emitters, start: Some(start), ..Context::default() };
        build(method, settings).unwrap().estimate(&readings, &context, &Progress::silent())
    };
    let other = |rows, bands| {
        let scenario = Scenario::new(Grid::new(rows, 20, 1.0).unwrap());
        simulate(&Scenario { bands, emitters: 2, ..scenario }).unwrap()
    };
    let dense = RadioMap::dense(truth().grid(), truth().to_dense().into_owned()).unwrap();
    let none: &[(&str, &str)] = &[];
    for (start, emitters, settings, word) in [
        (&dense, Emitters::Auto, none, "no SLFs and PSDs"),
        (&other(25, 12), Emitters::Auto, none, "25 x 20"),
        (&other(24, 11), Emitters::Auto, none, "11 bands"),
        (&truth(), Emitters::Count(3), none, "2 emitters, but 3"),
        (&truth(), Emitters::Auto, &[("start", "btd")], "give one of them"),
    ] {
        let methods: &[&str] =
            if settings.is_empty() { &["field", "unn", "auto"] } else { &["unn"] };
        for method in methods {
            let error = from(start, method, emitters, settings).unwrap_err();
            assert!(matches!(error, EstimateError::Input(_)), "{method}");
            assert!(error.to_string().contains(word), "{method}: {error}");
        }
    }
    // The start says how many emitters there are, and its factors are used.
    let quick = [("iterations", "30"), ("start_iterations", "300")];
    let warm = from(&truth(), "unn", Emitters::Auto, &quick).unwrap();
    let cold = run_with("unn", &quick, &readings);
    assert_eq!(warm.map.findings().len(), 2);
    let error = |e: &Estimate| score(&e.map, &truth(), None).unwrap().rmse_db;
    assert!(error(&warm) < error(&cold), "{} {}", error(&warm), error(&cold));
}
