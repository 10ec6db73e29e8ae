//! Where a fit begins: factors at the sensors, unmixed from the readings or carried over from an
//! earlier map. Where noise comes with gaps there are several starts, and the likeliest goes on.

use ndarray::{Array2, Axis};

use super::Field;
use super::area::Area;
use super::fit::FieldFit;
use super::law::Law;
use super::linearised::{self, Noise, Reported};
use super::shadow::{self, usual};
use super::spectra::Smoothness;
use crate::error::EstimateError;
use crate::estimate::Context;
use crate::estimate::emitters::start_factors;
use crate::grid::{Cell, Grid};
use crate::map::{Factors, corners};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::site::Site;
use crate::unmix::{UnmixOptions, Unmixed, count_exact, filled, refine, unmix};

/// Readings that unmixing explains up to this, in ln power, have no noise.
const EXACT: f64 = 1e-6;
/// Rounds in which the factors of a start are fitted to exact readings.
const REFINING: usize = 4;
/// Shares of strong readings that count as noise where gaps are filled for a start, one start each, and
/// the rounds after which starts are compared.
pub(super) const NOISE_SHARES: [f64; 4] = [0.02, 0.1, 0.004, 1.0];
pub(super) const START_ROUNDS: usize = 12;

impl Field {
    /// The start of a fit. Where noise and gaps leave several, the likeliest of them after some rounds:
    /// a start that takes two emitters for one in some of the bands does not find its way back.
    pub(super) fn started<'a>(
        &self,
        readings: &'a Readings,
        targets: &'a Reported,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<FieldFit<'a>, EstimateError> {
        let fit = self.begin(readings, targets, emitters, context, NOISE_SHARES[0])?;
        let sure = fit.exact || fit.warm || readings.gaps() == 0;
        if sure || !matches!(targets, Reported::Power { not_heard: None, .. }) || emitters == 1 {
            return Ok(fit);
        }
        let judged = |mut fit: FieldFit<'a>| {
            fit.iterate(START_ROUNDS, &progress.quiet())?;
            Ok::<_, EstimateError>((fit.log_evidence()?, fit))
        };
        let mut best = judged(fit)?;
        for &share in &NOISE_SHARES[1..] {
            let other = judged(self.begin(readings, targets, emitters, context, share)?)?;
            if other.0 > best.0 {
                best = other;
            }
        }
        Ok(best.1)
    }

    /// A start; `noise_share` is the share of strong readings that counts as noise where gaps are
    /// filled for it.
    pub(super) fn begin<'a>(
        &self,
        readings: &'a Readings,
        targets: &'a Reported,
        emitters: usize,
        context: &Context<'_>,
        noise_share: f64,
    ) -> Result<FieldFit<'a>, EstimateError> {
        let link = self.link(readings);
        let area = Area::of(readings);
        let options = UnmixOptions { floor: Some(link.offset()), ..UnmixOptions::default() };
        let power = readings.power_or_floor();
        let start = start_factors(readings, context)?;
        let known = match start {
            Some((grid, factors)) => {
                let slf = slf_at(grid, factors, readings.sites());
                carry_over(slf, factors, readings, &power, &options)?
            }
            None => None,
        };
        let warm = known.is_some();
        let unmet = start.is_some() && !warm;
        let unmixed = match known {
            Some(known) => known,
            None => {
                // A start sees through gaps better where they are filled; the fit then keeps to what
                // was read.
                let heard = matches!(targets, Reported::Power { not_heard: None, .. });
                let filled = heard.then(|| filled(&power, emitters, noise_share)).flatten();
                unmix(filled.as_ref().unwrap_or(&power), emitters, &options, context.seed)?
            }
        };
        let brightest = unmixed.slf_at_sensors.iter().copied().fold(0.0, f64::max);
        let floor = (1e-12 * brightest).max(f64::MIN_POSITIVE);
        let exact = matches!(targets, Reported::Power { .. }) && unmixed.residual < EXACT;
        // A logarithm must have something to start from, unless the start is the answer.
        let least_psd = if exact { 0.0 } else { 1e-6 };
        let least_additive = 1e-3 * link.offset();
        Ok(FieldFit {
            area,
            sites: readings.sites(),
            targets,
            law: Law {
                exponent: self.exponent,
                exponent_sd: self.exponent_sd,
                ..Law::new(&area, brightest.max(floor).ln())
            },
            fixed: self.fixed(),
            best_place_only: self.best_place_only,
            law_sensors: shadow::MOST_SENSORS,
            exact,
            warm,
            unmet,
            least_additive,
            logs: unmixed.slf_at_sensors.mapv(|s| s.max(floor).ln()),
            psd_variance: Array2::zeros(unmixed.psd.dim()),
            smoothness: Smoothness::unknown(),
            psd: unmixed.psd.mapv(|c| c.max(least_psd)),
            noise: Noise { relative: linearised::LEAST_RELATIVE, additive: least_additive },
            unsure: false,
            soft: targets.soft(),
            shadow: usual(&area, self.fixed()),
            emitters: Vec::new(),
        })
    }
}

/// SLFs of a map at the sensors (sensors x emitters): between cells bilinear in dB.
fn slf_at(grid: Grid, factors: &Factors, sites: &[Site]) -> Array2<f64> {
    let mut slf = Array2::zeros((sites.len(), factors.psd.nrows()));
    for (n, site) in sites.iter().enumerate() {
        let corners = corners(grid, *site);
        for r in 0..factors.psd.nrows() {
            let value = |cell: Cell| factors.slf[[r, cell.row, cell.col]];
            let whole = corners.iter().find(|(_, weight)| *weight == 1.0);
            slf[[n, r]] = match whole {
                Some((cell, _)) => value(*cell),
                None => {
                    let log = |x: f64| x.max(f64::MIN_POSITIVE).ln();
                    let used = corners.iter().filter(|(_, weight)| *weight > 0.0);
                    used.map(|(cell, weight)| weight * log(value(*cell))).sum::<f64>().exp()
                }
            };
        }
    }
    slf
}

/// An earlier estimate's factors at the sensors of new readings. Readings without noise must be met
/// exactly, or there is nothing to carry over; with noise the fit itself does what refining would.
fn carry_over(
    slf: Array2<f64>,
    factors: &Factors,
    readings: &Readings,
    power: &Array2<f64>,
    options: &UnmixOptions,
) -> Result<Option<Unmixed>, EstimateError> {
    let options = UnmixOptions { polish_rounds: REFINING, ..*options };
    let refined = refine(power, &slf, &factors.psd, &options)?;
    if matches!(readings.values(), Values::Power(_)) {
        if refined.residual < EXACT {
            return Ok(Some(refined));
        }
        if count_exact(power).is_some() {
            return Ok(None);
        }
    }
    let norms = factors.psd.map_axis(Axis(1), |c| c.dot(&c).sqrt());
    if norms.iter().any(|norm| *norm <= 0.0) || slf.iter().all(|s| *s <= 0.0) {
        return Ok(None);
    }
    Ok(Some(Unmixed {
        slf_at_sensors: slf * &norms,
        psd: &factors.psd / &norms.insert_axis(Axis(1)),
        residual: refined.residual,
    }))
}
