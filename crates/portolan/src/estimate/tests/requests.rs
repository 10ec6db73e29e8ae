//! What is refused, and what it says.

use super::*;

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
