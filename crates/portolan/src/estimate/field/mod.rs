//! Our own estimator: every emitter's log SLF is a path-loss trend plus a Gaussian process, fitted
//! blindly together with PSDs, places, exponents, shadowing and noise.

pub(super) mod area;
pub(super) mod draw;
mod fit;
mod guessed;
pub(super) mod independent;
pub(super) mod law;
mod linearised;
mod model;
mod number;
mod places;
pub(super) mod scale;
pub(super) mod shadow;
mod shear;
mod soft_levels;
mod spectra;
mod start;
mod unsure;

use ndarray::Array2;

use super::averaged::averaged_because;
use super::bands::{Domain, OFFSET};
use super::emitters::completed;
use super::heights::in_space;
use super::interpolated::local_note;
use super::obstructed::{self, beside};
use super::robust::{WILD, tamed};
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::link::{DB_PER_LN, Link};
use crate::model::{Model, ModelEmitter, power_shares, weighted_places};
use crate::progress::Progress;
use crate::readings::Readings;
use draw::{EmitterField, EmitterKriging};
use fit::{Emitter, FieldFit};
use linearised::{Noise, Reported};
pub(super) use model::EmitterFields;
pub(super) use number::Structure;
use shadow::FixedShadow;
pub use unsure::with_likeliest_sigma;

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "rounds",
        default: "30 (ours); 8 from an earlier map",
        takes: "1 to 1000: most rounds of the fit",
    },
    OptionSpec { name: "decorrelation", default: "fitted", takes: "metres" },
    OptionSpec { name: "shadow_db", default: "fitted", takes: "dB" },
    OptionSpec { name: "exponent", default: "2.3 (ours)", takes: "expected path-loss exponent" },
    OptionSpec {
        name: "exponent_sd",
        default: "0.35 (ours)",
        takes: "standard deviation of the exponents",
    },
    OptionSpec {
        name: "positions",
        default: "average (ours)",
        takes: "average | best: over where an emitter may stand, or the likeliest place only",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 4000 sensors, then 128",
        takes: "number of nearest sensors used for a place",
    },
    OFFSET,
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];
pub(super) const KIND: &str = "field";

/// Why places that were read more than once are averaged.
const PLACES: &str = "emitters are fitted place by place";

/// Rounds of a fit from scratch, and from an earlier map.
const ROUNDS: (usize, usize) = (30, 8);

/// Path loss and shadowing of every emitter, with places, PSDs and a spread: our own method.
///
/// ```
/// use portolan::estimate::{Field, Method};
/// use portolan::{Context, Emitters, Grid, Progress};
/// # use portolan::sense::{SensorLayout, Sensing, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(24, 24, 1.0)?;
/// let truth = simulate(&Scenario { bands: 8, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
/// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 0))?;
/// let context = Context { emitters: Emitters::Count(2), ..Context::default() };
/// let model = Field::default().fit(&readings, &context, &Progress::silent())?;
/// for emitter in model.emitters() {
///     let miss = |at: &portolan::Site| at.distance_m(emitter.at);
///     assert!(truth.emitters().iter().map(miss).fold(f64::INFINITY, f64::min) < 3.0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Most rounds of the fit; by default 30, from an earlier map 8.
    pub rounds: Option<usize>,
    /// Decorrelation distance of the shadowing in metres; fitted where absent.
    pub decorrelation_m: Option<f64>,
    /// Standard deviation of the shadowing in dB; fitted where absent.
    pub shadow_db: Option<f64>,
    /// Expected path-loss exponent, and how far exponents stray from it.
    pub exponent: f64,
    /// Standard deviation of the exponents.
    pub exponent_sd: f64,
    /// Only the likeliest place of an emitter counts, instead of an average over places.
    pub best_place_only: bool,
    /// Number of nearest sensors used for a place; by default all up to 4000, then 128.
    pub neighbours: Option<usize>,
    /// The a of ln(x + a); from the unit where absent.
    pub offset: Option<f64>,
}

impl Default for Field {
    fn default() -> Self {
        Self {
            rounds: None,
            decorrelation_m: None,
            shadow_db: None,
            exponent: 2.3,
            exponent_sd: 0.35,
            best_place_only: false,
            neighbours: None,
            offset: None,
        }
    }
}

/// This method in the register.
pub(super) const ENTRY: Entry = Entry::new(
    "field",
    "path loss and shadowing of every emitter, with places, PSDs and a spread (ours)",
    build,
)
.with_revision(9)
.with_capabilities(&[
    Capability::Spread,
    Capability::Start,
    Capability::Emitters,
    Capability::Transmitters,
    Capability::Obstacles,
    Capability::Heights,
    Capability::Times,
])
.with_options(OPTIONS)
.with_kinds(&[
    (KIND, |saved| Ok(Box::new(EmitterFields::load(saved.archive, saved.bands)?))),
    (independent::KIND, |saved| {
        Ok(Box::new(independent::BandsAlone::load(saved.archive, saved.bands)?))
    }),
    (obstructed::KIND, |saved| {
        Ok(Box::new(obstructed::Obstructed::load(saved.archive, saved.bands)?))
    }),
]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let positive = f64::MIN_POSITIVE..f64::INFINITY;
    let positions = [("average", false), ("best", true)];
    let usual = Field::default();
    Ok(Box::new(Field {
        rounds: options.count("rounds", 1..=1000)?,
        decorrelation_m: options.number("decorrelation", positive.clone())?,
        shadow_db: options.number("shadow_db", positive.clone())?,
        exponent: options.number("exponent", 0.0..10.0)?.unwrap_or(usual.exponent),
        exponent_sd: options.number("exponent_sd", positive)?.unwrap_or(usual.exponent_sd),
        best_place_only: options.choice("positions", &positions)?.unwrap_or(false),
        neighbours: options.count("neighbours", 2..=scale::TOGETHER)?,
        offset: Domain::log_from_options(options)?,
    }))
}

impl Method for Field {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        beside(readings, context, progress, |readings, context, progress| {
            in_space(readings, context, progress, |readings, context, progress| {
                self.fitted(readings, context, progress)
            })
        })
    }
}

impl Field {
    fn fitted(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        let joined = averaged_because(readings, PLACES)?;
        let places = joined.as_ref().map_or(readings, |joined| &joined.readings);
        let whole = completed(places)?;
        let places = whole.as_ref().unwrap_or(places);
        let (structure, note) = self.structure_of(places, context, &progress.part(0.0..0.4))?;
        let rest = progress.part(0.4..1.0);
        let mut model = match structure {
            Structure::Emitters(emitters) => {
                let mut model = self.emitters(places, readings, emitters, context, &rest)?;
                model.report_mut().notes.extend(joined.map(|joined| joined.note));
                model
            }
            Structure::Bands => {
                // Bands alone have noise of their own, which every row says something about.
                let readings = if joined.is_some() { readings } else { places };
                let tamed = tamed(readings, &rest.part(0.0..0.1))?;
                let steady = tamed.as_ref().unwrap_or(readings);
                let mut model = independent::fit(steady, context, &rest.part(0.1..1.0))?;
                model.report_mut().notes.extend(tamed.map(|_| WILD.to_string()));
                model
            }
        };
        model.report_mut().notes.extend(note);
        Ok(model)
    }
}

impl Field {
    fn link(&self, readings: &Readings) -> Link {
        self.offset.map_or_else(|| readings.floored_link(), Link::new)
    }

    fn fixed(&self) -> FixedShadow {
        FixedShadow {
            decorrelation_m: self.decorrelation_m,
            sill: self.shadow_db.map(|s| (s / DB_PER_LN).powi(2)),
        }
    }

    /// The number of emitters asked for or found, or none at all; and what is to be said about it.
    pub(super) fn structure(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Structure, Option<String>), EstimateError> {
        let joined = averaged_because(readings, PLACES)?;
        let places = joined.as_ref().map_or(readings, |joined| &joined.readings);
        let whole = completed(places)?;
        self.structure_of(whole.as_ref().unwrap_or(places), context, progress)
    }

    /// Number of nearest sensors used for a place; None = all.
    fn neighbours(&self, sensors: usize) -> Option<usize> {
        self.neighbours
            .or((sensors > scale::TOGETHER).then_some(scale::NEIGHBOURS))
            .filter(|n| *n < sensors)
    }

    /// The model of so many emitters. `readings` has one row for every place, `rows` may have more.
    fn emitters(
        &self,
        readings: &Readings,
        rows: &Readings,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let sensors = readings.sensors();
        let neighbours = self.neighbours(sensors);
        if context.start.is_none()
            && let Some(solid) = guessed::all_but(readings)
        {
            return self.guessing(readings, rows, &solid, emitters, context, progress);
        }
        if sensors <= scale::FITTED {
            let targets = Reported::new(readings);
            let (fit, rounds) = self.run(readings, &targets, emitters, context, progress)?;
            return finish(rows, &fit, neighbours, rounds);
        }
        let some = scale::some_of(readings);
        let part = readings.subset(&some)?;
        let part_targets = Reported::new(&part);
        let (fit, rounds) =
            self.run(&part, &part_targets, emitters, context, &progress.part(0.0..0.7))?;
        let fields = kriging(&fit, None)?.all_fields(readings.sites(), &progress.part(0.7..1.0))?;
        let targets = Reported::new(readings);
        let (logs, soft) = scale::everywhere(&fit, &fields, &targets, &some);
        let mut whole = FieldFit {
            sites: readings.sites(),
            targets: &targets,
            logs,
            soft,
            psd: fit.psd.clone(),
            psd_variance: fit.psd_variance.clone(),
            emitters: Vec::new(),
            ..fit
        };
        let found = targets.linearised(&whole.logs, &whole.psd, whole.noise, &whole.soft);
        let honest = whole.honest_all(&found);
        whole.emitters = fit
            .emitters
            .into_iter()
            .zip(honest)
            .map(|(e, pseudo)| Emitter { pseudo, ..e })
            .collect();
        if whole.exact {
            whole.settle();
        }
        if neighbours.is_none() {
            let emitters = std::mem::take(&mut whole.emitters);
            let (pseudo, places) = emitters.into_iter().map(|e| (e.pseudo, e.places)).unzip();
            whole.condition(pseudo, places)?;
        }
        finish(rows, &whole, neighbours, rounds)
    }

    fn run<'a>(
        &self,
        readings: &'a Readings,
        targets: &'a Reported,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(FieldFit<'a>, usize), EstimateError> {
        let mut fit = self.started(readings, targets, emitters, context, progress)?;
        let most = self.rounds.unwrap_or(if fit.warm { ROUNDS.1 } else { ROUNDS.0 });
        let rounds = fit.run(most, progress)?;
        Ok((fit, rounds))
    }
}

/// The fitted emitters, ready to be drawn.
fn kriging(fit: &FieldFit<'_>, neighbours: Option<usize>) -> Result<EmitterKriging, EstimateError> {
    let fields = fit
        .emitters
        .iter()
        .map(|e| EmitterField {
            law: fit.law,
            shadow: fit.shadow,
            places: e.places.at.clone(),
            weights: e.posterior.weights.clone(),
            trends: e.posterior.trends.clone(),
            masts: Vec::new(),
            values: e.pseudo.values.clone(),
            noise: e.pseudo.noise.clone(),
        })
        .collect();
    EmitterKriging::new(fit.sites.to_vec(), fields, neighbours)
}

fn finish(
    readings: &Readings,
    fit: &FieldFit<'_>,
    neighbours: Option<usize>,
    rounds: usize,
) -> Result<Model, EstimateError> {
    let emitters = &fit.emitters;
    let kriging = kriging(fit, neighbours)?;
    // That law and factors are themselves estimated shows in what neighbours say of each other.
    let widening = if fit.exact { fit.overconfidence() } else { 1.0 };
    let slf = fit.logs.mapv(f64::exp).reversed_axes();
    let shares = power_shares(&slf, &fit.psd);
    // A place stands for its square. The likeliest place alone has no standard error.
    let square = places::FINEST * fit.area.resolution_m / 12f64.sqrt();
    let found = emitters
        .iter()
        .enumerate()
        .map(|(r, e)| {
            let (at, sd) = e.posterior.place(&e.places);
            ModelEmitter {
                at,
                at_se_m: (!fit.best_place_only).then(|| sd.map(|sd| sd.hypot(square))),
                exponent: Some(e.posterior.exponent()),
                psd: fit.psd.row(r).to_vec(),
                power_share: shares[r],
                places: match fit.best_place_only {
                    true => Vec::new(),
                    false => weighted_places(&e.posterior.weights, &e.places.at),
                },
            }
        })
        .collect();
    let noise_db = noise_db(&slf, &fit.psd, fit.noise);
    let fields =
        EmitterFields::new(kriging, fit.psd.clone(), fit.psd_variance.clone(), noise_db, widening);
    let mut model = Model::new(readings, fields).with_emitters(found);
    let report = model.report_mut();
    report.iterations = rounds;
    report.add_fitted(&[
        ("emitters", emitters.len() as f64),
        ("decorrelation_m", fit.shadow.decorrelation_m),
        ("shadow_db", DB_PER_LN * fit.shadow.sill.sqrt()),
        ("noise_db", DB_PER_LN * fit.noise.relative),
        ("noise_power", fit.noise.additive),
    ]);
    if fit.unmet {
        let unmet = "the map to start from cannot explain the readings: started from scratch";
        report.notes.push(unmet.into());
    }
    if fit.sites.len() > scale::FITTED {
        report.notes.push(format!(
            "fitted to {} of {} sensors; all of them draw the map",
            scale::FITTED,
            fit.sites.len()
        ));
    }
    report.notes.extend(neighbours.map(local_note));
    Ok(model)
}

/// Noise of a reading in dB, per band: the relative part, and the additive part at the band's
/// median power.
fn noise_db(slf: &Array2<f64>, psd: &Array2<f64>, noise: Noise) -> Vec<f64> {
    let power = slf.t().dot(psd);
    power
        .columns()
        .into_iter()
        .map(|column| {
            let mut sorted = column.to_vec();
            sorted.sort_by(f64::total_cmp);
            let median = sorted[sorted.len() / 2].max(f64::MIN_POSITIVE);
            // Noise far above the signal has no meaning in dB: a factor of ten says enough.
            DB_PER_LN * noise.relative.hypot((noise.additive / median).min(2.3))
        })
        .collect()
}

#[cfg(test)]
mod tests;
