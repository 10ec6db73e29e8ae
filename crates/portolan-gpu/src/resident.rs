//! Fits that stay on the chip (`kernels/resident.cu`): one launch runs many iterations of many
//! maps. Here their input is packed and what they found is taken apart.

use std::sync::Arc;

use portolan::decoder::{Decoder, Network, Normalisation, Output, Padding, Shape, Upsampling};
use portolan::engine::{
    Descended, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Targets, Unknowns,
};

use rayon::prelude::*;

use crate::backend::{Backend, Buffer, DeviceError, Launch, Plain, bytes_of};
use crate::descent::{Course, Outcome, Standing, Stepping, kind, stride};

const CHANNELS: usize = 6;
/// Bands that a fit may have; the lanes of a warp, twice.
pub(crate) const BANDS: usize = 64;
/// Emitters that a cluster of blocks may have on every device that has clusters.
pub(crate) const EMITTERS: usize = 8;
const THREADS: u32 = 256;
const LATENT: usize = 16;
/// Cells a side: the last block's 32, twice.
const SIDE: usize = 64;

/// Weights of one output channel in blocks 1 to 3: two halves, each padded to whole vectors.
const ROW: usize = 2 * HALF_ROW;
const HALF_ROW: usize = 28;
const AFFINE: usize = 56 + 3 * CHANNELS * ROW;
const OUT: usize = AFFINE + 4 * 2 * CHANNELS;
const PARAMS: usize = 1120;
const STATE: usize = 3 * (PARAMS + LATENT + BANDS) + 32;

/// Floats of shared memory for up to so many emitters: `Room::LEN`.
const fn room(most_emitters: usize) -> usize {
    let images = CHANNELS * (2 * 1024 + 2 * 256 + 2 * 64 + 16) + 4096;
    let shared_out = 2 * most_emitters * BANDS + 9 * most_emitters * 16;
    let own = 4 * PARAMS + 1024 + 3 * LATENT + 3 * BANDS;
    images + own + shared_out + 5 * 24 + 20 + 8 + 8 + 36 + 256
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct MapInfo {
    first_slot: i32,
    slots: i32,
    first_edge: i32,
    edges: i32,
    offset: f32,
    sigma: f32,
}
unsafe impl Plain for MapInfo {}

#[repr(C)]
#[derive(Clone, Copy)]
struct Args {
    state: u64,
    result: u64,
    trace: u64,
    standing: u64,
    rates: u64,
    maps: u64,
    slot_place: u64,
    slot_sensor: u64,
    targets: u64,
    levels: u64,
    edge: u64,
    tolerance: f64,
    penalty_network: f32,
    penalty_latent: f32,
    penalty_psd: f32,
    iterations: i32,
    from: i32,
    to: i32,
    trace_stride: i32,
    bands: i32,
    kind: i32,
    exponential: i32,
    per_emitter: i32,
    both: i32,
    keeps_best: i32,
    rows: i32,
    cols: i32,
}

/// Whether the kernels are made for this decoder.
pub(crate) fn fits(decoder: &Decoder, bands: usize) -> bool {
    let usual = Shape {
        normalisation: decoder.shape().normalisation,
        output: decoder.shape().output,
        ..Shape::default()
    };
    // Spelt out where the defaults could move.
    *decoder.shape() == usual
        && usual.channels == CHANNELS
        && (usual.blocks, usual.keep, usual.kernel) == (4, 0, 3)
        && usual.upsampling == Upsampling::Bilinear
        && usual.padding == Padding::Reflect
        && usual.normalisation != Normalisation::None
        && decoder.layout().blocks.len() == 4
        && decoder.latent_dim() == (4, 4)
        && decoder.emitters() <= EMITTERS
        && bands <= BANDS
}

/// Where a parameter of the decoder's layout lies in the kernel's.
fn padded_place(index: usize) -> usize {
    const FIRST: usize = 9 * CHANNELS + 2 * CHANNELS;
    const OTHER: usize = 9 * CHANNELS * CHANNELS + 2 * CHANNELS;
    let (block, at, weights) = match index {
        _ if index < FIRST => (0, index, 9 * CHANNELS),
        _ => ((index - FIRST) / OTHER + 1, (index - FIRST) % OTHER, 9 * CHANNELS * CHANNELS),
    };
    match block {
        4.. => OUT + at,
        _ if at >= weights => AFFINE + block * 2 * CHANNELS + at - weights,
        0 => at,
        _ => {
            let (row, tap) = (at / 54, at % 54);
            56 + ((block - 1) * CHANNELS + row) * ROW + tap / 27 * HALF_ROW + tap % 27
        }
    }
}

/// Where the kernel keeps a cell: its interval and which of the interval's four pixels it is.
fn plane_place(row: usize, col: usize) -> i32 {
    let half = SIDE / 2;
    let along = |at: usize| match at % 2 {
        1 => (at / 2, 0),
        _ => ((at / 2 + half - 1) % half, 1),
    };
    let ((i, a), (j, b)) = (along(row), along(col));
    (((a * 2 + b) * half + i) * half + j) as i32
}

/// Parameters, latents and PSDs as the kernel takes and leaves them.
fn pack(at: &Network, psd: &[f32], bands: usize, to: &mut Vec<f32>) {
    let from = to.len();
    to.resize(from + PARAMS, 0.0);
    for (k, value) in at.params.iter().enumerate() {
        to[from + padded_place(k)] = *value;
    }
    for (r, latent) in at.latents.chunks_exact(LATENT).enumerate() {
        to.extend_from_slice(latent);
        let own = psd.get(r * bands..(r + 1) * bands).unwrap_or_default();
        to.extend_from_slice(own);
        to.resize(to.len() + BANDS - own.len(), 0.0);
    }
}

fn unpack(from: &[f32], parameters: usize, bands: usize) -> Unknowns {
    let params = (0..parameters).map(|k| from[padded_place(k)]).collect();
    let emitters = from[PARAMS..].chunks_exact(LATENT + BANDS);
    let latents = emitters.clone().flat_map(|own| &own[..LATENT]).copied().collect();
    let psd = emitters.flat_map(|own| &own[LATENT..][..bands]).copied().collect();
    Unknowns { network: Network { params, latents }, psd }
}

fn result_len(emitters: usize) -> usize {
    PARAMS + emitters * (LATENT + BANDS)
}

/// The input of all maps of a batch, one map after the other.
#[derive(Default)]
struct Packed {
    maps: Vec<MapInfo>,
    slot_place: Vec<i32>,
    slot_sensor: Vec<i32>,
    targets: Vec<f32>,
    levels: Vec<u8>,
    edges: Vec<f32>,
    start: Vec<f32>,
}

impl Packed {
    /// All fits of a batch; threads share them out.
    fn of(decoder: &Decoder, problems: &[FitProblem<'_>]) -> Self {
        let bands = problems[0].bands;
        let orders: Vec<Vec<usize>> = problems
            .par_iter()
            .map(|problem| {
                let mut order: Vec<usize> = (0..problem.cells.len()).collect();
                order.sort_by_key(|&n| problem.cells[n]);
                order
            })
            .collect();
        let mut packed = Self::default();
        let mut first_sensor = 0;
        for (problem, order) in problems.iter().zip(&orders) {
            packed.add(decoder, problem, order, first_sensor);
            first_sensor += order.len();
        }
        packed.slot_sensor.push(first_sensor as i32);
        packed.start = flattened(problems, result_len(decoder.emitters()), |problem, to| {
            pack(&problem.start.network, &problem.start.psd, bands, to);
        });
        match problems[0].targets {
            Targets::Levels { .. } => packed.levels = in_order(problems, &orders, bands, levels_of),
            _ => packed.targets = in_order(problems, &orders, bands, values_of),
        }
        packed
    }

    fn add(
        &mut self,
        decoder: &Decoder,
        problem: &FitProblem<'_>,
        order: &[usize],
        first_sensor: usize,
    ) {
        let first_slot = self.slot_place.len();
        let mut last = None;
        for (n, &sensor) in order.iter().enumerate() {
            let cell = problem.cells[sensor];
            if last.replace(cell) != Some(cell) {
                self.slot_place.push(plane_place(cell / decoder.cols(), cell % decoder.cols()));
                self.slot_sensor.push((first_sensor + n) as i32);
            }
        }
        let mut info = MapInfo {
            first_slot: first_slot as i32,
            slots: (self.slot_place.len() - first_slot) as i32,
            offset: problem.offset,
            sigma: 1.0,
            first_edge: self.edges.len() as i32,
            edges: 0,
        };
        if let Targets::Levels { probit, .. } = problem.targets {
            self.edges.extend(probit.edges().iter().map(|edge| *edge as f32));
            info.edges = probit.edges().len() as i32;
            info.sigma = probit.sigma() as f32;
        }
        self.maps.push(info);
    }
}

fn values_of<'a>(targets: &Targets<'a>) -> &'a [f32] {
    match targets {
        Targets::LnPower(values) | Targets::Power(values) => values,
        Targets::Levels { .. } => &[],
    }
}

fn levels_of<'a>(targets: &Targets<'a>) -> &'a [u8] {
    match targets {
        Targets::Levels { levels, .. } => levels,
        _ => &[],
    }
}

/// What the sensors of all problems read, each problem's in its order.
fn in_order<'a, T: Plain + Send + Sync>(
    problems: &[FitProblem<'a>],
    orders: &[Vec<usize>],
    bands: usize,
    of: impl Fn(&Targets<'a>) -> &'a [T] + Sync,
) -> Vec<T> {
    let mut all = vec![T::default(); orders.iter().map(Vec::len).sum::<usize>() * bands];
    let mut rest = &mut all[..];
    let mut parts = Vec::with_capacity(orders.len());
    for order in orders {
        let (own, others) = rest.split_at_mut(order.len() * bands);
        parts.push(own);
        rest = others;
    }
    parts.into_par_iter().zip(orders).zip(problems).for_each(|((to, order), problem)| {
        let from = of(&problem.targets);
        for (to, n) in to.chunks_exact_mut(bands).zip(order) {
            to.copy_from_slice(&from[n * bands..(n + 1) * bands]);
        }
    });
    all
}

/// Numbers of every problem, `len` each, one after the other.
fn flattened<P: Sync>(
    problems: &[P],
    len: usize,
    fill: impl Fn(&P, &mut Vec<f32>) + Sync,
) -> Vec<f32> {
    let mut all = vec![0.0; problems.len() * len];
    all.par_chunks_exact_mut(len).zip(problems).for_each(|(to, problem)| {
        let mut own = Vec::with_capacity(len);
        fill(problem, &mut own);
        to.copy_from_slice(&own);
    });
    all
}

/// Fits maps that share the decoder, the number of bands and the kind of targets.
pub(crate) fn fit(
    backend: &Arc<dyn Backend>,
    decoder: &Decoder,
    problems: &[FitProblem<'_>],
    options: &FitOptions,
    stepping: &mut Stepping<'_>,
) -> Result<Vec<Outcome<Unknowns>>, DeviceError> {
    let packed = Packed::of(decoder, problems);
    let penalties = options.penalties;
    let few = decoder.emitters() <= 4;
    let shared = Shared {
        kernel: if few { "fit_up_to_4" } else { "fit_up_to_8" },
        most_emitters: if few { 4 } else { EMITTERS },
        bands: problems[0].bands,
        kind: kind(&problems[0].targets),
        penalties: [penalties.network, penalties.latent, penalties.psd].map(|p| p as f32),
    };
    descend(backend, decoder, &packed, &Course::of_fit(options), &shared, stepping)
}

/// Imitations of maps that share the decoder.
pub(crate) fn imitate(
    backend: &Arc<dyn Backend>,
    decoder: &Decoder,
    problems: &[ImitationProblem<'_>],
    options: &ImitationOptions,
    stepping: &mut Stepping<'_>,
) -> Result<Vec<Outcome<Network>>, DeviceError> {
    let info =
        |problem: &ImitationProblem<'_>| MapInfo { offset: problem.offset, ..MapInfo::default() };
    let cells = decoder.emitters() * decoder.rows() * decoder.cols();
    let packed = Packed {
        maps: problems.iter().map(info).collect(),
        targets: flattened(problems, cells, |problem, to| to.extend_from_slice(problem.targets)),
        start: flattened(problems, result_len(decoder.emitters()), |problem, to| {
            pack(problem.start, &[], 0, to);
        }),
        ..Packed::default()
    };
    let few = decoder.emitters() <= 4;
    let shared = Shared {
        kernel: if few { "imitate_up_to_4" } else { "imitate_up_to_8" },
        most_emitters: if few { 4 } else { EMITTERS },
        bands: 0,
        kind: 0,
        penalties: [0.0; 3],
    };
    let course = Course::of_imitation(options);
    let found = descend(backend, decoder, &packed, &course, &shared, stepping)?;
    let network =
        |Descended { at, trace }: Descended<Unknowns>| Descended { at: at.network, trace };
    Ok(found.into_iter().map(|outcome| outcome.map(network)).collect())
}

/// Imitations of four emitters that the device runs side by side.
pub(crate) fn at_once(backend: &Arc<dyn Backend>) -> Result<usize, DeviceError> {
    backend.clusters_at_once(&launch("imitate_up_to_4", 4, 4, 1024))
}

fn launch(kernel: &'static str, most_emitters: usize, emitters: usize, maps: usize) -> Launch {
    Launch {
        kernel,
        grid: [emitters as u32, maps as u32, 1],
        threads: THREADS,
        cluster: emitters as u32,
        shared_bytes: (4 * room(most_emitters)) as u32,
    }
}

/// What the maps of a batch have in common.
struct Shared {
    kernel: &'static str,
    most_emitters: usize,
    bands: usize,
    kind: i32,
    penalties: [f32; 3],
}

/// Launches until every descent is over.
fn descend(
    backend: &Arc<dyn Backend>,
    decoder: &Decoder,
    packed: &Packed,
    course: &Course,
    shared: &Shared,
    stepping: &mut Stepping<'_>,
) -> Result<Vec<Outcome<Unknowns>>, DeviceError> {
    let (maps, emitters, most) = (packed.maps.len(), decoder.emitters(), course.most());
    let state = Buffer::<f32>::new(backend, maps * emitters * STATE)?;
    let result = Buffer::of(backend, &packed.start)?;
    let trace = Buffer::<f64>::new(backend, maps * most)?;
    let standing = Buffer::of(backend, &vec![Standing::default(); maps])?;
    let rates = Buffer::of(backend, &course.rates)?;
    let infos = Buffer::of(backend, &packed.maps)?;
    let slot_place = Buffer::of(backend, &packed.slot_place)?;
    let slot_sensor = Buffer::of(backend, &packed.slot_sensor)?;
    let targets = Buffer::of(backend, &packed.targets)?;
    let levels = Buffer::of(backend, &packed.levels)?;
    let edges = Buffer::of(backend, &packed.edges)?;
    let [penalty_network, penalty_latent, penalty_psd] = shared.penalties;
    let mut args = Args {
        state: state.at(),
        result: result.at(),
        trace: trace.at(),
        standing: standing.at(),
        rates: rates.at(),
        maps: infos.at(),
        slot_place: slot_place.at(),
        slot_sensor: slot_sensor.at(),
        targets: targets.at(),
        levels: levels.at(),
        edge: edges.at(),
        tolerance: course.descent.tolerance,
        penalty_network,
        penalty_latent,
        penalty_psd,
        iterations: course.descent.iterations as i32,
        from: 0,
        to: 0,
        trace_stride: most as i32,
        bands: shared.bands as i32,
        kind: shared.kind,
        exponential: i32::from(decoder.shape().output == Output::Exponential),
        per_emitter: i32::from(decoder.shape().normalisation == Normalisation::PerSample),
        both: i32::from(course.both()),
        keeps_best: i32::from(course.descent.keeps_best()),
        rows: decoder.rows() as i32,
        cols: decoder.cols() as i32,
    };
    let launch = launch(shared.kernel, shared.most_emitters, emitters, maps);
    let mut from = 0;
    while from < most {
        let to = (from + stride(maps)).min(most);
        (args.from, args.to) = (from as i32, to as i32);
        // The buffers above hold what `args` says, and live until the end of this function.
        unsafe { backend.launch(&launch, bytes_of(&[args])) }?;
        backend.finish()?;
        stepping.advance(maps * (to - from))?;
        from = to;
        if from < most && standing.get()?.iter().all(Standing::is_over) {
            stepping.advance(maps * (most - from))?;
            break;
        }
    }
    let (found, traces, standing) = (result.get()?, trace.get()?, standing.get()?);
    let found = found.chunks_exact(result_len(emitters));
    let ended = found.zip(traces.chunks_exact(most.max(1))).zip(&standing);
    let ended: Vec<_> = ended.collect();
    Ok(ended
        .into_par_iter()
        .map(|((found, trace), standing)| {
            let trace = standing.ended(trace)?;
            Ok(Descended { at: unpack(found, decoder.parameters(), shared.bands), trace })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let decoder = Decoder::new(&Shape::default(), 64, 64, 3).unwrap();
        let numbers = |len: usize| (0..len).map(|k| k as f32 + 0.5).collect::<Vec<f32>>();
        let network = Network { params: numbers(1080), latents: numbers(48) };
        let (bands, psd) = (20, numbers(60));
        let mut packed = Vec::new();
        pack(&network, &psd, bands, &mut packed);
        assert_eq!(packed.len(), result_len(3));
        let found = unpack(&packed, decoder.parameters(), bands);
        assert_eq!((found.network, found.psd), (network, psd));
        // What pads is 0, so that norms and steps pass over it.
        let zeros = packed.iter().filter(|value| **value == 0.0).count();
        assert_eq!(zeros, PARAMS - 1080 + 3 * (BANDS - bands));
    }

    #[test]
    fn every_cell_has_a_place_of_its_own() {
        let mut places: Vec<i32> =
            (0..SIDE * SIDE).map(|cell| plane_place(cell / SIDE, cell % SIDE)).collect();
        // The first row stands for itself, in the interval that joins the borders.
        assert_eq!(places[0], ((2 + 1) * 32 + 31) * 32 + 31);
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..(SIDE * SIDE) as i32));
    }

    #[test]
    fn other_decoders_are_left_to_the_layers() {
        let fit = |shape: Shape, side: usize, emitters: usize, bands: usize| {
            fits(&Decoder::new(&shape, side, side, emitters).unwrap(), bands)
        };
        let usual = Shape::default();
        assert!(fit(usual, 64, 8, 64) && fit(usual, 49, 1, 1));
        assert!(!fit(usual, 48, 4, 64) && !fit(usual, 65, 4, 64));
        assert!(!fit(usual, 64, 9, 64) && !fit(usual, 64, 4, 65));
        for shape in [
            Shape { channels: 7, ..usual },
            Shape { kernel: 5, ..usual },
            Shape { keep: 1, ..usual },
            Shape { padding: Padding::Zero, ..usual },
            Shape { normalisation: Normalisation::None, ..usual },
        ] {
            assert!(!fit(shape, 64, 4, 64), "{shape:?}");
        }
    }
}
