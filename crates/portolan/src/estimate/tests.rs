//! Laws that every method must keep, whatever it does inside.

use ndarray::{Array2, Array3};

use super::{Context, Emitters, build, methods};
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
    let sites = cells.iter().map(|&cell| grid.site(cell)).collect();
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    readings.with_grid(Some(grid)).unwrap()
}

fn names() -> impl Iterator<Item = &'static str> {
    let has_weights = cfg!(feature = "dgm-weights");
    methods()
        .iter()
        .filter(move |m| !m.needs_truth && (has_weights || m.name != "dgm"))
        .map(|m| m.name)
}

/// The interpolators, which keep stricter laws than methods that fit a model.
const INTERPOLATORS: [&str; 5] = ["nearest", "idw", "linear", "thin_plate", "kriging"];

#[test]
fn every_method_beats_a_flat_map_with_gaps_noise_and_levels() {
    let truth = truth();
    let exact = Sensing::exact(SensorLayout::Fraction(0.3), 5);
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
        let flat =
            RadioMap::dense(truth.grid(), Array3::from_elem((24, 20, 12), mean), truth.scale())
                .unwrap();
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    for domain in ["log", "linear"] {
        for name in INTERPOLATORS {
            let fixed: &[(&str, &str)] = match name {
                "kriging" => &[("domain", domain), ("nugget", "0")],
                _ => &[("domain", domain)],
            };
            let map = run_with(name, fixed, &readings).map;
            let mut spectrum = vec![0.0; 12];
            let cells = readings.cells(map.grid()).unwrap();
            for (cell, want) in cells.iter().zip(readings.power().outer_iter()) {
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    let Values::Power(power) = readings.values() else { panic!() };
    let louder = readings.with_values(Values::Power(power * 8.0)).unwrap();
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
        let varied = on(grid, &cells, values);
        let flat = on(grid, &cells, Array2::from_elem((cells.len(), 2), 0.5));
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
        let readings = on(grid, &cells, Array2::from(values.to_vec()));
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Fraction(0.4), 5)).unwrap();
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Cells(cells), 5)).unwrap();
    let map = run_with("kriging", &[], &readings).map;
    let spread = map.spread_db().unwrap();
    for band in 0..12 {
        assert!(spread[[2, 2, band]] < 0.5 * spread[[23, 19, band]]);
    }
}

#[test]
fn a_cancelled_job_stops() {
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    for name in names() {
        let stop = |_| false;
        let method = build(name, []).unwrap();
        let result = method.fit(&readings, &Context::default(), &Progress::new(&stop));
        assert!(matches!(result, Err(EstimateError::Cancelled)), "{name}");
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    for name in ["btd", "unn"] {
        let context = Context { emitters: Emitters::Count(13), seed: 1, ..Context::default() };
        let result = estimate(&*build(name, []).unwrap(), &readings, &context);
        assert!(matches!(result, Err(EstimateError::Input(_))), "{name}");
    }
}

#[test]
fn a_fit_that_diverges_says_so() {
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    let wild = [("start", "xavier"), ("lr_network", "1e30"), ("lr_psd", "1e30")];
    let wild = wild.map(|(k, v)| (k.to_string(), v.to_string()));
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let result = estimate(&*build("unn", wild).unwrap(), &readings, &context);
    let error = result.expect_err("a rate of 1e30 cannot converge").to_string();
    assert!(error.contains("diverged"), "{error}");
}

#[test]
fn every_start_and_shape_of_the_decoder_draws_a_map() {
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Fraction(0.3), 5)).unwrap();
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
    let readings = sense(&truth(), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    let from = |start: &RadioMap, method: &str, emitters: Emitters, settings: &[(&str, &str)]| {
        let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        let context = Context { emitters, start: Some(start), ..Context::default() };
        estimate(&*build(method, settings).unwrap(), &readings, &context)
    };
    let other = |rows, bands| {
        let scenario = Scenario::new(Grid::new(rows, 20, 1.0).unwrap());
        simulate(&Scenario { bands, emitters: 2, ..scenario }).unwrap()
    };
    let dense =
        RadioMap::dense(truth().grid(), truth().to_dense().into_owned(), Scale::paper()).unwrap();
    let none: &[(&str, &str)] = &[];
    for (start, emitters, settings, word) in [
        (&dense, Emitters::Auto, none, "no SLFs and PSDs"),
        (&other(20, 12), Emitters::Auto, none, "does not cover"),
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
        "naive_unn" => &[("iterations", "60")],
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

#[test]
fn louder_readings_give_a_map_that_is_louder_by_as_much() {
    let quiet = survey(70);
    let Values::Power(power) = quiet.values() else { panic!() };
    for name in names().filter(|name| *name != "dgm") {
        let bar = if ["btd", "unn", "naive_unn"].contains(&name) { 0.2 } else { 1e-6 };
        let before = fitted(name, &quiet).predict(&asked(), &Progress::silent()).unwrap();
        for db in [-60.0, 7.3, 120.0] {
            let factor = 10f64.powf(db / 10.0);
            let louder = quiet.with_values(Values::Power(power * factor)).unwrap();
            let after = fitted(name, &louder).predict(&asked(), &Progress::silent()).unwrap();
            let (rms, _) = apart_db(&(&before.power * factor), &after.power);
            assert!(rms < bar, "{name}: {rms} dB apart after {db} dB");
            if let (Some(a), Some(b)) = (&before.spread_db, &after.spread_db) {
                let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-5, "{name}: spread off by {off} dB after {db} dB");
            }
        }
    }
}

#[test]
fn a_survey_elsewhere_gives_the_same_map() {
    let here = survey(70);
    for (dx, dy) in [(1234.5, -77.25), (-7_654_321.1, 9_876_543.2)] {
        let away = |s: &Site| Site::new(s.x_m + dx, s.y_m + dy);
        let there = Readings::new(
            here.sites().iter().map(away).collect(),
            here.values().clone(),
            here.scale(),
        );
        let there = there.unwrap();
        let there_asked: Vec<Site> = asked().iter().map(away).collect();
        // Methods on a grid must be given the same cells.
        let grid = Grid::new(45, 35, 1.0).unwrap().with_origin(Site::new(-1.25, -1.25)).unwrap();
        let moved = grid.with_origin(away(&grid.origin())).unwrap();
        let (a, b) = (here.clone().with_grid(Some(grid)), there.with_grid(Some(moved)));
        let (a, b) = (a.unwrap(), b.unwrap());
        for name in names().filter(|name| *name != "dgm") {
            let a = fitted(name, &a).predict(&asked(), &Progress::silent()).unwrap();
            let b = fitted(name, &b).predict(&there_asked, &Progress::silent()).unwrap();
            let (rms, most) = apart_db(&a.power, &b.power);
            assert!(rms < 1e-6, "{name}: {rms} dB apart, at most {most}, after {dx} {dy}");
        }
    }
}

#[test]
fn a_survey_turned_round_gives_the_map_turned_round() {
    let here = survey(90);
    let (sin, cos) = 0.61f64.sin_cos();
    let turn = |s: &Site| Site::new(cos * s.x_m - sin * s.y_m, sin * s.x_m + cos * s.y_m);
    let sites = here.sites().iter().map(turn).collect();
    let turned = Readings::new(sites, here.values().clone(), here.scale()).unwrap();
    let turned_asked: Vec<Site> = asked().iter().map(turn).collect();
    for (name, bar) in [
        ("nearest", 1e-6),
        ("idw", 1e-6),
        ("thin_plate", 1e-6),
        ("kriging", 1e-6),
        ("field", 0.05),
        ("auto", 0.05),
    ] {
        let a = fitted(name, &here).predict(&asked(), &Progress::silent()).unwrap();
        let b = fitted(name, &turned).predict(&turned_asked, &Progress::silent()).unwrap();
        let (rms, most) = apart_db(&a.power, &b.power);
        assert!(rms < bar, "{name}: {rms} dB apart, at most {most}");
    }
}

#[test]
fn a_map_is_what_the_model_predicts_at_its_cells() {
    let readings = survey(70);
    let grid = Grid::new(15, 12, 2.9).unwrap().with_origin(Site::new(-0.5, -0.4)).unwrap();
    let silent = Progress::silent();
    for name in names() {
        let on_grid = readings.clone().with_grid(Some(grid)).unwrap();
        let model = fitted(name, &on_grid);
        let map = model.map(grid, &silent).unwrap();
        let sites = grid.sites();
        let dense = map.to_dense();
        // Tiles of all sizes give the same values.
        for tile in [1, 7, sites.len()] {
            for (t, part) in sites.chunks(tile).enumerate() {
                let found = model.predict_bands(part, &[3, 1], &silent).unwrap();
                for (i, row) in found.power.outer_iter().enumerate() {
                    let cell = grid.cell(t * tile + i);
                    for (out, band) in [(0, 3), (1, 1)] {
                        let want = dense[[cell.row, cell.col, band]];
                        let off = 10.0 * (row[out] / want).log10();
                        assert!(off.abs() < 1e-9, "{name}, tiles of {tile}: {off} dB");
                    }
                }
            }
        }
    }
}

#[test]
fn a_model_read_back_predicts_the_same_to_the_last_bit() {
    use crate::model::Archive;
    let readings = survey(70);
    let silent = Progress::silent();
    for name in names() {
        let model = fitted(name, &readings);
        let archive = model.to_archive();
        let again = Model::from_archive(&archive).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (a, b) = (model.predict(&asked(), &silent), again.predict(&asked(), &silent));
        assert_eq!(a.unwrap(), b.unwrap(), "{name}");
        // As text, so that NaN is NaN.
        assert_eq!(format!("{:?}", again.to_archive()), format!("{archive:?}"), "{name}");
        assert_eq!(again.report().notes, model.report().notes);
        assert_eq!(again.emitters(), model.emitters());
        // Every array counts: without it the model is refused, and never a panic.
        for (missing, _) in archive.entries() {
            let rest = archive.entries().filter(|(name, _)| *name != missing);
            let rest = Archive::new(rest.map(|(name, stored)| (name.to_string(), stored.clone())));
            let optional = ["labels", "freq_hz", "chosen", "grid", "emitters"];
            let refused = Model::from_archive(&rest).is_err();
            let on_grid = missing == "grid" && model.grid().is_some();
            let free = optional.contains(&missing) || missing == "cell_m" || missing == "origin_m";
            assert!(refused || (free && !on_grid), "{name} without {missing}");
        }
    }
}

#[test]
fn a_model_of_a_newer_program_is_refused() {
    use crate::model::{Archive, Stored};
    let archive = fitted("nearest", &survey(10)).to_archive();
    let newer = archive.entries().map(|(name, stored)| {
        let stored = match name {
            "portolan_model" => Stored::Whole(ndarray::arr1(&[99]).into_dyn()),
            _ => stored.clone(),
        };
        (name.to_string(), stored)
    });
    let error = Model::from_archive(&Archive::new(newer)).unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains("up to 1"), "{error}");
    assert!(Model::from_archive(&Archive::default()).is_err());
}

/// Found by fuzzing: the claim was believed and memory asked for.
#[test]
fn a_model_that_claims_a_trillion_bands_is_refused() {
    use crate::model::{Archive, Stored};
    for name in ["nearest", "idw", "linear", "thin_plate", "kriging"] {
        let archive = fitted(name, &survey(10)).to_archive();
        let claims = archive.entries().map(|(name, stored)| {
            let stored = match name {
                "bands" => Stored::Whole(ndarray::arr1(&[1 << 40]).into_dyn()),
                _ => stored.clone(),
            };
            (name.to_string(), stored)
        });
        let error = Model::from_archive(&Archive::new(claims)).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{name}: {error}");
    }
}

/// Models on a grid draw on it while they are read: a claimed grid must not take the memory.
#[test]
fn a_model_that_claims_a_grid_beyond_memory_is_refused() {
    use crate::model::{Archive, Stored};
    let archive = fitted("btd", &survey(30)).to_archive();
    let refusal = |archive: &Archive, free_bytes| {
        Model::from_archive_within(archive, free_bytes).err().map(|e| e.to_string())
    };
    assert_eq!(refusal(&archive, 1 << 30), None);
    let error = refusal(&archive, 1000).expect("a drawing takes more than that");
    assert!(error.contains("fit it on a smaller grid"), "{error}");
    let claims = archive.entries().map(|(name, stored)| match name {
        "grid" => (name.into(), Stored::Whole(ndarray::arr1(&[1 << 30, 1 << 30]).into_dyn())),
        _ => (name.into(), stored.clone()),
    });
    let error = refusal(&Archive::new(claims), u64::MAX).expect("nobody has so much memory");
    assert!(error.contains("1073741824 x 1073741824 cells"), "{error}");
}

#[test]
fn places_that_are_not_finite_are_refused() {
    let model = fitted("idw", &survey(10));
    let ask = |site: Site, bands: &[usize]| {
        model.predict_bands(&[site], bands, &Progress::silent()).err().map(|e| e.to_string())
    };
    assert!(ask(Site::new(f64::NAN, 0.0), &[0]).unwrap().contains("place 0"));
    assert!(ask(Site::new(0.0, 0.0), &[4]).unwrap().contains("bands 0 to 3"));
    assert_eq!(ask(Site::new(1e6, -1e6), &[3]), None);
}

#[test]
fn two_sensors_do_not_promise_a_map() {
    let sites = vec![Site::new(0.0, 0.0), Site::new(10.0, 0.0)];
    let power = Values::Power(ndarray::array![[1e-7], [1.1e-7]]);
    let readings = Readings::new(sites, power, Scale::Absolute).unwrap();
    let found = fitted("kriging", &readings).predict(&[Site::new(5.0, 8.0)], &Progress::silent());
    let spread = found.unwrap().spread_db.unwrap()[[0, 0]];
    assert!(spread > 1.0, "{spread} dB");
}

#[test]
fn kriging_in_linear_power_has_a_spread_that_is_a_number() {
    let mut power = Array2::from_elem((6, 1), 1e-9);
    power[[0, 0]] = 1e-3;
    let sites = (0..6).map(|i| Site::new(f64::from(i), 0.0)).collect();
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let linear = crate::estimate::Kriging { domain: super::Domain::Linear, ..Default::default() };
    let silent = Progress::silent();
    let model = super::Method::fit(&linear, &readings, &Context::default(), &silent).unwrap();
    let at: Vec<Site> = (0..20).map(|i| Site::new(0.5 * f64::from(i) - 2.0, 1.0)).collect();
    let spread = model.predict(&at, &silent).unwrap().spread_db.unwrap();
    assert!(spread.iter().all(|s| s.is_finite()), "{spread:?}");
}

#[test]
fn readings_that_were_not_heard_keep_the_map_down() {
    // One transmitter, heard in the near half only.
    let sites: Vec<Site> =
        (0..60).map(|i| Site::new(f64::from(i % 10) * 3.0, f64::from(i / 10) * 3.0)).collect();
    let level = |s: &Site| 10f64.powf(-0.1 * (50.0 + 2.0 * s.x_m));
    let floor = 10f64.powf(-8.0);
    let power = Array2::from_shape_fn((60, 1), |(n, _)| {
        let x = level(&sites[n]);
        if x > floor { x } else { f64::NAN }
    });
    let silent = power.mapv(|x| x.is_nan());
    let heard = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let told = heard.clone().with_not_heard(silent, vec![floor]).unwrap();
    let far = [Site::new(26.0, 8.0)];
    for name in ["kriging", "field", "idw", "thin_plate"] {
        let ask = |readings: &Readings| {
            let settings: &[(String, String)] = &[];
            let context = Context { emitters: Emitters::Count(1), ..Context::default() };
            let method = build(name, settings.iter().cloned()).unwrap();
            let model = method.fit(readings, &context, &Progress::silent()).unwrap();
            10.0 * model.predict(&far, &Progress::silent()).unwrap().power[[0, 0]].log10()
        };
        assert!(ask(&told) < -78.0, "{name}: {} dBm", ask(&told));
    }
}
