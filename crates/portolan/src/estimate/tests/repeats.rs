//! Places that were read more than once: two visits are two rows.

use super::*;
use crate::error::EstimateError;
use crate::estimate::{Method, Oracle, Split, folds, validate};

/// Rows of the survey again with some noise, at every third place twice more.
fn visited(once: &Readings) -> Readings {
    let again = (0..once.sensors()).filter(|s| s % 3 == 0).flat_map(|s| [s, s]);
    let order: Vec<usize> = (0..once.sensors()).chain(again).collect();
    let Values::Power(power) = once.values() else { panic!() };
    let power = Array2::from_shape_fn((order.len(), once.bands()), |(row, k)| {
        let noise = (1.7 * row as f64 + 2.9 * k as f64).sin();
        power[[order[row], k]] * 10f64.powf(0.15 * noise)
    });
    let sites: Vec<Site> = order.iter().map(|&s| once.sites()[s]).collect();
    let rows = Readings::new(sites, Values::Power(power), once.scale()).unwrap();
    rows.with_grid(once.grid()).unwrap()
}

#[test]
fn methods_without_noise_average_and_say_so() {
    let rows = visited(&survey(60));
    let (joined, averaged) = rows.joined_places().unwrap().unwrap();
    assert_eq!((joined.sensors(), averaged), (60, 40));
    for name in ["nearest", "idw", "linear", "thin_plate"] {
        let (of_rows, of_places) = (fitted(name, &rows), fitted(name, &joined));
        let found = of_rows.predict(&asked(), &Progress::silent()).unwrap();
        let expected = of_places.predict(&asked(), &Progress::silent()).unwrap();
        assert_eq!(found.power, expected.power, "{name}");
        let note = "40 readings at places read before were averaged";
        let said = |m: &Model| m.report().notes.iter().any(|n| n.starts_with(note));
        assert!(said(&of_rows) && !said(&of_places), "{name}: {:?}", of_rows.report().notes);
    }
}

#[test]
fn leaving_a_place_out_is_known_for_all_of_its_rows() {
    let rows = visited(&survey(60));
    let (joined, _) = rows.joined_places().unwrap().unwrap();
    let place = |site: &Site| joined.sites().iter().position(|s| s == site).unwrap();
    for name in ["thin_plate", "field"] {
        let of_rows = fitted(name, &rows).leave_one_out().unwrap().unwrap();
        let of_places = fitted(name, &joined).leave_one_out().unwrap().unwrap();
        assert_eq!(of_rows.nrows(), rows.sensors(), "{name}");
        for (row, site) in rows.sites().iter().enumerate() {
            assert_eq!(of_rows.row(row), of_places.row(place(site)), "{name}");
        }
    }
}

#[test]
fn every_method_takes_rows_at_one_place() {
    let grid = Grid::new(42, 32, 1.0).unwrap();
    let rows = visited(&survey(45).with_grid(Some(grid)).unwrap());
    for name in names() {
        let found = fitted(name, &rows).predict(&asked(), &Progress::silent()).unwrap();
        assert!(found.power.iter().all(|x| x.is_finite() && *x >= 0.0), "{name}");
    }
}

#[test]
fn levels_and_gaps_at_one_place_are_taken_too() {
    let truth = truth();
    let cells = |i: usize| Cell::new(i * 7 % 24, i * 11 % 20);
    let cells: Vec<Cell> = (0..80).map(|i| cells(i % 50)).collect();
    let quantising = Some(Quantising { bits: 3, edges: None, sigma: 1.0 });
    let exact = Sensing::exact(SensorLayout::Cells(cells), 1);
    let levels = sense(&truth, &Sensing { quantising, ..exact.clone() }).unwrap();
    let gaps = sense(&truth, &Sensing { gaps: 0.2, snr_db: Some(20.0), ..exact }).unwrap();
    for readings in [levels, gaps] {
        assert_eq!((readings.sensors(), readings.places()), (80, 50));
        for name in ["nearest", "idw", "linear", "thin_plate", "field", "btd"] {
            let found = fitted(name, &readings).predict(&asked()[..20], &Progress::silent());
            assert!(found.unwrap().power.iter().all(|x| x.is_finite()), "{name}");
        }
    }
}

#[test]
fn the_oracle_averages_too() {
    let truth = truth();
    let cells: Vec<Cell> = (0..60).map(|i| Cell::new(i % 40 * 7 % 24, i % 40 * 11 % 20)).collect();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Cells(cells), 1)).unwrap();
    let context = Context { truth: Some(&truth), ..Context::default() };
    let model = Oracle::default().fit(&readings, &context, &Progress::silent()).unwrap();
    assert!(model.report().notes.iter().any(|n| n.contains("oracle has no model of noise")));
    assert!(model.predict(&asked()[..20], &Progress::silent()).is_ok());
}

#[test]
fn one_place_alone_is_a_flat_map_or_an_error() {
    let power = Array2::from_shape_fn((5, 3), |(i, k)| 1e-7 * (1 + i + k) as f64);
    let sites = vec![Site::new(3.5, -2.0); 5];
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    for name in names() {
        let context = Context { emitters: Emitters::Count(1), ..Context::default() };
        let fit = build(name, []).unwrap().fit(&readings, &context, &Progress::silent());
        match fit.and_then(|model| model.predict(&asked(), &Progress::silent())) {
            Ok(found) => {
                let flat = |k: usize| {
                    let first = found.power[[0, k]];
                    found.power.column(k).iter().all(|x| (x / first - 1.0).abs() < 1e-6)
                };
                assert!((0..3).all(flat), "{name}: {:?}", found.power);
            }
            Err(error) => {
                let of_places = EstimateError::Input(InputError::TooFewSensors { found: 1 });
                let numerical = matches!(error, EstimateError::Numerical(_));
                assert!(error == of_places || numerical, "{name}: {error}");
            }
        }
    }
}

#[test]
fn validation_holds_whole_places_out() {
    let rows = visited(&survey(45));
    for split in [Split::Random, Split::Blocks] {
        let dealt = folds(rows.sites(), 5, split, 1);
        for name in ["nearest", "idw", "thin_plate"] {
            let method = build(name, []).unwrap();
            let progress = Progress::silent();
            let found = validate(&rows, &*method, &dealt, &Context::default(), &progress).unwrap();
            assert_eq!(found.entries.len(), rows.sensors() * rows.bands());
            // A row left in its own fit would be met by its twin.
            assert!(found.rmse_db().unwrap() > 1.0, "{name}");
        }
    }
    // Nothing is left to compare where all rows are at two places.
    let two = rows.subset(&[0, 45, 46, 3, 47, 48]).unwrap();
    assert_eq!(two.places(), 2);
    let dealt = folds(two.sites(), 5, Split::Random, 0);
    let (method, progress) = (build("idw", []).unwrap(), Progress::silent());
    let found = validate(&two, &*method, &dealt, &Context::default(), &progress).unwrap();
    assert!(dealt.len() == 2 && found.entries.is_empty());
}
