//! Fits in device memory, layer by layer (`kernels/layered.cu`): what does not fit the chip, other
//! shapes of the decoder, devices without clusters. Several launches make one iteration; the host
//! only queues them.

use std::sync::Arc;

use portolan::decoder::{Decoder, Network, Normalisation, Output, Padding, Upsampling};
use portolan::engine::{
    Descended, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Targets, Unknowns,
};

use crate::backend::{Backend, Buffer, DeviceError, Launch, bytes_of};
use crate::descent::{Course, Outcome, Standing, Stepping, kind};

const THREADS: usize = 256;
/// Channels that a thread convolves at once.
const GROUP: usize = 6;
/// Rows that a thread walks down for the gradient of weights.
const WALK: usize = 32;
/// Sensors of one part of the PSDs' gradient.
const PSD_SENSORS: usize = 128;
/// Pixels that a thread sums up before sums are joined.
const PER_THREAD: usize = 16;
/// Images that a launch counts in one dimension of its grid.
const IMAGES: usize = 60_000;
/// Shared memory for sums over a block of threads.
const SUMS_BYTES: usize = 2 * THREADS * size_of::<f64>();
/// Iterations that are queued before the host looks up: so often a batch can be cancelled.
const QUEUED: usize = 25;

#[repr(C)]
#[derive(Clone, Copy)]
struct LayerArgs {
    params: u64,
    input: u64,
    input_affine: u64,
    y: u64,
    v: u64,
    affine: u64,
    back: u64,
    dx: u64,
    dy: u64,
    dinput: u64,
    grad: u64,
    partial: u64,
    weight_parts: u64,
    maps: i32,
    emitters: i32,
    parameters: i32,
    conv: i32,
    gamma: i32,
    beta: i32,
    out: i32,
    inputs: i32,
    channels: i32,
    kernel: i32,
    rows: i32,
    cols: i32,
    scale: i32,
    bilinear: i32,
    zero_padding: i32,
    per_emitter: i32,
    last: i32,
    parts: i32,
    weight_tiles: i32,
    tile_cols: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct LossArgs {
    params: u64,
    latents: u64,
    psd: u64,
    best_params: u64,
    best_latents: u64,
    best_psd: u64,
    moments: u64,
    grad: u64,
    latent_grad: u64,
    v: u64,
    affine: u64,
    dlogit: u64,
    slf: u64,
    slope: u64,
    psd_parts: u64,
    loss_parts: u64,
    trace: u64,
    standing: u64,
    rates: u64,
    slot_map: u64,
    slot_pixel: u64,
    slot_sensor: u64,
    sensor_slot: u64,
    map_sensor: u64,
    targets: u64,
    levels: u64,
    edges: u64,
    map_edge: u64,
    offset: u64,
    sigma: u64,
    tolerance: f64,
    penalty_network: f32,
    penalty_latent: f32,
    penalty_psd: f32,
    maps: i32,
    emitters: i32,
    bands: i32,
    channels: i32,
    parameters: i32,
    latent: i32,
    out: i32,
    slots: i32,
    chunks: i32,
    parts: i32,
    rows: i32,
    cols: i32,
    drawn_rows: i32,
    drawn_cols: i32,
    kind: i32,
    exponential: i32,
    both: i32,
    keeps_best: i32,
    iterations: i32,
    iteration: i32,
    trace_stride: i32,
    imitation: i32,
    unused: i32,
}

/// What the maps of a batch start from and are fitted to, one after the other.
#[derive(Default)]
struct HostArrays {
    params: Vec<f32>,
    latents: Vec<f32>,
    psd: Vec<f32>,
    offset: Vec<f32>,
    sigma: Vec<f32>,
    slot_map: Vec<i32>,
    slot_pixel: Vec<i32>,
    slot_sensor: Vec<i32>,
    sensor_slot: Vec<i32>,
    map_sensor: Vec<i32>,
    targets: Vec<f32>,
    levels: Vec<u8>,
    edges: Vec<f32>,
    map_edge: Vec<i32>,
    penalties: [f32; 3],
    bands: usize,
    kind: i32,
    imitation: bool,
}

impl HostArrays {
    fn add_start(&mut self, network: &Network, offset: f32) {
        self.params.extend_from_slice(&network.params);
        self.latents.extend_from_slice(&network.latents);
        self.offset.push(offset);
    }

    fn add(&mut self, problem: &FitProblem<'_>, pixel: impl Fn(usize) -> usize) {
        let map = self.offset.len();
        self.add_start(&problem.start.network, problem.offset);
        self.psd.extend_from_slice(&problem.start.psd);
        self.map_sensor.push(self.sensor_slot.len() as i32);
        self.map_edge.push(self.edges.len() as i32);
        let mut order: Vec<usize> = (0..problem.cells.len()).collect();
        order.sort_by_key(|&n| problem.cells[n]);
        let mut last = None;
        for &n in &order {
            let cell = problem.cells[n];
            if last.replace(cell) != Some(cell) {
                self.slot_map.push(map as i32);
                self.slot_pixel.push(pixel(cell) as i32);
                self.slot_sensor.push(self.sensor_slot.len() as i32);
            }
            self.sensor_slot.push(self.slot_map.len() as i32 - 1);
        }
        let row = |n: &usize| n * problem.bands..(n + 1) * problem.bands;
        let mut sigma = 1.0;
        match problem.targets {
            Targets::LnPower(values) | Targets::Power(values) => {
                order.iter().for_each(|n| self.targets.extend_from_slice(&values[row(n)]));
            }
            Targets::Levels { levels, probit } => {
                order.iter().for_each(|n| self.levels.extend_from_slice(&levels[row(n)]));
                self.edges.extend(probit.edges().iter().map(|edge| *edge as f32));
                sigma = probit.sigma() as f32;
            }
        }
        self.sigma.push(sigma);
    }

    fn close(&mut self) {
        self.slot_sensor.push(self.sensor_slot.len() as i32);
        self.map_sensor.push(self.sensor_slot.len() as i32);
        self.map_edge.push(self.edges.len() as i32);
    }

    /// Readings of the map with the most.
    fn most_entries(&self) -> usize {
        let sensors = self.map_sensor.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        sensors.max().unwrap_or(0) * self.bands
    }
}

/// Maps of this decoder that may be in one batch.
pub(crate) fn most_maps(decoder: &Decoder) -> usize {
    (IMAGES / decoder.emitters()).max(1)
}

/// Fits maps that share the decoder, the number of bands and the kind of targets.
pub(crate) fn fit(
    backend: &Arc<dyn Backend>,
    decoder: &Decoder,
    problems: &[FitProblem<'_>],
    options: &FitOptions,
    stepping: &mut Stepping<'_>,
) -> Result<Vec<Outcome<Unknowns>>, DeviceError> {
    let penalties = options.penalties;
    let mut arrays = HostArrays {
        penalties: [penalties.network, penalties.latent, penalties.psd].map(|p| p as f32),
        bands: problems[0].bands,
        kind: kind(&problems[0].targets),
        ..HostArrays::default()
    };
    let (_, drawn_cols) = drawn(decoder);
    let pixel = |cell: usize| cell / decoder.cols() * drawn_cols + cell % decoder.cols();
    problems.iter().for_each(|problem| arrays.add(problem, pixel));
    arrays.close();
    Batch::new(backend, decoder, &arrays, &Course::of_fit(options))?.descend(stepping)
}

/// Imitations of maps that share the decoder.
pub(crate) fn imitate(
    backend: &Arc<dyn Backend>,
    decoder: &Decoder,
    problems: &[ImitationProblem<'_>],
    options: &ImitationOptions,
    stepping: &mut Stepping<'_>,
) -> Result<Vec<Outcome<Network>>, DeviceError> {
    let mut arrays = HostArrays { imitation: true, ..HostArrays::default() };
    for problem in problems {
        arrays.add_start(problem.start, problem.offset);
        arrays.targets.extend_from_slice(problem.targets);
    }
    let course = Course::of_imitation(options);
    let found = Batch::new(backend, decoder, &arrays, &course)?.descend(stepping)?;
    let network =
        |Descended { at, trace }: Descended<Unknowns>| Descended { at: at.network, trace };
    Ok(found.into_iter().map(|outcome| outcome.map(network)).collect())
}

/// Rows and columns that the decoder draws, of which the grid is a part.
fn drawn(decoder: &Decoder) -> (usize, usize) {
    let (rows, cols) = decoder.latent_dim();
    let scale: usize =
        decoder.layout().blocks.iter().map(|block| scale(block.upsampling)).product();
    (rows * scale, cols * scale)
}

fn scale(upsampling: Upsampling) -> usize {
    if upsampling == Upsampling::None { 1 } else { 2 }
}

/// A block of the decoder with its images.
struct Layer {
    args: LayerArgs,
    /// Pixels of the input.
    small: usize,
    weights: usize,
}

struct Batch<'a> {
    backend: &'a Arc<dyn Backend>,
    decoder: &'a Decoder,
    course: &'a Course,
    bands: usize,
    maps: usize,
    layers: Vec<Layer>,
    loss: LossArgs,
    params: Buffer<f32>,
    latents: Buffer<f32>,
    psd: Buffer<f32>,
    trace: Buffer<f64>,
    standing: Buffer<Standing>,
    /// Named by the arguments only.
    _held: Held,
}

#[derive(Default)]
struct Held {
    floats: Vec<Buffer<f32>>,
    doubles: Vec<Buffer<f64>>,
    ints: Vec<Buffer<i32>>,
    bytes: Vec<Buffer<u8>>,
}

impl<'a> Batch<'a> {
    fn new(
        backend: &'a Arc<dyn Backend>,
        decoder: &'a Decoder,
        arrays: &HostArrays,
        course: &'a Course,
    ) -> Result<Self, DeviceError> {
        let (maps, emitters) = (arrays.offset.len(), decoder.emitters());
        let (images, most) = (maps * emitters, course.most());
        let mut held = Held::default();
        let mut floats = |len: usize| -> Result<u64, DeviceError> {
            held.floats.push(Buffer::zeros(backend, len)?);
            Ok(held.floats[held.floats.len() - 1].at())
        };
        let shape = decoder.shape();
        let layout = decoder.layout();
        let channels = shape.channels;
        let params = Buffer::of(backend, &arrays.params)?;
        let latents = Buffer::of(backend, &arrays.latents)?;
        let psd = Buffer::of(backend, &arrays.psd)?;
        let grad = floats(arrays.params.len())?;
        // Gradients of images are needed for one block at a time, and go from the larger to the
        // smaller.
        let (drawn_rows, drawn_cols) = drawn(decoder);
        let dlogit = floats(images * drawn_rows * drawn_cols)?;
        let mut layers: Vec<Layer> = Vec::new();
        let (mut rows, mut cols) = decoder.latent_dim();
        let (mut most_small, mut most_parts, mut most_weights) = (0, 0, 0);
        for (b, block) in layout.blocks.iter().enumerate() {
            let scale = scale(block.upsampling);
            let (small, large) = (rows * cols, rows * cols * scale * scale);
            let weights = channels * block.inputs * shape.kernel.pow(2);
            let parts = large.div_ceil(THREADS * PER_THREAD);
            let tile_cols = cols.next_power_of_two().min(THREADS);
            let tiles = cols.div_ceil(tile_cols) * rows.div_ceil(THREADS / tile_cols * WALK);
            let tiles = if shape.kernel == 3 { tiles } else { 1 };
            let (input, input_affine) = match layers.last() {
                None => (latents.at(), 0),
                Some(before) => (before.args.v, before.args.affine),
            };
            let normed = shape.normalisation != Normalisation::None;
            let place = |range: &std::ops::Range<usize>| match normed {
                true => range.start as i32,
                false => -1,
            };
            let args = LayerArgs {
                params: params.at(),
                input,
                input_affine,
                y: floats(images * channels * small)?,
                v: floats(images * channels * large)?,
                affine: floats(images * channels * 4)?,
                back: floats(images * channels * 4)?,
                dx: 0,
                dy: 0,
                dinput: 0,
                grad,
                partial: 0,
                weight_parts: 0,
                maps: maps as i32,
                emitters: emitters as i32,
                parameters: decoder.parameters() as i32,
                conv: block.conv.start as i32,
                gamma: place(&block.gamma),
                beta: place(&block.beta),
                out: layout.out.start as i32,
                inputs: block.inputs as i32,
                channels: channels as i32,
                kernel: shape.kernel as i32,
                rows: rows as i32,
                cols: cols as i32,
                scale: scale as i32,
                bilinear: i32::from(block.upsampling == Upsampling::Bilinear),
                zero_padding: i32::from(shape.padding == Padding::Zero),
                per_emitter: i32::from(shape.normalisation == Normalisation::PerSample),
                last: i32::from(b + 1 == layout.blocks.len()),
                parts: parts as i32,
                weight_tiles: tiles as i32,
                tile_cols: tile_cols as i32,
            };
            layers.push(Layer { args, small, weights });
            most_small = most_small.max(channels * small);
            most_parts = most_parts.max(channels * parts);
            most_weights = most_weights.max(tiles * weights);
            (rows, cols) = (rows * scale, cols * scale);
        }
        let dy = floats(images * most_small)?;
        let weight_parts = floats(images * most_weights)?;
        // The gradient in a block's input is the next one's in its output: two take turns.
        let between = [floats(images * most_small)?, floats(images * most_small)?];
        let latent_grad = floats(arrays.latents.len())?;
        let entries = arrays.most_entries();
        let pixels = drawn_rows * drawn_cols;
        let chunks = if arrays.imitation { pixels } else { entries }.div_ceil(THREADS);
        let psd_parts_each = (entries / arrays.bands.max(1)).div_ceil(PSD_SENSORS);
        let slf = floats(arrays.slot_map.len() * emitters)?;
        let slope = floats(arrays.sensor_slot.len() * arrays.bands)?;
        let psd_parts = floats(images * psd_parts_each * arrays.bands)?;
        let unknowns = arrays.params.len() + arrays.latents.len() + arrays.psd.len();
        let moments = floats(2 * unknowns)?;
        let best = course.descent.keeps_best();
        let mut kept = |len: usize| if best { floats(len) } else { Ok(0) };
        let best_params = kept(arrays.params.len())?;
        let best_latents = kept(arrays.latents.len())?;
        let best_psd = kept(arrays.psd.len())?;
        let mut input_floats = |values: &[f32]| -> Result<u64, DeviceError> {
            held.floats.push(Buffer::of(backend, values)?);
            Ok(held.floats[held.floats.len() - 1].at())
        };
        let rates = input_floats(&course.rates)?;
        let targets = input_floats(&arrays.targets)?;
        let edges = input_floats(&arrays.edges)?;
        let offset = input_floats(&arrays.offset)?;
        let sigma = input_floats(&arrays.sigma)?;
        let mut doubles = |len: usize| -> Result<u64, DeviceError> {
            held.doubles.push(Buffer::zeros(backend, len)?);
            Ok(held.doubles[held.doubles.len() - 1].at())
        };
        let partial = doubles(images * most_parts * 2)?;
        let loss_parts = doubles(maps * chunks * if arrays.imitation { emitters } else { 1 })?;
        let mut ints = |values: &[i32]| -> Result<u64, DeviceError> {
            held.ints.push(Buffer::of(backend, values)?);
            Ok(held.ints[held.ints.len() - 1].at())
        };
        let slot_map = ints(&arrays.slot_map)?;
        let slot_pixel = ints(&arrays.slot_pixel)?;
        let slot_sensor = ints(&arrays.slot_sensor)?;
        let sensor_slot = ints(&arrays.sensor_slot)?;
        let map_sensor = ints(&arrays.map_sensor)?;
        let map_edge = ints(&arrays.map_edge)?;
        held.bytes.push(Buffer::of(backend, &arrays.levels)?);
        let levels = held.bytes[0].at();
        let trace = Buffer::<f64>::zeros(backend, maps * most)?;
        let standing = Buffer::of(backend, &vec![Standing::default(); maps])?;
        let last = layers.len() - 1;
        for (b, layer) in layers.iter_mut().enumerate() {
            let args = &mut layer.args;
            (args.dy, args.partial, args.weight_parts) = (dy, partial, weight_parts);
            args.dx = if b == last { dlogit } else { between[b % 2] };
            args.dinput = if b == 0 { latent_grad } else { between[(b - 1) % 2] };
        }
        let [penalty_network, penalty_latent, penalty_psd] = arrays.penalties;
        let loss = LossArgs {
            params: params.at(),
            latents: latents.at(),
            psd: psd.at(),
            best_params,
            best_latents,
            best_psd,
            moments,
            grad,
            latent_grad,
            v: layers[last].args.v,
            affine: layers[last].args.affine,
            dlogit,
            slf,
            slope,
            psd_parts,
            loss_parts,
            trace: trace.at(),
            standing: standing.at(),
            rates,
            slot_map,
            slot_pixel,
            slot_sensor,
            sensor_slot,
            map_sensor,
            targets,
            levels,
            edges,
            map_edge,
            offset,
            sigma,
            tolerance: course.descent.tolerance,
            penalty_network,
            penalty_latent,
            penalty_psd,
            maps: maps as i32,
            emitters: emitters as i32,
            bands: arrays.bands as i32,
            channels: channels as i32,
            parameters: decoder.parameters() as i32,
            latent: decoder.latent_len() as i32,
            out: layout.out.start as i32,
            slots: arrays.slot_map.len() as i32,
            chunks: chunks as i32,
            parts: psd_parts_each as i32,
            rows: decoder.rows() as i32,
            cols: decoder.cols() as i32,
            drawn_rows: drawn_rows as i32,
            drawn_cols: drawn_cols as i32,
            kind: arrays.kind,
            exponential: i32::from(shape.output == Output::Exponential),
            both: i32::from(course.both()),
            keeps_best: i32::from(best),
            iterations: course.descent.iterations as i32,
            iteration: 0,
            trace_stride: most as i32,
            imitation: i32::from(arrays.imitation),
            unused: 0,
        };
        Ok(Self {
            backend,
            decoder,
            course,
            bands: arrays.bands,
            maps,
            layers,
            loss,
            params,
            latents,
            psd,
            trace,
            standing,
            _held: held,
        })
    }

    fn launch<T: Copy>(
        &self,
        kernel: &'static str,
        grid: [usize; 3],
        shared_bytes: usize,
        args: &T,
    ) -> Result<(), DeviceError> {
        let launch = Launch {
            kernel,
            grid: grid.map(|side| side as u32),
            threads: THREADS as u32,
            cluster: 0,
            shared_bytes: shared_bytes as u32,
        };
        // The buffers that `args` names are held by this batch.
        unsafe { self.backend.launch(&launch, bytes_of(std::slice::from_ref(args))) }
    }

    /// Queues one iteration.
    fn iterate(&mut self, iteration: usize) -> Result<(), DeviceError> {
        self.loss.iteration = iteration as i32;
        let (images, emitters) = (self.maps * self.decoder.emitters(), self.decoder.emitters());
        let channels = self.decoder.shape().channels;
        let area = self.decoder.shape().kernel.pow(2);
        let groups = channels.div_ceil(GROUP);
        let per_channel = (self.maps * channels).div_ceil(THREADS);
        for Layer { args, small, .. } in &self.layers {
            let weights = args.inputs as usize * area * GROUP * size_of::<f32>();
            let tiles = small.div_ceil(THREADS);
            self.launch("convolve", [tiles, groups, images], weights, args)?;
            let parts = [args.parts as usize, channels, images];
            self.launch("upsample", parts, SUMS_BYTES, args)?;
            self.launch("normalise", [per_channel, 1, 1], 0, args)?;
        }
        let (chunks, loss) = (self.loss.chunks as usize, &self.loss);
        if loss.imitation == 1 {
            self.launch("imitation_misfit", [chunks, emitters, self.maps], SUMS_BYTES, loss)?;
        } else {
            let read = loss.slots as usize * emitters;
            self.launch("readout", [read.div_ceil(THREADS), 1, 1], 0, loss)?;
            self.launch("misfit", [chunks, self.maps, 1], SUMS_BYTES, loss)?;
            self.launch("sensor_back", [(32 * read).div_ceil(THREADS), 1, 1], 0, loss)?;
            self.launch("psd_back", [loss.parts as usize, emitters, self.maps], 0, loss)?;
        }
        self.launch("stand", [self.maps, 1, 1], SUMS_BYTES, loss)?;
        for Layer { args, small, weights, .. } in self.layers.iter().rev() {
            let parts = [args.parts as usize, channels, images];
            self.launch("tally", parts, SUMS_BYTES, args)?;
            self.launch("way_back", [per_channel, 1, 1], 0, args)?;
            let tiles = small.div_ceil(THREADS);
            self.launch("upsample_back", [tiles, channels, images], 0, args)?;
            let inputs = args.inputs as usize;
            if args.kernel == 3 {
                let shared = THREADS / 32 * 54 * size_of::<f32>();
                let tiles = args.weight_tiles as usize;
                self.launch("weights_3x3", [tiles, inputs * groups, images], shared, args)?;
            } else {
                self.launch("weights_any", [*weights, 1, images], SUMS_BYTES, args)?;
            }
            let all = self.maps * weights;
            self.launch("sum_weights", [all.div_ceil(THREADS), 1, 1], 0, args)?;
            let shared = channels * area * GROUP * size_of::<f32>();
            let groups = inputs.div_ceil(GROUP);
            self.launch("convolve_back", [tiles, groups, images], shared, args)?;
        }
        let psd = if loss.imitation == 1 { 0 } else { emitters * self.bands };
        let unknowns = self.decoder.parameters() + emitters * self.decoder.latent_len() + psd;
        self.launch("take_step", [unknowns.div_ceil(THREADS), self.maps, 1], 0, loss)
    }

    fn descend(
        mut self,
        stepping: &mut Stepping<'_>,
    ) -> Result<Vec<Outcome<Unknowns>>, DeviceError> {
        let most = self.course.most();
        let mut done = 0;
        while done < most {
            let next = (done + QUEUED).min(most);
            for iteration in done..next {
                self.iterate(iteration)?;
            }
            self.backend.finish()?;
            stepping.advance(self.maps * (next - done))?;
            done = next;
            if done < most && self.standing.get()?.iter().all(Standing::is_over) {
                stepping.advance(self.maps * (most - done))?;
                break;
            }
        }
        let (mut params, mut latents) = (self.params.get()?, self.latents.get()?);
        let mut psd = self.psd.get()?;
        if self.course.descent.keeps_best() {
            let best = [self.loss.best_params, self.loss.best_latents, self.loss.best_psd];
            for (values, at) in [&mut params, &mut latents, &mut psd].into_iter().zip(best) {
                let held = self._held.floats.iter().find(|buffer| buffer.at() == at);
                *values = held.expect("the best iterate is held").get()?;
            }
        }
        let (trace, standing) = (self.trace.get()?, self.standing.get()?);
        let emitters = self.decoder.emitters();
        let (parameters, latent) =
            (self.decoder.parameters(), emitters * self.decoder.latent_len());
        let spectra = emitters * self.bands;
        Ok((0..self.maps)
            .map(|map| {
                let of = |values: &[f32], len: usize| values[map * len..(map + 1) * len].to_vec();
                let trace = standing[map].ended(&trace[map * most..(map + 1) * most])?;
                let network =
                    Network { params: of(&params, parameters), latents: of(&latents, latent) };
                Ok(Descended { at: Unknowns { network, psd: of(&psd, spectra) }, trace })
            })
            .collect())
    }
}
