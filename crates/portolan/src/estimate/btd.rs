//! Block-term decomposition (Zhang et al. 2020): every SLF has low rank, S_r = A_r B_r^T, all
//! factors non-negative, fitted to the readings; the paper's start and baseline. In power the fit
//! is least squares as published, for levels it is maximum likelihood (Timilsina et al. 2023).

use ndarray::{Array2, Array3};

use super::bands::Scale;
use super::emitters::{number_of_emitters, unmix_readings};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress, build as build_method};
use crate::error::{EstimateError, InputError};
use crate::likelihood::Probit;
use crate::map::{Factors, RadioMap};
use crate::readings::{Readings, Values};
use crate::unmix::Unmixed;
use crate::unmix::btd::{Btd, BtdOptions, Observed, Problem, Start, fit};

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "rank", default: "10 (paper)", takes: "1 to 1000: the rank L of an SLF" },
    OptionSpec {
        name: "thin_plate",
        default: "true (as published)",
        takes: "true | false: lean on SLFs interpolated from the sensors by thin-plate splines",
    },
    OptionSpec { name: "iterations", default: "200", takes: "1 to 1000000" },
    OptionSpec {
        name: "tolerance",
        default: "1e-5",
        takes: "stop once the loss changes relatively less; 0 = never",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

/// The estimator; also the start of the paper's decoder.
pub(super) struct BtdMethod {
    options: BtdOptions,
    thin_plate: bool,
}

impl Default for BtdMethod {
    fn default() -> Self {
        Self { options: BtdOptions::default(), thin_plate: true }
    }
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    let usual = BtdOptions::default();
    let thin_plate = options.choice("thin_plate", &[("true", true), ("false", false)])?;
    Ok(Box::new(BtdMethod {
        options: BtdOptions {
            rank: options.count("rank", 1..=1000)?.unwrap_or(usual.rank),
            iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(usual.iterations),
            tolerance: options.number("tolerance", 0.0..1.0)?.unwrap_or(usual.tolerance),
            ..usual
        },
        thin_plate: thin_plate.unwrap_or(true),
    }))
}

impl BtdMethod {
    /// The decomposition in the readings' own unit.
    pub fn decompose(
        &self,
        readings: &Readings,
        emitters: usize,
        seed: u64,
        progress: &Progress<'_>,
    ) -> Result<Btd, EstimateError> {
        let power = readings.power();
        let link = Scale::logarithmic().link(readings, &power).expect("the scale is logarithmic");
        let guess = if self.thin_plate {
            let unmixed = unmix_readings(readings, emitters, link.offset(), seed)?;
            Some((thin_plate_slfs(readings, &unmixed, progress)?, unmixed.psd))
        } else {
            None
        };
        let start = match &guess {
            Some((slf, psd)) => Start::Factors { slf: slf.view(), psd: psd.view(), seed },
            None => Start::Random { emitters, seed },
        };
        let probit;
        let observed = match readings.values() {
            Values::Power(power) => Observed::Power(power.view()),
            Values::Levels { levels, quantiser } => {
                probit = Probit::new(quantiser);
                Observed::Levels { levels: levels.view(), probit: &probit, link }
            }
        };
        let problem = Problem {
            grid: readings.grid(),
            cells: readings.cells(),
            observed,
            prior_slf: guess.as_ref().map(|(slf, _)| slf.view()),
        };
        progress.fit_begins();
        fit(&problem, &self.options, &start, progress)
    }
}

/// Each emitter's SLF through its values at the sensors, in linear power, never negative.
fn thin_plate_slfs(
    readings: &Readings,
    unmixed: &Unmixed,
    progress: &Progress<'_>,
) -> Result<Array3<f64>, EstimateError> {
    let values = Values::Power(unmixed.slf_at_sensors.clone());
    let at_sensors = Readings::new(readings.grid(), readings.cells().to_vec(), values)?;
    let spline = build_method("thin_plate", [("domain".to_string(), "linear".to_string())])?;
    let map = spline.estimate(&at_sensors, &Context::default(), progress)?.map;
    let dense = map.to_dense();
    Ok(dense.view().permuted_axes([2, 0, 1]).as_standard_layout().into_owned())
}

impl Estimator for BtdMethod {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        progress.report(0, 1)?;
        let emitters = number_of_emitters(readings, context)?;
        let btd = self.decompose(readings, emitters, context.seed, progress)?;
        let map = factored(readings, btd.slf(), btd.c)?;
        let mut estimate = Estimate::new(map);
        estimate.iterations = btd.loss_trace.len().saturating_sub(1);
        estimate.loss = btd.loss_trace.last().copied();
        estimate.loss_trace = btd.loss_trace;
        Ok(estimate)
    }
}

/// A factored map with SLFs of unit norm, PSDs carrying the power, and the brightest cell of each
/// SLF as its emitter's position.
pub(super) fn factored(
    readings: &Readings,
    mut slf: Array3<f64>,
    mut psd: Array2<f64>,
) -> Result<RadioMap, EstimateError> {
    let mut peaks = Vec::with_capacity(psd.nrows());
    for (mut field, mut spectrum) in slf.outer_iter_mut().zip(psd.outer_iter_mut()) {
        let norm = field.iter().map(|v| v * v).sum::<f64>().sqrt();
        if !norm.is_finite() || spectrum.iter().any(|c| !c.is_finite()) {
            return Err(EstimateError::Numerical("the fit diverged".into()));
        }
        field.mapv_inplace(|v| v / norm.max(f64::MIN_POSITIVE));
        spectrum.mapv_inplace(|c| c * norm);
        let peak = field.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1));
        peaks.extend(peak.map(|((row, col), _)| [row as f64, col as f64]));
    }
    let frequencies = readings.freq_hz().map(<[f64]>::to_vec);
    let map = RadioMap::factored(readings.grid(), Factors { slf, psd })?;
    Ok(map.with_frequencies(frequencies)?.with_emitters(peaks))
}
