//! What is said about the places of a survey, and what can be said at best: the exact Gaussian
//! posterior given the simulator's parameters (Rasmussen and Williams 2006, section
//! 2.2).

use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Mat, MatMut, Par};
use ndarray::Array2;

use super::design::Design;
use super::truth::{Drawn, JITTER, Truth, factor};

/// Predictions at places: field in dBm, and the standard deviations of field and reading in dB
/// where there are any. Places x bands.
pub struct Answer {
    pub field: Array2<f64>,
    pub spread_db: Option<Array2<f64>>,
    pub reading_spread_db: Option<Array2<f64>>,
}

/// The exact posterior at [`Design::asked`] given the simulator's parameters.
pub struct TrueLaw {
    weights: Array2<f64>,
    spread_db: Vec<f64>,
    noise_db: f64,
    /// Of the readings: L^-1 and ln det K.
    inverse: Array2<f64>,
    log_det: f64,
}

impl TrueLaw {
    /// None where the covariance cannot be factorised.
    pub fn new(truth: Truth, design: &Design, noise_db: f64) -> Option<Self> {
        let (sensors, asked) = (&design.sensors, design.asked());
        let noise = (noise_db * noise_db).max(JITTER);
        let between = |i: usize, j: usize| truth.covariance(sensors[i], sensors[j]);
        let lower = factor(sensors.len(), between, noise)?;
        let cross = |i: usize, j: usize| truth.covariance(sensors[i], asked[j]);
        let mut half = Mat::from_fn(sensors.len(), asked.len(), cross);
        half_solve(&lower, half.as_mut());
        let spread_db = asked
            .iter()
            .enumerate()
            .map(|(j, &place)| {
                let explained = half.col(j).squared_norm_l2();
                (truth.covariance(place, place) - explained).max(0.0).sqrt()
            })
            .collect();
        let mut inverse = Mat::identity(sensors.len(), sensors.len());
        half_solve(&lower, inverse.as_mut());
        let weights = half.transpose() * &inverse;
        let weights = Array2::from_shape_fn((asked.len(), sensors.len()), |at| weights[at]);
        let log_det = 2.0 * (0..sensors.len()).map(|i| lower[(i, i)].ln()).sum::<f64>();
        let inverse = Array2::from_shape_fn((sensors.len(), sensors.len()), |at| inverse[at]);
        Some(Self { weights, spread_db, noise_db, inverse, log_det })
    }

    pub fn answer(&self, drawn: &Drawn, bands: usize) -> Answer {
        let (at_sensors, at_places) = drawn.known(bands);
        let news = drawn.readings(self.noise_db, bands) - at_sensors;
        let field = &at_places + &self.weights.dot(&news);
        let spread = Array2::from_shape_fn(field.dim(), |(place, _)| self.spread_db[place]);
        let reading = spread.mapv(|own| own.hypot(self.noise_db));
        Answer { field, spread_db: Some(spread), reading_spread_db: Some(reading) }
    }

    /// Log density of readings in dBm, sensors x bands, up to a constant.
    fn log_density(&self, drawn: &Drawn, readings: &Array2<f64>) -> f64 {
        let (at_sensors, _) = drawn.known(readings.ncols());
        let white = self.inverse.dot(&(readings - &at_sensors));
        let squares: f64 = white.iter().map(|v| v * v).sum();
        -0.5 * (squares + readings.ncols() as f64 * self.log_det)
    }
}

/// The posterior given all parameters but the noise: the laws of all noises that come into
/// question, equally likely before the readings, averaged.
pub fn without_noise(laws: &[TrueLaw], drawn: &Drawn, readings: &Array2<f64>) -> Answer {
    let logs: Vec<f64> = laws.iter().map(|law| law.log_density(drawn, readings)).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    let weights = || logs.iter().map(|log| (log - most).exp() / total);
    let (at_sensors, at_places) = drawn.known(readings.ncols());
    let news = readings - &at_sensors;
    let fields: Vec<Array2<f64>> =
        laws.iter().map(|law| &at_places + &law.weights.dot(&news)).collect();
    let zeros = || Array2::<f64>::zeros(at_places.dim());
    let field = weights().zip(&fields).fold(zeros(), |sum, (w, own)| sum + w * own);
    let (mut spread, mut reading) = (zeros(), zeros());
    for ((weight, law), own) in weights().zip(laws).zip(&fields) {
        for (at, value) in own.indexed_iter() {
            let square = law.spread_db[at.0].powi(2) + (value - field[at]).powi(2);
            spread[at] += weight * square;
            reading[at] += weight * (square + law.noise_db.powi(2));
        }
    }
    let deviation = |square: Array2<f64>| Some(square.mapv(f64::sqrt));
    Answer { field, spread_db: deviation(spread), reading_spread_db: deviation(reading) }
}

/// L^-1 B in place.
fn half_solve(lower: &Mat<f64>, rhs: MatMut<'_, f64>) {
    solve_lower_triangular_in_place(lower.as_ref(), rhs, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::super::tally::{Figures, Seen};
    use super::*;

    #[test]
    fn the_true_law_covers_its_own_draws() {
        let truths =
            [Truth::Process { range_m: 20.0 }, Truth::Process { range_m: 60.0 }, Truth::Path];
        for truth in truths {
            for noise_db in [0.0, 3.0] {
                let case = (noise_db, 4);
                let survey = |seed| {
                    let design = Design::draw(30, seed);
                    let drawn = Drawn::new(truth, &design, case.1, seed).unwrap();
                    let law = TrueLaw::new(truth, &design, noise_db).unwrap();
                    Seen::of(&design, &drawn, case, &law.answer(&drawn, case.1))
                };
                let seen: Vec<Seen> = (0..250).map(survey).collect();
                let seen: Vec<&Seen> = seen.iter().collect();
                let figures = Figures::of(&seen, &seen);
                let about = format!("{} noise {noise_db}", truth.label());
                let covered = figures.bins.iter().chain([&figures.new]).map(|m| m.unwrap().value);
                for share in covered {
                    assert!((share - 0.9).abs() < 0.02, "{about}: {share}");
                }
                assert!((figures.all_99.unwrap().value - 0.99).abs() < 0.005, "{about}");
                let again = figures.repeated.unwrap().value;
                let right = if noise_db > 0.0 { (again - 0.9).abs() < 0.02 } else { again > 0.9 };
                assert!(right, "{about}: {again}");
                let ratio = figures.scores.unwrap().ratio;
                assert!(ratio.value == 1.0 && ratio.error == 0.0, "{about}");
                assert!(figures.complete());
            }
        }
    }
}
