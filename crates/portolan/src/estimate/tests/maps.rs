//! What every method's map must be.

use super::*;

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
    let sites: Vec<Site> = (0..6).map(|i| Site::new(f64::from(i), 0.0)).collect();
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let linear =
        crate::estimate::Kriging { domain: crate::estimate::Domain::Linear, ..Default::default() };
    let silent = Progress::silent();
    let model = crate::Method::fit(&linear, &readings, &Context::default(), &silent).unwrap();
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

#[test]
fn power_alone_is_the_power_of_a_prediction() {
    let truth = truth();
    let grid = truth.grid();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 2)).unwrap();
    for neighbours in [None, Some(("neighbours".to_string(), "16".to_string()))] {
        let kriging = build("kriging", neighbours).unwrap();
        let model = kriging.fit(&readings, &Context::default(), &Progress::silent()).unwrap();
        let alone = model.power_on(grid, &Progress::silent()).unwrap();
        let whole = model.predict(&grid.sites(), &Progress::silent()).unwrap();
        assert_eq!(alone, whole.power);
    }
}
