//! What surveys are drawn from: levels, path loss and Gaussian processes with the exponential
//! covariance (Gudmundson 1991; Rasmussen and Williams 2006, section 4.2.1).

use faer::{Mat, Side};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate, s};
use portolan::Site;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::design::{BAND, Design, SIDE_M, stream};

/// Mean and standard deviation of a process's level, in dBm and dB.
const LEVEL_DBM: f64 = -70.0;
const LEVEL_DB: f64 = 6.0;
/// Standard deviation of a process about its level, in dB.
const PROCESS_DB: f64 = 6.0;
/// Standard deviation in dB and range in metres of the shadowing about a path loss.
const SHADOW_DB: f64 = 4.0;
const SHADOW_RANGE_M: f64 = 20.0;
/// Power at the reference distance and nearer, in dBm and metres.
const NEAR_DBM: f64 = -30.0;
const REFERENCE_M: f64 = 2.0;
/// Variance in dB^2 of readings without noise: it keeps factorisations exact.
pub const JITTER: f64 = 1e-9;

/// The law of the truth in one band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truth {
    /// A random level and a Gaussian process of this range.
    Process { range_m: f64 },
    /// Path loss about a transmitter at a random place with a random exponent, and shadowing.
    Path,
}

impl Truth {
    pub fn parse(text: &str) -> Result<Self, String> {
        let range = |text: &str| text.parse().ok().filter(|r: &f64| r.is_finite() && *r > 0.0);
        match text.split_once(':') {
            None if text == "path" => Ok(Truth::Path),
            Some(("process", metres)) if range(metres).is_some() => {
                Ok(Truth::Process { range_m: range(metres).unwrap_or(f64::NAN) })
            }
            _ => Err(format!("'{text}': expected path, or process:RANGE with a range in metres")),
        }
    }

    pub fn label(&self) -> String {
        match self {
            Truth::Process { range_m } => format!("process:{range_m}"),
            Truth::Path => "path".into(),
        }
    }

    /// Covariance of two places in dB^2 given the parameters: of a process the level is
    /// unknown, of a path loss only the shadowing is.
    pub fn covariance(&self, a: Site, b: Site) -> f64 {
        let (level, deviation, range) = match *self {
            Truth::Process { range_m } => (LEVEL_DB, PROCESS_DB, range_m),
            Truth::Path => (0.0, SHADOW_DB, SHADOW_RANGE_M),
        };
        level * level + deviation * deviation * (-a.distance_m(b) / range).exp()
    }

    /// What is known of each place of a band, in dBm.
    fn known(&self, sites: &[Site], rng: &mut impl RngExt) -> Vec<f64> {
        match self {
            Truth::Process { .. } => vec![LEVEL_DBM; sites.len()],
            Truth::Path => {
                let x = rng.random_range(0.0..SIDE_M);
                let transmitter = Site::new(x, rng.random_range(0.0..SIDE_M));
                let exponent = rng.random_range(2.0..=4.0);
                let loss = |site: &Site| {
                    let ratio = site.distance_m(transmitter).max(REFERENCE_M) / REFERENCE_M;
                    NEAR_DBM - 10.0 * exponent * ratio.log10()
                };
                sites.iter().map(loss).collect()
            }
        }
    }
}

/// The truth of one survey, sites x bands, and normal numbers that noise is made of.
pub struct Drawn {
    /// What the true law knows beforehand, and what is true, in dBm: at sensors, then at
    /// [`Design::asked`].
    known: Array2<f64>,
    truth: Array2<f64>,
    /// Of a reading of each sensor, and of the second reading of those that read again.
    noise: Array2<f64>,
    noise_again: Array2<f64>,
}

impl Drawn {
    /// A joint draw at all places. None where the covariance cannot be factorised. Bands do not
    /// depend on how many there are.
    pub fn new(truth: Truth, design: &Design, bands: usize, seed: u64) -> Option<Self> {
        let sites: Vec<Site> = design.sensors.iter().copied().chain(design.places()).collect();
        let own = |place: usize| sites[place];
        let lower = factor(sites.len(), |i, j| truth.covariance(own(i), own(j)), JITTER)?;
        let mut known = Array2::zeros((sites.len(), bands));
        let mut normals: Mat<f64> = Mat::zeros(sites.len(), bands);
        let mut noise = Array2::zeros((design.sensors.len(), bands));
        let mut noise_again = Array2::zeros((design.again.len(), bands));
        for band in 0..bands {
            let [mut field, first, second] =
                [0, 1, 2].map(|part| stream(seed, BAND + 3 * band as u64 + part));
            let expected = truth.known(&sites, &mut field);
            known.column_mut(band).assign(&ArrayView1::from(&expected));
            normals.col_mut(band).iter_mut().for_each(|v| *v = StandardNormal.sample(&mut field));
            let fill = |of: &mut Array2<f64>, mut rng: ChaCha8Rng| {
                of.column_mut(band).mapv_inplace(|_| StandardNormal.sample(&mut rng));
            };
            fill(&mut noise, first);
            fill(&mut noise_again, second);
        }
        let field = &lower * &normals;
        let truth = Array2::from_shape_fn(known.dim(), |(i, b)| known[[i, b]] + field[(i, b)]);
        let with_again =
            |of: Array2<f64>| concatenate![Axis(0), of, of.select(Axis(0), &design.again)];
        Some(Self { known: with_again(known), truth: with_again(truth), noise, noise_again })
    }

    /// The expectation given the parameters, before any reading, at sensors and at
    /// [`Design::asked`].
    pub fn known(&self, bands: usize) -> (ArrayView2<'_, f64>, ArrayView2<'_, f64>) {
        self.known.slice(s![.., ..bands]).split_at(Axis(0), self.sensors())
    }

    fn sensors(&self) -> usize {
        self.noise.nrows()
    }

    /// What the sensors read in the first bands, in dBm.
    pub fn readings(&self, noise_db: f64, bands: usize) -> Array2<f64> {
        let truth = self.truth.slice(s![..self.sensors(), ..bands]);
        &truth + &(noise_db * &self.noise.slice(s![.., ..bands]))
    }

    /// The truth at [`Design::asked`].
    pub fn asked(&self, bands: usize) -> ArrayView2<'_, f64> {
        self.truth.slice(s![self.sensors().., ..bands])
    }

    /// The second readings.
    pub fn again(&self, noise_db: f64, bands: usize) -> Array2<f64> {
        let asked = self.asked(bands);
        let from = asked.nrows() - self.noise_again.nrows();
        let noise = self.noise_again.slice(s![.., ..bands]);
        &asked.slice(s![from.., ..]) + &(noise_db * &noise)
    }
}

/// The lower Cholesky factor of a covariance with a variance more on its diagonal.
pub fn factor(n: usize, of: impl Fn(usize, usize) -> f64, diagonal: f64) -> Option<Mat<f64>> {
    let matrix = Mat::from_fn(n, n, |i, j| of(i, j) + if i == j { diagonal } else { 0.0 });
    Some(matrix.llt(Side::Lower).ok()?.L().to_owned())
}
