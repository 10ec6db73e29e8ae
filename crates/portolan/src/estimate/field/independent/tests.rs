use ndarray::Array2;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::estimate::{Auto, Context, Field, Kriging, Method, Transmitter};
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::simulate::stream;
use crate::site::Site;

/// Bands with a transmitter each, read at random places with noise; and the truth at others.
struct Survey {
    masts: Vec<Site>,
    sites: Vec<Site>,
    /// dB, sites x bands.
    read: Array2<f64>,
    held: Vec<Site>,
    truth: Array2<f64>,
}

fn survey(seed: u64, sensors: usize, bands: usize) -> Survey {
    let mut rng = stream(seed, 11);
    let mut place = |side: f64| Site::new(side * rng.random::<f64>(), side * rng.random::<f64>());
    let masts: Vec<Site> = (0..bands).map(|_| place(100.0)).collect();
    let sites: Vec<Site> = (0..sensors).map(|_| place(100.0)).collect();
    let held: Vec<Site> = (0..200).map(|_| place(100.0)).collect();
    let level = |k: usize, at: Site| {
        let slow = (0.05 * at.x_m + k as f64).sin() + (0.04 * at.y_m - k as f64).cos();
        -40.0 - 26.0 * (at.distance_m(masts[k]).max(2.0) / 2.0).log10() + 2.0 * slow
    };
    let table = |at: &[Site]| Array2::from_shape_fn((at.len(), bands), |(i, k)| level(k, at[i]));
    let (mut read, truth) = (table(&sites), table(&held));
    read.mapv_inplace(|v| {
        v + 2.0 * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, &mut rng)
    });
    Survey { masts, sites, read, held, truth }
}

impl Survey {
    /// Readings below the floor are not heard, or missing.
    fn readings(&self, floor: f64, silent: bool) -> Readings {
        let quiet = if silent { 0.0 } else { f64::NAN };
        let power = self.read.mapv(|v| if v < floor { quiet } else { 10f64.powf(0.1 * v) });
        Readings::new(self.sites.clone(), Values::Power(power), Scale::Absolute).unwrap()
    }

    fn rmse(&self, model: &Model) -> f64 {
        let found = model.predict(&self.held, &Progress::silent()).unwrap().power;
        let squares = found.iter().zip(&self.truth).map(|(p, t)| (10.0 * p.log10() - t).powi(2));
        (squares.sum::<f64>() / self.truth.len() as f64).sqrt()
    }
}

fn run(method: &dyn Method, readings: &Readings, known: &[Transmitter]) -> Model {
    let context = Context { transmitters: known, ..Context::default() };
    method.fit(readings, &context, &Progress::silent()).unwrap()
}

#[test]
fn transmitters_are_found_and_predict_better_than_kriging() {
    let survey = survey(1, 70, 6);
    let readings = survey.readings(f64::NEG_INFINITY, false);
    let field = run(&Field::default(), &readings, &[]);
    let note = |n: &String| n.contains("fitted alone");
    assert!(field.report().notes.iter().any(note), "{:?}", field.report().notes);
    let kriging = run(&Kriging::default(), &readings, &[]);
    let (ours, plain) = (survey.rmse(&field), survey.rmse(&kriging));
    assert!(ours < 0.97 * plain, "{ours} {plain}");
    assert!(field.emitters().len() >= 4, "{}", field.emitters().len());
    for emitter in field.emitters() {
        let band = emitter.psd.iter().position(|p| *p > 0.0).unwrap();
        let off = emitter.at.distance_m(survey.masts[band]);
        let [x, y] = emitter.at_se_m.unwrap();
        assert!(off < 4.0 * x.hypot(y), "band {band}: {off} m, {x} {y}");
    }
    let known: Vec<Transmitter> =
        survey.masts.iter().enumerate().map(|(k, &at)| Transmitter::new(at).in_band(k)).collect();
    let with_places = survey.rmse(&run(&Field::default(), &readings, &known));
    assert!(with_places < ours, "{with_places} {ours}");
    // On top of a sensor, and far outside: fine.
    let odd = [Transmitter::new(survey.sites[0]), Transmitter::new(Site::new(-1e4, 0.0))];
    assert!(survey.rmse(&run(&Field::default(), &readings, &odd)).is_finite());
}

#[test]
fn silence_says_that_a_band_is_faint() {
    let survey = survey(2, 60, 8);
    let floor = -72.0;
    let faint = |model: &Model| {
        let found = model.predict(&survey.held, &Progress::silent()).unwrap();
        let over = found.power.iter().zip(&survey.truth).filter(|(_, t)| **t < floor - 3.0);
        let over: Vec<f64> = over.map(|(p, t)| 10.0 * p.log10() - t).collect();
        over.iter().sum::<f64>() / over.len() as f64
    };
    for method in [&Kriging::default() as &dyn Method, &Field::default(), &Auto::default()] {
        let heard = run(method, &survey.readings(floor, true), &[]);
        let dropped = run(method, &survey.readings(floor, false), &[]);
        assert!(faint(&heard) < 0.6 * faint(&dropped), "{} {}", faint(&heard), faint(&dropped));
        let found = heard.predict(&survey.held, &Progress::silent()).unwrap();
        let (chance, report) = (found.chance_heard.unwrap(), found.heard.unwrap());
        assert!(chance.iter().all(|c| (0.0..=1.0).contains(c)));
        assert!(report.iter().zip(&found.power).all(|(r, f)| r >= f));
        let mean = |loud: bool| {
            let of = chance.iter().zip(&survey.truth).filter(|(_, t)| (**t > floor) == loud);
            let of: Vec<f64> = of.map(|(c, _)| *c).collect();
            of.iter().sum::<f64>() / of.len() as f64
        };
        assert!(mean(true) > 0.8 && mean(false) < 0.35, "{} {}", mean(true), mean(false));
        let again = Model::from_archive(&heard.to_archive()).unwrap();
        let there = |model: &Model| model.predict(&survey.held[..9], &Progress::silent()).unwrap();
        assert_eq!(there(&again), there(&heard));
    }
}

#[test]
fn auto_says_what_it_combined_and_is_no_worse() {
    let survey = survey(3, 60, 6);
    let readings = survey.readings(f64::NEG_INFINITY, false);
    let auto = run(&Auto::default(), &readings, &[]);
    let report = auto.report();
    let weights: f64 = report.candidates.iter().filter_map(|c| c.weight).sum();
    assert!((weights - 1.0).abs() < 1e-9, "{:?}", report.candidates);
    let heaviest = report.candidates.iter().max_by(|a, b| a.weight.partial_cmp(&b.weight).unwrap());
    assert_eq!(report.chosen.as_ref(), heaviest.map(|c| &c.method));
    let best = [&Kriging::default() as &dyn Method, &Field::default()]
        .map(|method| survey.rmse(&run(method, &readings, &[])))
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    assert!(survey.rmse(&auto) < 1.05 * best, "{} {best}", survey.rmse(&auto));
    let again = Model::from_archive(&auto.to_archive()).unwrap();
    let there = |model: &Model| model.predict(&survey.held[..9], &Progress::silent()).unwrap();
    assert_eq!(there(&again), there(&auto));
    assert_eq!(again.report().candidates, report.candidates);
}

#[test]
fn a_sensor_left_out_tells_nothing_of_its_transmitter() {
    let survey = survey(4, 12, 3);
    let readings = survey.readings(-200.0, false);
    let model = super::fit(&readings, &Context::default(), &Progress::silent()).unwrap();
    let all = model.leave_one_out().unwrap().unwrap();
    for (sensor, site) in survey.sites.iter().enumerate() {
        let without = model.predictor().predict_without(&[*site]).unwrap().unwrap();
        for band in 0..3 {
            let (a, b) = (all[[sensor, band]], without.power[[0, band]]);
            assert!((a / b - 1.0).abs() < 1e-6, "sensor {sensor}, band {band}: {a} and {b}");
        }
    }
}

/// Readings of path loss about a transmitter for each band, with noise, at any places.
fn read_at(sites: Vec<Site>, bands: usize, seed: u64) -> Readings {
    let mut rng = stream(seed, 12);
    let power = Array2::from_shape_fn((sites.len(), bands), |(i, k)| {
        let far = sites[i].distance_m(Site::new(7.0 * k as f64, 30.0)).max(1.0);
        let noise: f64 = StandardNormal.sample(&mut rng);
        10f64.powf(0.1 * (-40.0 - 25.0 * far.log10() + 2.0 * noise))
    });
    Readings::further(sites, Values::Power(power), Scale::Absolute).unwrap()
}

#[test]
fn odd_layouts_of_sensors_give_a_model_or_an_error() {
    let mut rng = stream(7, 13);
    let mut layout = |count: usize, wide: f64, long: f64, high: f64| -> Vec<Site> {
        let mut one = |side: f64| side * rng.random::<f64>();
        (0..count).map(|_| Site::new(one(wide), one(long)).at_height(one(high))).collect()
    };
    let mut layouts = vec![
        ("column", layout(60, 20.0, 20.0, 100.0)),
        ("vertical", layout(40, 0.0, 0.0, 100.0)),
        ("vertical plane", layout(40, 50.0, 0.0, 200.0)),
        ("one place", layout(30, 0.0, 0.0, 0.0)),
        ("line", layout(40, 100.0, 0.0, 0.0)),
        ("crowded", layout(40, 1e-9, 1e-9, 0.0)),
    ];
    layouts.push(("two places", layouts[4].1[..2].repeat(15)));
    let cases = layouts.into_iter().map(|(name, sites)| (name, read_at(sites, 4, 8)));
    let mut cases: Vec<(&str, Readings)> = cases.collect();
    let flat = Values::Power(Array2::from_elem((40, 4), 1e-7));
    let square = layout(40, 100.0, 100.0, 0.0);
    cases.push(("all equal", Readings::new(square, flat, Scale::Absolute).unwrap()));
    for (name, readings) in cases {
        let alone = super::fit(&readings, &Context::default(), &Progress::silent());
        let (context, silent) = (Context::default(), Progress::silent());
        let field = Field::default().fit(&readings, &context, &silent);
        let auto = Auto::default().fit(&readings, &context, &silent);
        for found in [alone, field, auto] {
            match found {
                Ok(model) => {
                    let at = [readings.sites()[0], Site::new(3.0, 4.0)];
                    let power = model.predict(&at, &silent).map(|found| found.power);
                    assert!(power.unwrap().iter().all(|p| p.is_finite()), "{name}");
                }
                Err(error) => {
                    let told = matches!(name, "one place" | "crowded" | "two places");
                    assert!(told, "{name}: {error}");
                    eprintln!("{name}: {error}");
                }
            }
        }
    }
}

#[test]
fn one_law_is_enough_for_many_readings() {
    let mut rng = stream(9, 14);
    let mut place = || Site::new(100.0 * rng.random::<f64>(), 100.0 * rng.random::<f64>());
    let readings = read_at((0..6100).map(|_| place()).collect(), 1, 9);
    let silent = Progress::silent();
    let (samples, _, link) = super::samples(&readings);
    let law = super::pooled_laws(&samples, &silent).unwrap().unwrap()[0].1;
    let pseudo = vec![Default::default()];
    let extent_m = crate::site::extent_m(readings.sites());
    let survey = super::Survey { samples, pseudo, link, extent_m };
    let found = super::Account::about_transmitters(&law, &survey, &readings, &[], &silent);
    assert_eq!(found.unwrap().len(), 1);
}

/// `locate` once printed the places of the first fit.
#[test]
fn an_update_finds_the_transmitters_again() {
    let survey = survey(5, 160, 4);
    let all = survey.readings(f64::NEG_INFINITY, false);
    let part = |from: usize, to: usize| (from..to).collect::<Vec<usize>>();
    let silent = Progress::silent();
    let (few, more) = (part(0, 40), part(40, 160));
    let first = super::fit(&all.subset(&few).unwrap(), &Context::default(), &silent).unwrap();
    assert!(!first.emitters().is_empty());
    let more = all.further_subset(&more).unwrap();
    let later = first.updated(&more).unwrap();
    // The same law, with all readings at once.
    let whole = first.predictor().relearn(&all).unwrap().unwrap().emitters().unwrap();
    assert_eq!(later.emitters().len(), first.emitters().len());
    for ((new, old), whole) in later.emitters().iter().zip(first.emitters()).zip(&whole) {
        let area = |e: &crate::model::ModelEmitter| e.at_se_m.unwrap().iter().product::<f64>();
        assert!(area(new) < 0.8 * area(old), "{:?} {:?}", new.at_se_m, old.at_se_m);
        assert!((area(new) / area(whole) - 1.0).abs() < 1e-6 && new.band() == old.band());
        assert!(new.at.distance_m(whole.at) < 1e-6);
        assert!((new.power_share - whole.power_share).abs() < 1e-9);
    }
    let read = Model::from_archive(&first.to_archive()).unwrap();
    let [again, later] = [read.updated(&more).unwrap(), later];
    for (again, later) in again.emitters().iter().zip(later.emitters()) {
        assert!(again.at.distance_m(later.at) < 1e-9);
    }
    // So does a combination.
    let auto = run(&Auto::default(), &all.subset(&few).unwrap(), &[]);
    let again = auto.updated(&more).unwrap();
    assert!(!auto.emitters().is_empty());
    assert!(!again.report().notes.iter().any(|note| note.contains("emitters as they were")));
    for emitter in auto.emitters() {
        let area = |e: &crate::model::ModelEmitter| e.at_se_m.unwrap().iter().product::<f64>();
        let renewed = again.emitters().iter().find(|new| new.band() == emitter.band()).unwrap();
        assert!(area(renewed) < 0.8 * area(emitter), "{:?}", renewed.at_se_m);
    }
}
