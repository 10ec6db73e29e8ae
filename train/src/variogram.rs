//! The variogram of ln S: half the mean squared difference between cells `lag` apart, along rows and
//! along columns. Once as tensors, for the objective, and once in plain loops, for the figures.

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use crate::fields::{CELLS, SIDE, SPAN};

/// Lags of the objective and of the figures, in cells: 1 to 24.
pub const LAGS: usize = 24;
/// Lags that the shipped weights are held to.
pub const HELD: std::ops::RangeInclusive<usize> = 2..=20;

/// Differences at every lag as one matrix product, so that all lags cost a handful of launches.
pub struct Operator<B: Backend> {
    differences: Tensor<B, 2>,
    average: Tensor<B, 2>,
    pairs: usize,
}

impl<B: Backend> Operator<B> {
    pub fn new(device: &B::Device) -> Self {
        let pairs: usize = (1..=LAGS).map(|lag| SIDE - lag).sum();
        let mut differences = vec![0f32; SIDE * pairs];
        let mut average = vec![0f32; pairs * LAGS];
        let mut pair = 0;
        for lag in 1..=LAGS {
            for cell in 0..SIDE - lag {
                differences[cell * pairs + pair] = -1.0;
                differences[(cell + lag) * pairs + pair] = 1.0;
                // Half for the variogram and half for each of the two directions.
                average[pair * LAGS + lag - 1] = 0.25 / (SIDE - lag) as f32;
                pair += 1;
            }
        }
        Self {
            differences: Tensor::from_data(TensorData::new(differences, [SIDE, pairs]), device),
            average: Tensor::from_data(TensorData::new(average, [pairs, LAGS]), device),
            pairs,
        }
    }

    /// Variogram of each field: n x 64 x 64 in ln power to n x lags.
    pub fn of_each(&self, ln_slf: Tensor<B, 3>) -> Tensor<B, 2> {
        let [batch, ..] = ln_slf.dims();
        let along_rows = |x: Tensor<B, 3>| {
            x.reshape([batch * SIDE, SIDE])
                .matmul(self.differences.clone())
                .square()
                .reshape([batch, SIDE, self.pairs])
                .mean_dim(1)
                .reshape([batch, self.pairs])
        };
        let both = along_rows(ln_slf.clone()) + along_rows(ln_slf.swap_dims(1, 2));
        both.matmul(self.average.clone())
    }
}

/// Variogram of one field of o-values, in squared ln power, lag 1 first.
fn of_field(field: &[f32]) -> [f64; LAGS] {
    std::array::from_fn(|index| {
        let lag = index + 1;
        let mut sum = 0.0;
        for i in 0..SIDE {
            for j in 0..SIDE - lag {
                let across = field[i * SIDE + j + lag] - field[i * SIDE + j];
                let along = field[(j + lag) * SIDE + i] - field[j * SIDE + i];
                sum += f64::from(across * across + along * along);
            }
        }
        sum * f64::from(SPAN * SPAN) / (4 * SIDE * (SIDE - lag)) as f64
    })
}

/// First and second moment over fields of the variogram at each lag.
pub fn moments(fields: &[f32]) -> [[f64; LAGS]; 2] {
    let each: Vec<_> = fields.par_chunks(CELLS).map(of_field).collect();
    let moment = |power: i32| {
        std::array::from_fn(|lag| {
            each.iter().map(|v| v[lag].powi(power)).sum::<f64>() / each.len() as f64
        })
    };
    [moment(1), moment(2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::Flex;
    use portolan::Grid;
    use portolan::simulate::Shadowing;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn pure_shadowing_follows_the_exponential_law() {
        let decorrelation = 10.0;
        let shadowing = Shadowing::new(Grid::new(SIDE, SIDE, 1.0).unwrap(), decorrelation).unwrap();
        let mut fields = Vec::new();
        for draw in 0..150 {
            let mut rng = ChaCha8Rng::seed_from_u64(11);
            rng.set_stream(draw);
            for field in shadowing.draw_pair(&mut rng) {
                fields.extend(field.iter().map(|v| *v as f32 / SPAN));
            }
        }
        let [mean, second] = moments(&fields);
        for lag in 1..=LAGS {
            let law = 1.0 - (-(lag as f64) / decorrelation).exp();
            let found = mean[lag - 1];
            // 300 fields of independent draws: five standard errors.
            let error = 5.0 * ((second[lag - 1] - found * found) / 300.0).sqrt();
            assert!((found - law).abs() < error, "lag {lag}: {found}, law {law}");
            assert!(error < 0.1 * law, "the test must be able to fail");
        }
    }

    #[test]
    fn tensors_and_loops_agree() {
        let source = crate::fields::Source::new(crate::fields::Set::Broad).unwrap();
        let fields = source.draw(2, 6).fields;
        let device = Default::default();
        let x =
            Tensor::<Flex, 3>::from_data(TensorData::new(fields.clone(), [6, SIDE, SIDE]), &device);
        let each = Operator::new(&device).of_each((x - 1.0) * SPAN);
        let found = each.mean_dim(0).into_data().to_vec::<f32>().unwrap();
        let [expected, _] = moments(&fields);
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        }
    }
}
