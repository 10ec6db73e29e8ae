use std::sync::Arc;

use ndarray::Array2;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::between::{Between, Floors, Wall, Walls};
use crate::estimate::{Auto, Context, Field, Method, Transmitter};
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::simulate::stream;
use crate::site::Site;

/// A house of 30 x 20 m with walls every 5 m, on two floors; each wall takes 4 dB and a floor 12 dB.
struct House {
    walls: Vec<Wall>,
    masts: Vec<Site>,
    sites: Vec<Site>,
    dbm: Array2<f64>,
}

impl House {
    fn new(seed: u64, places: usize) -> Self {
        let mut rng = stream(seed, 90);
        let mut walls = Vec::new();
        for i in 1..6 {
            let x = 5.0 * f64::from(i);
            walls.push(Wall::new(Site::new(x, 0.0), Site::new(x, 8.0), "brick"));
            walls.push(Wall::new(Site::new(x, 12.0), Site::new(x, 20.0), "brick"));
        }
        walls.push(Wall::new(Site::new(0.0, 8.0), Site::new(30.0, 8.0), "brick"));
        walls.push(Wall::new(Site::new(0.0, 12.0), Site::new(30.0, 12.0), "brick"));
        let mut place = || {
            let up = 3.0 * f64::from(rng.random::<f64>() > 0.5);
            Site::new(30.0 * rng.random::<f64>(), 20.0 * rng.random::<f64>()).at_height(1.0 + up)
        };
        let masts: Vec<Site> = (0..6).map(|_| place()).collect();
        let sites: Vec<Site> = (0..places).map(|_| place()).collect();
        let plan = Walls::new(walls.clone()).unwrap();
        let dbm = Array2::from_shape_fn((places, 6), |(i, k)| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let crossed = plan.between(masts[k], &[sites[i]])[[0, 0]];
            let floor = f64::from(sites[i].z_m != masts[k].z_m);
            let far = sites[i].distance_m(masts[k]).max(1.0);
            -40.0 - 20.0 * far.log10() - 4.0 * crossed - 12.0 * floor + 2.0 * noise
        });
        Self { walls, masts, sites, dbm }
    }

    fn readings(&self, rows: std::ops::Range<usize>) -> Readings {
        let dbm = self.dbm.slice(ndarray::s![rows.clone(), ..]);
        let power = dbm.mapv(|v| 10f64.powf(0.1 * v));
        Readings::new(self.sites[rows].to_vec(), Values::Power(power), Scale::Absolute).unwrap()
    }

    fn known(&self) -> Vec<Transmitter> {
        self.masts.iter().enumerate().map(|(k, &at)| Transmitter::new(at).in_band(k)).collect()
    }

    /// The error of a method fitted to the first rows, at the others.
    fn rmse(&self, method: &dyn Method, plan: Option<Vec<Wall>>, known: bool) -> (f64, Model) {
        let train = 60;
        let transmitters = if known { self.known() } else { Vec::new() };
        let mut obstacles: Vec<Arc<dyn Between>> = Vec::new();
        if let Some(plan) = plan {
            obstacles.push(Arc::new(Walls::new(plan).unwrap()));
            obstacles.push(Arc::new(Floors::new(3.0).unwrap()));
        }
        let context =
            Context { transmitters: &transmitters, obstacles: &obstacles, ..Context::default() };
        let model = method.fit(&self.readings(0..train), &context, &Progress::silent()).unwrap();
        let test = &self.sites[train..];
        let found = model.predict(test, &Progress::silent()).unwrap();
        let held = self.dbm.slice(ndarray::s![train.., ..]);
        let squares = found.power.iter().zip(held).map(|(p, d)| (10.0 * p.log10() - d).powi(2));
        ((squares.sum::<f64>() / held.len() as f64).sqrt(), model)
    }
}

#[test]
fn walls_and_floors_take_what_they_take() {
    let house = House::new(1, 200);
    let (without, _) = house.rmse(&Field::default(), None, true);
    for method in [&Field::default() as &dyn Method, &Auto::default()] {
        let (with, model) = house.rmse(method, Some(house.walls.clone()), true);
        assert!(with < 0.7 * without, "{with} {without}");
        let loss = |name: &str| {
            let columns = model.report().columns.iter().filter(|c| c.name == name);
            columns.map(|c| (c.loss_db, c.loss_se_db)).next().unwrap()
        };
        let (brick, se) = loss("brick");
        assert!((brick - 4.0).abs() < 4.0 * se && se < 0.6, "{brick} {se}");
        // One floor up or down: its loss is in one column or in the other.
        let floor: f64 = ["floors", "any floor"]
            .iter()
            .flat_map(|name| model.report().columns.iter().filter(move |c| c.name == *name))
            .map(|c| c.loss_db)
            .sum();
        assert!((floor - 12.0).abs() < 2.0, "{floor}");
    }
}

#[test]
fn a_wrong_plan_costs_next_to_nothing() {
    let house = House::new(2, 200);
    let mut rng = stream(3, 91);
    let mut random = |most: f64| most * rng.random::<f64>();
    let wrong: Vec<Wall> = (0..12)
        .map(|_| {
            let (x, y) = (random(30.0), random(20.0));
            Wall::new(Site::new(x, y), Site::new(x + random(8.0) - 4.0, y + random(8.0)), "brick")
        })
        .collect();
    // The floors are the same: only the walls are wrong.
    let context_without = |plan| house.rmse(&Field::default(), plan, true).0;
    let far = vec![Wall::new(Site::new(-50.0, 0.0), Site::new(-50.0, 1.0), "brick")];
    let (without, with) = (context_without(Some(far)), context_without(Some(wrong)));
    assert!(with < 1.02 * without, "{with} {without}");
}

#[test]
fn transmitters_that_nobody_knows_are_sought_behind_the_walls() {
    let house = House::new(4, 260);
    let (without, _) = house.rmse(&Field::default(), None, false);
    let (with, _) = house.rmse(&Field::default(), Some(house.walls.clone()), false);
    assert!(with < 0.95 * without, "{with} {without}");
}

#[test]
fn models_with_walls_are_written_and_read() {
    let house = House::new(5, 80);
    for known in [true, false] {
        let (_, model) = house.rmse(&Auto::default(), Some(house.walls.clone()), known);
        let again = Model::from_archive(&model.to_archive()).unwrap();
        let at = &house.sites[60..];
        let [a, b] = [&model, &again].map(|m| m.predict(at, &Progress::silent()).unwrap());
        assert_eq!(a, b);
        assert_eq!(model.report().columns, again.report().columns);
        // Half of the bands, and places one by one, say the same.
        let some = again.predict_bands(&at[3..4], &[4, 1], &Progress::silent()).unwrap();
        let off = (some.power[[0, 0]] / a.power[[3, 4]]).ln().abs();
        assert!(off < 1e-9, "{off}");
    }
}

#[test]
fn the_order_of_the_rows_does_not_matter() {
    let house = House::new(6, 60);
    let turned: Vec<usize> = (0..60).map(|i| (7 * i + 3) % 60).collect();
    let readings = house.readings(0..60);
    let known = house.known();
    let obstacles: Vec<Arc<dyn Between>> = vec![Arc::new(Walls::new(house.walls.clone()).unwrap())];
    let context = Context { transmitters: &known, obstacles: &obstacles, ..Context::default() };
    let fit = |readings: &Readings| {
        let model = Field::default().fit(readings, &context, &Progress::silent()).unwrap();
        model.predict(&[Site::new(11.0, 9.0)], &Progress::silent()).unwrap().power
    };
    let (a, b) = (fit(&readings), fit(&readings.subset(&turned).unwrap()));
    let off = a.iter().zip(&b).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
    assert!(off < 1e-6, "{off}");
}
