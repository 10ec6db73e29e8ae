//! What a model says about some places.

use ndarray::Array2;

/// Power and spread at places, places x bands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Linear power.
    pub power: Array2<f64>,
    /// Standard deviation of the field in dB, where the method knows it.
    pub spread_db: Option<Array2<f64>>,
    /// Standard deviation in dB of a reading taken there: the field's and the reading's own noise.
    pub reading_spread_db: Option<Array2<f64>>,
}

impl Prediction {
    pub(crate) fn of_power(power: Array2<f64>) -> Self {
        Self { power, spread_db: None, reading_spread_db: None }
    }

    /// With the spread of the field, and of a reading where the noise per band is known.
    pub(crate) fn with_spread(
        power: Array2<f64>,
        spread_db: Array2<f64>,
        noise_db: &[f64],
    ) -> Self {
        let mut reading = spread_db.clone();
        for (mut column, noise) in reading.columns_mut().into_iter().zip(noise_db) {
            column.mapv_inplace(|s| s.hypot(*noise));
        }
        Self { power, spread_db: Some(spread_db), reading_spread_db: Some(reading) }
    }
}
