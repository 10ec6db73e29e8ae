//! Our own estimator: every emitter's log SLF is a path-loss trend plus a Gaussian process, fitted
//! blindly together with PSDs, places, exponents, shadowing and noise.

pub(super) mod draw;
mod fit;
pub(super) mod law;
mod number;
mod places;
mod scale;
pub(super) mod shadow;
mod shear;
mod sites;
mod spectra;

use ndarray::{Array2, Array3, Axis};

use super::bands::{OFFSET, Scale};
use super::emitters::start_factors;
use super::thin_plate::local_note;
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress, build as build_method};
use crate::error::{EstimateError, InputError};
use crate::link::{DB_PER_NEPER, Link};
use crate::map::{Factors, RadioMap};
use crate::readings::{Readings, Values};
use crate::unmix::{UnmixOptions, Unmixed, count_exact, refine, unmix};
use draw::{Canvas, Drawn, Fields};
use fit::{Emitter, Fit};
use law::Law;
use number::Structure;
use shadow::{Fixed, usual};
use sites::{Noise, Targets};

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "rounds",
        default: "20 (ours); 8 from an earlier map",
        takes: "1 to 1000: most rounds of the fit",
    },
    OptionSpec { name: "decorrelation", default: "fitted", takes: "metres" },
    OptionSpec { name: "shadow_db", default: "fitted", takes: "dB" },
    OptionSpec { name: "exponent", default: "2.3 (ours)", takes: "expected path-loss exponent" },
    OptionSpec {
        name: "exponent_sd",
        default: "0.35 (ours)",
        takes: "how far exponents stray from the expected one",
    },
    OptionSpec {
        name: "positions",
        default: "average (ours)",
        takes: "average | best: over where an emitter may stand, or the likeliest place only",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 4000 sensors, then 128",
        takes: "how many nearest sensors each 8 x 8 tile uses",
    },
    OFFSET,
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

/// Readings that unmixing explains up to this, in nepers, have no noise.
const EXACT: f64 = 1e-6;
/// Rounds in which the factors of a start are fitted to exact readings.
const REFINING: usize = 4;

pub(super) struct Field {
    rounds: Option<usize>,
    fixed: Fixed,
    exponent: f64,
    exponent_sd: f64,
    best_place_only: bool,
    neighbours: Option<usize>,
    scale: Scale,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    Ok(Box::new(Field::new(options)?))
}

impl Field {
    pub(super) fn new(options: &Options) -> Result<Self, InputError> {
        let positive = f64::MIN_POSITIVE..f64::INFINITY;
        let positions = [("average", false), ("best", true)];
        Ok(Field {
            rounds: options.count("rounds", 1..=1000)?,
            fixed: Fixed {
                decorrelation_m: options.number("decorrelation", positive.clone())?,
                sill: options
                    .number("shadow_db", positive.clone())?
                    .map(|s| (s / DB_PER_NEPER).powi(2)),
            },
            exponent: options.number("exponent", 0.0..10.0)?.unwrap_or(2.3),
            exponent_sd: options.number("exponent_sd", positive)?.unwrap_or(0.35),
            best_place_only: options.choice("positions", &positions)?.unwrap_or(false),
            neighbours: options.count("neighbours", 2..=scale::TOGETHER)?,
            scale: Scale::log_from_options(options)?,
        })
    }
}

impl Estimator for Field {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        progress.report(0, 1)?;
        let link = self.link(readings);
        let (structure, note) = self.structure(readings, context, progress)?;
        let mut estimate = match structure {
            Structure::Emitters(emitters) => {
                self.emitters(readings, link, emitters, context, progress)?
            }
            Structure::Bands => {
                build_method("kriging", [])?.estimate(readings, context, progress)?
            }
        };
        estimate.notes.extend(note);
        Ok(estimate)
    }
}

impl Field {
    fn link(&self, readings: &Readings) -> Link {
        self.scale.link(readings, &readings.power()).expect("the scale is logarithmic")
    }

    /// The map of so many emitters.
    fn emitters(
        &self,
        readings: &Readings,
        link: Link,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        // The fit takes most of the time, drawing the rest.
        let fitting = |share: f64| progress.report((700.0 * share) as usize, 1000).is_ok();
        let drawing = |share: f64| progress.report(700 + (300.0 * share) as usize, 1000).is_ok();
        let (fitting, drawing) = (Progress::new(&fitting), Progress::new(&drawing));
        let sensors = readings.sensors();
        let neighbours = self
            .neighbours
            .or((sensors > scale::TOGETHER).then_some(scale::NEIGHBOURS))
            .filter(|n| *n < sensors);
        if sensors <= scale::FITTED {
            let targets = Targets::new(readings.values());
            let (fit, rounds) = self.fit(readings, &targets, link, emitters, context, &fitting)?;
            return finish(readings, &fit, &fit.emitters, neighbours, link, rounds, &drawing);
        }
        let some = scale::some(sensors);
        let part = readings.subset(&some)?;
        let part_targets = Targets::new(part.values());
        let (fit, rounds) = self.fit(&part, &part_targets, link, emitters, context, &fitting)?;
        let fields = draw(&fit, &fit.emitters, None, &drawing)?;
        let targets = Targets::new(readings.values());
        let logs = scale::everywhere(&fit, &fields, readings.cells(), &targets, &some);
        let mut whole = Fit {
            cells: readings.cells(),
            targets: &targets,
            logs,
            psd: fit.psd.clone(),
            psd_variance: fit.psd_variance.clone(),
            emitters: Vec::new(),
            ..fit
        };
        let honest = whole.honest_all(&targets.sites(&whole.logs, &whole.psd, whole.noise));
        if neighbours.is_none() {
            let places = fit.emitters.into_iter().map(|e| e.places).collect();
            whole.condition(honest, places)?;
            return finish(readings, &whole, &whole.emitters, None, link, rounds, &drawing);
        }
        let emitters: Vec<Emitter> = fit
            .emitters
            .into_iter()
            .zip(honest)
            .map(|(e, pseudo)| Emitter { pseudo, ..e })
            .collect();
        finish(readings, &whole, &emitters, neighbours, link, rounds, &drawing)
    }

    fn fit<'a>(
        &self,
        readings: &'a Readings,
        targets: &'a Targets,
        link: Link,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Fit<'a>, usize), EstimateError> {
        let mut fit = self.begin(readings, targets, link, emitters, context)?;
        let most = self.rounds.unwrap_or(if fit.warm { 8 } else { 20 });
        let rounds = fit.run(most, progress)?;
        Ok((fit, rounds))
    }

    /// The start of a fit.
    fn begin<'a>(
        &self,
        readings: &'a Readings,
        targets: &'a Targets,
        link: Link,
        emitters: usize,
        context: &Context<'_>,
    ) -> Result<Fit<'a>, EstimateError> {
        let grid = readings.grid();
        let options = UnmixOptions { floor: Some(link.offset()), ..UnmixOptions::default() };
        let power = readings.power();
        let start = start_factors(readings, context)?;
        let known = match start {
            Some(factors) => carry_over(factors, readings, &power, &options)?,
            None => None,
        };
        let warm = known.is_some();
        let unmet = start.is_some() && !warm;
        let unmixed = match known {
            Some(known) => known,
            None => unmix(&power, emitters, &options, context.seed)?,
        };
        let brightest = unmixed.slf_at_sensors.iter().copied().fold(0.0, f64::max);
        let floor = (1e-12 * brightest).max(f64::MIN_POSITIVE);
        let exact = matches!(targets, Targets::Power(_)) && unmixed.residual < EXACT;
        // A logarithm must have something to start from, unless the start is the answer.
        let least_psd = if exact { 0.0 } else { 1e-6 };
        let least_additive = 1e-3 * link.offset();
        Ok(Fit {
            grid,
            cells: readings.cells(),
            targets,
            law: Law {
                exponent: self.exponent,
                exponent_sd: self.exponent_sd,
                ..Law::new(grid, brightest.max(floor).ln())
            },
            fixed: self.fixed,
            best_place_only: self.best_place_only,
            exact,
            warm,
            unmet,
            least_additive,
            logs: unmixed.slf_at_sensors.mapv(|s| s.max(floor).ln()),
            psd_variance: Array2::zeros(unmixed.psd.dim()),
            psd: unmixed.psd.mapv(|c| c.max(least_psd)),
            noise: Noise { relative: sites::LEAST_RELATIVE, additive: least_additive },
            shadow: usual(grid, self.fixed),
            emitters: Vec::new(),
        })
    }
}

/// An earlier estimate's factors at the sensors of new readings. Readings without noise must be met
/// exactly, or there is nothing to carry over; with noise the fit itself does what refining would.
fn carry_over(
    factors: &Factors,
    readings: &Readings,
    power: &Array2<f64>,
    options: &UnmixOptions,
) -> Result<Option<Unmixed>, EstimateError> {
    let (cells, emitters) = (readings.cells(), factors.psd.nrows());
    let slf = Array2::from_shape_fn((cells.len(), emitters), |(n, r)| {
        factors.slf[[r, cells[n].row, cells[n].col]]
    });
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

fn draw(
    fit: &Fit<'_>,
    emitters: &[Emitter],
    neighbours: Option<usize>,
    progress: &Progress<'_>,
) -> Result<Fields, EstimateError> {
    let drawn: Vec<Drawn<'_>> = emitters
        .iter()
        .map(|e| Drawn {
            law: fit.law,
            shadow: fit.shadow,
            places: &e.places,
            posterior: &e.posterior,
            values: &e.pseudo.values,
            noise: &e.pseudo.noise,
        })
        .collect();
    let (grid, sensors, table) = (fit.grid, fit.cells, fit.table());
    Canvas { grid, sensors, table: &table, neighbours }.fields(&drawn, progress)
}

fn finish(
    readings: &Readings,
    fit: &Fit<'_>,
    emitters: &[Emitter],
    neighbours: Option<usize>,
    link: Link,
    rounds: usize,
    progress: &Progress<'_>,
) -> Result<Estimate, EstimateError> {
    let fields = draw(fit, emitters, neighbours, progress)?;
    // The spread is that of power itself: a floor chosen for noisy readings must not flatten it.
    let quiet =
        Link::choose(readings.power().iter().copied().filter(|x| *x > 0.0), readings.entries());
    let link = if quiet.offset() < link.offset() { quiet } else { link };
    let map = chart(readings, &fields, &fit.psd, &fit.psd_variance, link)?;
    let found: Vec<_> = emitters.iter().map(|e| e.posterior.place(&e.places)).collect();
    // A place stands for its square. The likeliest place alone has no standard error.
    let square = places::FINEST / 12f64.sqrt();
    let known = if fit.best_place_only { &[] } else { &found[..] };
    let map = map
        .with_emitters(found.iter().map(|f| f.0).collect())
        .with_emitter_se(known.iter().map(|f| f.1.map(|sd| sd.hypot(square))).collect())?
        .with_exponents(emitters.iter().map(|e| e.posterior.exponent()).collect())?;
    let mut estimate = Estimate::new(map);
    estimate.iterations = rounds;
    estimate.fitted = vec![
        ("emitters", emitters.len() as f64),
        ("decorrelation_m", fit.shadow.decorrelation_m),
        ("shadow_db", DB_PER_NEPER * fit.shadow.sill.sqrt()),
        ("noise_db", DB_PER_NEPER * fit.noise.relative),
        ("noise_power", fit.noise.additive),
    ];
    if fit.unmet {
        let unmet = "the map to start from cannot explain the readings: started from nothing";
        estimate.notes.push(unmet.into());
    }
    if readings.sensors() > scale::FITTED {
        estimate.notes.push(format!(
            "fitted to {} of {} sensors; all of them draw the map",
            scale::FITTED,
            readings.sensors()
        ));
    }
    estimate.notes.extend(neighbours.map(local_note));
    Ok(estimate)
}

/// The factored map and its spread in dB: var ln t = sum_r J_r^2 (var f_r + var ln c_r).
pub(super) fn chart(
    readings: &Readings,
    fields: &Fields,
    psd: &Array2<f64>,
    psd_variance: &Array2<f64>,
    link: Link,
) -> Result<RadioMap, EstimateError> {
    let grid = readings.grid();
    let slf = fields.mean.mapv(f64::exp);
    if slf.iter().any(|v| !v.is_finite()) {
        return Err(EstimateError::Numerical(
            "the fit diverged: ask for fewer emitters or check the unit of the readings".into(),
        ));
    }
    let (emitters, bands) = psd.dim();
    let mut spread = Array3::zeros((grid.rows(), grid.cols(), bands));
    for ((i, j, k), out) in spread.indexed_iter_mut() {
        let (mut total, mut sum) = (link.offset(), 0.0);
        for r in 0..emitters {
            let part = slf[[r, i, j]] * psd[[r, k]];
            total += part;
            sum += part * part * (fields.variance[[r, i, j]] + psd_variance[[r, k]]);
        }
        *out = DB_PER_NEPER * sum.sqrt() / total;
    }
    let frequencies = readings.freq_hz().map(<[f64]>::to_vec);
    Ok(RadioMap::factored(grid, Factors { slf, psd: psd.clone() })?
        .with_frequencies(frequencies)?
        .with_spread_db(Some(spread))?)
}

#[cfg(test)]
mod tests;
