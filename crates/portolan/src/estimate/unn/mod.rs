//! The paper's estimator: all emitters share one untrained decoder G, each has its own latent z_r
//! and PSD c_r, and sum_r G(z_r) o c_r is fitted to the readings in ln(x + a) (paper, eq. 4 and
//! algorithm 1), or to quantised levels by maximum likelihood (supplement B).

mod model;
mod options;
mod recipe;
mod start;

use std::sync::mpsc;

use ndarray::Axis;
use rayon::prelude::*;

use super::bands::Domain;
use super::btd::{Btd, gridded_model};
use super::emitters::{is_exact, number_of_emitters, shown, start_factors, unmix_readings};
use super::{Capability, Context, Entry, Job, Method, ThinPlate};
use crate::engine::{
    Descended, Diverged, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Penalties,
    Targets, Unknowns,
};
use crate::error::{EstimateError, InputError};
use crate::grid::Grid;
use crate::likelihood::Probit;
use crate::link::Link;
use crate::map::Factors;
use crate::model::{Model, Report};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::simulate::stream;
pub(super) use model::DecodedSlfs;
pub use model::{load_shape, save_shape};
pub use options::{DECODER_OPTIONS, shape_from_options};
use portolan_decoder::simd::ln_all;
use portolan_decoder::{Decoder, Draw, Network};
pub use recipe::{Lesson, StartFit, StartIterations, Unn, UnnStart};
pub use start::random_psd;
use start::{Guess, kriging, random};

pub(super) const KIND: &str = "unn";

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("unn", "the paper's domain-factored untrained decoder", options::build)
        .with_revision(3)
        .with_capabilities(&[
            Capability::Start,
            Capability::Emitters,
            Capability::Grid,
            Capability::Device,
        ])
        .with_options(options::OPTIONS)
        .with_kinds(&[(KIND, |saved| {
            saved.gridded(DecodedSlfs::load(saved.archive, saved.bands)?)
        })]);

impl Method for Unn {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let prepared = [self.prepare(readings, context, &progress.quiet())?];
        let share = self.start_share(&prepared[0]);
        let start = self.learn(&prepared, &progress.part(0.0..share))?;
        progress.fit_begins();
        self.descend(&prepared, start, &progress.part(share..1.0))?.pop().expect("a model each")
    }

    /// Starts are made side by side on the processor. Where that leaves the engine idle, it learns
    /// some of them while the next ones are made. All are fitted together.
    fn fit_many(
        &self,
        jobs: &[Job<'_>],
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Model, EstimateError>>, EstimateError> {
        let (quiet, starting) = (progress.quiet(), progress.part(0.0..0.7));
        let prepare = |job: &Job<'_>| self.prepare(job.readings, &job.context, &quiet);
        let mut models: Vec<Option<Result<Model, EstimateError>>> = Vec::new();
        models.resize_with(jobs.len(), || None);
        let mut begun: Vec<(usize, Prepared, Start)> = Vec::with_capacity(jobs.len());
        let in_turn = self.engine.at_once().filter(|_| self.start.is_informed());
        let at_once = in_turn.unwrap_or(jobs.len());
        let (send, made) = mpsc::channel();
        let mut learn_all = |made: mpsc::Receiver<(usize, Result<Prepared, EstimateError>)>| {
            let mut waiting: Vec<(usize, Prepared)> = Vec::new();
            let mut going_on = true;
            while going_on {
                match made.recv() {
                    Ok((k, Ok(one))) => waiting.push((k, one)),
                    Ok((_, Err(EstimateError::Cancelled))) => return Err(EstimateError::Cancelled),
                    Ok((k, Err(error))) => models[k] = Some(Err(error)),
                    Err(mpsc::RecvError) => going_on = false,
                }
                if waiting.len() == at_once || !going_on {
                    let (numbers, ones): (Vec<usize>, Vec<Prepared>) = waiting.drain(..).unzip();
                    let share = |done: usize| done as f64 / jobs.len() as f64;
                    let part = share(begun.len())..share(begun.len() + ones.len());
                    let learnt = self.learn(&ones, &starting.part(part))?;
                    let both = numbers.into_iter().zip(ones).zip(learnt);
                    begun.extend(both.map(|((k, one), start)| (k, one, start)));
                }
            }
            Ok(())
        };
        let prepare_all = || {
            jobs.par_iter().enumerate().with_max_len(1).for_each_with(send, |send, (k, job)| {
                // Nobody listens any more where learning has failed.
                let _ = send.send((k, prepare(job)));
            });
        };
        if at_once < jobs.len() {
            // A pool of one thread: what the engine asks of the processor must not wait behind starts.
            let aside = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let aside = aside.map_err(|error| EstimateError::Numerical(error.to_string()))?;
            std::thread::scope(|scope| {
                let learning = scope.spawn(|| aside.install(|| learn_all(made)));
                prepare_all();
                learning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
        } else {
            prepare_all();
            learn_all(made)?;
        }
        begun.sort_unstable_by_key(|(k, ..)| *k);
        let (prepared, start): (Vec<_>, Vec<_>) =
            begun.into_iter().map(|(_, one, start)| (one, start)).unzip();
        progress.fit_begins();
        let mut found = self.descend(&prepared, start, &progress.part(0.7..1.0))?.into_iter();
        let filled = models.into_iter().map(|model| {
            model.unwrap_or_else(|| found.next().expect("a model for each that was prepared"))
        });
        Ok(filled.collect())
    }
}

/// What the engine made of a start.
type Start = Result<Unknowns, EstimateError>;

/// A fit up to where the engine takes over.
struct Prepared {
    readings: Readings,
    grid: Grid,
    decoder: Decoder,
    /// Where the sensors are.
    cells: Vec<usize>,
    offset: f64,
    unit: f64,
    exact: bool,
    begin: Begin,
}

/// Where a fit begins.
enum Begin {
    /// As it is.
    Ready(Unknowns),
    /// With a network that first learns ln(S + a); the PSDs are known.
    Slfs { targets: Vec<f32>, psd: Vec<f32>, from: Network },
    /// With everything learning a map first: ln(x + a), or x itself.
    Map { targets: Vec<f32>, from: Unknowns },
}

impl Prepared {
    /// Engines take fits together that share all of this.
    fn sort(&self) -> (usize, usize, usize, bool, bool) {
        let levels = matches!(self.readings.values(), Values::Levels { .. });
        let (rows, cols) = (self.grid.rows(), self.grid.cols());
        (rows, cols, self.decoder.emitters(), levels, self.exact)
    }
}

/// Calls `run` with the numbers of items that have the same key, and puts what it returns in order.
fn together<K: Ord, T>(
    keys: &[K],
    mut run: impl FnMut(&[usize]) -> Result<Vec<T>, EstimateError>,
) -> Result<Vec<T>, EstimateError> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&k| &keys[k]);
    let mut found: Vec<Option<T>> = keys.iter().map(|_| None).collect();
    for same in order.chunk_by(|&a, &b| keys[a] == keys[b]) {
        for (&k, one) in same.iter().zip(run(same)?) {
            found[k] = Some(one);
        }
    }
    Ok(found.into_iter().map(|one| one.expect("one for each")).collect())
}

impl Unn {
    fn prepare(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Prepared, EstimateError> {
        progress.check()?;
        let grid = context.grid_for(readings)?;
        let readings = readings.on_grid(grid)?;
        let power = readings.power_or_floor();
        let link = self.offset.map_or_else(|| readings.floored_link(), Link::new);
        // The sigmoid lies in (0, 1): the brightest reading becomes 1.
        let brightest = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let unit = if self.rescale { brightest } else { 1.0 };
        let offset = link.offset() / unit;
        let emitters = number_of_emitters(&readings, context)?;
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let cells = readings.cells(grid)?.iter().map(|&c| grid.index(c)).collect();
        let job =
            UnnJob { unn: self, grid, readings: &readings, context, decoder: &decoder, offset };
        let begin = job.begin(unit, progress)?;
        let exact = is_exact(&readings);
        Ok(Prepared { grid, decoder, cells, offset, unit, exact, begin, readings })
    }

    /// How much of the work it is to learn the start: an iteration costs about the same in the fit.
    fn start_share(&self, one: &Prepared) -> f64 {
        if matches!(one.begin, Begin::Ready(_)) {
            return 0.0;
        }
        let (_, _, _, levels, exact) = one.sort();
        let start = self.start_fit.descent(&one.decoder, one.readings.bands(), exact).iterations;
        let fit = self.fit_options(levels).descent.iterations;
        start as f64 / (start + fit).max(1) as f64
    }

    /// What the engine makes of the starts.
    fn learn(
        &self,
        prepared: &[Prepared],
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Unknowns, EstimateError>>, EstimateError> {
        let lost = |_: Diverged| EstimateError::Numerical("the start of the fit diverged".into());
        let start = &self.start_fit;
        let kind = |one: &Prepared| match one.begin {
            Begin::Ready(_) => 0,
            Begin::Slfs { .. } => 1,
            Begin::Map { .. } => 2,
        };
        let keys: Vec<_> = prepared.iter().map(|one| (kind(one), one.sort())).collect();
        together(&keys, |same| {
            let ones = same.iter().map(|&k| &prepared[k]);
            let decoder = &prepared[same[0]].decoder;
            let descent = |bands| start.descent(decoder, bands, prepared[same[0]].exact);
            let bands = prepared[same[0]].readings.bands();
            match keys[same[0]].0 {
                0 => Ok(ones
                    .map(|one| match &one.begin {
                        Begin::Ready(at) => Ok(at.clone()),
                        _ => unreachable!("sorted by kind"),
                    })
                    .collect()),
                1 => {
                    let parts: Vec<_> = ones
                        .filter_map(|one| match &one.begin {
                            Begin::Slfs { targets, psd, from } => {
                                let (offset, start) = (one.offset as f32, from);
                                Some((ImitationProblem { targets, offset, start }, psd))
                            }
                            _ => None,
                        })
                        .collect();
                    let problems: Vec<_> = parts.iter().map(|(problem, _)| *problem).collect();
                    let options =
                        ImitationOptions { descent: descent(bands), rate: start.rate_network };
                    let found = self.engine.imitate(decoder, &problems, &options, progress)?;
                    let with_psd =
                        |(found, (_, psd)): (Result<Descended<Network>, _>, &(_, &Vec<f32>))| {
                            let Descended { at: network, .. } = found.map_err(lost)?;
                            Ok(Unknowns { network, psd: (*psd).clone() })
                        };
                    Ok(found.into_iter().zip(&parts).map(with_psd).collect())
                }
                _ => {
                    let cells: Vec<usize> = (0..prepared[same[0]].grid.cells()).collect();
                    let problems: Vec<_> = ones
                        .filter_map(|one| match &one.begin {
                            Begin::Map { targets, from } => Some(FitProblem {
                                cells: &cells,
                                bands,
                                targets: match start.lesson {
                                    Lesson::LinearMap => Targets::Power(targets),
                                    _ => Targets::LnPower(targets),
                                },
                                offset: one.offset as f32,
                                start: from,
                            }),
                            _ => None,
                        })
                        .collect();
                    let options = FitOptions {
                        descent: descent(bands),
                        rate_network: start.rate_network,
                        rate_psd: start.rate_psd,
                        penalties: Penalties { latent: 0.0, psd: 0.0, network: 0.0 },
                    };
                    let found = self.engine.fit(decoder, &problems, &options, progress)?;
                    Ok(found.into_iter().map(|one| one.map(|d| d.at).map_err(lost)).collect())
                }
            }
        })
    }

    /// The fits themselves, from starts, and the models they leave.
    fn descend(
        &self,
        prepared: &[Prepared],
        start: Vec<Result<Unknowns, EstimateError>>,
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Model, EstimateError>>, EstimateError> {
        // One map is not handed over to the pool and waited for.
        let told: Vec<TargetNumbers> = match prepared {
            [one] => vec![TargetNumbers::of(one)],
            many => many.par_iter().map(TargetNumbers::of).collect(),
        };
        let keys: Vec<_> = prepared.iter().map(|one| (one.sort(), one.readings.bands())).collect();
        let found = together(&keys, |same| {
            let able: Vec<usize> = same.iter().copied().filter(|&k| start[k].is_ok()).collect();
            let problems: Vec<_> = able
                .iter()
                .filter_map(|&k| {
                    let (one, start) = (&prepared[k], start[k].as_ref().ok()?);
                    let (cells, offset) = (&one.cells[..], one.offset as f32);
                    let (bands, targets) = (one.readings.bands(), told[k].targets());
                    Some(FitProblem { cells, bands, targets, offset, start })
                })
                .collect();
            let (decoder, levels) = (&prepared[same[0]].decoder, keys[same[0]].0.3);
            let outcomes = match problems.is_empty() {
                true => Vec::new(),
                false => {
                    self.engine.fit(decoder, &problems, &self.fit_options(levels), progress)?
                }
            };
            let mut outcomes = outcomes.into_iter();
            Ok(same
                .iter()
                .map(|&k| match &start[k] {
                    Err(error) => Err(error.clone()),
                    Ok(_) => outcomes.next().expect("an outcome for each problem").map_err(|d| {
                        EstimateError::Numerical(format!("{d}: lower lr_network or lr_psd"))
                    }),
                })
                .collect())
        })?;
        let drawn = |(one, found): (&Prepared, Result<Descended<Unknowns>, EstimateError>)| {
            let Descended { at, trace } = found?;
            let decoded = DecodedSlfs {
                shape: self.shape,
                bands: one.readings.bands(),
                params: at.network.params,
                latents: at.network.latents,
                psd: at.psd,
                unit: one.unit,
            };
            let model = gridded_model(&one.readings, one.grid, decoded)?;
            Ok(model.with_report(Report::of_descent(trace)))
        };
        Ok(match prepared {
            [one] => found.into_iter().map(|found| drawn((one, found))).collect(),
            many => many.par_iter().zip(found).with_max_len(1).map(drawn).collect(),
        })
    }
}

/// What the sensors of a fit read, as engines take it.
enum TargetNumbers {
    LnPower(Vec<f32>),
    Levels(Vec<u8>, Probit),
}

impl TargetNumbers {
    fn of(one: &Prepared) -> Self {
        match one.readings.values() {
            Values::Power(_) => {
                let power = one.readings.power_or_floor();
                let scaled = power.mapv_into(|x| x / one.unit + one.offset);
                let scaled = scaled.as_standard_layout();
                TargetNumbers::LnPower(ln_all(scaled.as_slice().expect("standard layout")))
            }
            Values::Levels { levels, quantiser } => {
                let probit = Probit::shifted(quantiser, one.unit.ln());
                TargetNumbers::Levels(levels.iter().copied().collect(), probit)
            }
        }
    }

    fn targets(&self) -> Targets<'_> {
        match self {
            TargetNumbers::LnPower(values) => Targets::LnPower(values),
            TargetNumbers::Levels(levels, probit) => Targets::Levels { levels, probit },
        }
    }
}

/// One fit on its way.
struct UnnJob<'a> {
    unn: &'a Unn,
    grid: Grid,
    readings: &'a Readings,
    context: &'a Context<'a>,
    decoder: &'a Decoder,
    offset: f64,
}

impl UnnJob<'_> {
    fn begin(&self, unit: f64, progress: &Progress<'_>) -> Result<Begin, EstimateError> {
        let mut rng = stream(self.context.seed, 0);
        let earlier = start_factors(self.readings, self.context)?;
        if earlier.is_some() && self.unn.start_insisted {
            let message = "unn starts from a map or as its option start says: give one of them";
            return Err(InputError::Request(message.into()).into());
        }
        let bands = self.readings.bands();
        let mut draw = |by| random(self.decoder, bands, by, &mut rng);
        if earlier.is_none() && !self.unn.start.is_informed() {
            let uniform = self.unn.start == UnnStart::Uniform;
            return Ok(Begin::Ready(draw(if uniform { Draw::Uniform } else { Draw::Xavier })));
        }
        let whole_map = self.unn.start_fit.lesson != Lesson::Slfs;
        if earlier.is_none() && whole_map && self.unn.start == UnnStart::Interpolation {
            let map = plates().fit(self.readings, self.context, &progress.quiet())?;
            let map = map.map(self.grid, &progress.quiet())?;
            let dense = map.to_dense();
            let map = dense.iter().map(|x| (x / unit) as f32).collect();
            return Ok(self.map_to_learn(map, draw(Draw::Xavier)));
        }
        let guess = match earlier {
            Some((grid, factors)) => self.earlier(grid, factors)?,
            None => self.guess(unit, progress)?,
        };
        let at = draw(Draw::Xavier);
        if whole_map {
            return Ok(self.map_to_learn(guess.map(unit), at));
        }
        let offset = self.offset as f32;
        let targets = guess.slf.iter().map(|s| (s + offset).ln()).collect();
        let psd = guess.psd.iter().map(|c| (c / unit) as f32).collect();
        Ok(Begin::Slfs { targets, psd, from: at.network })
    }

    /// Network, latents and PSDs are to draw a map (cells x bands) together.
    fn map_to_learn(&self, mut map: Vec<f32>, from: Unknowns) -> Begin {
        if self.unn.start_fit.lesson != Lesson::LinearMap {
            let offset = self.offset as f32;
            map.iter_mut().for_each(|x| *x = (*x + offset).ln());
        }
        Begin::Map { targets: map, from }
    }

    /// SLFs and PSDs found by simpler means.
    fn guess(&self, unit: f64, progress: &Progress<'_>) -> Result<Guess, EstimateError> {
        match self.unn.start {
            UnnStart::Btd => {
                let (emitters, seed) = (self.decoder.emitters(), self.context.seed);
                let quiet = progress.quiet();
                let found =
                    Btd::default().decompose(self.readings, self.grid, emitters, seed, &quiet)?;
                let slf = found.slf();
                Ok(Guess::new(self.grid, &found.c, |r| {
                    slf.index_axis(Axis(0), r).iter().copied().collect()
                }))
            }
            UnnStart::Interpolation => {
                self.interpolated(|_, _| Ok(Box::new(plates())), unit, progress)
            }
            // SLFs that unmixing put at next to nothing must not dig holes.
            _ => self.interpolated(
                |offset, slfs| Ok(Box::new(kriging(offset, slfs)?)),
                unit,
                progress,
            ),
        }
    }

    fn earlier(&self, grid: Grid, factors: &Factors) -> Result<Guess, InputError> {
        if !grid.coincides(&self.grid) {
            let message = "the map to start from has another grid than the fit: unn needs the same";
            return Err(InputError::Request(message.into()));
        }
        Ok(Guess::new(self.grid, &factors.psd, |r| {
            factors.slf.index_axis(Axis(0), r).iter().copied().collect()
        }))
    }

    /// Unmixes the readings and carries each emitter's SLF from the sensors to the grid.
    fn interpolated(
        &self,
        method: impl Fn(f64, &Readings) -> Result<Box<dyn Method>, EstimateError>,
        unit: f64,
        progress: &Progress<'_>,
    ) -> Result<Guess, EstimateError> {
        let offset = self.offset * unit;
        let asked = self.decoder.emitters();
        let shown = shown(self.readings, asked);
        let unmixed = unmix_readings(self.readings, shown, offset, self.context.seed)?;
        let guess =
            Guess::interpolated(self.readings, self.grid, &unmixed, method, offset, progress)?;
        Ok(guess.widened(asked))
    }
}

fn plates() -> ThinPlate {
    ThinPlate { domain: Domain::Linear, ..ThinPlate::default() }
}

#[cfg(test)]
mod tests;
