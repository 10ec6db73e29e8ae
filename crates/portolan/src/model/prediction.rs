//! What a model says about some places.

use ndarray::Array2;

/// Power and spread at places, places x bands.
///
/// ```
/// # use ndarray::array;
/// # use portolan::estimate::{Kriging, Method};
/// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
/// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
/// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
/// let found = model.predict(&[Site::new(1.0, 1.0)], &Progress::silent())?;
/// let (field, reading) = (found.spread_db.unwrap(), found.reading_spread_db.unwrap());
/// // A reading has noise of its own beside what is not known of the field.
/// assert!(reading[[0, 0]] >= field[[0, 0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
