//! A loss of one's own: metres of wood between a transmitter and a place.
//!
//! `cargo run --release --example own_loss`

use std::sync::Arc;

use portolan::between::{Between, LossColumn, register};
use portolan::estimate::{Field, Method, Transmitter};
use portolan::model::Archive;
use portolan::ndarray::Array2;
use portolan::{Context, Model, Progress, Readings, Scale, Site, Values};

/// A wood between two lines of equal x.
#[derive(Debug)]
struct Wood {
    from_x_m: f64,
    to_x_m: f64,
}

impl Between for Wood {
    fn kind(&self) -> &'static str {
        "wood"
    }

    fn columns(&self) -> Vec<LossColumn> {
        // Tens of metres may take a decibel each: the readings tell.
        vec![LossColumn::new("metres of wood", 1.0)]
    }

    fn between(&self, transmitter: Site, at: &[Site]) -> Array2<f64> {
        let within = |x: f64| x.clamp(self.from_x_m, self.to_x_m);
        let metres = |site: &Site| {
            let across = (site.x_m - transmitter.x_m).abs().max(f64::MIN_POSITIVE);
            let share = (within(site.x_m) - within(transmitter.x_m)).abs() / across;
            share * site.distance_m(transmitter)
        };
        Array2::from_shape_fn((at.len(), 1), |(i, _)| metres(&at[i]))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_vector("x_m", &[self.from_x_m, self.to_x_m]);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Models with a wood are read from now on.
    register("wood", |archive| {
        let ends = archive.vector("x_m")?;
        Ok(Arc::new(Wood { from_x_m: ends[0], to_x_m: ends[1] }))
    })?;
    let wood = Wood { from_x_m: 40.0, to_x_m: 70.0 };

    // Eighty places on both sides of the wood; it takes .3 dB a metre.
    let masts = [Site::new(10.0, 30.0), Site::new(95.0, 70.0)];
    let sites: Vec<Site> =
        (0..80).map(|i| Site::new(f64::from(i * 37 % 100), f64::from(i * 61 % 97))).collect();
    let crossed = masts.map(|mast| wood.between(mast, &sites));
    let power = Array2::from_shape_fn((80, 2), |(i, band)| {
        let far = sites[i].distance_m(masts[band]).max(1.0);
        let noise = (12.9 * (i * 7 + band) as f64).sin();
        let dbm = -40.0 - 25.0 * far.log10() - 0.3 * crossed[band][[i, 0]] + noise;
        10f64.powf(dbm / 10.0)
    });
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;

    let known = [0, 1].map(|band| Transmitter::new(masts[band]).in_band(band));
    let obstacles: [Arc<dyn Between>; 1] = [Arc::new(wood)];
    let context = Context { transmitters: &known, obstacles: &obstacles, ..Context::default() };
    let model = Field::default().fit(&readings, &context, &Progress::silent())?;
    let column = &model.report().columns[0];
    println!("{}: {:.2} +- {:.2} dB", column.name, column.loss_db, column.loss_se_db);
    assert!((column.loss_db - 0.3).abs() < 0.05);

    let again = Model::from_archive(&model.to_archive())?;
    let at = [Site::new(55.0, 55.0)];
    assert_eq!(again.predict(&at, &Progress::silent())?, model.predict(&at, &Progress::silent())?);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
