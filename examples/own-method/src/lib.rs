//! The median of the nearest sensors' readings: a method that is no part of Portolan.

use portolan::estimate::{Capability, Context, Entry, Method, OptionSpec, Options, Saved};
use portolan::model::{Archive, Model, Prediction, Predictor};
use portolan::ndarray::Array2;
use portolan::{EstimateError, InputError, Progress, Readings, Site};

/// What the register knows of the method.
pub const ENTRY: Entry = Entry::new("median", "the median of the nearest sensors", build)
    .with_capabilities(&[Capability::Spread, Capability::Heights])
    .with_options(&[&[OptionSpec { name: "sensors", default: "7", takes: "how many sensors" }]])
    .with_kinds(&[("median", load)]);

struct Median {
    sensors: usize,
}

fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(Median { sensors: options.count("sensors", 1..=1000)?.unwrap_or(7) }))
}

impl Method for Median {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        _progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let db = readings.power().mapv(|power| 10.0 * power.max(1e-30).log10());
        let sensors = self.sensors;
        Ok(Model::new(readings, Medians { sites: readings.sites().to_vec(), db, sensors }))
    }
}

/// What the fit keeps: every reading, in dB; NaN = gap.
struct Medians {
    sites: Vec<Site>,
    db: Array2<f64>,
    sensors: usize,
}

impl Predictor for Medians {
    fn kind(&self) -> &'static str {
        "median"
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        _progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let shape = (at.len(), bands.len());
        let (mut power, mut spread) = (Array2::zeros(shape), Array2::zeros(shape));
        for (i, place) in at.iter().enumerate() {
            let mut order: Vec<usize> = (0..self.sites.len()).collect();
            order.sort_by(|&a, &b| {
                self.sites[a].distance_m(*place).total_cmp(&self.sites[b].distance_m(*place))
            });
            for (k, &band) in bands.iter().enumerate() {
                let read = order.iter().map(|&s| self.db[[s, band]]).filter(|db| !db.is_nan());
                let near: Vec<f64> = read.take(self.sensors).collect();
                let middle = median(near.iter().copied());
                power[[i, k]] = 10f64.powf(middle / 10.0);
                // The median deviation of a normal distribution is 0.6745 standard deviations.
                spread[[i, k]] = median(near.iter().map(|db| (db - middle).abs())) / 0.6745;
            }
        }
        Ok(Prediction::with_spread(power, spread, &vec![0.0; bands.len()]))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_sites("sites", &self.sites);
        archive.put_matrix("db", &self.db);
        archive.put_whole("sensors", [self.sensors]);
    }
}

fn load(saved: &Saved<'_>) -> Result<Box<dyn Predictor>, EstimateError> {
    let (sites, db) = (saved.archive.sites("sites")?, saved.archive.matrix("db")?);
    let sensors = saved.archive.count("sensors")?;
    if db.dim() != (sites.len(), saved.bands) || sensors == 0 {
        return Err(InputError::Request("the model is damaged: sizes differ".into()).into());
    }
    Ok(Box::new(Medians { sites, db, sensors }))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    (sorted[low] + sorted[high]) / 2.0
}
