//! A small simulator of readings for tests and measurements: path loss, exponential shadowing and
//! PSDs of three Gaussian bumps, at the sensors only.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub struct Simulated {
    /// Sensors x emitters.
    pub slf: Array2<f64>,
    /// Emitters x bands, unit norm.
    pub psd: Array2<f64>,
    /// Sensors x bands.
    pub power: Array2<f64>,
}

/// Readings of `sensors` random cells of a 64 x 64 grid; shadowing of 6 dB over 90 cells.
pub fn simulate(sensors: usize, emitters: usize, bands: usize, seed: u64) -> Simulated {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut all: Vec<usize> = (0..4096).collect();
    for i in 0..sensors {
        let j = rng.random_range(i..all.len());
        all.swap(i, j);
    }
    let cells: Vec<[usize; 2]> = all[..sensors].iter().map(|&c| [c / 64, c % 64]).collect();
    let distance = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
    let place: Vec<[f64; 2]> = cells.iter().map(|c| c.map(|v| v as f64)).collect();
    let root = cholesky(sensors, |i, j| (-distance(place[i], place[j]) / 90.0).exp());
    let mut slf = Array2::zeros((sensors, emitters));
    let mut psd = Array2::zeros((emitters, bands));
    for r in 0..emitters {
        let exponent = rng.random_range(2.0..2.5);
        let at = [rng.random_range(0.0..63.0), rng.random_range(0.0..63.0)];
        let white: Vec<f64> = (0..sensors).map(|_| StandardNormal.sample(&mut rng)).collect();
        for n in 0..sensors {
            let shadow: f64 = 6.0 * (0..=n).map(|m| root[n * sensors + m] * white[m]).sum::<f64>();
            let loss = (distance(place[n], at) / 2.0).powf(-exponent).min(1.0);
            slf[[n, r]] = loss * 10f64.powf(shadow / 10.0);
        }
        let norm = slf.column(r).iter().map(|v| v * v).sum::<f64>().sqrt();
        let scale = (sensors as f64 / 4096.0).sqrt() / norm;
        slf.column_mut(r).mapv_inplace(|v| v * scale);
        let third = (bands as f64 - 7.0) / 3.0;
        for bump in 0..3 {
            let (low, high) = (2.0 + third * bump as f64, 2.0 + third * (bump + 1) as f64);
            let centre = rng.random_range(low..high).floor();
            let (height, width) = (rng.random_range(0.5..2.0), rng.random_range(2.0..4.0));
            for k in 0..bands {
                let z: f64 = (k as f64 - centre) / width;
                psd[[r, k]] += height * (-0.5 * z * z).exp();
            }
        }
        let norm = psd.row(r).iter().map(|v| v * v).sum::<f64>().sqrt();
        psd.row_mut(r).mapv_inplace(|v| v / norm);
    }
    let power = slf.dot(&psd);
    Simulated { slf, psd, power }
}

fn cholesky(n: usize, covariance: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut root = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| root[i * n + k] * root[j * n + k]).sum();
            let rest = covariance(i, j) - dot;
            root[i * n + j] = if i == j { rest.max(1e-12).sqrt() } else { rest / root[j * n + j] };
        }
    }
    root
}

/// Adds Gaussian noise `snr_db` below the mean power of the squared readings, cut at zero.
pub fn add_noise(power: &Array2<f64>, snr_db: f64, seed: u64) -> Array2<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mean = power.iter().map(|v| v * v).sum::<f64>() / power.len() as f64;
    let deviation = (mean * 10f64.powf(-snr_db / 10.0)).sqrt();
    power.mapv(|v| {
        let white: f64 = StandardNormal.sample(&mut rng);
        (v + deviation * white).max(0.0)
    })
}
