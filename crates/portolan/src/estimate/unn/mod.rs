//! The paper's estimator: all emitters share one untrained decoder G, each has its own latent z_r
//! and PSD c_r, and sum_r G(z_r) o c_r is fitted to the readings in ln(x + a) (paper, eq. 4 and
//! algorithm 1), or to quantised levels by maximum likelihood (supplement B).

mod members;
mod model;
mod options;
mod recipe;
mod start;

use std::sync::mpsc;

use ndarray::Axis;
use rayon::prelude::*;

use super::bands::Domain;
use super::btd::{Btd, gridded_model, peaks};
use super::emitters::{is_exact, number_of_emitters, shown, start_factors, unmix_readings};
use super::folds::spread_folds;
use super::{Capability, Context, Emitters, Entry, Job, Method, ThinPlate};
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
use crate::unmix::Unmixed;
use members::{Members, SpreadLaw};
pub(super) use model::DecodedSlfs;
pub use model::{load_shape, save_shape};
pub use options::{DECODER_OPTIONS, shape_from_options};
use portolan_decoder::simd::ln_all;
use portolan_decoder::{Decoder, Draw, Network};
pub use recipe::{Lesson, StartFit, StartIterations, Unn, UnnStart};
pub use start::random_psd;
use start::{Guess, kriging, random};

pub(super) const KIND: &str = "unn";

/// Members unless told otherwise, on grids of at most so many cells: each takes as long as one fit.
const MEMBERS: usize = 8;
const MOST_CELLS: usize = 1 << 16;
/// Fewer sensors for each member cannot spare any.
const FEWEST_EACH: usize = 4;
/// A member leaves out no more than one sensor of so many.
const FOLDS: usize = 8;
/// Seeds of members are so far apart.
const SEEDS: u64 = 0x9e37_79b9_7f4a_7c15;

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("unn", "the paper's domain-factored untrained decoder", options::build)
        .with_revision(4)
        .with_capabilities(&[
            Capability::Spread,
            Capability::Start,
            Capability::Emitters,
            Capability::Grid,
            Capability::Device,
        ])
        .with_options(options::OPTIONS)
        .with_kinds(&[
            (KIND, |saved| saved.gridded(DecodedSlfs::load(saved.archive, saved.bands)?)),
            (members::KIND, |saved| {
                Ok(Box::new(Members::load(saved.archive, saved.bands, saved.room)?))
            }),
        ]);

impl Method for Unn {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        if self.members_of(readings, context)? > 1 {
            let job = Job { readings, context: *context };
            return self.ensembles(&[job], progress)?.pop().expect("a model each");
        }
        let prepared = [self.prepare(readings, context, None, &progress.quiet())?];
        let share = self.start_share(&prepared[0]);
        let start = self.learn(&prepared, &progress.part(0.0..share))?;
        progress.fit_begins();
        let found = self.descend(&prepared, start, &progress.part(share..1.0))?.pop();
        prepared[0].model(found.expect("a fit each")?)
    }

    fn fit_many(
        &self,
        jobs: &[Job<'_>],
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Model, EstimateError>>, EstimateError> {
        let alone = |job: &Job<'_>| self.members_of(job.readings, &job.context) == Ok(1);
        if !jobs.iter().all(alone) {
            return self.ensembles(jobs, progress);
        }
        let fits = self.fit_all(jobs, &[], progress)?;
        let model = |fit: Result<Fit, EstimateError>| fit.and_then(|(one, found)| one.model(found));
        Ok(fits.into_par_iter().with_max_len(1).map(model).collect())
    }
}

/// A fit with what it was prepared from.
type Fit = (Prepared, Found);

impl Unn {
    /// Starts are made side by side on the processor. Where that leaves the engine idle, it learns
    /// some of them while the next ones are made. All are fitted together.
    fn fit_all(
        &self,
        jobs: &[Job<'_>],
        unmixed: &[Option<Unmixed>],
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Fit, EstimateError>>, EstimateError> {
        let (quiet, starting) = (progress.quiet(), progress.part(0.0..0.7));
        let prepare = |k: usize, job: &Job<'_>| {
            let unmixed = unmixed.get(k).and_then(Option::as_ref);
            self.prepare(job.readings, &job.context, unmixed, &quiet)
        };
        let mut models: Vec<Option<Result<Fit, EstimateError>>> = Vec::new();
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
                let _ = send.send((k, prepare(k, job)));
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
        let found = self.descend(&prepared, start, &progress.part(0.7..1.0))?;
        let mut found = prepared.into_iter().zip(found).map(|(one, found)| Ok((one, found?)));
        let filled = models.into_iter().map(|model| {
            model.unwrap_or_else(|| found.next().expect("a fit for each that was prepared"))
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

/// What a fit left.
struct Found {
    decoded: DecodedSlfs,
    trace: Vec<f64>,
}

impl Prepared {
    fn model(&self, found: Found) -> Result<Model, EstimateError> {
        let Found { decoded, trace } = found;
        let model = gridded_model(&self.readings, self.grid, decoded)?;
        Ok(model.with_report(Report::of_descent(trace)))
    }

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
        unmixed: Option<&Unmixed>,
        progress: &Progress<'_>,
    ) -> Result<Prepared, EstimateError> {
        progress.check()?;
        let grid = context.grid_for(readings)?;
        let readings = readings.on_grid(grid)?;
        let power = readings.power_or_floor();
        // The sigmoid lies in (0, 1): the brightest reading becomes 1.
        let brightest = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let unit = if self.rescale { brightest } else { 1.0 };
        let offset = self.offset_of(&readings) / unit;
        let emitters = number_of_emitters(&readings, context)?;
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let cells = readings.cells(grid)?.iter().map(|&c| grid.index(c)).collect();
        let job = UnnJob {
            unn: self,
            grid,
            readings: &readings,
            context,
            decoder: &decoder,
            offset,
            unmixed,
        };
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

    /// The fits themselves, from starts.
    fn descend(
        &self,
        prepared: &[Prepared],
        start: Vec<Result<Unknowns, EstimateError>>,
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Found, EstimateError>>, EstimateError> {
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
        let decoded = |(one, found): (&Prepared, Result<Descended<Unknowns>, EstimateError>)| {
            let Descended { at, trace } = found?;
            let decoded = DecodedSlfs {
                shape: self.shape,
                bands: one.readings.bands(),
                params: at.network.params,
                latents: at.network.latents,
                psd: at.psd,
                unit: one.unit,
            };
            Ok(Found { decoded, trace })
        };
        Ok(prepared.iter().zip(found).map(decoded).collect())
    }

    /// How many members the fit of some readings has.
    fn members_of(
        &self,
        readings: &Readings,
        context: &Context<'_>,
    ) -> Result<usize, EstimateError> {
        let cells = context.grid_for(readings)?.cells();
        let usual = if cells <= MOST_CELLS { MEMBERS } else { 1 };
        Ok(match self.members {
            Some(asked) => asked,
            None if readings.places() < FEWEST_EACH * usual => 1,
            None => usual,
        })
    }

    /// Several fits of the same readings each, averaged. All members of all jobs are fitted together.
    fn ensembles(
        &self,
        jobs: &[Job<'_>],
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Model, EstimateError>>, EstimateError> {
        let groups: Vec<Result<Group, EstimateError>> =
            jobs.par_iter().map(|job| self.group(job)).collect();
        let (mut parts, mut unmixed) = (Vec::new(), Vec::new());
        for (group, job) in groups.iter().zip(jobs) {
            let Ok(group) = group else { continue };
            for (member, readings) in group.readings.iter().enumerate() {
                let seed = job.context.seed.wrapping_add(SEEDS.wrapping_mul(member as u64));
                let (emitters, grid) = (group.emitters, Some(group.grid));
                let context = Context { emitters, grid, seed, ..job.context };
                parts.push(Job { readings, context });
                let rows = group.unmixed.as_ref().map(|all| Unmixed {
                    slf_at_sensors: all.slf_at_sensors.select(Axis(0), &group.kept[member]),
                    psd: all.psd.clone(),
                    ..*all
                });
                unmixed.push(rows);
            }
        }
        let mut fits = self.fit_all(&parts, &unmixed, progress)?.into_iter();
        let gathered: Vec<_> = groups
            .into_iter()
            .map(|group| {
                let group = group?;
                let fits: Vec<_> = fits.by_ref().take(group.readings.len()).collect();
                let fits = fits.into_iter().collect::<Result<Vec<Fit>, EstimateError>>()?;
                Ok((group, fits))
            })
            .collect();
        let model = |one: Result<_, EstimateError>| {
            let (group, fits): (Group, Vec<Fit>) = one?;
            self.joined(&group.whole, group.grid, &group.left_out, fits)
        };
        Ok(gathered.into_par_iter().with_max_len(1).map(model).collect())
    }

    /// What the members of a job are fitted to.
    fn group(&self, job: &Job<'_>) -> Result<Group, EstimateError> {
        let Job { readings, context } = job;
        let grid = context.grid_for(readings)?;
        let members = self.members_of(readings, context)?;
        // Rows in one cell are one sensor, as they are for the decoder.
        let whole = readings.on_grid(grid)?;
        let emitters = Emitters::Count(number_of_emitters(&whole, context)?);
        let mut left_out = match members {
            1 => vec![Vec::new()],
            _ => spread_folds(whole.sites(), members.max(FOLDS)),
        };
        left_out.resize(members, Vec::new());
        let sensors = whole.sensors();
        let part = |fold: &mut Vec<usize>| {
            let kept: Vec<usize> = (0..sensors).filter(|s| !fold.contains(s)).collect();
            match whole.subset(&kept) {
                Ok(part) => (part, kept),
                // A band would be left without readings.
                Err(_) => {
                    fold.clear();
                    (whole.clone(), (0..sensors).collect())
                }
            }
        };
        let (parts, kept) = left_out.iter_mut().map(part).unzip();
        let unmixes = self.start == UnnStart::Unmixed
            && self.start_fit.lesson == Lesson::Slfs
            && context.start.is_none();
        let unmixed = match unmixes {
            true => {
                let offset = self.offset_of(&whole);
                let asked = number_of_emitters(&whole, context)?;
                let shown = shown(&whole, asked);
                Some(unmix_readings(&whole, shown, offset, context.seed)?)
            }
            false => None,
        };
        Ok(Group { grid, emitters, whole, readings: parts, kept, left_out, unmixed })
    }
}

/// Members of one job: their readings, and the sensors that each leaves out.
struct Group {
    grid: Grid,
    emitters: Emitters,
    /// All readings, on the grid.
    whole: Readings,
    readings: Vec<Readings>,
    kept: Vec<Vec<usize>>,
    left_out: Vec<Vec<usize>>,
    /// All readings unmixed, where members begin with that.
    unmixed: Option<Unmixed>,
}

/// What is said of members whose spread no reading could judge.
const UNJUDGED: &str = "no sensor could be left out of a member, because each holds the only reading \
                        of some band: the spread is not calibrated";

impl Unn {
    /// The a of ln(x + a), in the readings' unit.
    fn offset_of(&self, readings: &Readings) -> f64 {
        self.offset.map_or_else(|| readings.floored_link(), Link::new).offset()
    }

    /// The model of all members.
    fn joined(
        &self,
        readings: &Readings,
        grid: Grid,
        left_out: &[Vec<usize>],
        fits: Vec<Fit>,
    ) -> Result<Model, EstimateError> {
        let (mut decoded, mut traces) = (Vec::new(), Vec::new());
        for (_, found) in fits {
            decoded.push(found.decoded);
            traces.push(found.trace);
        }
        let count = decoded.len();
        if count == 1 {
            let (decoded, trace) = (decoded.remove(0), traces.remove(0));
            let model = gridded_model(readings, grid, decoded)?;
            return Ok(model.with_report(Report::of_descent(trace)));
        }
        // Without an offset, places without power have the floor of the readings.
        let (offset, floored) = (self.offset_of(readings), readings.floored_link().offset());
        let floor = 1e-3 * if offset > 0.0 { offset } else { floored };
        let members = Members::new(grid, floor, decoded, SpreadLaw::unknown(offset))?;
        let law = members.calibrated(readings, left_out);
        let judged = law.is_some();
        let members = members.with_law(law.unwrap_or(SpreadLaw::unknown(offset)));
        let emitters = peaks(readings, grid, members.factors());
        let mut model = Model::new(readings, members).with_grid(Some(grid)).with_emitters(emitters);
        model = model.with_report(Report::of_descent(traces.remove(0)));
        model.report_mut().add_fitted(&[("members", count as f64)]);
        model.report_mut().notes.extend((!judged).then(|| UNJUDGED.to_string()));
        Ok(model)
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
    /// The readings unmixed, where that is known.
    unmixed: Option<&'a Unmixed>,
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
        let own = match self.unmixed {
            Some(_) => None,
            None => {
                let shown = shown(self.readings, asked);
                Some(unmix_readings(self.readings, shown, offset, self.context.seed)?)
            }
        };
        let unmixed = self.unmixed.or(own.as_ref()).expect("one of them");
        let guess =
            Guess::interpolated(self.readings, self.grid, unmixed, method, offset, progress)?;
        Ok(guess.widened(asked))
    }
}

fn plates() -> ThinPlate {
    ThinPlate { domain: Domain::Linear, ..ThinPlate::default() }
}

#[cfg(test)]
mod tests;
