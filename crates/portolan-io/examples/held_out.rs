//! Methods on a measured survey or a ray-traced city: rmse in dB at held-out places over random
//! splits, seeded by their number.
//!
//! ```text
//! cargo run --release -p portolan-io --example held_out -- SURVEY ROWSxCOLS \
//!     [splits=20] [sensors=24,48,80] METHOD[:key=value,..] ..
//! cargo run --release -p portolan-io --example held_out -- CITY_FOLDER ROWSxCOLS \
//!     [splits=5] [share=0.05] METHOD[:key=value,..] ..
//! ```
//!
//! A survey is a table or a trace. Of a city (`portolan_io::radiogat`) the ROWSxCOLS cells in the
//! middle are taken, from row (rows of the map - ROWS) / 2 and likewise for the columns, rounded
//! down; sensors stand at a share of the cells outside buildings and the rest of those is scored.
//! A line gives the rmse over all splits, then mean and standard error of the splits' own.

use std::path::Path;
use std::time::Instant;

use ndarray::Array2;
use portolan::estimate::{Context, Progress, build};
use portolan::{Cell, Readings, Values};
use portolan_io::{ReadOptions, radiogat, read_readings};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

type Failure = Box<dyn std::error::Error>;

const SETTINGS: [&str; 3] = ["splits", "sensors", "share"];

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [source, grid, rest @ ..] = &words[..] else {
        return Err("expected SURVEY or CITY_FOLDER, ROWSxCOLS, METHOD ..".into());
    };
    let (rows, cols) = grid.split_once('x').ok_or("expected ROWSxCOLS")?;
    let sides = (rows.parse()?, cols.parse()?);
    let setting = |name: &str| rest.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
    let is_city = Path::new(source).is_dir();
    let known = if is_city { city(source, sides)? } else { survey(source, sides)? };
    let counts: Vec<usize> = match is_city {
        true => {
            let share: f64 = setting("share").unwrap_or("0.05").parse()?;
            vec![(share * known.sensors() as f64).round() as usize]
        }
        false => {
            let counts = setting("sensors").unwrap_or("24,48,80").split(',');
            counts.map(str::parse).collect::<Result<_, _>>()?
        }
    };
    if let Some(count) = counts.iter().find(|count| !(2..known.sensors()).contains(*count)) {
        return Err(format!("{count} sensors of {} places leave nothing", known.sensors()).into());
    }
    let splits: u64 = setting("splits").unwrap_or(if is_city { "5" } else { "20" }).parse()?;
    let is_setting =
        |word: &&String| word.split_once('=').is_some_and(|(name, _)| SETTINGS.contains(&name));
    for method in rest.iter().filter(|word| !is_setting(word)) {
        for &count in &counts {
            println!("{}", line(method, &known, count, splits)?);
        }
    }
    Ok(())
}

fn survey(path: &str, sides: (usize, usize)) -> Result<Readings, Failure> {
    let options = ReadOptions { grid: Some(sides), cell_m: Some(1.0), ..ReadOptions::default() };
    Ok(read_readings(path, &options)?.value)
}

/// Every cell outside buildings in the middle of a city.
fn city(folder: &str, (rows, cols): (usize, usize)) -> Result<Readings, Failure> {
    let whole = radiogat::city(folder)?;
    let grid = whole.map.grid();
    let first = |all: usize, side: usize| all.saturating_sub(side) / 2;
    let part = whole.crop(first(grid.rows(), rows), first(grid.cols(), cols), rows, cols)?;
    let open = part.buildings.indexed_iter().filter(|(_, inside)| !**inside);
    let cells: Vec<Cell> = open.map(|((row, col), _)| Cell::new(row, col)).collect();
    let power = part.map.to_dense();
    let spectra = Array2::from_shape_fn((cells.len(), part.map.bands()), |(sensor, band)| {
        power[[cells[sensor].row, cells[sensor].col, band]]
    });
    let freq_hz = part.map.freq_hz().map(<[f64]>::to_vec);
    Ok(Readings::new(part.map.grid(), cells, Values::Power(spectra))?.with_frequencies(freq_hz)?)
}

fn line(method: &str, known: &Readings, count: usize, splits: u64) -> Result<String, Failure> {
    let start = Instant::now();
    let errors = (0..splits)
        .map(|seed| squared_error(method, known, count, seed))
        .collect::<Result<Vec<_>, _>>()?;
    let seconds = start.elapsed().as_secs_f64() / splits as f64;
    let (squares, entries) = errors.iter().fold((0.0, 0.0), |sum, e| (sum.0 + e.0, sum.1 + e.1));
    let rmse: Vec<f64> =
        errors.iter().map(|(squares, entries)| (squares / entries).sqrt()).collect();
    let mean = rmse.iter().sum::<f64>() / splits as f64;
    let variance = rmse.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (splits as f64 - 1.0);
    let error = (variance / splits as f64).sqrt();
    let all = (squares / entries).sqrt();
    Ok(format!(
        "{method}, {count} sensors: {all:.3} dB; splits {mean:.3} +- {error:.3} dB, {seconds:.2} s each"
    ))
}

/// The sum of squared errors in dB at the places that one split holds out, and their number.
fn squared_error(
    method: &str,
    known: &Readings,
    count: usize,
    seed: u64,
) -> Result<(f64, f64), Failure> {
    let (name, given) = method.split_once(':').unwrap_or((method, ""));
    let given = given.split(',').filter_map(|o| o.split_once('='));
    let estimator = build(name, given.map(|(k, v)| (k.into(), v.into())))?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut kept = sample(&mut rng, known.sensors(), count).into_vec();
    kept.sort_unstable();
    let context = Context { seed, ..Context::default() };
    let map = estimator.estimate(&known.subset(&kept)?, &context, &Progress::silent())?.map;
    let power = known.power();
    let mut spectrum = vec![0.0; known.bands()];
    let (mut squares, mut entries) = (0.0, 0.0);
    for sensor in (0..known.sensors()).filter(|sensor| kept.binary_search(sensor).is_err()) {
        map.spectrum_into(known.cells()[sensor], &mut spectrum);
        for (guess, truth) in spectrum.iter().zip(power.row(sensor)).filter(|(_, t)| !t.is_nan()) {
            squares += (10.0 * (guess.max(1e-15) / truth).log10()).powi(2);
            entries += 1.0;
        }
    }
    Ok((squares, entries))
}
