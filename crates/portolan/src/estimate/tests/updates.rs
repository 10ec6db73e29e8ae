//! A model that takes further readings predicts what all of them say under its law.

use ndarray::{Array2, s};
use rand_distr::{Distribution, StandardNormal};

use super::super::{Context, Kriging, Method, build};
use crate::model::{Model, Prediction};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::simulate::stream;
use crate::site::Site;

/// Places some of which are visited again, three bands with gaps, a field that bends, noise.
fn survey(rows: usize, heights: bool) -> Readings {
    let wild: Vec<f64> = StandardNormal.sample_iter(stream(77, 0)).take(rows * 6).collect();
    let sites: Vec<Site> = (0..rows)
        .map(|i| {
            let place = if i % 5 == 4 { i / 2 } else { i };
            let (x, y) = (40.0 * wild[6 * place], 40.0 * wild[6 * place + 1]);
            let z = if heights { 15.0 * (place % 4) as f64 } else { 0.0 };
            Site::new(x, y).at_height(z)
        })
        .collect();
    let power = Array2::from_shape_fn((rows, 3), |(i, band)| {
        if (i * 7 + band * 3) % 11 == 0 {
            return f64::NAN;
        }
        let Site { x_m, y_m, z_m } = sites[i];
        let away = (x_m - 12.0).hypot(y_m + 5.0).max(1.0);
        let db = -50.0 - 22.0 * away.log10() + 3.0 * (0.08 * x_m).sin() + 0.2 * z_m
            - 4.0 * band as f64
            + 2.0 * wild[6 * i + 2 + band];
        10f64.powf(db / 10.0)
    });
    let noise = Array2::from_shape_fn((rows, 3), |(i, _)| 0.5 + (i % 3) as f64);
    let repeats = Array2::from_shape_fn((rows, 3), |(i, _)| 1.0 + (i % 2) as f64);
    Readings::further(sites, Values::Power(power), Scale::Absolute)
        .and_then(|r| r.with_noise_db(Some(noise)))
        .and_then(|r| r.with_repeats(Some(repeats)))
        .unwrap()
}

/// One band of a survey for `field`, whose bands are then independent.
fn some_bands(readings: Readings, method: &str) -> Readings {
    match method {
        "field" => readings.with_bands(&[1]).unwrap(),
        _ => readings,
    }
}

fn fitted(method: &dyn Method, readings: &Readings) -> Model {
    method.fit(readings, &Context::default(), &Progress::silent()).unwrap()
}

fn asked(model: &Model) -> Prediction {
    let at: Vec<Site> = (0..40)
        .map(|i| {
            let (x, y) = (f64::from(i * 13 % 100) - 50.0, f64::from(i * 29 % 100) - 50.0);
            Site::new(x, y).at_height(model.height_m())
        })
        .collect();
    model.predict(&at, &Progress::silent()).unwrap()
}

/// Greatest difference of two predictions in dB, of levels and spreads.
fn apart(a: &Prediction, b: &Prediction) -> f64 {
    let levels = a.power.iter().zip(&b.power).map(|(a, b)| (10.0 * (a / b).log10()).abs());
    let spreads = [(&a.spread_db, &b.spread_db), (&a.reading_spread_db, &b.reading_spread_db)];
    let spreads = spreads.into_iter().flat_map(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => a.iter().zip(b).map(|(a, b)| (a - b).abs()).collect::<Vec<f64>>(),
        _ => Vec::new(),
    });
    levels.chain(spreads).fold(0.0, f64::max)
}

fn rows(readings: &Readings, rows: std::ops::Range<usize>) -> Readings {
    readings.subset(&rows.collect::<Vec<usize>>()).unwrap()
}

#[test]
fn one_by_one_or_all_at_once_in_any_order() {
    for (name, heights) in [
        ("kriging", false),
        ("field", false),
        ("nearest", false),
        ("thin_plate", false),
        ("kriging", true),
    ] {
        let all = some_bands(survey(90, heights), name);
        let method = build(name, []).unwrap();
        let first = rows(&all, 0..50);
        let start = || fitted(method.as_ref(), &first);
        let before = asked(&start());
        let mut at_once = start();
        at_once.update(&rows(&all, 50..90)).unwrap();
        let mut single = start();
        for row in (50..90).rev() {
            single.update(&rows(&all, row..row + 1)).unwrap();
        }
        let (at_once, single) = (asked(&at_once), asked(&single));
        assert!(apart(&at_once, &single) < 1e-8, "{name} {}", apart(&at_once, &single));
        assert!(apart(&at_once, &before) > 0.1, "{name}: the update changed nothing");
    }
}

#[test]
fn an_update_is_a_fit_with_the_same_law() {
    // Whose law is given: then a fit of all readings is conditioning on them.
    let all = survey(120, false).with_noise_db(None).unwrap();
    let settings = [("decorrelation", "35"), ("sill", "40"), ("nugget", "4")];
    let settings = settings.map(|(name, value)| (name.to_string(), value.to_string()));
    let method = build("kriging", settings).unwrap();
    let mut updated = fitted(method.as_ref(), &rows(&all, 0..70));
    updated.update(&rows(&all, 70..120)).unwrap();
    let together = fitted(method.as_ref(), &all);
    // How far repeats scatter tells the noise of a reading, which is part of the law.
    let field = |model: &Model| Prediction { reading_spread_db: None, ..asked(model) };
    let apart = apart(&field(&updated), &field(&together));
    assert!(apart < 1e-8, "{apart}");
    assert_eq!(updated.sites().len(), 120);
    assert_eq!(updated.region(), together.region());
}

#[test]
fn thousands_of_readings_one_by_one() {
    let all = survey(2000, false);
    let single = Kriging::default();
    let mut at_once = fitted(&single, &rows(&all, 0..1960));
    let mut model = fitted(&single, &rows(&all, 0..1960));
    for row in 1960..2000 {
        model.update(&rows(&all, row..row + 1)).unwrap();
    }
    at_once.update(&rows(&all, 1960..2000)).unwrap();
    let apart = apart(&asked(&model), &asked(&at_once));
    assert!(apart < 1e-8, "{apart}");
}

#[test]
fn an_updated_model_is_written_and_read() {
    for name in ["kriging", "field", "idw"] {
        let all = some_bands(survey(80, false), name);
        let mut model = fitted(build(name, []).unwrap().as_ref(), &rows(&all, 0..60));
        model.update(&rows(&all, 60..80)).unwrap();
        let again = Model::from_archive(&model.to_archive()).unwrap();
        assert_eq!(asked(&again), asked(&model), "{name}");
    }
}

#[test]
fn what_does_not_fit_the_model_is_refused() {
    let all = survey(60, false);
    let mut model = fitted(&Kriging::default(), &rows(&all, 0..40));
    let mut refused = |readings: &Readings, why: &str| {
        let error = model.update(readings).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    let part = |bands: std::ops::Range<usize>, scale: Scale| {
        let power = all.power().slice(s![40..60, bands]).to_owned();
        Readings::new(all.sites()[40..60].to_vec(), Values::Power(power), scale).unwrap()
    };
    refused(&part(0..2, Scale::Absolute), "3 bands, the update 2");
    refused(&part(0..3, Scale::Uncalibrated), "another unit");
    let high: Vec<Site> = all.sites()[40..60].iter().map(|site| site.at_height(9.0)).collect();
    let high =
        Readings::new(high, Values::Power(part(0..3, Scale::Absolute).power()), Scale::Absolute);
    refused(&high.unwrap(), "a height of 0 m");
    // What was not heard is left out, and said.
    let mut power = part(0..3, Scale::Absolute).power();
    power.row_mut(3).fill(0.0);
    let heard = |power: Array2<f64>| {
        let sites = all.sites()[40..60].to_vec();
        let mut model = fitted(&Kriging::default(), &rows(&all, 0..40));
        model
            .update(&Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap())
            .unwrap();
        model
    };
    let silent = heard(power.clone());
    power.row_mut(3).fill(f64::NAN);
    assert_eq!(asked(&silent), asked(&heard(power)));
    assert!(
        silent.report().notes.iter().any(|n| n.contains("3 entries of the update were not heard"))
    );
    let one = rows(&all, 0..1);
    let error = Kriging::default().fit(&one, &Context::default(), &Progress::silent()).unwrap_err();
    assert!(error.to_string().contains("at least 2 places"), "{error}");
    let mut btd = fitted(build("btd", []).unwrap().as_ref(), &rows(&all, 0..40));
    let error = btd.update(&part(0..3, Scale::Absolute)).unwrap_err().to_string();
    assert!(error.contains("btd cannot be updated"), "{error}");
}
