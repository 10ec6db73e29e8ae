//! Which latents mean which field.
//!
//! The simulator turns random numbers into a field, so the field's own numbers serve as its latent:
//! two for the emitter's place, one each for the exponent of path loss, the deviation and the
//! decorrelation of shadowing, and the rest for the shadowing's slowest cosines. What is uniform in
//! the simulator is the normal distribution function of its number; the cosines' coefficients are
//! jointly normal with a known covariance, and one triangular solve makes them independent. Latents
//! are therefore standard normal exactly, and a sample drawn from that law is a field like the
//! training's. Texture finer than the cosines has no number.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use ndarray::Array2;

use crate::fields::SIDE;
use crate::networks::LATENT;

/// Numbers of a latent before those of the shadowing.
pub const SETTINGS: usize = 5;
const MODES: usize = LATENT - SETTINGS;

/// What the first numbers of a latent say, each uniform in [0, 1).
pub struct Settings {
    pub row: f64,
    pub col: f64,
    pub exponent: f64,
    pub shadow: f64,
    pub decorrelation: f64,
}

impl Settings {
    pub fn of(latent: &[f32]) -> Self {
        let [row, col, exponent, shadow, decorrelation] = std::array::from_fn(|i| {
            let z = f64::from(latent[i]);
            // One below 1, so that it can be scaled to an index.
            (0.5 * libm::erfc(-z * FRAC_1_SQRT_2)).min(1.0 - f64::EPSILON)
        });
        Self { row, col, exponent, shadow, decorrelation }
    }
}

/// Cosines of both directions, slowest first; the constant is left out, since an SLF's level belongs
/// to the emitter's power.
#[derive(Clone, Debug)]
pub struct Modes {
    /// Half periods along rows and columns.
    pairs: Vec<(usize, usize)>,
    /// Orthonormal cosines along one side: half periods x cells.
    cosines: Array2<f64>,
}

impl Modes {
    pub fn new() -> Self {
        let mut pairs: Vec<_> =
            (0..SIDE).flat_map(|k| (0..SIDE).map(move |l| (k, l))).skip(1).collect();
        pairs.sort_by_key(|&(k, l)| (k * k + l * l, k));
        pairs.truncate(MODES);
        let count = pairs.iter().map(|&(k, l)| k.max(l)).max().expect("there are modes") + 1;
        let cosines = Array2::from_shape_fn((count, SIDE), |(k, x)| {
            let norm = if k == 0 { 1.0 } else { 2.0 } / SIDE as f64;
            norm.sqrt() * (PI * k as f64 * (x as f64 + 0.5) / SIDE as f64).cos()
        });
        Self { pairs, cosines }
    }

    pub fn cosines(&self) -> &Array2<f64> {
        &self.cosines
    }

    /// 1 for every pair of half periods that has a number and for the constant, 0 for others.
    pub fn mask(&self) -> Array2<f64> {
        let count = self.cosines.nrows();
        let mut mask = Array2::zeros((count, count));
        mask[[0, 0]] = 1.0;
        self.pairs.iter().for_each(|&(k, l)| mask[[k, l]] = 1.0);
        mask
    }

    fn coefficients(&self, field: &Array2<f64>) -> Vec<f64> {
        let all = self.cosines.dot(field).dot(&self.cosines.t());
        self.pairs.iter().map(|&(k, l)| all[[k, l]]).collect()
    }

    /// Covariance of the coefficients of shadowing with covariance exp(-d / `decorrelation`).
    fn covariance(&self, decorrelation: f64) -> Array2<f64> {
        let count = self.cosines.nrows();
        let lags = 2 * SIDE - 1;
        // Products of two cosines summed over all cells a lag apart.
        let mut products = Array2::<f64>::zeros((count * count, lags));
        for k in 0..count {
            for other in 0..count {
                for lag in 0..lags {
                    // Cells x and x + lag - (SIDE - 1), both on the side.
                    let from = (SIDE - 1).saturating_sub(lag);
                    let to = SIDE.min(lags - lag);
                    products[[k * count + other, lag]] = (from..to)
                        .map(|x| self.cosines[[k, x]] * self.cosines[[other, x + lag + 1 - SIDE]])
                        .sum();
                }
            }
        }
        let law = Array2::from_shape_fn((lags, lags), |(i, j)| {
            let step = |lag: usize| lag as f64 - (SIDE - 1) as f64;
            (-step(i).hypot(step(j)) / decorrelation).exp()
        });
        let all = products.dot(&law).dot(&products.t());
        let modes = self.pairs.len();
        Array2::from_shape_fn((modes, modes), |(a, b)| {
            let ((k, l), (m, n)) = (self.pairs[a], self.pairs[b]);
            all[[k * count + m, l * count + n]]
        })
    }

    /// Signs that a latent's numbers take when its field is mirrored.
    pub fn signs(&self, rows: bool, cols: bool) -> Vec<f32> {
        let sign = |odd: bool| if odd { -1.0 } else { 1.0 };
        let settings = [sign(rows), sign(cols), 1.0, 1.0, 1.0];
        let odd = |k: usize, l: usize| (rows && k % 2 == 1) != (cols && l % 2 == 1);
        settings.into_iter().chain(self.pairs.iter().map(|&(k, l)| sign(odd(k, l)))).collect()
    }
}

/// Makes the numbers of shadowing of one decorrelation distance.
pub struct Whitener {
    /// Lower Cholesky factor of the coefficients' covariance.
    factor: Array2<f64>,
}

impl Whitener {
    pub fn new(modes: &Modes, decorrelation: f64) -> Self {
        let mut factor = modes.covariance(decorrelation);
        for j in 0..factor.nrows() {
            for i in j..factor.nrows() {
                let known: f64 = (0..j).map(|k| factor[[i, k]] * factor[[j, k]]).sum();
                let rest = factor[[i, j]] - known;
                factor[[i, j]] = if i == j { rest.sqrt() } else { rest / factor[[j, j]] };
            }
        }
        Self { factor }
    }

    /// Independent standard normal numbers, if `field` is unit shadowing.
    pub fn numbers(&self, modes: &Modes, field: &Array2<f64>) -> Vec<f64> {
        let mut values = modes.coefficients(field);
        for i in 0..values.len() {
            let known: f64 = (0..i).map(|k| self.factor[[i, k]] * values[k]).sum();
            values[i] = (values[i] - known) / self.factor[[i, i]];
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan::Grid;
    use portolan::simulate::Shadowing;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn shadowing(decorrelation: f64, pairs: u64) -> Vec<Array2<f64>> {
        let sampler = Shadowing::new(Grid::new(SIDE, SIDE, 1.0).unwrap(), decorrelation).unwrap();
        (0..pairs)
            .flat_map(|pair| {
                let mut rng = ChaCha8Rng::seed_from_u64(21);
                rng.set_stream(pair);
                sampler.draw_pair(&mut rng)
            })
            .collect()
    }

    #[test]
    fn numbers_of_shadowing_are_independent_standard_normal() {
        let modes = Modes::new();
        let whitener = Whitener::new(&modes, 70.0);
        let fields = shadowing(70.0, 400);
        let numbers: Vec<_> = fields.iter().map(|f| whitener.numbers(&modes, f)).collect();
        let count = numbers.len() as f64;
        let product = |a: usize, b: usize| numbers.iter().map(|z| z[a] * z[b]).sum::<f64>() / count;
        // Six standard errors: 1 / sqrt(n) off the diagonal, sqrt(2 / n) on it.
        for a in 0..40 {
            assert!((product(a, a) - 1.0).abs() < 6.0 * (2.0 / count).sqrt(), "{a}");
            for b in 0..a {
                assert!(product(a, b).abs() < 6.0 / count.sqrt(), "{a} {b}");
            }
        }
        let all = (0..MODES).map(|a| product(a, a)).sum::<f64>() / MODES as f64;
        assert!((all - 1.0).abs() < 0.02, "{all}");
    }

    #[test]
    fn mirrored_fields_have_mirrored_numbers() {
        let modes = Modes::new();
        let whitener = Whitener::new(&modes, 50.0);
        for field in shadowing(50.0, 1) {
            let numbers = whitener.numbers(&modes, &field);
            for (rows, cols) in [(true, false), (false, true), (true, true)] {
                let mut mirrored = field.clone();
                [rows, cols]
                    .into_iter()
                    .enumerate()
                    .filter(|(_, turned)| *turned)
                    .for_each(|(axis, _)| mirrored.invert_axis(ndarray::Axis(axis)));
                let signs = modes.signs(rows, cols);
                let found = whitener.numbers(&modes, &mirrored);
                for (z, (found, sign)) in numbers.iter().zip(found.iter().zip(&signs[SETTINGS..])) {
                    assert!((z * f64::from(*sign) - found).abs() < 1e-6, "{z} {found}");
                }
                let latent = [0.7, -0.4, 0.3, 0.2, 0.1];
                let turned: Vec<f32> =
                    latent.iter().zip(&signs).map(|(z, sign)| z * sign).collect();
                let (here, there) = (Settings::of(&latent), Settings::of(&turned));
                let place = |turned: bool, part: f64| if turned { 1.0 - part } else { part };
                assert!((there.row - place(rows, here.row)).abs() < 1e-9);
                assert!((there.col - place(cols, here.col)).abs() < 1e-9);
                assert_eq!(there.exponent, here.exponent);
            }
        }
    }

    #[test]
    fn settings_are_the_distribution_function() {
        let settings = Settings::of(&[0.0, 1.0, -1.0, 9.0, -9.0]);
        assert!((settings.row - 0.5).abs() < 1e-12);
        assert!((settings.col - 0.841_344_746).abs() < 1e-8);
        assert!((settings.exponent - 0.158_655_254).abs() < 1e-8);
        assert!(settings.shadow < 1.0 && settings.decorrelation < 1e-9);
    }
}
