//! The yardstick: what could be done if the simulator's law were known. Told every emitter's SLF at
//! the sensors, its place, its PSD and the decorrelation distance, kriging each log SLF with its
//! path-loss trend is the best linear predictor (Cressie 1993, section 3.4). It knows the truth that
//! the readings were taken of, and reads only their cells.

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::averaged::averaged;
use super::field::EmitterFields;
use super::field::area::Area;
use super::field::draw::{EmitterField, EmitterKriging};
use super::field::law::{Covariates, EmitterPlaces, EmitterPosterior, Law, Shadow};
use super::field::scale;
use super::field::shadow::{self, EmitterSample, FixedShadow};
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Correlation;
use crate::link::DB_PER_LN;
use crate::map::{Factors, RadioMap};
use crate::model::{Model, ModelEmitter, power_shares};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

const OWN: &[OptionSpec] = &[OptionSpec {
    name: "decorrelation",
    default: "fitted to the true SLFs at cells all over the grid",
    takes: "metres",
}];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

/// Cells of the truth that the decorrelation is fitted to, where it is not given.
const FITTED_CELLS: usize = 220;

/// Kriging given the law of every emitter: an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Oracle {
    /// Decorrelation distance of the shadowing in metres; fitted to the true SLFs where absent.
    pub decorrelation_m: Option<f64>,
}

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("oracle", "kriging given the law of every emitter: an upper bound", build)
        .with_capabilities(&[Capability::Spread, Capability::Truth])
        .with_options(OPTIONS);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
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
    let off = |site: &Site| truth.grid().cell_at(*site).is_none();
    match truth.factors() {
        _ if truth.bands() != readings.bands() || readings.sites().iter().any(off) => {
            wrong("the oracle's truth does not cover the readings, or has other bands")
        }
        Some(factors) if truth.emitters().len() == factors.psd.nrows() => Ok((truth, factors)),
        _ => wrong(
            "the oracle needs a factored truth with the position of every emitter: simulate one",
        ),
    }
}

/// Logarithms of the true SLFs in the cells of some places, places x emitters.
fn logs(truth: &RadioMap, factors: &Factors, sites: &[Site]) -> Array2<f64> {
    Array2::from_shape_fn((sites.len(), factors.psd.nrows()), |(n, r)| {
        let cell = truth.grid().cell_at(sites[n]);
        let value = cell.map_or(0.0, |cell| factors.slf[[r, cell.row, cell.col]]);
        value.max(f64::MIN_POSITIVE).ln()
    })
}

fn place(truth: &RadioMap, r: usize) -> EmitterPlaces {
    EmitterPlaces { at: vec![truth.emitters()[r]], log_prior: vec![0.0] }
}

/// The likeliest decorrelation of the true SLFs, all emitters together.
fn fitted_decorrelation(truth: &RadioMap, factors: &Factors, area: &Area, law: &Law) -> f64 {
    let grid = truth.grid();
    let count = grid.cells().min(FITTED_CELLS);
    let cells = (0..count).map(|i| grid.cell(i * grid.cells() / count));
    let sites: Vec<Site> = cells.map(|cell| grid.site(cell)).collect();
    let samples: Vec<EmitterSample> = logs(truth, factors, &sites)
        .columns()
        .into_iter()
        .enumerate()
        .map(|(r, values)| {
            let noise = vec![0.0; sites.len()];
            EmitterSample { values: values.to_vec(), noise, places: place(truth, r) }
        })
        .collect();
    let fixed = FixedShadow::default();
    shadow::fit(
        area,
        law,
        &sites,
        &samples,
        fixed,
        shadow::usual(area, fixed),
        shadow::MOST_SENSORS,
    )
    .decorrelation_m
}

impl Method for Oracle {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        let (truth, factors) = usable(readings, context)?;
        let joined = averaged(readings, "oracle")?;
        let places = joined.as_ref().map_or(readings, |joined| &joined.readings);
        let area = Area::of(places);
        let sites = places.sites();
        let logs = logs(truth, factors, sites);
        // Universal kriging: nothing is assumed of level and exponent.
        let law = Law { exponent_sd: 1e3, level_sd: 1e3, ..Law::new(&area, 0.0) };
        let decorrelation_m = self
            .decorrelation_m
            .unwrap_or_else(|| fitted_decorrelation(truth, factors, &area, &law));
        let neighbours = (sites.len() > scale::TOGETHER).then_some(scale::NEIGHBOURS);
        // Of many sensors some say what level, exponent and sill are; all of them draw the map.
        let some = match neighbours {
            Some(_) => scale::some(sites.len()),
            None => (0..sites.len()).collect(),
        };
        let few: Vec<Site> = some.iter().map(|&n| sites[n]).collect();
        let correlations = Correlation::exponential(decorrelation_m).matrix(&few);
        let known: Vec<(EmitterField, ModelEmitter)> = (0..logs.ncols())
            .into_par_iter()
            .map(|r| {
                let places = place(truth, r);
                let losses: Mat<f64> = law.losses(&places.at, &few);
                let values: Vec<f64> = some.iter().map(|&n| logs[[n, r]]).collect();
                let noise = vec![0.0; few.len()];
                let krige = |sill: f64| {
                    let covariates = Covariates::new(&correlations, sill, &noise)?;
                    Some(EmitterPosterior::new(covariates, &law, &places, &losses, &values))
                };
                let failed = || {
                    EstimateError::Numerical("the sensors' covariance cannot be factorised".into())
                };
                let unit = krige(1.0).ok_or_else(failed)?;
                let trend = unit.mean_trend(&losses);
                let squares: f64 =
                    values.iter().zip(&trend).zip(&unit.pull).map(|((v, t), p)| (v - t) * p).sum();
                let sill = (squares / few.len().saturating_sub(2).max(1) as f64).max(1e-12);
                let posterior = krige(sill).ok_or_else(failed)?;
                let emitter = ModelEmitter {
                    places: Vec::new(),
                    at: places.at[0],
                    at_se_m: None,
                    exponent: Some(posterior.exponent()),
                    psd: factors.psd.row(r).to_vec(),
                    power_share: 0.0,
                };
                let field = EmitterField {
                    law,
                    shadow: Shadow { decorrelation_m, sill },
                    places: places.at,
                    weights: posterior.weights,
                    trends: posterior.trends,
                    masts: Vec::new(),
                    values: logs.column(r).to_vec(),
                    noise: vec![0.0; sites.len()],
                };
                Ok((field, emitter))
            })
            .collect::<Result<_, EstimateError>>()?;
        let (fields, mut emitters): (Vec<_>, Vec<_>) = known.into_iter().unzip();
        let shares = power_shares(&logs.mapv(f64::exp).reversed_axes(), &factors.psd);
        emitters.iter_mut().zip(shares).for_each(|(e, share)| e.power_share = share);
        let sill = fields.iter().map(|f| f.shadow.sill).sum::<f64>() / fields.len() as f64;
        let kriging = EmitterKriging::new(sites.to_vec(), fields, neighbours)?;
        let unsure = Array2::zeros(factors.psd.dim());
        let noise = vec![0.0; readings.bands()];
        let fitted = EmitterFields::new(kriging, factors.psd.clone(), unsure, noise, 1.0);
        let mut model = Model::new(readings, fitted).with_emitters(emitters);
        let shadow_db = DB_PER_LN * sill.sqrt();
        let found = [("decorrelation_m", decorrelation_m), ("shadow_db", shadow_db)];
        model.report_mut().add_fitted(&found);
        model.report_mut().notes.extend(joined.map(|joined| joined.note));
        Ok(model)
    }
}
