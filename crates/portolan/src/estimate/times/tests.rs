use ndarray::Axis;
use proptest::prelude::*;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

use super::changes::two_sided;
use super::*;
use crate::estimate::{Auto, Field, Kriging, Method};
use crate::gaussian_process::Correlation;
use crate::linalg::Cholesky;
use crate::points::Points;
use crate::scale::Scale;
use crate::simulate::stream;

const DAY: f64 = 86_400.0;

/// Places read once in every session, with bands whose level drifts; and what is true there.
struct Survey {
    sites: Vec<Site>,
    time_s: Vec<f64>,
    dbm: Array2<f64>,
    /// Sessions x bands.
    level: Array2<f64>,
}

/// `drift` is the deviation of a level that is remembered for 200 days, in dB; noise of 2 dB.
fn survey(seed: u64, places: usize, sessions: usize, bands: usize, drift: f64) -> Survey {
    let mut rng = stream(seed, 60);
    let at: Vec<Site> = (0..places)
        .map(|_| Site::new(60.0 * rng.random::<f64>(), 40.0 * rng.random::<f64>()))
        .collect();
    let lower = Cholesky::new(Correlation::exponential(25.0).matrix(&at).as_ref()).unwrap();
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let kept = (-30.0_f64 / 200.0).exp();
    let mut level = Array2::<f64>::zeros((sessions, bands));
    let mut field = Array2::<f64>::zeros((places, bands));
    for band in 0..bands {
        let mut column = faer::Mat::from_fn(places, 1, |_, _| 8.0 * normal());
        lower.times(column.as_mut());
        (0..places).for_each(|i| field[[i, band]] = -70.0 + column[(i, 0)]);
        let mut now = drift * normal();
        for t in 0..sessions {
            level[[t, band]] = now;
            now = kept * now + drift * (1.0 - kept * kept).sqrt() * normal();
        }
    }
    let rows = places * sessions;
    let dbm = Array2::from_shape_fn((rows, bands), |(row, band)| {
        field[[row % places, band]] + level[[row / places, band]] + 2.0 * normal()
    });
    Survey {
        sites: (0..rows).map(|row| at[row % places]).collect(),
        time_s: (0..rows).map(|row| 30.0 * DAY * (row / places) as f64).collect(),
        dbm,
        level,
    }
}

impl Survey {
    fn rows(&self, rows: &[usize], further: bool) -> Readings {
        let sites: Vec<Site> = rows.iter().map(|&row| self.sites[row]).collect();
        let power = self.dbm.select(Axis(0), rows).mapv(|v| 10f64.powf(0.1 * v));
        let made = match further {
            true => Readings::further(sites, Values::Power(power), Scale::Absolute),
            false => Readings::new(sites, Values::Power(power), Scale::Absolute),
        };
        let time_s = rows.iter().map(|&row| self.time_s[row]).collect();
        made.unwrap().with_time_s(Some(time_s)).unwrap()
    }

    fn part(&self, rows: std::ops::Range<usize>) -> Readings {
        self.rows(&rows.collect::<Vec<_>>(), false)
    }
}

fn fit(method: &dyn Method, readings: &Readings) -> Model {
    method.fit(readings, &Context::default(), &Progress::silent()).unwrap()
}

fn told(model: &Model, at: &[Site]) -> (Array2<f64>, Array2<f64>) {
    let found = model.predict(at, &Progress::silent()).unwrap();
    (found.power.mapv(|p| 10.0 * p.log10()), found.reading_spread_db.unwrap())
}

fn most_apart(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    a.iter().zip(b).fold(0.0, |most, (a, b)| f64::max(most, (a - b).abs()))
}

fn rmse(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt()
}

#[test]
fn levels_that_drift_are_found_and_intervals_hold() {
    for (method, seed) in [(&Kriging::default() as &dyn Method, 1), (&Auto::default(), 2)] {
        let truth = survey(seed, 50, 10, 6, 4.0);
        // The last session at ten places, the others held out.
        let model = fit(method, &truth.part(0..460));
        let still = fit(method, &truth.part(0..460).with_time_s(None).unwrap());
        let held: Vec<usize> = (460..500).collect();
        let at: Vec<Site> = held.iter().map(|&row| truth.sites[row]).collect();
        let dbm = truth.dbm.select(Axis(0), &held);
        let ((level, spread), (without, _)) = (told(&model, &at), told(&still, &at));
        assert!(rmse(&level, &dbm) < 0.8 * rmse(&without, &dbm));
        let inside = level.iter().zip(&spread).zip(&dbm);
        let inside = inside.filter(|((l, s), d)| (*l - *d).abs() < 1.645 * *s).count();
        assert!((200..=238).contains(&inside), "{inside} of 240");
        // Earlier sessions are asked for at their moments.
        let apart = |a: usize, b: usize| {
            let at = |t: usize| told(&model.at_time(30.0 * DAY * t as f64).unwrap(), &at[..1]).0;
            &at(a) - &at(b)
        };
        for (a, b) in [(0, 5), (2, 8)] {
            let true_apart = &truth.level.row(a) - &truth.level.row(b);
            for (told, true_apart) in apart(a, b).iter().zip(true_apart) {
                assert!((told - true_apart).abs() < 2.5, "{told} {true_apart}");
            }
        }
    }
}

#[test]
fn the_spread_of_a_forecast_grows_to_what_levels_vary_by() {
    let truth = survey(3, 40, 10, 5, 4.0);
    let model = fit(&Kriging::default(), &truth.part(0..400));
    let (_, last) = model.time_span().unwrap();
    let spread = |days: f64| {
        let there = model.at_time(last + days * DAY).unwrap();
        told(&there, &truth.sites[..1]).1.mean().unwrap()
    };
    let grown: Vec<f64> = [0.0, 20.0, 100.0, 400.0, 4000.0].map(spread).to_vec();
    assert!(grown.windows(2).all(|pair| pair[0] < pair[1]), "{grown:?}");
    assert!(grown[4] > 3.0 && grown[4] < 9.0, "{grown:?}");
    // Between two sessions a level is better known than as far after the last.
    let middle = told(&model.at_time(last - 15.0 * DAY).unwrap(), &truth.sites[..1]).1;
    assert!(middle.mean().unwrap() < spread(15.0));
}

#[test]
fn surveys_that_do_not_change_and_surveys_of_one_day_know_no_times() {
    let truth = survey(4, 40, 6, 5, 0.0);
    let readings = truth.part(0..240);
    let at = [Site::new(20.0, 20.0), Site::new(200.0, 0.0)];
    let day: Vec<f64> = (0..240).map(|row| 1.7e9 + 45.0 * row as f64).collect();
    for (time_s, note) in [(truth.time_s.clone(), true), (day, false), (vec![5.0; 240], false)] {
        let readings = readings.clone().with_time_s(Some(time_s)).unwrap();
        for method in [&Kriging::default() as &dyn Method, &Field::default(), &Auto::default()] {
            // Rows of one day stand at places of their own.
            let own = if note {
                readings.clone()
            } else {
                readings.subset(&Vec::from_iter(0..40)).unwrap()
            };
            let (with, without) =
                (fit(method, &own), fit(method, &own.clone().with_time_s(None).unwrap()));
            assert_eq!(told(&with, &at), told(&without, &at));
            assert!(!with.sees_times());
            let says = with.report().notes.iter().any(|note| note.contains("not used"));
            assert_eq!(says, note, "{:?}", with.report().notes);
        }
    }
}

#[test]
fn models_with_times_are_read_back_to_the_last_bit() {
    let truth = survey(5, 30, 6, 4, 4.0);
    let heights = |s: &Site, i: usize| s.at_height(f64::from(u8::from(i.is_multiple_of(2))) * 3.0);
    let lifted: Vec<Site> =
        truth.sites.iter().enumerate().map(|(i, s)| heights(s, i % 30)).collect();
    let floors = Survey { sites: lifted, ..survey(5, 30, 6, 4, 4.0) };
    for (truth, method) in [
        (&truth, &Kriging::default() as &dyn Method),
        (&truth, &Field::default()),
        (&truth, &Auto::default()),
        (&floors, &Kriging::default()),
    ] {
        let model = fit(method, &truth.part(0..180));
        assert!(model.sees_times());
        let again = Model::from_archive(&model.to_archive()).unwrap();
        let at = [Site::new(12.0, 30.0), truth.sites[3]];
        for moment in [0.0, 40.0 * DAY, 1000.0 * DAY] {
            let there = |model: &Model| told(&model.at_time(moment).unwrap(), &at);
            assert_eq!(there(&model), there(&again));
            // A model of a moment stays one.
            let then = model.at_time(moment).unwrap();
            let kept = Model::from_archive(&then.to_archive()).unwrap();
            assert_eq!(told(&then, &at), told(&kept, &at));
        }
        assert_eq!(again.time_s(), model.time_s());
    }
}

#[test]
fn a_damaged_model_with_times_is_refused() {
    let truth = survey(6, 30, 6, 4, 4.0);
    let model = fit(&Kriging::default(), &truth.part(0..180));
    let archive = model.to_archive();
    assert!(archive.has("fit_law"));
    for (name, values) in
        [("fit_law", vec![1.0; 3]), ("fit_time_s", vec![f64::NAN; 180]), ("fit_law", vec![-1.0; 6])]
    {
        let mut damaged = archive.clone();
        damaged.put_vector(name, &values);
        assert!(Model::from_archive(&damaged).is_err(), "{name}");
    }
}

#[test]
fn updates_know_their_time_and_come_in_any_order() {
    let truth = survey(7, 40, 9, 5, 4.0);
    for method in [&Kriging::default() as &dyn Method, &Field::default(), &Auto::default()] {
        let model = fit(method, &truth.part(0..280));
        assert!(model.sees_times());
        let parts = [280..300, 300..330].map(|rows| truth.rows(&rows.collect::<Vec<_>>(), true));
        let [a, b] = &parts;
        let one = model.updated(a).unwrap().updated(b).unwrap();
        let other = model.updated(b).unwrap().updated(a).unwrap();
        let at = &truth.sites[..10];
        let ((one, first), (other, second)) = (told(&one, at), told(&other, at));
        assert!(most_apart(&one, &other) < 1e-6, "{}", most_apart(&one, &other));
        assert!(most_apart(&first, &second) < 1e-6);
        // What the update says of the newest level is heard.
        let dbm = truth.dbm.select(Axis(0), &Vec::from_iter(320..330));
        let late = told(&model, at).0;
        assert!(rmse(&one, &dbm) < rmse(&late, &dbm), "{} {}", rmse(&one, &dbm), rmse(&late, &dbm));
    }
}

#[test]
fn every_place_is_asked_at_its_own_moment() {
    let truth = survey(8, 30, 6, 4, 4.0);
    let model = fit(&Kriging::default(), &truth.part(0..180));
    let at = &truth.sites[..4];
    let moments = [0.0, f64::NAN, 60.0 * DAY, 0.0];
    let points = Points::from(at).with_time_s(Some(moments.to_vec())).unwrap();
    let found = model.predict_points(&points, &[2, 0], &Progress::silent()).unwrap();
    for (i, moment) in moments.into_iter().enumerate() {
        let moment = if moment.is_nan() { 150.0 * DAY } else { moment };
        let there = model.at_time(moment).unwrap();
        let one = there.predict_bands(&at[i..=i], &[2, 0], &Progress::silent()).unwrap();
        for k in 0..2 {
            assert!((found.power[[i, k]] / one.power[[0, k]] - 1.0).abs() < 1e-9);
        }
    }
    let without = fit(&Kriging::default(), &truth.part(0..180).with_time_s(None).unwrap());
    assert!(without.at_time(0.0).is_err() && model.at_time(f64::NAN).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn neither_the_order_of_rows_nor_the_zero_of_time_counts(seed in 0u64..1000) {
        let truth = survey(seed, 24, 6, 4, 4.0);
        let mut order: Vec<usize> = (0..144).collect();
        order.shuffle(&mut stream(seed, 61));
        let moved = Survey {
            time_s: truth.time_s.iter().map(|t| t + 1.7e9).collect(),
            sites: truth.sites.clone(), dbm: truth.dbm.clone(), level: truth.level.clone(),
        };
        let method = Kriging::default();
        let one = fit(&method, &truth.part(0..144));
        let other = fit(&method, &moved.rows(&order, false));
        let at = [truth.sites[5], Site::new(30.0, 20.0)];
        for moment in [0.0, 75.0 * DAY, 190.0 * DAY] {
            let (a, b) = (one.at_time(moment).unwrap(), other.at_time(moment + 1.7e9).unwrap());
            let ((a, first), (b, second)) = (told(&a, &at), told(&b, &at));
            prop_assert!(most_apart(&a, &b) < 1e-6, "{a} {b}");
            prop_assert!(most_apart(&first, &second) < 1e-6);
        }
    }
}

#[test]
fn changes_are_found_and_seldom_claimed_where_there_are_none() {
    let silent = Progress::silent();
    let (mut alarms, mut unknown, mut judged) = (0, 0, 0);
    for seed in 0..4 {
        let truth = survey(100 + seed, 40, 12, 8, 3.0);
        let model = fit(&Kriging::default(), &truth.part(0..440));
        // Ten readings of the next session.
        let new = truth.rows(&Vec::from_iter(440..450), true);
        for change in model.changes(&new, 0.05, &silent).unwrap() {
            judged += 1;
            alarms += usize::from(two_sided(change.level_z) < 0.05);
        }
        // Without their times they are taken as the next session.
        let untimed = model.changes(&new.clone().with_time_s(None).unwrap(), 0.05, &silent);
        for change in untimed.unwrap() {
            unknown += usize::from(two_sided(change.level_z) < 0.05);
        }
        // 15 dB more in the second band, another transmitter in the third, nothing in the last.
        let mut power = new.power();
        power.column_mut(1).mapv_inplace(|p| p * 10f64.powf(1.5));
        let turned: Vec<f64> = power.column(2).iter().rev().copied().collect();
        power.column_mut(2).assign(&ndarray::Array1::from(turned));
        let mut gap = power.clone();
        gap.column_mut(7).fill(f64::NAN);
        let at = new.sites().to_vec();
        let moved = Readings::further(at, Values::Power(gap), Scale::Absolute).unwrap();
        let moved = moved.with_time_s(new.time_s().map(<[f64]>::to_vec)).unwrap();
        let found = model.changes(&moved, 0.05, &silent).unwrap();
        assert_eq!(found[1].kind, ChangeKind::Level, "{:?}", found[1]);
        assert!((found[1].level_db - 15.0).abs() < 6.0, "{:?}", found[1]);
        assert!(found[2].kind != ChangeKind::Same || found[2].shape_p > 1e-4, "{:?}", found[2]);
        assert_eq!((found[7].kind, found[7].readings), (ChangeKind::Gone, 0), "{:?}", found[7]);
    }
    // Of 32 at 5 % each; six or more come once in a hundred times.
    assert!(alarms <= 6 && unknown <= 6, "{alarms} and {unknown} of {judged}");
    let truth = survey(9, 30, 6, 4, 4.0);
    let still = fit(&Kriging::default(), &truth.part(0..180).with_time_s(None).unwrap());
    assert!(still.changes(&truth.part(150..180), 0.05, &silent).is_err());
}

#[test]
fn a_band_is_gone_where_receivers_listened_for_it_in_vain() {
    let silent = Progress::silent();
    let truth = survey(105, 40, 12, 4, 3.0);
    let model = fit(&Kriging::default(), &truth.part(0..440));
    let new = truth.rows(&Vec::from_iter(440..470), true);
    let kinds = |rows: &[usize]| {
        let mut power = new.power();
        power.column_mut(3).fill(f64::NAN);
        let entries = Array2::from_shape_fn(power.dim(), |(i, k)| k == 3 && rows.contains(&i));
        let heard = Readings::further(new.sites().to_vec(), Values::Power(power), Scale::Absolute);
        let heard = heard.unwrap().with_time_s(new.time_s().map(<[f64]>::to_vec)).unwrap();
        let marked = heard.with_not_heard(entries, vec![1e-12; 4]).unwrap();
        model.changes(&marked, 0.05, &silent).unwrap()[3].kind
    };
    assert_eq!(kinds(&Vec::from_iter(0..30)), ChangeKind::Gone);
    // One receiver that did is no proof.
    assert_eq!(kinds(&[7]), ChangeKind::Same);
}

#[test]
fn few_readings_of_a_new_session_are_seen_among_many_places() {
    let truth = survey(11, 1500, 2, 1, 0.0);
    let mut rng = stream(11, 61);
    // Three sessions at places of their own, and ten readings of a fourth in one street, 8 dB louder.
    let mut noise = || -> f64 { StandardNormal.sample(&mut rng) };
    let street = |site: &Site| site.distance_m(Site::new(30.0, 20.0));
    let mut near: Vec<usize> = (0..1500).collect();
    near.sort_by(|a, b| street(&truth.sites[*a]).total_cmp(&street(&truth.sites[*b])));
    let (new, old) = near.split_at(10);
    let rows: Vec<usize> = old.iter().chain(new).copied().collect();
    let session = |i: usize| if i >= old.len() { 3 } else { i % 3 };
    let level = [0.0, 4.0, -4.0, 8.0];
    let dbm: Vec<f64> =
        (0..1500).map(|i| truth.dbm[[rows[i], 0]] + level[session(i)] + noise()).collect();
    let sites: Vec<Site> = rows.iter().map(|&row| truth.sites[row]).collect();
    let power = Array2::from_shape_fn((1500, 1), |(i, _)| 10f64.powf(0.1 * dbm[i]));
    let time_s = (0..1500).map(|i| 30.0 * DAY * session(i) as f64).collect();
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let model = fit(&Kriging::default(), &readings.with_time_s(Some(time_s)).unwrap());
    let level = |session: f64| {
        let there = model.at_time(30.0 * DAY * session).unwrap();
        told(&there, &truth.sites[..1]).0[[0, 0]]
    };
    let apart = level(3.0) - level(0.0);
    assert!((apart - 8.0).abs() < 2.5, "{apart}");
}

#[test]
fn a_band_that_a_model_does_not_know_is_new() {
    let truth = survey(10, 30, 6, 4, 4.0);
    let named = |readings: Readings, names: [&str; 4]| {
        let names = names.map(String::from).to_vec();
        readings.with_labels(crate::BandLabels::new(None, Some(names), 4).unwrap()).unwrap()
    };
    let model = fit(&Kriging::default(), &named(truth.part(0..150), ["a", "b", "c", "d"]));
    let new = named(truth.part(150..180), ["b", "a", "e", "d"]);
    let found = model.changes(&new, 0.05, &Progress::silent()).unwrap();
    let kinds: Vec<(usize, ChangeKind)> = found.iter().map(|c| (c.band, c.kind)).collect();
    assert_eq!(kinds.len(), 5);
    assert_eq!((kinds[2], kinds[4]), ((2, ChangeKind::Gone), (2, ChangeKind::New)), "{kinds:?}");
}
