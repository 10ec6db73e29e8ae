//! Laws of `field` and `oracle`.

use ndarray::{Array2, Array3};

use super::linearised::Reported;
use super::start::{NOISE_SHARES, START_ROUNDS};
use super::{Field, scale, with_likeliest_sigma};
use crate::error::EstimateError;
use crate::estimate::{Context, Emitters, Method, build, method};
use crate::fixture::{self, Estimate};
use crate::grid::{Cell, Grid};
use crate::map::{Factors, RadioMap};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::score::score;
use crate::sense::{Quantising, Sensing, SensorLayout, sense};
use crate::simulate::{Scenario, simulate};
use crate::site::Site;

fn map(side: usize, bands: usize, emitters: usize, seed: u64) -> RadioMap {
    let grid = Grid::new(side, side, 1.0).unwrap();
    simulate(&Scenario { bands, emitters, seed, ..Scenario::new(grid) }).unwrap()
}

fn exact(map: &RadioMap, count: usize) -> Readings {
    sense(map, &Sensing::exact(SensorLayout::Count(count), 5)).unwrap()
}

fn run(settings: &[(&str, &str)], readings: &Readings, emitters: usize) -> Estimate {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let field = build("field", settings).unwrap();
    estimate(&*field, readings, emitters).unwrap()
}

fn estimate(
    estimator: &dyn Method,
    readings: &Readings,
    emitters: usize,
) -> Result<Estimate, EstimateError> {
    let context = Context { emitters: Emitters::Count(emitters), seed: 1, ..Context::default() };
    fixture::estimate(estimator, readings, &context)
}

fn told(
    truth: &RadioMap,
    decorrelation: Option<&str>,
    readings: &Readings,
) -> Result<Estimate, EstimateError> {
    let settings = decorrelation.map(|d| ("decorrelation".to_string(), d.to_string()));
    let context = Context { truth: Some(truth), ..Context::default() };
    fixture::estimate(&*build("oracle", settings)?, readings, &context)
}

fn finite(estimate: &Estimate) -> bool {
    let spread = estimate.map.spread_db().expect("field has a spread");
    estimate.map.to_dense().iter().chain(spread).all(|v| v.is_finite())
        && estimate.map.emitters().iter().all(|at| at.is_finite())
}

#[test]
fn field_lies_between_kriging_and_the_oracle() {
    let (mut kriging, mut field, mut oracle) = (0.0, 0.0, 0.0);
    for seed in 0..3 {
        let truth = map(48, 32, 3, seed);
        let readings = exact(&truth, 90);
        let ssim = |estimate: &Estimate| score(&estimate.map, &truth, None).unwrap().ssim.unwrap();
        kriging += ssim(&estimate(&*build("kriging", []).unwrap(), &readings, 3).unwrap());
        field += ssim(&run(&[], &readings, 3));
        oracle += ssim(&told(&truth, Some("90"), &readings).unwrap());
    }
    assert!(kriging < field && field < oracle, "{kriging} {field} {oracle}");
    assert!(field - kriging > 0.5 * (oracle - kriging), "{kriging} {field} {oracle}");
}

#[test]
fn one_emitter_without_noise_is_reproduced_at_the_sensors() {
    let truth = map(32, 8, 1, 2);
    let readings = exact(&truth, 60);
    let estimate = run(&[], &readings, 1);
    let mut spectrum = vec![0.0; 8];
    let cells = readings.cells(truth.grid()).unwrap();
    for (cell, want) in cells.iter().zip(readings.power().outer_iter()) {
        estimate.map.spectrum_into(*cell, &mut spectrum);
        for (got, want) in spectrum.iter().zip(want) {
            assert!((got - want).abs() < 1e-3 * want + 1e-12, "{got} {want}");
        }
    }
    let (found, true_place) = (estimate.map.emitters()[0], truth.emitters()[0]);
    assert!(found.distance_m(true_place) < 3.0, "{found:?}, truth {true_place:?}");
}

#[test]
fn the_spread_covers_what_it_promises() {
    let noisy = Sensing { snr_db: Some(20.0), ..Sensing::exact(SensorLayout::Fraction(0.08), 3) };
    let quantising = Some(Quantising { bits: 3, edges: None, sigma: 0.5 });
    let levels = Sensing { quantising, ..Sensing::exact(SensorLayout::Fraction(0.08), 3) };
    for sensing in [Sensing::exact(SensorLayout::Fraction(0.08), 3), noisy, levels] {
        let mut coverage = 0.0;
        for seed in 0..3 {
            let truth = map(48, 32, 3, seed);
            let readings = sense(&truth, &sensing).unwrap();
            let estimate = run(&[], &readings, 3);
            coverage += score(&estimate.map, &truth, None).unwrap().coverage_90.unwrap() / 3.0;
        }
        assert!((0.8..0.98).contains(&coverage), "{coverage} {sensing:?}");
    }
}

#[test]
fn ill_posed_readings_give_a_finite_map() {
    let grid = Grid::new(14, 11, 1.0).unwrap();
    let cells: Vec<Cell> = (0..5).map(|i| Cell::new(2 * i, (3 * i) % 11)).collect();
    let read = |values: Array2<f64>| {
        let sites: Vec<Site> = cells.iter().map(|&cell| grid.site(cell)).collect();
        let readings = Readings::new(sites, Values::Power(values), Scale::paper()).unwrap();
        readings.with_grid(Some(grid)).unwrap()
    };
    let varied = Array2::from_shape_fn((5, 6), |(i, k)| 0.1 + ((3 * i + 5 * k) % 7) as f64);
    let mut silent = varied.clone();
    silent.column_mut(2).fill(0.0);
    let mut gaps = varied.clone();
    gaps[[1, 3]] = f64::NAN;
    gaps[[4, 0]] = f64::NAN;
    let mut lone = Array2::zeros((5, 6));
    lone[[3, 1]] = 1e-7;
    let faint = varied.mapv(|x| 1e-13 * x);
    let cases = [
        ("five sensors", varied.clone(), 3),
        ("equal readings", Array2::from_elem((5, 6), 0.3), 1),
        (
            "nearly equal readings",
            Array2::from_shape_fn((5, 6), |(i, k)| 0.3 + 1e-4 * ((i * k) % 3) as f64),
            2,
        ),
        ("one band", Array2::from_shape_fn((5, 1), |(i, _)| 1.0 + i as f64), 1),
        ("a band without signal", silent, 2),
        ("gaps", gaps, 2),
        ("one reading that is not zero", lone, 2),
        ("milliwatts", faint, 2),
    ];
    for (what, values, emitters) in cases {
        let estimate = run(&[], &read(values), emitters);
        assert!(finite(&estimate), "{what}");
    }
}

#[test]
fn an_emitter_that_nobody_sees_changes_little() {
    let truth = map(32, 16, 2, 4);
    // Without noise the readings would show that there are two.
    let noisy = Sensing { snr_db: Some(30.0), ..Sensing::exact(SensorLayout::Count(60), 5) };
    let estimate = run(&[], &sense(&truth, &noisy).unwrap(), 5);
    assert_eq!(estimate.map.emitters().len(), 5);
    assert!(finite(&estimate));
    assert!(score(&estimate.map, &truth, None).unwrap().rmse_db < 4.0);
}

#[test]
fn an_emitter_outside_the_grid_is_found_there() {
    let grid = Grid::new(32, 32, 1.0).unwrap();
    let slf = Array3::from_shape_fn((1, 32, 32), |(_, i, j)| {
        ((i as f64 + 3.0).hypot(j as f64 - 12.0) / 2.0).max(1.0).powf(-2.3)
    });
    let psd = Array2::from_shape_fn((1, 6), |(_, k)| 1.0 + k as f64);
    let truth = RadioMap::factored(grid, Factors { slf, psd }, Scale::paper()).unwrap();
    let estimate = run(&[], &exact(&truth, 60), 1);
    let Site { x_m, y_m, .. } = estimate.map.emitters()[0];
    assert!((x_m + 3.0).abs() < 1.0 && (y_m - 12.0).abs() < 1.0, "{x_m} {y_m}");
}

#[test]
fn the_order_of_emitters_does_not_matter() {
    let truth = map(32, 16, 3, 6);
    let factors = truth.factors().unwrap();
    let axis = ndarray::Axis(0);
    let turned = Factors {
        slf: factors.slf.select(axis, &[2, 0, 1]),
        psd: factors.psd.select(axis, &[2, 0, 1]),
    };
    let turned = RadioMap::factored(truth.grid(), turned, Scale::paper()).unwrap();
    let a = run(&[], &exact(&truth, 80), 3);
    let b = run(&[], &exact(&turned, 80), 3);
    let apart = score(&a.map, &b.map, None).unwrap().rmse_db;
    assert!(apart < 0.05, "{apart} dB");
}

#[test]
fn threads_do_not_change_a_bit() {
    let truth = map(32, 12, 2, 7);
    let quantising = Some(Quantising { bits: 3, edges: None, sigma: 0.5 });
    let levels = Sensing { quantising, ..Sensing::exact(SensorLayout::Count(50), 3) };
    for readings in [exact(&truth, 50), sense(&truth, &levels).unwrap()] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&[], &readings, 2)).map
        };
        assert_eq!(with(1), with(2));
    }
}

#[test]
fn every_option_is_used() {
    let truth = map(24, 12, 2, 8);
    let noisy = Sensing { snr_db: Some(25.0), ..Sensing::exact(SensorLayout::Count(40), 5) };
    let readings = sense(&truth, &noisy).unwrap();
    let usual = run(&[], &readings, 2).map;
    let settings = [
        ("rounds", "1"),
        ("decorrelation", "5"),
        ("shadow_db", "2"),
        ("exponent", "4"),
        ("exponent_sd", "0.01"),
        ("positions", "best"),
        ("neighbours", "8"),
        ("offset", "1e-2"),
    ];
    let listed: Vec<_> = method("field").unwrap().options().map(|o| o.name).collect();
    assert_eq!(listed, settings.map(|(name, _)| name));
    for (name, value) in settings {
        assert_ne!(run(&[(name, value)], &readings, 2).map, usual, "{name}");
        let wrong = vec![(name.to_string(), "-1".to_string())];
        assert!(build("field", wrong).is_err(), "{name}");
    }
}

#[test]
fn neighbourhoods_and_many_sensors_agree_with_the_whole() {
    let truth = map(48, 8, 2, 9);
    let readings = exact(&truth, 300);
    let whole = run(&[], &readings, 2);
    let local = run(&[("neighbours", "96")], &readings, 2);
    assert!(local.notes.iter().any(|n| n.contains("96 nearest")));
    let apart = score(&local.map, &whole.map, None).unwrap().rmse_db;
    assert!(apart < 0.1, "{apart} dB");
    let many = run(&[("neighbours", "64")], &exact(&truth, 1600), 2);
    let error = score(&many.map, &truth, None).unwrap().rmse_db;
    assert!(error < 0.5 * score(&whole.map, &truth, None).unwrap().rmse_db, "{error} dB");
}

#[test]
fn the_oracle_asks_for_a_truth_it_can_use() {
    let truth = map(16, 4, 1, 0);
    let dense =
        RadioMap::dense(truth.grid(), truth.to_dense().into_owned(), Scale::paper()).unwrap();
    let readings = exact(&truth, 20);
    assert!(told(&dense, None, &readings).is_err());
    assert!(told(&truth, None, &exact(&map(16, 5, 1, 0), 20)).is_err());
    let error = estimate(&*build("oracle", []).unwrap(), &readings, 1).unwrap_err();
    assert!(error.to_string().contains("needs the truth"), "{error}");
}

#[test]
fn an_oracle_that_fits_the_decorrelation_is_as_good_as_one_that_is_told() {
    let truth = map(48, 8, 3, 2);
    let readings = exact(&truth, 90);
    let error = |decorrelation: Option<&str>| {
        let estimate = told(&truth, decorrelation, &readings).unwrap();
        score(&estimate.map, &truth, None).unwrap().rmse_db
    };
    assert!(error(None) < 1.01 * error(Some("90")), "{} {}", error(None), error(Some("90")));
}

#[test]
fn places_and_exponents_come_with_standard_errors() {
    let truth = map(48, 32, 3, 1);
    let estimate = run(&[], &exact(&truth, 115), 3);
    for finding in estimate.map.findings() {
        let (se, exponent) = (finding.at_se_m.unwrap(), finding.exponent.unwrap());
        assert!(se.iter().all(|s| (0.1..10.0).contains(s)), "{se:?}");
        assert!((1.0..4.0).contains(&exponent.value) && (0.01..0.36).contains(&exponent.se));
        let distance = |at: &Site| {
            ((at.x_m - finding.at.x_m) / se[0]).hypot((at.y_m - finding.at.y_m) / se[1])
        };
        let nearest = truth.emitters().iter().map(distance).fold(f64::INFINITY, f64::min);
        assert!(nearest < 4.0, "{nearest} standard errors");
    }
    let likeliest = run(&[("positions", "best")], &exact(&truth, 115), 3);
    assert!(likeliest.map.findings().iter().all(|f| f.at_se_m.is_none()));
}

#[test]
fn new_sensors_update_an_earlier_estimate_in_fewer_rounds() {
    let truth = map(48, 24, 3, 4);
    let sensing = Sensing::exact(SensorLayout::Count(105), 5);
    for snr_db in [None, Some(20.0)] {
        let after = sense(&truth, &Sensing { snr_db, ..sensing.clone() }).unwrap();
        let some: Vec<usize> = (0..105).filter(|n| n % 3 != 2).collect();
        let before = after.subset(&some).unwrap();
        let (first, cold) = (run(&[], &before, 3), run(&[], &after, 3));
        let context = Context { start: Some(&first.map), seed: 1, ..Context::default() };
        let field = build("field", []).unwrap();
        let warm = fixture::estimate(&*field, &after, &context).unwrap();
        let ssim = |e: &Estimate| score(&e.map, &truth, None).unwrap().ssim.unwrap();
        assert!(ssim(&warm) > ssim(&cold) - 0.003, "{} {}", ssim(&warm), ssim(&cold));
        assert!(warm.iterations < cold.iterations, "{} {}", warm.iterations, cold.iterations);
        assert!(ssim(&warm) > ssim(&first), "the new sensors count");
        // An emitter keeps its number.
        for (a, b) in first.map.findings().iter().zip(warm.map.findings()) {
            assert!(a.at.distance_m(b.at) < 8.0, "{a:?} {b:?}");
        }
    }
}

#[test]
fn emitters_that_are_not_there_are_not_made_up() {
    let truth = map(40, 40, 3, 4);
    let readings = exact(&truth, 160);
    let told = run(&[], &readings, 3);
    let more = run(&[], &readings, 5);
    assert_eq!(more.map.to_dense(), told.map.to_dense());
    assert!(more.notes.iter().any(|note| note.contains("5 emitters were asked for")));
    assert!(told.notes.iter().all(|note| !note.contains("asked for")));
}

#[test]
fn the_number_of_emitters_is_found_through_noise_and_levels() {
    let truth = map(48, 32, 3, 2);
    let sensing = Sensing::exact(SensorLayout::Count(115), 5);
    let quantising = Some(Quantising { bits: 4, edges: None, sigma: 0.5 });
    for (snr_db, quantising) in [(None, None), (Some(20.0), None), (None, quantising)] {
        let readings = sense(&truth, &Sensing { snr_db, quantising, ..sensing.clone() }).unwrap();
        let context = Context { seed: 1, ..Context::default() };
        let field = build("field", []).unwrap();
        let found = fixture::estimate(&*field, &readings, &context).unwrap();
        let counted = found.fitted("emitters").unwrap();
        assert_eq!(counted, 3.0, "{snr_db:?} {:?}", found.notes);
    }
}

#[test]
fn bands_that_share_nothing_are_no_worse_than_kriged() {
    // A checkerboard of levels with a phase of its own in every band: no place, no path loss.
    let grid = Grid::new(24, 24, 1.0).unwrap();
    let power = Array3::from_shape_fn((24, 24, 10), |(i, j, k)| {
        let wave = |at: usize, phase: f64| (0.5 * at as f64 + phase).sin();
        (2.0 * wave(i, 1.7 * k as f64) * wave(j, 2.9 * k as f64)).exp()
    });
    let truth = RadioMap::dense(grid, power, Scale::paper()).unwrap();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(170), 3)).unwrap();
    let error = |name: &str| {
        let method = build(name, []).unwrap();
        let found = fixture::estimate(&*method, &readings, &Context::default()).unwrap();
        (score(&found.map, &truth, None).unwrap().rmse_db, found.notes.clone())
    };
    let ((field, notes), (kriging, _)) = (error("field"), error("kriging"));
    assert!(field <= 1.001 * kriging, "{field} {kriging} {notes:?}");
    assert!(notes.iter().any(|note| note.contains("fitted alone: held-out")), "{notes:?}");
}

#[test]
fn a_reading_left_out_is_missed_as_by_a_fit_without_it() {
    let truth = map(32, 16, 2, 3);
    let noisy = Sensing { snr_db: Some(15.0), ..Sensing::exact(SensorLayout::Count(50), 5) };
    let readings = sense(&truth, &noisy).unwrap();
    let context = Context { emitters: Emitters::Count(2), ..Context::default() };
    let fit = |readings: &Readings, each: &mut dyn FnMut(&mut super::FieldFit<'_>)| {
        let targets = Reported::new(readings);
        let mut fit =
            Field::default().begin(readings, &targets, 2, &context, NOISE_SHARES[0]).unwrap();
        fit.iterate(12, &Progress::silent()).unwrap();
        each(&mut fit);
    };
    let whole = Reported::new(&readings);
    let (mut left_out, mut own) = (Vec::new(), Vec::new());
    let mut noise = None;
    fit(&readings, &mut |fit| {
        left_out = fit.left_out().unwrap();
        let model = fit.logs.mapv(f64::exp).dot(&fit.psd);
        own = model.indexed_iter().map(|((n, k), t)| whole.loss(n, k, *t, fit.noise)).collect();
        noise = Some(fit.noise);
    });
    let mut off = Vec::new();
    let mut optimism = Vec::new();
    for i in (0..left_out.len()).step_by(31) {
        let at = (i / 16, i % 16);
        let mut power = readings.power();
        power[at] = f64::NAN;
        let without = readings.with_values(Values::Power(power)).unwrap();
        fit(&without, &mut |fit| {
            let total = fit.logs.row(at.0).mapv(f64::exp).dot(&fit.psd.column(at.1));
            let lost = whole.loss(at.0, at.1, total, noise.unwrap());
            off.push((left_out[i] - lost).abs());
            optimism.push((own[i] - lost).abs());
        });
    }
    let mean = |all: &[f64]| all.iter().map(|v| v.min(1.0)).sum::<f64>() / all.len() as f64;
    assert!(mean(&off) < 0.5 * mean(&optimism), "{} {}", mean(&off), mean(&optimism));
}

#[test]
fn of_several_starts_the_likeliest_goes_on() {
    let truth = map(32, 24, 3, 4);
    let halves =
        Sensing { snr_db: Some(30.0), cover: 0.5, ..Sensing::exact(SensorLayout::Count(80), 5) };
    let readings = sense(&truth, &halves).unwrap();
    let context = Context { emitters: Emitters::Count(3), ..Context::default() };
    let (targets, quiet) = (Reported::new(&readings), Progress::silent());
    let field = Field::default();
    let evidence = NOISE_SHARES.map(|share| {
        let mut fit = field.begin(&readings, &targets, 3, &context, share).unwrap();
        fit.iterate(START_ROUNDS, &quiet).unwrap();
        fit.log_evidence().unwrap()
    });
    let most = evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut taken = field.started(&readings, &targets, 3, &context, &quiet).unwrap();
    assert!((taken.log_evidence().unwrap() - most).abs() < 1e-6 * most.abs(), "{evidence:?}");
    assert!(evidence.iter().any(|e| *e < most - 1.0), "starts do not differ: {evidence:?}");
    // Two emitters swapped in half of the bands, and at the sensors that read that half alone.
    for band in 12..24 {
        taken.psd.swap([0, band], [1, band]);
    }
    let power = readings.power();
    for n in (0..80).filter(|n| (0..12).all(|band| power[[*n, band]].is_nan())) {
        taken.logs.swap([n, 0], [n, 1]);
    }
    assert!(taken.log_evidence().unwrap() < most - 10.0);
}

fn quantised(map: &RadioMap, bits: u32, sigma: f64) -> Readings {
    let quantising = Some(Quantising { bits, edges: None, sigma });
    let sensing = Sensing { quantising, ..Sensing::exact(SensorLayout::Count(90), 5) };
    sense(map, &sensing).unwrap()
}

/// With hardly any noise before the quantiser the fit once collapsed: with less of it a map was worse.
#[test]
fn levels_with_hardly_any_noise_are_no_worse() {
    let truth = map(32, 24, 3, 7);
    let error = |bits, sigma| {
        let found = run(&[], &quantised(&truth, bits, sigma), 3);
        assert!(finite(&found));
        score(&found.map, &truth, None).unwrap().rmse_db
    };
    let (some, little) = (error(3, 0.5), [0.0, 0.01, 0.1].map(|sigma| error(3, sigma)));
    assert!(little.iter().all(|error| *error < 1.05 * some), "{some} {little:?}");
    assert!(error(8, 0.0) < little[0]);
}

#[test]
fn unknown_noise_before_the_quantiser_is_found() {
    let truth = map(32, 24, 3, 11);
    for (bits, sigma, range) in
        [(3, 0.0, 0.0..0.15), (3, 0.4, 0.3..0.5), (5, 1.2, 0.9..1.5), (2, 2.0, 1.4..2.8)]
    {
        let found = with_likeliest_sigma(quantised(&truth, bits, sigma)).unwrap();
        let Values::Levels { quantiser, .. } = found.values() else { panic!("levels stay levels") };
        assert!(range.contains(&quantiser.sigma()), "{sigma} was taken for {}", quantiser.sigma());
    }
}

/// The error once said that such a band had no reading at all.
#[test]
fn a_band_that_few_of_many_sensors_read_is_fitted() {
    let sites: Vec<Site> =
        (0..1600).map(|i| Site::new(f64::from(i % 40), f64::from(i / 40))).collect();
    let mut power = Array2::from_elem((1600, 3), 1e-7);
    let fitted = scale::some(1600);
    let beside = (0..1600).find(|sensor| !fitted.contains(sensor)).unwrap();
    power.column_mut(1).fill(f64::NAN);
    power[[beside, 1]] = 2e-8;
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    assert!(readings.subset(&fitted).is_err());
    let kept = scale::some_of(&readings);
    assert!(kept.is_sorted() && kept.len() == fitted.len() + 1 && kept.contains(&beside));
    assert!(readings.subset(&kept).is_ok());
}
