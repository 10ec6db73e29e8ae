//! Unmixing readings without noise. Their rank is R to rounding, so the factors are sought inside
//! that subspace only: a guess by successive projection and a short non-negative factorisation of
//! some of the sensors, moved to where nothing is negative at any sensor (`cone`), then to the
//! likeliest of the factorisations that fit (`shear`).

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cone::Pair;
use super::hals::Hals;
use super::small::{dot, invert};
use super::vertices::{self, Vertices};

/// Readings count as exact where nothing larger than this is left outside their subspace.
const EXACT: f64 = 1e-7;
/// Sensors that the first guess is made from; more are added where the guess fails.
const SAMPLE: usize = 80;
/// Rounds of the guess before it is mended; more where the first did not lead anywhere.
const HALS_ROUNDS: [usize; 3] = [40, 150, 600];
/// A guess this close to non-negative is one.
const ROUNDING: f64 = 1e-10;

/// The subspace of a scaled matrix (sensor after sensor): coordinates of bands and of sensors.
pub(super) struct Subspace {
    rank: usize,
    bands: usize,
    /// Band after band.
    points: Vec<f64>,
    /// Sensor after sensor; sensors x bands = coordinates x points.
    coordinates: Vec<f64>,
    vertices: Vertices,
}

impl Subspace {
    /// None where the matrix does not have exactly this rank.
    pub(super) fn find(data: &[f64], bands: usize, rank: usize) -> Option<Self> {
        let sensors = data.len() / bands;
        // Bands of one sum: then none lies farther out than a pure one.
        let mut sums = vec![0.0; bands];
        for row in data.chunks_exact(bands) {
            sums.iter_mut().zip(row).for_each(|(s, x)| *s += x);
        }
        let share = |n: usize, k: usize| {
            if sums[k] > 0.0 { data[n * bands + k] / sums[k] } else { 0.0 }
        };
        let vertices = vertices::pick(bands, sensors, rank, share);
        let left = &vertices.left;
        let full = vertices.picks.len() == rank && left[rank - 1] > EXACT * left[0];
        if !full || left[rank] > EXACT * left[rank - 1] {
            return None;
        }
        let basis = &vertices.basis;
        let mut points = vec![0.0; bands * rank];
        for (n, row) in data.chunks_exact(bands).enumerate() {
            for (point, value) in points.chunks_exact_mut(rank).zip(row) {
                for (p, axis) in point.iter_mut().zip(basis) {
                    *p += value * axis[n];
                }
            }
        }
        let coordinates = (0..sensors * rank).map(|i| basis[i % rank][i / rank]).collect();
        Some(Self { rank, bands, points, coordinates, vertices })
    }

    /// T with the picked bands pure: C = T V is the identity there.
    fn pure_bands(&self) -> Option<Vec<f64>> {
        let (rank, picks) = (self.rank, &self.vertices.picks);
        let picked: Vec<f64> =
            (0..rank * rank).map(|i| self.points[picks[i % rank] * rank + i / rank]).collect();
        invert(&picked, rank).map(|(inverse, _)| inverse)
    }

    /// T with picked sensors pure: their spectra are the PSDs.
    fn pure_sensors(&self) -> Option<Vec<f64>> {
        let rank = self.rank;
        let sum: Vec<f64> =
            (0..rank).map(|r| self.points.iter().skip(r).step_by(rank).sum()).collect();
        let rows: Vec<&[f64]> = self.coordinates.chunks_exact(rank).collect();
        let weight: Vec<f64> = rows.iter().map(|row| dot(row, &sum)).collect();
        let found = vertices::pick(rows.len(), rank, rank, |r, n| rows[n][r] / weight[n]);
        let picked: Vec<f64> = found.picks.iter().flat_map(|&n| rows[n].iter().copied()).collect();
        (picked.len() == rank * rank).then_some(picked)
    }

    /// The factors that belong to T, at some of the sensors.
    fn pair(&self, rows: &[f64], sensors: &[usize]) -> Option<Pair> {
        let rank = self.rank;
        let (inverse, _) = invert(rows, rank)?;
        let mut pair =
            Pair { rank, psd: vec![0.0; rank * self.bands], slf: vec![0.0; rank * sensors.len()] };
        for r in 0..rank {
            let row = &rows[r * rank..(r + 1) * rank];
            for (k, point) in self.points.chunks_exact(rank).enumerate() {
                pair.psd[r * self.bands + k] = dot(row, point);
            }
            for (i, &n) in sensors.iter().enumerate() {
                let coordinates = &self.coordinates[n * rank..(n + 1) * rank];
                pair.slf[r * sensors.len() + i] =
                    (0..rank).map(|q| coordinates[q] * inverse[q * rank + r]).sum();
            }
        }
        Some(pair)
    }

    /// T of PSDs (emitter after emitter), by least squares.
    fn rows_of(&self, psd: &[f64]) -> Option<Vec<f64>> {
        let rank = self.rank;
        let mut gram = vec![0.0; rank * rank];
        let mut side = vec![0.0; rank * rank];
        for (k, point) in self.points.chunks_exact(rank).enumerate() {
            for p in 0..rank {
                for q in 0..rank {
                    gram[p * rank + q] += point[p] * point[q];
                    side[p * rank + q] += psd[p * self.bands + k] * point[q];
                }
            }
        }
        let (inverse, _) = invert(&gram, rank)?;
        let entry = |p: usize, q: usize| {
            (0..rank).map(|m| side[p * rank + m] * inverse[m * rank + q]).sum::<f64>()
        };
        Some((0..rank * rank).map(|i| entry(i / rank, i % rank)).collect())
    }

    /// Moves a guess T to factors without negative entries at any sensor.
    fn feasible(&self, data: &[f64], guess: &[f64]) -> Option<Pair> {
        let (rank, bands) = (self.rank, self.bands);
        let sensors = data.len() / bands;
        let mut sample: Vec<usize> =
            (0..SAMPLE.min(sensors)).map(|i| i * sensors / SAMPLE.min(sensors)).collect();
        let mut rows = guess.to_vec();
        for rounds in HALS_ROUNDS {
            let pair = self.pair(&rows, &sample)?;
            let row = |n: &usize| data[n * bands..][..bands].iter().copied();
            let mut hals = Hals {
                rank,
                sensors: sample.len(),
                bands,
                data: sample.iter().flat_map(row).collect(),
                gaps: Vec::new(),
                slf: pair.slf.iter().map(|v| v.max(0.0)).collect(),
                psd: pair.psd.iter().map(|v| v.max(0.0)).collect(),
            };
            hals.run(rounds, 1e-3);
            rows = self.rows_of(&hals.psd)?;
            let found = self.mend(rows.clone(), &mut sample);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Moves T until no sensor of the sample has a negative SLF, and enlarges the sample until it
    /// speaks for all.
    fn mend(&self, mut rows: Vec<f64>, sample: &mut Vec<usize>) -> Option<Pair> {
        let sensors = self.coordinates.len() / self.rank;
        let all: Vec<usize> = (0..sensors).collect();
        for _ in 0..12 {
            let mut pair = self.pair(&rows, sample)?;
            if !pair.make_feasible() {
                return None;
            }
            rows = self.rows_of(&pair.psd)?;
            let whole = self.pair(&rows, &all)?;
            if whole.worst() > 0.0 {
                return Some(whole);
            }
            for slf in whole.slf.chunks_exact(sensors) {
                let mut order: Vec<usize> = all.clone();
                order.sort_by(|&a, &b| slf[a].total_cmp(&slf[b]));
                sample.extend(order.iter().take(8).filter(|&&n| slf[n] <= 0.0));
            }
            sample.sort_unstable();
            sample.dedup();
        }
        None
    }

    /// The likeliest non-negative factors over all sensors, from several starts.
    pub(super) fn factor(&self, data: &[f64], starts: usize, seed: u64) -> Option<Pair> {
        let rank = self.rank;
        let all: Vec<usize> = (0..data.len() / self.bands).collect();
        let picked = [self.pure_bands(), self.pure_sensors()];
        // Separable readings: a vertex has R (R - 1) zeros by its making; more of them are the
        // emitters' own silence, and nothing is left to choose.
        let mut vertex = None;
        for rows in picked.iter().flatten() {
            let Some(mut pair) = self.pair(rows, &all) else { continue };
            if pair.worst() > -ROUNDING {
                let zeros = pair.zeros(ROUNDING);
                pair.psd.iter_mut().chain(&mut pair.slf).for_each(|v| *v = v.max(0.0));
                if rank == 1 || zeros > rank * (rank - 1) {
                    return Some(pair);
                }
                vertex = Some(pair);
            }
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut best: Option<(f64, Pair)> = None;
        for start in 0..starts.max(2) {
            let rows = match picked.get(start) {
                Some(rows) => rows.clone(),
                None if best.is_some() => break,
                // Sensors drawn at random stand in for pure ones.
                None => {
                    let draws = (0..rank).map(|_| rng.random_range(0..all.len()));
                    let row = |n: usize| self.coordinates[n * rank..(n + 1) * rank].to_vec();
                    Some(draws.flat_map(row).collect())
                }
            };
            let Some(mut pair) = rows.and_then(|rows| self.feasible(data, &rows)) else { continue };
            pair.centre();
            let loss = pair.likeliest();
            if best.as_ref().is_none_or(|(least, _)| loss < *least) {
                best = Some((loss, pair));
            }
        }
        best.map(|(_, pair)| pair).or(vertex)
    }
}
