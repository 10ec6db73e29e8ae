//! The yardstick: what could be done if the simulator's law were known. Told every emitter's SLF at
//! the sensors, its place, its PSD and the decorrelation distance, kriging each log SLF with its
//! path-loss trend is the best linear predictor (Cressie 1993, section 3.4). It knows the truth that
//! the readings were taken of, and reads only their cells.

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::field::chart;
use super::field::draw::{Canvas, Drawn};
use super::field::law::{Covariates, Law, Places, Posterior, Shadow};
use super::field::shadow::{self, Fixed, Sample};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{CorrelationTable, Family};
use crate::grid::Cell;
use crate::link::{DB_PER_NEPER, Link};
use crate::map::{Factors, RadioMap};
use crate::readings::Readings;

const OWN: &[OptionSpec] = &[OptionSpec {
    name: "decorrelation",
    default: "fitted to the true SLFs at cells all over the grid",
    takes: "metres",
}];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

/// Cells of the truth that the decorrelation is fitted to, where it is not given.
const FITTED_CELLS: usize = 220;

struct Oracle {
    decorrelation_m: Option<f64>,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    let decorrelation_m = options.number("decorrelation", f64::MIN_POSITIVE..f64::INFINITY)?;
    Ok(Box::new(Oracle { decorrelation_m }))
}

/// The truth, which must be factored, with its emitters' positions, as the simulator makes it.
fn usable<'a>(
    readings: &Readings,
    context: &Context<'a>,
) -> Result<(&'a RadioMap, &'a Factors), InputError> {
    let wrong = |message: &str| Err(InputError::Request(message.into()));
    let Some(truth) = context.truth else {
        return wrong("method oracle needs the truth: give it with --truth, or use compare");
    };
    match truth.factors() {
        _ if truth.grid() != readings.grid() || truth.bands() != readings.bands() => {
            wrong("the oracle's truth has another grid or other bands than the readings")
        }
        Some(factors) if truth.emitters().len() == factors.psd.nrows() => Ok((truth, factors)),
        _ => wrong(
            "the oracle needs a factored truth with the position of every emitter: simulate one",
        ),
    }
}

fn logs(factors: &Factors, cells: &[Cell]) -> Array2<f64> {
    Array2::from_shape_fn((cells.len(), factors.psd.nrows()), |(n, r)| {
        factors.slf[[r, cells[n].row, cells[n].col]].max(f64::MIN_POSITIVE).ln()
    })
}

fn place(truth: &RadioMap, r: usize) -> Places {
    Places { at: vec![truth.emitters()[r]], log_prior: vec![0.0] }
}

/// The likeliest decorrelation of the true SLFs, all emitters together.
fn fitted_decorrelation(truth: &RadioMap, factors: &Factors, law: &Law) -> f64 {
    let grid = truth.grid();
    let count = grid.cells().min(FITTED_CELLS);
    let cells: Vec<Cell> = (0..count).map(|i| grid.cell(i * grid.cells() / count)).collect();
    let samples: Vec<Sample> = logs(factors, &cells)
        .columns()
        .into_iter()
        .enumerate()
        .map(|(r, values)| {
            let noise = vec![0.0; cells.len()];
            Sample { values: values.to_vec(), noise, places: place(truth, r) }
        })
        .collect();
    let fixed = Fixed::default();
    shadow::fit(grid, law, &cells, &samples, fixed, shadow::usual(grid, fixed)).decorrelation_m
}

impl Estimator for Oracle {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        progress.report(0, 1)?;
        let grid = readings.grid();
        let (truth, factors) = usable(readings, context)?;
        let cells = readings.cells();
        let logs = logs(factors, cells);
        // Universal kriging: nothing is assumed of level and exponent.
        let law = Law { exponent_sd: 1e3, level_sd: 1e3, ..Law::new(grid, 0.0) };
        let decorrelation_m =
            self.decorrelation_m.unwrap_or_else(|| fitted_decorrelation(truth, factors, &law));
        let table = CorrelationTable::new(grid, Family::Exponential, decorrelation_m);
        let known: Vec<(Places, Posterior, Shadow)> = (0..logs.ncols())
            .into_par_iter()
            .map(|r| {
                let places = place(truth, r);
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
        let exponents = known.iter().map(|k| k.1.exponent()).collect();
        let map = map.with_emitters(truth.emitters().to_vec()).with_exponents(exponents)?;
        let mut estimate = Estimate::new(map);
        let sill = known.iter().map(|k| k.2.sill).sum::<f64>() / known.len() as f64;
        estimate.fitted =
            vec![("decorrelation_m", decorrelation_m), ("shadow_db", DB_PER_NEPER * sill.sqrt())];
        Ok(estimate)
    }
}
