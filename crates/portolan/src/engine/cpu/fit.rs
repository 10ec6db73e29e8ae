//! The paper's algorithm 1: Adam on the network, the latents and the PSDs together, PSDs projected
//! onto non-negative values after every step.

use crate::descent::Halt;
use crate::engine::problem::{FitOptions, Penalties, Unknowns};
use crate::likelihood::Likelihood;
use crate::misfit::Misfit;
use crate::progress::Progress;
use portolan_decoder::adam::Adam;
use portolan_decoder::penalty::add_penalty;
use portolan_decoder::{Decoder, Network, Readout, Workspace};

/// A decoder bound to readings: evaluates the objective and descends it without allocating. Rows of
/// PSDs are padded as [`Misfit::padded`] says.
pub(super) struct DecoderFit<'a, L: Likelihood<f32>> {
    decoder: &'a Decoder,
    readout: &'a Readout,
    misfit: Misfit<L>,
    workspace: Workspace,
    gradient: Unknowns,
    grad_slf: Vec<f32>,
}

impl<'a, L: Likelihood<f32>> DecoderFit<'a, L> {
    pub fn new(decoder: &'a Decoder, readout: &'a Readout, misfit: Misfit<L>) -> Self {
        let gradient = Unknowns {
            network: Network::zeros(decoder),
            psd: vec![0.0; decoder.emitters() * misfit.padded()],
        };
        let grad_slf = vec![0.0; decoder.emitters() * misfit.sensors()];
        Self { decoder, readout, misfit, workspace: decoder.workspace(), gradient, grad_slf }
    }

    /// Misfit and penalty at a point; their gradient is left in `self.gradient`.
    fn evaluate(&mut self, at: &Unknowns, penalties: &Penalties) -> (f64, f64) {
        let Unknowns { network: Network { params, latents }, psd } = &mut self.gradient;
        let from = &at.network;
        self.decoder.forward_at(&from.params, &from.latents, self.readout, &mut self.workspace);
        let slf = self.workspace.slf_at();
        let misfit = self.misfit.gradient(slf, &at.psd, &mut self.grad_slf, psd);
        self.decoder.backward_at(
            &from.params,
            self.readout,
            &self.grad_slf,
            &mut self.workspace,
            params,
            latents,
        );
        let penalty = add_penalty(penalties.network, &from.params, params)
            + add_penalty(penalties.latent, &from.latents, latents)
            + add_penalty(penalties.psd, &at.psd, psd);
        (misfit, penalty)
    }

    /// Descends from `at`; returns the loss before every iteration.
    pub fn descend(
        &mut self,
        at: &mut Unknowns,
        options: &FitOptions,
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, Halt> {
        let mut network = Adam::new(at.network.params.len());
        let mut latents = Adam::new(at.network.latents.len());
        let mut psd = Adam::new(at.psd.len());
        let mut best = options.descent.keeps_best().then(|| (f64::INFINITY, at.clone()));
        let trace = options.descent.run(
            progress,
            &mut (self, &mut *at),
            |(fit, at)| {
                let (misfit, penalty) = fit.evaluate(at, &options.penalties);
                let loss = misfit + penalty;
                if let Some((least, kept)) = best.as_mut().filter(|(least, _)| loss < *least) {
                    *least = loss;
                    kept.clone_from(at);
                }
                loss
            },
            |(fit, at), factor| {
                let rate = options.rate_network * factor;
                let (to, slope) = (&mut at.network, &fit.gradient.network);
                network.step(rate, &mut to.params, &slope.params);
                latents.step(rate, &mut to.latents, &slope.latents);
                psd.step_nonnegative(options.rate_psd * factor, &mut at.psd, &fit.gradient.psd);
            },
        )?;
        if let Some((_, kept)) = best {
            *at = kept;
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descent::{Descent, Ending, Schedule};
    use crate::fixture::load;
    use crate::likelihood::SquaredError;
    use crate::link::Link;
    use portolan_decoder::Shape;

    type Fixture = std::collections::HashMap<String, (Vec<usize>, Vec<f64>)>;

    fn params(fixture: &Fixture, stage: &str, decoder: &Decoder) -> Vec<f32> {
        let get = |name: String| fixture[&name].1.iter().map(|v| *v as f32).collect::<Vec<_>>();
        let mut params = vec![0.0; decoder.parameters()];
        for (b, block) in decoder.layout().blocks.iter().enumerate() {
            params[block.conv.clone()].copy_from_slice(&get(format!("{stage}_conv{b}")));
            params[block.gamma.clone()].copy_from_slice(&get(format!("{stage}_gamma{b}")));
            params[block.beta.clone()].copy_from_slice(&get(format!("{stage}_beta{b}")));
        }
        params[decoder.layout().out.clone()].copy_from_slice(&get(format!("{stage}_out")));
        params
    }

    /// `adam10.npz` was made by PyTorch in double precision.
    #[test]
    fn ten_steps_equal_pytorch() {
        let fixture = load("../../../portolan-decoder/tests/fixtures/adam10");
        let floats = |name: &str| fixture[name].1.iter().map(|v| *v as f32).collect::<Vec<_>>();
        let decoder = Decoder::new(&Shape::default(), 64, 64, 4).unwrap();
        let cells: Vec<usize> =
            fixture["cells"].1.chunks(2).map(|p| (64.0 * p[0] + p[1]) as usize).collect();
        let readout = decoder.readout(&cells).unwrap();
        let powers = fixture["values"].1.iter().copied();
        let targets: Vec<f32> = SquaredError::targets(powers, Link::new(1e-6));
        let misfit = Misfit::new(SquaredError::plain(), &targets, f32::NAN, 64, 1e-6);
        let mut fit = DecoderFit::new(&decoder, &readout, misfit);
        let mut at = Unknowns {
            network: Network {
                params: params(&fixture, "start", &decoder),
                latents: floats("start_z"),
            },
            psd: floats("psd_start"),
        };
        let options = FitOptions {
            descent: Descent {
                iterations: 10,
                tolerance: 0.0,
                ending: Ending::Either,
                schedule: Schedule::Constant,
            },
            rate_network: 0.05,
            rate_psd: 0.001,
            penalties: Penalties { latent: 1e-3, psd: 1e-3, network: 1e-4 },
        };
        let trace = fit.descend(&mut at, &options, &Progress::silent()).unwrap();
        for (got, want) in trace.iter().zip(fixture["losses"].1.chunks(2)) {
            let want = want[0] + want[1];
            assert!((got - want).abs() < 1e-4 * want, "{got} {want}");
        }
        let apart = |got: &[f32], want: &[f32]| {
            let norm = |v: &mut dyn Iterator<Item = f32>| v.map(|x| f64::from(x * x)).sum::<f64>();
            let error = norm(&mut got.iter().zip(want).map(|(a, b)| a - b));
            let size = norm(&mut want.iter().copied());
            (error / size).sqrt()
        };
        assert!(apart(&at.network.params, &params(&fixture, "end", &decoder)) < 1e-3);
        assert!(apart(&at.network.latents, &floats("end_z")) < 1e-3);
        assert!(apart(&at.psd, &floats("psd_end")) < 1e-3);
        let mut workspace = decoder.workspace();
        decoder.forward(&at.network.params, &at.network.latents, &mut workspace);
        // Four normalised layers magnify what single precision leaves in the state.
        assert!(apart(workspace.slf(), &floats("slf_end")) < 1e-2);
    }
}
