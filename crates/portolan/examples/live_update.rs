//! Readings that come one by one: the model takes each as it comes.
//!
//! `cargo run --release --example live_update`

use portolan::estimate::{Kriging, Method};
use portolan::ndarray::{Array2, array};
use portolan::{Context, Progress, Readings, Scale, Site, Values};

fn level(site: Site) -> f64 {
    -60.0 + 8.0 * (site.x_m / 25.0).sin() - 0.1 * site.y_m
}

fn milliwatts(dbm: f64) -> f64 {
    10f64.powf(dbm / 10.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let quiet = Progress::silent();
    let sites: Vec<Site> =
        (0..60).map(|i| Site::new(f64::from(i * 37 % 100), f64::from(i * 61 % 100))).collect();
    let power = Array2::from_shape_fn((60, 1), |(i, _)| milliwatts(level(sites[i])));
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    let mut model = Kriging::default().fit(&readings, &Context::default(), &quiet)?;

    // A car drives past what the survey has left out.
    let mut spreads = Vec::new();
    for step in 0..10 {
        let place = Site::new(120.0 + 5.0 * f64::from(step), 50.0);
        let before = model.predict(&[place], &quiet)?;
        let spread = before.spread_db.ok_or("kriging states a spread")?[[0, 0]];
        let foreseen = 10.0 * before.power[[0, 0]].log10();
        println!(
            "x {:>3}: {foreseen:.1} ± {spread:.1} dB foreseen, {:.1} read",
            place.x_m,
            level(place)
        );
        spreads.push(spread);
        let read = Values::Power(array![[milliwatts(level(place))]]);
        model.update(&Readings::further(vec![place], read, Scale::Absolute)?)?;
    }
    // Next to what was just read the model is surer than at the first place.
    assert!(spreads[9] < spreads[0], "{spreads:?}");
    assert_eq!(model.sites().len(), 70);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
