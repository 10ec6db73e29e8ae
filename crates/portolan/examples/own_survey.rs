//! A survey of one's own: fit, ask, draw, keep.
//!
//! `cargo run --release --example own_survey`

use portolan::estimate::{Auto, Method};
use portolan::ndarray::Array2;
use portolan::{BandLabels, Context, Grid, Model, Progress, Readings, Scale, Site, Values};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Forty places in a yard of 60 by 40 m, two bands in dBm. NaN stands for "not read".
    let sites: Vec<Site> =
        (0..40).map(|i| Site::new(f64::from(i * 23 % 60), f64::from(i * 17 % 40))).collect();
    let dbm = Array2::from_shape_fn((40, 2), |(i, band)| {
        let Site { x_m, y_m, .. } = sites[i];
        let away = (x_m - 12.0).hypot(y_m - 30.0).max(1.0);
        let level = -35.0 - 24.0 * away.log10() - 6.0 * band as f64 + (0.7 * x_m).sin();
        if (i, band) == (7, 1) { f64::NAN } else { level }
    });
    let power = dbm.mapv(|dbm: f64| 10f64.powf(dbm / 10.0));
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?
        .with_labels(BandLabels::from_frequencies(vec![2.412e9, 5.18e9])?)?;

    let model = Auto::default().fit(&readings, &Context::default(), &Progress::silent())?;

    // At a place: level and its 90 % interval.
    let there = model.predict(&[Site::new(30.0, 20.0)], &Progress::silent())?;
    let level = 10.0 * there.power[[0, 0]].log10();
    let spread = there.spread_db.ok_or("auto states a spread")?[[0, 0]];
    println!(
        "at x 30, y 20: {level:.1} dBm, {:.1} to {:.1}",
        level - 1.645 * spread,
        level + 1.645 * spread
    );
    assert!((-90.0..-50.0).contains(&level) && spread > 0.0);

    // As a map, one cell a metre.
    let map = model.map(Grid::new(60, 40, 1.0)?, &Progress::silent())?;
    assert_eq!(map.band(1).dim(), (60, 40));

    // Kept as named arrays, in whatever file one likes.
    let again = Model::from_archive(&model.to_archive())?;
    assert_eq!(
        again.predict(&[Site::new(5.0, 5.0)], &Progress::silent())?,
        model.predict(&[Site::new(5.0, 5.0)], &Progress::silent())?
    );
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
