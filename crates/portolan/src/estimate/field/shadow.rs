//! Decorrelation and sill of the shadowing, pooled over emitters: the evidence summed over
//! emitters and integrated over levels, exponents and candidate places, plus a weak prior.

use faer::Mat;
use rayon::prelude::*;

use super::area::Area;
use super::law::{Covariates, EmitterPlaces, EmitterPosterior, Law, Shadow};
use crate::gaussian_process::{Correlation, minimise};
use crate::link::DB_PER_LN;
use crate::site::Site;

/// Sensors that the evidence is taken from; more say little more.
pub(crate) const MOST_SENSORS: usize = 220;
/// The prior: what shadowing is like in measurements, within factors.
const USUAL_DB: f64 = 6.0;
const SPREAD_SILL: f64 = 1.5;
const SPREAD_REACH: f64 = 1.2;

/// One emitter's pseudo-data.
pub(crate) struct EmitterSample {
    pub values: Vec<f64>,
    pub noise: Vec<f64>,
    pub places: EmitterPlaces,
}

/// What the user has fixed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FixedShadow {
    pub decorrelation_m: Option<f64>,
    pub sill: Option<f64>,
}

/// Before anything is known.
pub(crate) fn usual(area: &Area, fixed: FixedShadow) -> Shadow {
    Shadow {
        decorrelation_m: fixed.decorrelation_m.unwrap_or(area.extent_m),
        sill: fixed.sill.unwrap_or((USUAL_DB / DB_PER_LN).powi(2)),
    }
}

/// The likeliest shadowing, searched from `start`.
pub(crate) fn fit(
    area: &Area,
    law: &Law,
    sites: &[Site],
    samples: &[EmitterSample],
    fixed: FixedShadow,
    start: Shadow,
    most: usize,
) -> Shadow {
    if fixed.decorrelation_m.is_some() && fixed.sill.is_some() {
        return usual(area, fixed);
    }
    let step = sites.len().div_ceil(most).max(1);
    let kept: Vec<usize> = (0..sites.len()).step_by(step).collect();
    let sites: Vec<Site> = kept.iter().map(|&n| sites[n]).collect();
    let thin = |all: &[f64]| kept.iter().map(|&n| all[n]).collect::<Vec<f64>>();
    let samples: Vec<(EmitterSample, Mat<f64>)> = samples
        .iter()
        .map(|s| {
            let losses = law.losses(&s.places.at, &sites);
            let (values, noise) = (thin(&s.values), thin(&s.noise));
            (EmitterSample { values, noise, places: s.places.clone() }, losses)
        })
        .collect();
    let middle = usual(area, FixedShadow::default());
    // Searched as reach and steepness: only sill / reach is sharp where the reach is long.
    let unpack = |x: &[f64]| {
        let decorrelation_m = fixed.decorrelation_m.unwrap_or(x[0].exp());
        Shadow { decorrelation_m, sill: fixed.sill.unwrap_or(x[1].exp() * decorrelation_m) }
    };
    let objective = |x: &[f64]| -> Result<f64, std::convert::Infallible> {
        let shadow = unpack(x);
        let correlations = Correlation::exponential(shadow.decorrelation_m).matrix(&sites);
        let evidence: Vec<f64> = samples
            .par_iter()
            .map(|(EmitterSample { values, noise, places }, losses)| {
                match Covariates::new(&correlations, shadow.sill, noise) {
                    Some(c) => EmitterPosterior::new(c, law, places, losses, values).log_evidence,
                    None => f64::NEG_INFINITY,
                }
            })
            .collect();
        let sill = (shadow.sill / middle.sill).ln() / SPREAD_SILL;
        let reach = (shadow.decorrelation_m / middle.decorrelation_m).ln() / SPREAD_REACH;
        Ok(0.5 * (sill * sill + reach * reach) - evidence.iter().sum::<f64>())
    };
    let reach = ((0.5 * area.resolution_m).min(area.extent_m), 20.0 * area.extent_m);
    let bounds = [(reach.0.ln(), reach.1.ln()), ((1e-6 / reach.1).ln(), (1e3 / reach.0).ln())];
    let from = [start.decorrelation_m.ln(), (start.sill / start.decorrelation_m).ln()];
    let Ok((x, _)) = minimise(objective, &from, &bounds, 0.7, 0.08, 30);
    unpack(&x)
}
