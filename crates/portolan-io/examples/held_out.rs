//! Methods on a measured survey: rmse in dB at held-out sensors over random splits.
//!
//! ```text
//! cargo run --release -p portolan-io --example held_out -- SURVEY.csv ROWSxCOLS \
//!     [splits=20] [sensors=24,48,80] METHOD[:key=value,..] ..
//! ```

use portolan::estimate::{Context, Progress, build};
use portolan_io::{ReadOptions, read_readings};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [survey, grid, rest @ ..] = &words[..] else {
        return Err("expected SURVEY.csv ROWSxCOLS METHOD ..".into());
    };
    let (rows, cols) = grid.split_once('x').ok_or("expected ROWSxCOLS")?;
    let grid = Some((rows.parse()?, cols.parse()?));
    let options = ReadOptions { grid, cell_m: Some(1.0), ..ReadOptions::default() };
    let readings = read_readings(survey, &options)?.value;
    let setting = |name: &str| rest.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
    let splits: u64 = setting("splits").unwrap_or("20").parse()?;
    let counts: Vec<usize> = setting("sensors")
        .unwrap_or("24,48,80")
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let power = readings.power();
    let mut spectrum = vec![0.0; readings.bands()];
    for method in rest.iter().filter(|w| !w.starts_with("splits=") && !w.starts_with("sensors=")) {
        let (name, given) = method.split_once(':').unwrap_or((method, ""));
        let given = given.split(',').filter_map(|o| o.split_once('='));
        let estimator = build(name, given.map(|(k, v)| (k.into(), v.into())))?;
        let mut figures = Vec::new();
        for &count in &counts {
            let (mut squares, mut entries) = (0.0, 0usize);
            for seed in 0..splits {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut kept = sample(&mut rng, readings.sensors(), count).into_vec();
                kept.sort_unstable();
                let context = Context { seed, ..Context::default() };
                let rest = readings.subset(&kept)?;
                let map = estimator.estimate(&rest, &context, &Progress::silent())?.map;
                for sensor in (0..readings.sensors()).filter(|s| kept.binary_search(s).is_err()) {
                    map.spectrum_into(readings.cells()[sensor], &mut spectrum);
                    for (guess, known) in spectrum.iter().zip(power.row(sensor)) {
                        if !known.is_nan() {
                            squares += (10.0 * (guess.max(1e-15) / known).log10()).powi(2);
                            entries += 1;
                        }
                    }
                }
            }
            figures.push(format!("{:.3}", (squares / entries as f64).sqrt()));
        }
        println!("{method}: {}", figures.join(" / "));
    }
    Ok(())
}
