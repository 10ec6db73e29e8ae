//! The paper's estimator: all emitters share one untrained decoder G, each has its own latent z_r
//! and PSD c_r, and sum_r G(z_r) o c_r is fitted to the readings in ln(x + a) (paper, eq. 4 and
//! algorithm 1), or to quantised levels by maximum likelihood (supplement B).

mod model;
mod options;
mod recipe;
pub(super) mod start;

use ndarray::Axis;

use super::bands::Domain;
use super::btd::{Btd, gridded_model};
use super::emitters::{is_exact, number_of_emitters, shown, start_factors, unmix_readings};
use super::{Context, Kriging, Method, ThinPlate};
use crate::decoder::{Decoder, Draw, Network};
use crate::engine::{
    Descended, Diverged, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Outcomes,
    Penalties, Targets, Unknowns,
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
pub(super) use model::{DecodedSlfs, load_shape, save_shape};
pub(super) use options::{DECODER_OPTIONS, OPTIONS, build, shape_from_options};
pub use recipe::{Lesson, StartFit, StartIterations, Unn, UnnStart};
use start::{Guess, random};

pub(super) const KIND: &str = "unn";

impl Method for Unn {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        let grid = context.grid_for(readings)?;
        let readings = &readings.on_grid(grid)?;
        let power = readings.power_or_floor();
        let link = self.offset.map_or_else(|| readings.floored_link(), Link::new);
        // The sigmoid lies in (0, 1): the brightest reading becomes 1.
        let brightest = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let unit = if self.rescale { brightest } else { 1.0 };
        let offset = link.offset() / unit;
        let scaled = power.mapv(|x| x / unit);
        let emitters = number_of_emitters(readings, context)?;
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let cells: Vec<usize> = readings.cells(grid)?.iter().map(|&c| grid.index(c)).collect();
        let job = UnnJob { unn: self, grid, readings, context, decoder: &decoder, offset };
        let start = job.start(unit, &progress.part(0.0..0.7))?;
        progress.fit_begins();
        let fitting = progress.part(0.7..1.0);
        let (at, trace) = match readings.values() {
            Values::Power(_) => {
                let targets: Vec<f32> = scaled.iter().map(|x| (x + offset).ln() as f32).collect();
                job.fit(&cells, Targets::LnPower(&targets), &start, &fitting)?
            }
            Values::Levels { levels, quantiser } => {
                let probit = &Probit::shifted(quantiser, unit.ln());
                let levels: Vec<u8> = levels.iter().copied().collect();
                job.fit(&cells, Targets::Levels { levels: &levels, probit }, &start, &fitting)?
            }
        };
        let decoded = DecodedSlfs {
            shape: self.shape,
            bands: readings.bands(),
            params: at.network.params,
            latents: at.network.latents,
            psd: at.psd,
            unit,
        };
        Ok(gridded_model(readings, grid, decoded)?.with_report(Report::of_descent(trace)))
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
    fn start(&self, unit: f64, progress: &Progress<'_>) -> Result<Unknowns, EstimateError> {
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
            return Ok(draw(if uniform { Draw::Uniform } else { Draw::Xavier }));
        }
        let whole_map = self.unn.start_fit.lesson != Lesson::Slfs;
        if earlier.is_none() && whole_map && self.unn.start == UnnStart::Interpolation {
            let map = plates().fit(self.readings, self.context, &progress.quiet())?;
            let map = map.map(self.grid, &progress.quiet())?;
            let dense = map.to_dense();
            let map: Vec<f32> = dense.iter().map(|x| (x / unit) as f32).collect();
            return self.learn_map(&map, draw(Draw::Xavier), progress);
        }
        let guess = match earlier {
            Some((grid, factors)) => self.earlier(grid, factors)?,
            None => self.guess(unit, progress)?,
        };
        let mut at = draw(Draw::Xavier);
        if whole_map {
            return self.learn_map(&guess.map(unit), at, progress);
        }
        at.network = self.imitate(&guess.slf, &at.network, progress)?;
        at.psd = guess.psd.iter().map(|c| (c / unit) as f32).collect();
        Ok(at)
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
                Ok(Guess::new(self.grid, &found.c, |r| slf.index_axis(Axis(0), r).to_owned()))
            }
            UnnStart::Interpolation => self.interpolated(|_| Box::new(plates()), unit, progress),
            _ => {
                // SLFs that unmixing put at next to nothing must not dig holes.
                let kriging =
                    |offset| Kriging { domain: Domain::LogOffset(offset), ..Kriging::default() };
                self.interpolated(|offset| Box::new(kriging(offset)), unit, progress)
            }
        }
    }

    fn earlier(&self, grid: Grid, factors: &Factors) -> Result<Guess, InputError> {
        if !grid.coincides(&self.grid) {
            let message = "the map to start from has another grid than the fit: unn needs the same";
            return Err(InputError::Request(message.into()));
        }
        Ok(Guess::new(self.grid, &factors.psd, |r| factors.slf.index_axis(Axis(0), r).to_owned()))
    }

    /// Unmixes the readings and carries each emitter's SLF from the sensors to the grid.
    fn interpolated(
        &self,
        method: impl Fn(f64) -> Box<dyn Method>,
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

    /// A network and latents that draw `slf` (emitters x cells).
    fn imitate(
        &self,
        slf: &[f32],
        from: &Network,
        progress: &Progress<'_>,
    ) -> Result<Network, EstimateError> {
        let offset = self.offset as f32;
        let targets: Vec<f32> = slf.iter().map(|s| (s + offset).ln()).collect();
        let start = &self.unn.start_fit;
        let descent = start.descent(self.decoder, self.readings.bands(), is_exact(self.readings));
        let options = ImitationOptions { descent, rate: start.rate_network };
        let problem = ImitationProblem { targets: &targets, offset, start: from };
        let (decoder, engine) = (self.decoder, &self.unn.engine);
        let outcomes = engine.imitate(decoder, &[problem], &options, progress);
        let (network, _) = only(outcomes, |_| "the start of the fit diverged".into())?;
        Ok(network)
    }

    /// Network, latents and PSDs that together draw a map (cells x bands).
    fn learn_map(
        &self,
        map: &[f32],
        from: Unknowns,
        progress: &Progress<'_>,
    ) -> Result<Unknowns, EstimateError> {
        let offset = self.offset as f32;
        let cells: Vec<usize> = (0..self.grid.cells()).collect();
        let bands = self.readings.bands();
        let logarithms: Vec<f32>;
        let start = &self.unn.start_fit;
        let targets = match start.lesson {
            Lesson::LinearMap => Targets::Power(map),
            _ => {
                logarithms = map.iter().map(|x| (x + offset).ln()).collect();
                Targets::LnPower(&logarithms)
            }
        };
        let problem = FitProblem { cells: &cells, bands, targets, offset, start: &from };
        let options = FitOptions {
            descent: start.descent(self.decoder, bands, is_exact(self.readings)),
            rate_network: start.rate_network,
            rate_psd: start.rate_psd,
            penalties: Penalties { latent: 0.0, psd: 0.0, network: 0.0 },
        };
        let outcomes = self.unn.engine.fit(self.decoder, &[problem], &options, progress);
        let (found, _) = only(outcomes, |_| "the start of the fit diverged".into())?;
        Ok(found)
    }

    fn fit(
        &self,
        cells: &[usize],
        targets: Targets<'_>,
        start: &Unknowns,
        progress: &Progress<'_>,
    ) -> Result<(Unknowns, Vec<f64>), EstimateError> {
        let (bands, offset) = (self.readings.bands(), self.offset as f32);
        let problem = FitProblem { cells, bands, targets, offset, start };
        let options = self.unn.fit_options(matches!(targets, Targets::Levels { .. }));
        let outcomes = self.unn.engine.fit(self.decoder, &[problem], &options, progress);
        only(outcomes, |diverged| format!("{diverged}: lower lr_network or lr_psd"))
    }
}

fn plates() -> ThinPlate {
    ThinPlate { domain: Domain::Linear, ..ThinPlate::default() }
}

/// The outcome of a batch of one, with its trace.
fn only<T>(
    outcomes: Outcomes<T>,
    explain: impl Fn(Diverged) -> String,
) -> Result<(T, Vec<f64>), EstimateError> {
    let outcome = outcomes?.pop().expect("an outcome for each problem");
    let Descended { at, trace } = outcome.map_err(|d| EstimateError::Numerical(explain(d)))?;
    Ok((at, trace))
}

#[cfg(test)]
mod tests;
