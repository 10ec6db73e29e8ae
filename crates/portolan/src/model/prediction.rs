//! What a model says about some places.

use ndarray::Array2;

use crate::devices::Devices;
use crate::gaussian_process::Hearing;
use crate::link::DB_PER_LN;

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
    /// Where receivers may hear nothing, that of what they report when they do.
    pub reading_spread_db: Option<Array2<f64>>,
    /// Chance that a receiver hears the band there, where readings said what was not heard.
    pub chance_heard: Option<Array2<f64>>,
    /// Linear power that a receiver reports on average where it hears the band: more than the field
    /// where hearing is rare.
    pub heard: Option<Array2<f64>>,
}

impl Prediction {
    /// Power alone.
    pub fn of_power(power: Array2<f64>) -> Self {
        Self { power, spread_db: None, reading_spread_db: None, chance_heard: None, heard: None }
    }

    /// With the spread of the field, and of a reading where the noise per band is known.
    pub fn with_spread(power: Array2<f64>, spread_db: Array2<f64>, noise_db: &[f64]) -> Self {
        let mut reading = spread_db.clone();
        for (mut column, noise) in reading.columns_mut().into_iter().zip(noise_db) {
            column.mapv_inplace(|s| s.hypot(*noise));
        }
        Self {
            spread_db: Some(spread_db),
            reading_spread_db: Some(reading),
            ..Self::of_power(power)
        }
    }

    /// With what receivers hear of it.
    pub(crate) fn with_hearing(mut self, hearing: Option<&Hearing>) -> Self {
        if let (Some(hearing), Some(spread)) = (hearing, &self.reading_spread_db) {
            let at = |of: &dyn Fn(f64, f64) -> f64| {
                Array2::from_shape_fn(self.power.dim(), |at| {
                    of(self.power[at].max(f64::MIN_POSITIVE).ln(), (spread[at] / DB_PER_LN).powi(2))
                })
            };
            self.chance_heard = Some(at(&|mean, variance| hearing.heard(mean, variance).0));
            self.heard = Some(at(&|mean, variance| hearing.heard(mean, variance).1.exp()));
            let spread = at(&|mean, variance| DB_PER_LN * hearing.heard_deviation(mean, variance));
            self.reading_spread_db = Some(spread);
        }
        self
    }

    /// What a device reads at each place: powers with its offset; of an unknown device (None) the
    /// powers stay, and a reading is as uncertain as such devices differ.
    pub fn read_by(mut self, devices: &Devices, of: &[Option<usize>]) -> Self {
        for (place, device) in of.iter().enumerate() {
            let more = match device {
                Some(device) => {
                    let factor = devices.factor(*device).recip();
                    for powers in [Some(&mut self.power), self.heard.as_mut()].into_iter().flatten()
                    {
                        powers.row_mut(place).mapv_inplace(|power| power * factor);
                    }
                    devices.se_db[*device]
                }
                None => devices.spread_db,
            };
            if let Some(spread) = &mut self.reading_spread_db {
                spread.row_mut(place).mapv_inplace(|own| own.hypot(more));
            }
        }
        self
    }

    /// What a reading taken at the places is expected to say, and its spread: a report where
    /// receivers may hear nothing, else the field.
    pub fn reading(&self) -> (&Array2<f64>, Option<&Array2<f64>>) {
        (self.heard.as_ref().unwrap_or(&self.power), self.reading_spread_db.as_ref())
    }
}
