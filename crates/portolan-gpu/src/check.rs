//! Compares the device with the processor on random problems, kernel by kernel.

use portolan::decoder::{
    Decoder, Network, Normalisation, Output, Padding, Shape, Upsampling, reference,
};
use portolan::engine::Probit;
use portolan::engine::{
    CpuEngine, Descended, Descent, Ending, Engine, EngineError, FitOptions, FitProblem,
    ImitationOptions, ImitationProblem, Outcomes, Penalties, Schedule, Targets, Unknowns,
};
use portolan::{InputError, Progress, Quantiser};

use crate::CudaEngine;

/// Iterations of every comparison.
const ITERATIONS: usize = 10;
/// The relative difference of losses that is still the same fit.
const LOSS_APART: f64 = 1e-3;
/// The root mean square difference of what was fitted, in steps of the descent.
const STEPS_APART: f64 = 0.1;

/// What came of one comparison.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was compared.
    pub name: String,
    /// The largest relative difference of a loss.
    pub loss: f64,
    /// The root mean square difference of the unknowns, in steps.
    pub steps: f64,
    /// Whether both are small.
    pub passed: bool,
}

/// Random numbers that need no crate (SplitMix64).
struct Draws(u64);

impl Draws {
    /// In [0, 1).
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f32) as usize
    }

    /// Of a few random networks the one whose ReLUs are farthest from their kinks: rounding must
    /// not decide on which side of one a pixel lies.
    fn network(&mut self, decoder: &Decoder) -> Network {
        let distance = |network: &Network| {
            let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
            let (params, latents) = (wide(&network.params), wide(&network.latents));
            reference::forward(decoder, &params, &latents).nearest_kink
        };
        let drawn = (0..4).map(|_| self.any_network(decoder)).map(|n| (distance(&n), n));
        let best = drawn.max_by(|a, b| a.0.total_cmp(&b.0));
        best.expect("four were drawn").1
    }

    fn any_network(&mut self, decoder: &Decoder) -> Network {
        let mut network = Network::zeros(decoder);
        network.params.iter_mut().for_each(|p| *p = 0.6 * self.unit() - 0.3);
        for block in &decoder.layout().blocks {
            network.params[block.gamma.clone()].iter_mut().for_each(|p| *p = 0.5 + self.unit());
        }
        network.latents.iter_mut().for_each(|z| *z = 4.0 * self.unit() - 2.0);
        network
    }
}

/// Which loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    LnPower,
    Power,
    Levels,
    Imitation,
}

/// One comparison.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    grid: (usize, usize),
    emitters: usize,
    bands: usize,
    sensors: usize,
    shape: Shape,
    loss: Loss,
    ending: Ending,
    maps: usize,
}

impl Case {
    fn name(&self) -> String {
        let Shape { channels, kernel, blocks, keep, .. } = self.shape;
        let (rows, cols) = self.grid;
        let Case { emitters, bands, sensors, maps, loss, .. } = self;
        let end = if self.ending == Ending::Either { "" } else { ", least loss" };
        let shape = &self.shape;
        format!(
            "{loss:?}, {rows} x {cols}, {emitters} emitters, {bands} bands, {sensors} sensors, {maps} \
             maps, {blocks}+{keep} blocks of {channels} channels, kernel {kernel}, {:?}, {:?}, \
             {:?}, {:?}{end}",
            shape.upsampling, shape.normalisation, shape.padding, shape.output
        )
    }

    fn descent(&self) -> Descent {
        Descent {
            iterations: ITERATIONS,
            tolerance: 0.0,
            ending: self.ending,
            schedule: Schedule::Cosine,
        }
    }

    /// Runs the case on two engines.
    pub(crate) fn run(&self, engine: &dyn Engine, seed: u64) -> Result<Verdict, EngineError> {
        let decoder = Decoder::new(&self.shape, self.grid.0, self.grid.1, self.emitters)?;
        let mut draws = Draws(seed);
        let cells = self.grid.0 * self.grid.1;
        let silent = Progress::silent();
        if self.loss == Loss::Imitation {
            let drawn: Vec<(Vec<f32>, Network)> = (0..self.maps)
                .map(|_| {
                    let targets = (0..self.emitters * cells).map(|_| -4.0 * draws.unit()).collect();
                    (targets, draws.network(&decoder))
                })
                .collect();
            let problems: Vec<_> = drawn
                .iter()
                .map(|(targets, start)| ImitationProblem { targets, offset: 1e-3, start })
                .collect();
            let options = ImitationOptions { descent: self.descent(), rate: 0.01 };
            let run = |engine: &dyn Engine| engine.imitate(&decoder, &problems, &options, &silent);
            return self.verdict(run(engine), run(&CpuEngine), 0.01, |network| {
                [&network.params[..], &network.latents].concat()
            });
        }
        let inputs: Vec<MapInput> = (0..self.maps)
            .map(|_| MapInput::draw(self, &decoder, &mut draws))
            .collect::<Result<_, _>>()?;
        let problems: Vec<_> = inputs.iter().map(|inputs| inputs.problem(self)).collect();
        let options = FitOptions {
            descent: self.descent(),
            rate_network: 0.01,
            rate_psd: 0.01,
            penalties: Penalties { latent: 1e-2, psd: 2e-2, network: 3e-3 },
        };
        let run = |engine: &dyn Engine| engine.fit(&decoder, &problems, &options, &silent);
        self.verdict(run(engine), run(&CpuEngine), 0.01, |at| {
            [&at.network.params[..], &at.network.latents, &at.psd].concat()
        })
    }

    fn verdict<T>(
        &self,
        device: Outcomes<T>,
        processor: Outcomes<T>,
        step: f64,
        flat: impl Fn(&T) -> Vec<f32>,
    ) -> Result<Verdict, EngineError> {
        let (mut loss, mut squares, mut count) = (0.0f64, 0.0, 0);
        for (device, processor) in device?.iter().zip(processor?) {
            let (Ok(Descended { at, trace }), Ok(there)) = (device, processor) else {
                loss = f64::INFINITY;
                continue;
            };
            if trace.len() != there.trace.len() {
                loss = f64::INFINITY;
            }
            for (a, b) in trace.iter().zip(&there.trace) {
                loss = loss.max(((a - b) / b).abs());
            }
            for (a, b) in flat(at).iter().zip(flat(&there.at)) {
                squares += (f64::from(a - b) / step).powi(2);
                count += 1;
            }
        }
        let steps = (squares / f64::from(count.max(1))).sqrt();
        // NaN passes nothing.
        let passed = loss < LOSS_APART && steps < STEPS_APART;
        Ok(Verdict { name: self.name(), loss, steps, passed })
    }
}

/// What one map of a case is fitted to.
struct MapInput {
    cells: Vec<usize>,
    values: Vec<f32>,
    levels: Vec<u8>,
    probit: Probit,
    start: Unknowns,
    offset: f32,
}

impl MapInput {
    fn draw(case: &Case, decoder: &Decoder, draws: &mut Draws) -> Result<Self, InputError> {
        let count = case.grid.0 * case.grid.1;
        // Some cells hold several sensors.
        let mut cells: Vec<usize> = (0..case.sensors).map(|_| draws.below(count)).collect();
        if let [first, second, ..] = &mut cells[..] {
            *second = *first;
        }
        let entries = case.sensors * case.bands;
        let mut values: Vec<f32> = (0..entries)
            .map(|_| match case.loss {
                Loss::Power => draws.unit(),
                _ => 4.0 * draws.unit() - 5.0,
            })
            .collect();
        let mut levels: Vec<u8> = (0..entries).map(|_| draws.below(8) as u8).collect();
        // And some readings are missing.
        for _ in 0..entries / 20 {
            let at = draws.below(entries);
            (values[at], levels[at]) = (f32::NAN, u8::MAX);
        }
        let edges = vec![-4.0, -3.0, -2.9, -2.0, -1.0, -0.5, 0.5];
        let probit = Probit::new(&Quantiser::new(edges, 0.8, 1e-3)?);
        let network = draws.network(decoder);
        let psd = (0..case.emitters * case.bands).map(|_| draws.unit()).collect();
        let start = Unknowns { network, psd };
        Ok(Self { cells, values, levels, probit, start, offset: 1e-3 + 1e-2 * draws.unit() })
    }

    fn problem(&self, case: &Case) -> FitProblem<'_> {
        let targets = match case.loss {
            Loss::LnPower => Targets::LnPower(&self.values),
            Loss::Power => Targets::Power(&self.values),
            _ => Targets::Levels { levels: &self.levels, probit: &self.probit },
        };
        FitProblem {
            cells: &self.cells,
            bands: case.bands,
            targets,
            offset: self.offset,
            start: &self.start,
        }
    }
}

/// Every kernel at least once: the paper's fit first, then other losses, sizes and shapes.
pub(crate) fn cases() -> Vec<Case> {
    let paper = Case {
        grid: (64, 64),
        emitters: 4,
        bands: 64,
        sensors: 410,
        shape: Shape::default(),
        loss: Loss::LnPower,
        ending: Ending::Either,
        maps: 2,
    };
    let exponential = Shape { output: Output::Exponential, ..paper.shape };
    let alone = Shape { normalisation: Normalisation::PerSample, ..paper.shape };
    let odd = Shape {
        channels: 7,
        kernel: 4,
        keep: 1,
        blocks: 2,
        upsampling: Upsampling::Nearest,
        ..alone
    };
    let bare = Shape {
        channels: 5,
        kernel: 3,
        blocks: 2,
        upsampling: Upsampling::None,
        normalisation: Normalisation::None,
        padding: Padding::Zero,
        ..paper.shape
    };
    let best = Ending::Both { most: ITERATIONS };
    vec![
        paper,
        Case { shape: exponential, ..paper },
        Case { loss: Loss::Levels, ..paper },
        Case { loss: Loss::Power, sensors: 600, ..paper },
        Case { shape: alone, ..paper },
        Case { ending: best, ..paper },
        Case { emitters: 1, bands: 1, ..paper },
        Case { emitters: 2, bands: 20, grid: (50, 61), ..paper },
        Case { emitters: 3, ..paper },
        Case { emitters: 5, ..paper },
        Case { emitters: 8, loss: Loss::Levels, ..paper },
        // Layer by layer.
        Case { grid: (24, 37), emitters: 2, bands: 70, sensors: 90, ..paper },
        Case { grid: (24, 37), emitters: 9, bands: 12, sensors: 90, loss: Loss::Levels, ..paper },
        Case { grid: (24, 37), bands: 12, sensors: 90, shape: odd, ending: best, ..paper },
        Case { grid: (20, 18), bands: 5, sensors: 60, shape: bare, loss: Loss::Power, ..paper },
        Case { grid: (24, 37), emitters: 2, loss: Loss::Imitation, shape: odd, ..paper },
        Case { loss: Loss::Imitation, ..paper },
        Case { loss: Loss::Imitation, shape: exponential, grid: (49, 64), emitters: 7, ..paper },
    ]
}

/// Runs every comparison on a device.
///
/// # Errors
/// If the device failed or refused one of them.
pub fn check(
    engine: &CudaEngine,
    mut tell: impl FnMut(&Verdict) -> bool,
) -> Result<Vec<Verdict>, EngineError> {
    let mut verdicts = Vec::new();
    for (seed, case) in cases().iter().enumerate() {
        let verdict = case.run(engine, seed as u64)?;
        let go_on = tell(&verdict);
        verdicts.push(verdict);
        if !go_on {
            return Err(EngineError::Cancelled);
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulated::Emulated;

    /// Every kernel of both kinds on the processor; smaller and fewer than on a device.
    #[test]
    fn emulated_kernels_agree_with_the_processor() {
        let Some(backend) = Emulated::new(1 << 30, true) else {
            eprintln!("no C++ compiler: the kernels were not tried");
            return;
        };
        let engine = CudaEngine::on(backend);
        let all = cases();
        let paper = Case { emitters: 2, maps: 1, ..all[0] };
        let tiny = Case { grid: (9, 12), bands: 3, sensors: 20, maps: 2, ..all[0] };
        let small = Shape { channels: 2, kernel: 2, blocks: 1, keep: 1, ..paper.shape };
        for (seed, case) in [
            Case { ending: Ending::Both { most: ITERATIONS }, ..paper },
            Case { loss: Loss::Levels, emitters: 3, sensors: 60, ..paper },
            Case { loss: Loss::Imitation, grid: (49, 64), emitters: 1, ..paper },
            Case { emitters: 9, ..tiny },
            Case { shape: small, loss: Loss::Levels, ..tiny },
            Case {
                shape: Shape { upsampling: Upsampling::Nearest, ..small },
                loss: Loss::Imitation,
                ..tiny
            },
        ]
        .into_iter()
        .enumerate()
        {
            let verdict = case.run(&engine, seed as u64).unwrap();
            assert!(verdict.passed, "{verdict:?}");
        }
    }

    /// The paper's fit where there are no clusters.
    #[test]
    fn devices_without_clusters_fit_too() {
        let Some(backend) = Emulated::new(1 << 30, false) else { return };
        let engine = CudaEngine::on(backend);
        let case =
            Case { grid: (49, 50), emitters: 1, bands: 5, sensors: 40, maps: 1, ..cases()[0] };
        let verdict = case.run(&engine, 3).unwrap();
        assert!(verdict.passed, "{verdict:?}");
    }

    /// A batch beyond the device's memory is split; a map beyond it is refused.
    #[test]
    fn too_little_memory_splits_the_batch() {
        let tiny =
            Case { grid: (9, 12), emitters: 1, bands: 3, sensors: 20, maps: 4, ..cases()[0] };
        // Enough for two of the four maps, and for none.
        let Some(backend) = Emulated::new(100 << 10, true) else { return };
        assert!(tiny.run(&CudaEngine::on(backend.clone()), 4).unwrap().passed);
        assert!(backend.was_short());
        let none = CudaEngine::on(Emulated::new(4 << 10, true).expect("as before"));
        let error = tiny.run(&none, 4).unwrap_err();
        assert!(
            matches!(&error, EngineError::Refused { engine, .. } if engine == "cuda"),
            "{error}"
        );
    }
}
