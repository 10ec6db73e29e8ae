//! Many surveys at once: one map an hour, fitted together.
//!
//! `cargo run --release --example many_maps`

use portolan::estimate::{Job, build};
use portolan::score::score;
use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Context, Grid, Progress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let grid = Grid::new(24, 24, 2.0)?;
    // Twelve truths, and what 60 sensors read of each.
    let truths: Vec<_> = (0..12)
        .map(|hour| {
            simulate(&Scenario { bands: 4, emitters: 2, seed: hour, ..Scenario::new(grid) })
        })
        .collect::<Result<_, _>>()?;
    let surveys: Vec<_> = truths
        .iter()
        .enumerate()
        .map(|(hour, truth)| sense(truth, &Sensing::exact(SensorLayout::Count(60), hour as u64)))
        .collect::<Result<_, _>>()?;
    let jobs: Vec<Job<'_>> =
        surveys.iter().map(|readings| Job { readings, context: Context::default() }).collect();

    let kriging = build("kriging", [])?;
    let models = kriging.fit_many(&jobs, &Progress::silent())?;

    let mut worst: f64 = 0.0;
    for (hour, (model, truth)) in models.into_iter().zip(&truths).enumerate() {
        let map = model?.map(grid, &Progress::silent())?;
        let found = score(&map, truth, None)?;
        println!("hour {hour:>2}: rmse {:.2} dB", found.rmse_db);
        worst = worst.max(found.rmse_db);
    }
    assert!(worst < 6.0, "{worst}");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
