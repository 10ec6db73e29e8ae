use std::sync::Arc;

use ndarray::Array2;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::between::{Between, Floors, Wall, Walls};
use crate::estimate::{Auto, Context, Emitters, Field, Method, Transmitter};
use crate::gaussian_process::Correlation;
use crate::linalg::Cholesky;
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

/// Path loss and a correlated field over 60 x 60 m, in so many bands; nothing stands in the way.
struct Open {
    masts: Vec<Transmitter>,
    sites: Vec<Site>,
    dbm: Array2<f64>,
}

impl Open {
    fn new(seed: u64, places: usize, bands: usize) -> Self {
        let mut rng = stream(seed, 92);
        let mut place = || Site::new(60.0 * rng.random::<f64>(), 60.0 * rng.random::<f64>());
        let sites: Vec<Site> = (0..places).map(|_| place()).collect();
        let masts: Vec<Transmitter> =
            (0..bands).map(|k| Transmitter::new(place()).in_band(k)).collect();
        let lower = Cholesky::new(Correlation::exponential(15.0).matrix(&sites).as_ref()).unwrap();
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut dbm = Array2::zeros((places, bands));
        for k in 0..bands {
            let mut field = faer::Mat::from_fn(places, 1, |_, _| normal());
            lower.times(field.as_mut());
            for (i, site) in sites.iter().enumerate() {
                let far = site.distance_m(masts[k].at).max(1.0);
                dbm[[i, k]] = -40.0 - 25.0 * far.log10() + 5.0 * field[(i, 0)] + normal();
            }
        }
        Self { masts, sites, dbm }
    }

    fn readings(&self, rows: std::ops::Range<usize>) -> Readings {
        let power = self.dbm.slice(ndarray::s![rows.clone(), ..]).mapv(|v| 10f64.powf(0.1 * v));
        Readings::new(self.sites[rows].to_vec(), Values::Power(power), Scale::Absolute).unwrap()
    }

    /// Error at the rows from `train` on, and the model.
    fn rmse(
        &self,
        readings: &Readings,
        train: usize,
        method: &dyn Method,
        context: &Context<'_>,
    ) -> (f64, Model) {
        let model = method.fit(readings, context, &Progress::silent()).unwrap();
        let found = model.predict(&self.sites[train..], &Progress::silent()).unwrap().power;
        let held = self.dbm.slice(ndarray::s![train.., ..]);
        let squares = found.iter().zip(held).map(|(p, d)| (10.0 * p.log10() - d).powi(2));
        ((squares.sum::<f64>() / held.len() as f64).sqrt(), model)
    }
}

/// Another building's plan over 60 x 60 m.
fn another(seed: u64) -> Arc<dyn Between> {
    let mut rng = stream(seed, 93);
    let walls = (0..25).map(|i| {
        let (x, y) = (60.0 * rng.random::<f64>(), 60.0 * rng.random::<f64>());
        let (along, up) = if i % 2 == 0 { (12.0, 0.0) } else { (0.0, 12.0) };
        Wall::new(Site::new(x, y), Site::new(x + along, y + up), "brick")
    });
    Arc::new(Walls::new(walls.collect()).unwrap())
}

fn weighed_note(model: &Model) -> String {
    let mut notes = model.report().notes.iter();
    notes.find(|note| note.contains("path loss with obstacles counts")).unwrap().clone()
}

#[test]
fn another_buildings_plan_costs_next_to_nothing_with_many_places_too() {
    for (seed, places) in [(1, 100), (2, 300)] {
        let open = Open::new(seed, places + 200, 3);
        let readings = open.readings(0..places);
        let (masts, plan) = (&open.masts[..], [another(seed)]);
        for method in [&Field::default() as &dyn Method, &Auto::default()] {
            let plain = Context { transmitters: masts, ..Context::default() };
            let (without, _) = open.rmse(&readings, places, method, &plain);
            let context = Context { obstacles: &plan, ..plain };
            let (with, model) = open.rmse(&readings, places, method, &context);
            let note = weighed_note(&model);
            assert!(note.contains("left out one by one"), "{note}");
            assert!(with < 1.01 * without, "{places}: {with} {without}, {note}");
        }
    }
}

#[test]
fn bands_that_one_box_holds_are_weighed() {
    let open = Open::new(3, 180, 3);
    let mut part = open.readings(0..80);
    let mut power = part.power();
    for (i, site) in part.sites().iter().enumerate() {
        if site.x_m > 12.0 || site.y_m > 25.0 {
            power[[i, 2]] = f64::NAN;
        }
    }
    part = Readings::new(part.sites().to_vec(), Values::Power(power), Scale::Absolute).unwrap();
    let plan = [another(3)];
    let context = Context { transmitters: &open.masts, obstacles: &plan, ..Context::default() };
    let model = Field::default().fit(&part, &context, &Progress::silent()).unwrap();
    let note = weighed_note(&model);
    assert!(note.contains("left out one by one"), "{note}");
}

#[test]
fn emitters_that_share_bands_are_weighed_by_fits_to_parts() {
    let mut open = Open::new(4, 240, 2);
    // Two emitters in six bands, each with a spectrum of its own.
    let slf = open.dbm.mapv(|v| 10f64.powf(0.1 * v));
    let psd = ndarray::array![[1.0, 0.8, 0.5, 0.1, 0.05, 0.0], [0.0, 0.1, 0.4, 0.6, 0.9, 1.0]];
    open.dbm = slf.dot(&psd).mapv(|p| 10.0 * p.log10());
    let readings = open.readings(0..60);
    let plan = [another(4)];
    let plain = Context { emitters: Emitters::Count(2), ..Context::default() };
    let (without, _) = open.rmse(&readings, 60, &Field::default(), &plain);
    let context = Context { obstacles: &plan, ..plain };
    let (with, model) = open.rmse(&readings, 60, &Field::default(), &context);
    let note = weighed_note(&model);
    assert!(note.contains("left out part by part"), "{note}");
    assert!(with < 1.01 * without, "{with} {without}, {note}");
    let error = model.updated(&open.readings(60..70)).err().map(|error| error.to_string());
    assert!(error.is_none_or(|error| error.contains("obstacles")));
}

#[test]
fn levels_of_surveys_are_taken_out_before_the_walls_are_fitted() {
    let house = House::new(7, 260);
    // 160 places, each in two of eight surveys, of which every band has levels of its own.
    let mut rng = stream(7, 94);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let levels = Array2::from_shape_simple_fn((8, 6), || 6.0 * normal());
    let rows: Vec<(usize, usize)> =
        (0..160).flat_map(|i| [(i, i % 8), (i, (i + 1 + i / 8 % 7) % 8)]).collect();
    let power = Array2::from_shape_fn((rows.len(), 6), |(row, k)| {
        let (place, survey) = rows[row];
        10f64.powf(0.1 * (house.dbm[[place, k]] + levels[[survey, k]]))
    });
    let sites: Vec<Site> = rows.iter().map(|(place, _)| house.sites[*place]).collect();
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let time_s: Vec<f64> =
        rows.iter().map(|(_, survey)| 1.7e9 + 30.0 * 86_400.0 * *survey as f64).collect();
    let readings = readings.with_time_s(Some(time_s)).unwrap();
    let known = house.known();
    let plan: Vec<Arc<dyn Between>> = vec![
        Arc::new(Walls::new(house.walls.clone()).unwrap()),
        Arc::new(Floors::new(3.0).unwrap()),
    ];
    let context = Context { transmitters: &known, obstacles: &plan, ..Context::default() };
    let model = Field::default().fit(&readings, &context, &Progress::silent()).unwrap();
    assert_eq!(model.report().fitted("surveys"), Some(8.0));
    let used = model.report().notes.iter().filter(|note| note.contains("times are used"));
    assert_eq!(used.count(), 1);
    let found = model.predict(&house.sites[160..], &Progress::silent()).unwrap().power;
    let held = house.dbm.slice(ndarray::s![160.., ..]);
    // The level of the latest survey is that of its band.
    let mut squares = 0.0;
    for (found, held) in found.columns().into_iter().zip(held.columns()) {
        let off: Vec<f64> = found.iter().zip(held).map(|(p, d)| 10.0 * p.log10() - d).collect();
        let mean = off.iter().sum::<f64>() / off.len() as f64;
        squares += off.iter().map(|e| (e - mean).powi(2)).sum::<f64>();
    }
    let scatter = (squares / found.len() as f64).sqrt();
    assert!(scatter < 3.5, "{scatter}");
    let again = Model::from_archive(&model.to_archive()).unwrap();
    let at = &house.sites[160..170];
    let [a, b] = [&model, &again].map(|m| m.predict(at, &Progress::silent()).unwrap());
    assert_eq!(a, b);
}

#[test]
fn what_no_line_crosses_is_named_and_every_column_has_its_error_without_it() {
    let house = House::new(8, 200);
    let mut walls = house.walls.clone();
    let far = Wall::new(Site::new(0.0, 30.0), Site::new(30.0, 30.0), "glass");
    walls.push(far);
    let (_, model) = house.rmse(&Field::default(), Some(walls), true);
    let notes = &model.report().notes;
    let named = |name: &str| {
        let note = format!("{name}: crossed by no line between a transmitter and a reading");
        notes.contains(&note)
    };
    assert!(named("glass") && !named("brick") && !named("floors"), "{notes:?}");
    for column in &model.report().columns {
        let (with, without) = (column.rmse_db.unwrap(), column.rmse_without_db.unwrap());
        // Floors and the first floor stand for each other in a house of two.
        assert!(without > 0.98 * with, "{column:?}");
        assert!(column.name != "brick" || without > 1.2 * with, "{column:?}");
    }
}

#[test]
fn models_with_obstacles_say_why_they_cannot_be_updated() {
    let house = House::new(9, 100);
    let (_, model) = house.rmse(&Field::default(), Some(house.walls.clone()), true);
    let error = model.updated(&house.readings(60..100)).err().unwrap().to_string();
    assert!(error.contains("obstacles"), "{error}");
}
