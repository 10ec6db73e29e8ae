use super::*;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::site::Site;
use crate::{Context, estimate::build};
use ndarray::s;

fn survey(sensors: usize) -> (Array2<f64>, Array2<f64>) {
    let points = Array2::from_shape_fn((sensors, 2), |(i, axis)| {
        let i = i as f64;
        if axis == 0 { (i * 7.31) % 23.0 } else { (i * 3.17) % 19.0 }
    });
    let power = Array2::from_shape_fn((sensors, 3), |(i, k)| {
        let (x, y) = (points[[i, 0]], points[[i, 1]]);
        if (i + k) % 11 == 0 {
            f64::NAN
        } else {
            10f64.powf(-6.0 - 0.02 * x + 0.3 * (0.4 * y + k as f64).sin())
        }
    });
    (points, power)
}

const NAMES: [&str; 4] = ["nearest", "idw", "thin_plate", "kriging"];

fn space(name: &str, points: Array2<f64>, power: Array2<f64>) -> SpaceModel {
    let method = SpaceMethod::build(name, []).unwrap().unwrap();
    SpaceReadings { points, power, repeats: None }.fit(method, &Progress::silent()).unwrap()
}

#[test]
fn two_coordinates_are_the_plane() {
    let (points, power) = survey(60);
    let sites: Vec<Site> = points.axis_iter(Axis(0)).map(|p| Site::new(p[0], p[1])).collect();
    let readings = Readings::new(sites, Values::Power(power.clone()), Scale::Absolute).unwrap();
    let at = ndarray::array![[4.5, 6.1], [20.0, 1.0], [-3.0, 30.0]];
    let sites: Vec<Site> = at.axis_iter(Axis(0)).map(|p| Site::new(p[0], p[1])).collect();
    for name in NAMES {
        let silent = Progress::silent();
        let plane = build(name, []).unwrap();
        let plane = plane.fit(&readings, &Context::default(), &silent).unwrap();
        let want = plane.predict(&sites, &silent).unwrap().power;
        let got = space(name, points.clone(), power.clone());
        let got = got.predict(at.view(), &silent).unwrap().power;
        for (got, want) in got.iter().zip(&want) {
            assert!((got / want - 1.0).abs() < 1e-9, "{name}: {got} {want}");
        }
    }
}

#[test]
fn a_coordinate_that_does_not_vary_changes_nothing() {
    let (points, power) = survey(40);
    let mut more = Array2::from_elem((40, 4), 3.5);
    more.slice_mut(s![.., 1..3]).assign(&points);
    let at = ndarray::array![[3.5, 4.5, 6.1, 3.5], [3.5, 20.0, 1.0, 3.5]];
    for name in NAMES {
        let few = space(name, points.clone(), power.clone());
        let few = few.predict(at.slice(s![.., 1..3]), &Progress::silent()).unwrap();
        let many = space(name, more.clone(), power.clone());
        let many = many.predict(at.view(), &Progress::silent()).unwrap();
        for (got, want) in many.power.iter().zip(&few.power) {
            assert!((got / want - 1.0).abs() < 1e-7, "{name}: {got} {want}");
        }
    }
}

#[test]
fn one_and_five_coordinates_follow_what_was_read() {
    for axes in [1, 5] {
        let points = Array2::from_shape_fn((90, axes), |(i, axis)| {
            ((i * (2 * axis + 3)) as f64 * 0.618).fract() * 10.0
        });
        let power =
            Array2::from_shape_fn((90, 1), |(i, _)| 10f64.powf(-7.0 + 0.1 * points[[i, 0]]));
        for name in NAMES {
            let model = space(name, points.clone(), power.clone());
            let found = model.predict(points.slice(s![..20, ..]), &Progress::silent()).unwrap();
            for (got, want) in found.power.iter().zip(&power) {
                assert!((got / want).ln().abs() < 0.1, "{name} {axes}: {got} {want}");
            }
            assert_eq!(found.spread_db.is_some(), name == "kriging");
        }
    }
}

#[test]
fn a_law_that_was_found_predicts_the_same_again() {
    let (points, power) = survey(50);
    let model = space("kriging", points.clone(), power);
    let again =
        model.readings().clone().with_laws(model.method, model.laws().map(<[_]>::to_vec)).unwrap();
    let [first, second] =
        [&model, &again].map(|m| m.predict(points.view(), &Progress::silent()).unwrap());
    assert_eq!(first, second);
}

#[test]
fn what_cannot_be_is_refused() {
    let (points, power) = survey(12);
    assert!(SpaceMethod::build("field", []).unwrap().is_none());
    let fit = |points: Array2<f64>, power: Array2<f64>| {
        let method = SpaceMethod::build("idw", []).unwrap().unwrap();
        SpaceReadings { points, power, repeats: None }.fit(method, &Progress::silent()).err()
    };
    assert!(fit(points.clone(), power.slice(s![..5, ..]).to_owned()).is_some());
    assert!(fit(points.clone(), power.mapv(|_| f64::NAN)).is_some());
    assert!(fit(points.mapv(|_| f64::NAN), power.clone()).is_some());
    assert!(fit(points.clone(), power.mapv(|_| 0.0)).is_some());
    let model = space("idw", points, power);
    let at = Array2::zeros((1, 3));
    assert!(model.predict(at.view(), &Progress::silent()).is_err());
}
