//! The yardstick: what could be done if the simulator's law were known. Told every emitter's SLF at
//! the sensors, its place, its PSD and the decorrelation distance, kriging each log SLF with its
//! path-loss trend is the best linear predictor (Cressie 1993, section 3.4).

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::field::chart;
use super::field::draw::{Canvas, Drawn};
use super::field::law::{Covariates, Law, Places, Posterior, Shadow};
use super::{Context, Estimate, Estimator, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{CorrelationTable, Family};
use crate::link::{DB_PER_NEPER, Link};
use crate::map::RadioMap;
use crate::readings::Readings;

/// Knows the truth that the readings were taken of; reads only their cells.
pub struct Oracle {
    truth: RadioMap,
    decorrelation_m: f64,
}

impl Oracle {
    /// The truth must be factored, with its emitters' positions, as the simulator makes it.
    pub fn new(truth: RadioMap, decorrelation_m: f64) -> Result<Self, InputError> {
        let emitters = truth.factors().map_or(0, |f| f.psd.nrows());
        if emitters == 0 || truth.emitters().len() != emitters {
            return Err(InputError::Request(
                "the oracle needs a factored map with the position of every emitter: simulate one"
                    .into(),
            ));
        }
        if !(decorrelation_m.is_finite() && decorrelation_m > 0.0) {
            let message = format!("a decorrelation of {decorrelation_m} m: it must be positive");
            return Err(InputError::Request(message));
        }
        Ok(Self { truth, decorrelation_m })
    }
}

impl Estimator for Oracle {
    fn estimate(
        &self,
        readings: &Readings,
        _context: &Context,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        progress.report(0, 1)?;
        let grid = readings.grid();
        let factors = self.truth.factors().expect("checked when made");
        if self.truth.grid() != grid || factors.psd.ncols() != readings.bands() {
            let message = "the oracle's truth has another grid or other bands than the readings";
            return Err(InputError::Request(message.into()).into());
        }
        let cells = readings.cells();
        let logs = Array2::from_shape_fn((cells.len(), factors.psd.nrows()), |(n, r)| {
            factors.slf[[r, cells[n].row, cells[n].col]].max(f64::MIN_POSITIVE).ln()
        });
        // Universal kriging: nothing is assumed of level and exponent.
        let law = Law { exponent_sd: 1e3, level_sd: 1e3, ..Law::new(grid, 0.0) };
        let table = CorrelationTable::new(grid, Family::Exponential, self.decorrelation_m);
        let known: Vec<(Places, Posterior, Shadow)> = (0..logs.ncols())
            .into_par_iter()
            .map(|r| {
                let places = Places { at: vec![self.truth.emitters()[r]], log_prior: vec![0.0] };
                let losses: Mat<f64> = law.losses(grid, &places.at, cells);
                let values = logs.column(r).to_vec();
                let krige = |sill: f64| {
                    let noise = vec![0.0; cells.len()];
                    let covariates = Covariates::new(&table, cells, sill, &noise)?;
                    Some(Posterior::new(covariates, &law, &places, &losses, &values))
                };
                let failed = || {
                    EstimateError::Numerical("the sensors' covariance cannot be factorised".into())
                };
                let unit = krige(1.0).ok_or_else(failed)?;
                let trend = unit.mean_trend(&losses);
                let squares: f64 =
                    values.iter().zip(&trend).zip(&unit.pull).map(|((v, t), p)| (v - t) * p).sum();
                let sill = (squares / cells.len().saturating_sub(2).max(1) as f64).max(1e-12);
                let posterior = krige(sill).ok_or_else(failed)?;
                let decorrelation_m = self.decorrelation_m;
                Ok((places, posterior, Shadow { decorrelation_m, sill }))
            })
            .collect::<Result<_, EstimateError>>()?;
        let noise = vec![0.0; cells.len()];
        let columns: Vec<Vec<f64>> = logs.columns().into_iter().map(|c| c.to_vec()).collect();
        let drawn: Vec<Drawn<'_>> = known
            .iter()
            .zip(&columns)
            .map(|((places, posterior, shadow), values)| Drawn {
                law,
                shadow: *shadow,
                places,
                posterior,
                values,
                noise: &noise,
            })
            .collect();
        let canvas = Canvas { grid, sensors: cells, table: &table, neighbours: None };
        let fields = canvas.fields(&drawn, progress)?;
        let link = Link::choose(readings.power().iter().copied(), readings.entries());
        let map = chart(readings, &fields, &factors.psd, &Array2::zeros(factors.psd.dim()), link)?;
        let mut estimate = Estimate::new(map.with_emitters(self.truth.emitters().to_vec()));
        let sill = known.iter().map(|k| k.2.sill).sum::<f64>() / known.len() as f64;
        estimate.fitted = vec![
            ("decorrelation_m", self.decorrelation_m),
            ("shadow_db", DB_PER_NEPER * sill.sqrt()),
        ];
        Ok(estimate)
    }
}
