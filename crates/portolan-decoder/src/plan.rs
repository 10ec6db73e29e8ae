//! Everything the fast path can know before it sees a number: sizes, borders, and the workspace.

use super::border::{Beyond, Border};
use super::convolve::Size;
use super::lanes::{Lanes, image_len};
use super::outputs::Outputs;
use super::rows::{RowSpace, Rows};
use super::shape::{FLAT_TILE, Normalisation, ParameterLayout, Shape, Upsampling};
use super::winograd::two;
use crate::simd::Buffer;

/// One block.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub size: Size,
    pub upsampling: Upsampling,
    /// The margin of the convolution's input.
    pub pad: Border,
    /// The margin of the upsampling's input; only bilinear upsampling looks beyond its pixel.
    pub up: Option<Border>,
    /// Planes per side after upsampling.
    pub out_phases: usize,
    pub lens: Lens,
    /// Whether the convolution is done by [`two`].
    pub winograd: bool,
}

/// Numbers in one chunk, all channels: the input without and with its margin, the result of the
/// convolution without and with its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lens {
    pub input: usize,
    pub framed: usize,
    pub small: usize,
    pub margin: usize,
    /// What [`two`] needs to work in.
    pub tiles: usize,
}

/// Part of the room of one chunk, with numbers to spare before and after.
pub(super) struct Room<'a> {
    pub all: &'a mut [f32],
    pub guard: usize,
}

impl Room<'_> {
    pub(super) fn inside(&mut self) -> &mut [f32] {
        let end = self.all.len() - self.guard;
        &mut self.all[self.guard..end]
    }
}

/// Sets of emitters that share statistics.
fn groups(shape: &Shape, emitters: usize) -> usize {
    if shape.normalisation == Normalisation::PerSample { emitters } else { 1 }
}

/// Sizes and borders of all blocks.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub lanes: Lanes,
    pub stages: Vec<Stage>,
    pub channels: usize,
    pub outputs: usize,
    /// Planes per side of the latent and of the last image.
    pub first_phases: usize,
    pub last_phases: usize,
    /// Sets of emitters that share statistics, and emitters in each.
    pub groups: usize,
    guard: usize,
    /// Where the decoder is worked on row by row; there are then no `stages`.
    pub rows: Option<Rows>,
}

impl Plan {
    pub(super) fn new(
        shape: &Shape,
        layout: &ParameterLayout,
        latent: (usize, usize),
        emitters: usize,
    ) -> Self {
        if let Some((lanes, rows)) = Rows::new(shape, layout, latent, emitters) {
            return Self {
                lanes,
                stages: Vec::new(),
                channels: shape.channels,
                outputs: 1,
                first_phases: 0,
                last_phases: 0,
                groups: groups(shape, emitters),
                guard: 0,
                rows: Some(rows),
            };
        }
        let first_phases = if shape.upsampling == Upsampling::None { FLAT_TILE } else { 1 };
        let lanes = Lanes::new(emitters, latent.0 / first_phases, latent.1 / first_phases);
        let mut phases = first_phases;
        let mut stages = Vec::with_capacity(layout.blocks.len());
        for block in &layout.blocks {
            let pad = Border::new(&lanes, phases, shape.pad(), Beyond::from(shape.padding));
            let up = (block.upsampling == Upsampling::Bilinear)
                .then(|| Border::new(&lanes, phases, (1, 1), Beyond::Repeat));
            let size = Size {
                inputs: block.inputs,
                outputs: shape.channels,
                kernel: shape.kernel,
                phases,
                outer: pad.outer,
                width: lanes.width,
            };
            phases *= block.upsampling.scale();
            let framed = up.as_ref().map_or(0, |up| image_len(up.outer, lanes.width));
            let lens = Lens {
                input: size.inputs * size.inner_len(),
                framed: size.inputs * size.outer_len(),
                small: size.outputs * size.inner_len(),
                margin: size.outputs * framed,
                tiles: if two::applies(&size) { two::room(&size) } else { 0 },
            };
            let winograd = two::applies(&size);
            let (upsampling, out_phases) = (block.upsampling, phases);
            stages.push(Stage { size, upsampling, pad, up, out_phases, lens, winograd });
        }
        let guard = stages
            .iter()
            .map(|s| s.pad.reach.max(s.up.as_ref().map_or(0, |u| u.reach)))
            .max()
            .unwrap_or(0)
            + lanes.width;
        let guard = guard.next_multiple_of(16);
        Self {
            lanes,
            stages,
            channels: shape.channels,
            outputs: shape.outputs,
            first_phases,
            last_phases: phases,
            groups: groups(shape, emitters),
            guard,
            rows: None,
        }
    }

    /// Emitters of a group.
    pub(super) fn group(&self, group: usize) -> std::ops::Range<usize> {
        let len = self.lanes.emitters / self.groups;
        group * len..(group + 1) * len
    }

    /// Numbers of the last activations, all emitters and channels: how much work there is.
    pub(super) fn activations(&self) -> usize {
        let pixels = match &self.rows {
            Some(rows) => rows.last_stage().pixels(),
            None => self.last_phases.pow(2),
        };
        self.lanes.total() * pixels * self.channels
    }

    /// Numbers one chunk needs to work in.
    fn room(&self) -> usize {
        let lens = |s: &Stage| {
            let Lens { small, margin, framed, tiles, .. } = s.lens;
            tiles + if self.lanes.local() { small + margin + framed + 6 * self.guard } else { 0 }
        };
        self.stages.iter().map(lens).max().unwrap_or(0)
    }

    /// Room for the result of the convolution, without and with margin, and for the input's
    /// gradient with its margin.
    pub(super) fn rooms<'a>(
        &self,
        stage: &Stage,
        room: &'a mut [f32],
    ) -> ([Room<'a>; 3], &'a mut [f32]) {
        let (Lens { framed, small, margin, tiles, .. }, guard) = (stage.lens, self.guard);
        let (tiles, room) = room.split_at_mut(tiles);
        let (first, rest) = room.split_at_mut(small + 2 * guard);
        let (second, rest) = rest.split_at_mut(margin + 2 * guard);
        let third = &mut rest[..framed + 2 * guard];
        ([first, second, third].map(|all| Room { all, guard }), tiles)
    }

    /// Numbers of one channel of the last image in one chunk.
    pub(super) fn last_len(&self) -> usize {
        image_len(self.last_phases, self.lanes.width)
    }
}

/// Mean and reciprocal standard deviation of a channel in a group, in units of the stored
/// activations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    pub mean: f64,
    pub inverse: f64,
}

/// Sums of a gradient, and of its product with the activation's distance from its mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub plain: f64,
    pub scaled: f64,
}

/// Per-lane numbers kept for each channel: scale, offset, mean; sums; coefficients.
pub(super) const PER_LANE: usize = 3;

/// Room for one forward and backward pass, made once and used for every iteration.
#[derive(Debug)]
pub struct Workspace {
    pub(super) latent: Buffer,
    pub(super) inputs: Vec<Buffer>,
    pub(super) activations: Vec<Buffer>,
    pub(super) affine: Vec<Buffer>,
    pub(super) moments: Vec<Vec<Moments>>,
    pub(super) tallies: Vec<Tally>,
    /// Where chunks are worked on one by one: room for one, or for each.
    pub(super) room: Buffer,
    /// Where they are not: the result of the convolution, the same with a margin, and the gradient
    /// of the input with its margin.
    pub(super) small: Buffer,
    pub(super) margin: Buffer,
    pub(super) input_margin: Buffer,
    pub(super) gradients: [Buffer; 2],
    pub(super) sums: Buffer,
    pub(super) coefficients: Buffer,
    pub(super) packed: Vec<f32>,
    pub(super) weight_gradient: Vec<f32>,
    /// Gradient of the logits, zero between passes.
    pub(super) logit_gradient: Buffer,
    pub(super) logits: Buffer,
    pub(super) slf: Vec<f32>,
    pub(super) gathered: Buffer,
    pub(super) gathered_gradient: Buffer,
    pub(super) slf_at: Vec<f32>,
    /// Used where a latent has several outputs.
    pub(super) outputs: Outputs,
    /// Used where the decoder is worked on row by row.
    pub(super) rows: Option<RowSpace>,
}

impl Workspace {
    pub(super) fn new(plan: &Plan, parallel: bool, cells: usize) -> Self {
        let (chunks, width, channels) = (plan.lanes.chunks, plan.lanes.width, plan.channels);
        let images = |count: usize, side: usize| {
            Buffer::new(chunks * count * image_len(side, width), plan.guard)
        };
        let most = |f: &dyn Fn(&Stage) -> usize| plan.stages.iter().map(f).max().unwrap_or(0);
        let whole = |f: &dyn Fn(&Stage) -> usize| {
            Buffer::new(if plan.lanes.local() { 0 } else { chunks * most(f) }, plan.guard)
        };
        let rooms = if parallel { chunks } else { 1 };
        let room = rooms * plan.room();
        let input = most(&|s| s.lens.input);
        let weights = most(&|s| s.size.weights());
        let packed = most(&|s| s.size.weights().max(two::weights(&s.size)));
        let per_lane = || Buffer::new(plan.lanes.total() * channels * PER_LANE, 0);
        let blocks = plan.stages.len() + plan.rows.as_ref().map_or(0, |rows| rows.stages.len());
        Self {
            latent: images(1, plan.first_phases),
            inputs: plan.stages.iter().map(|s| images(s.size.inputs, s.size.outer)).collect(),
            activations: plan.stages.iter().map(|s| images(channels, s.out_phases)).collect(),
            affine: (0..blocks).map(|_| per_lane()).collect(),
            moments: vec![vec![Moments::default(); plan.groups * channels]; blocks],
            tallies: vec![Tally::default(); plan.groups * channels],
            room: Buffer::new(room, 0),
            small: whole(&|s| s.lens.small),
            margin: whole(&|s| s.lens.margin),
            input_margin: whole(&|s| s.lens.framed),
            gradients: [0; 2].map(|_| Buffer::new(chunks * input, plan.guard)),
            sums: per_lane(),
            coefficients: per_lane(),
            packed: vec![0.0; packed],
            weight_gradient: vec![0.0; chunks * weights],
            logit_gradient: images(1, plan.last_phases),
            logits: Buffer::new(0, 0),
            slf: Vec::with_capacity(cells),
            gathered: Buffer::new(0, 0),
            gathered_gradient: Buffer::new(0, 0),
            slf_at: Vec::new(),
            outputs: Outputs::new(plan),
            rows: plan.rows.as_ref().map(|rows| RowSpace::new(rows, chunks, parallel)),
        }
    }

    /// The SLFs of the last [`forward`](super::Decoder::forward), (emitter, output, row, column).
    pub fn slf(&self) -> &[f32] {
        &self.slf
    }

    /// The SLFs of the last [`forward_at`](super::Decoder::forward_at), (emitter, output, cell).
    pub fn slf_at(&self) -> &[f32] {
        &self.slf_at
    }
}
