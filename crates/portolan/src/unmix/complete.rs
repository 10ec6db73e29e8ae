//! Gaps in readings without noise. Such readings are a matrix of low rank, and its missing entries
//! follow from the others: find the bands' factor C (bands x rank) for which every sensor's readings
//! are a combination of its columns, by variable projection (Golub and Pereyra 1973) with Kaufman's
//! Jacobian and Levenberg's damping; then each gap is what its sensor's combination says.

use faer::Mat;
use ndarray::{Array2, Axis};

use super::count::MOST;
use super::thin::read_by_more;
use crate::linalg::Cholesky;

/// More bands than this make the system too large to be solved in passing.
const MOST_BANDS: usize = 256;
/// Sensors that the factor is found from; the others follow.
const MOST_SENSORS: usize = 400;
/// What a perfect fit leaves of the readings, relative.
const EXACT: f64 = 1e-10;
/// A further emitter that leaves more than this share of the error twice in a row explains noise.
const NO_GAIN: f64 = 0.93;
/// Steps of a descent at most, the gain below which a step is slow, and how many slow ones in a row
/// end it.
const STEPS: (usize, f64, usize) = (60, 0.02, 3);
/// By how much the readings must outnumber what they are explained by: times, and beyond that.
const MARGIN: (usize, usize) = (2, 20);
/// Sensors per rank that must read a band with noise for it to be known.
const READ_BY: usize = 3;
/// Rounds of filling gaps from the leading directions, before a descent.
const FILLINGS: usize = 30;

/// The readings (sensors x bands, NaN = gap) without gaps, where they are exact and the gaps leave
/// no doubt; a few bands may be read by too few, and keep theirs. None where there is nothing to
/// fill, or noise.
pub(crate) fn complete(power: &Array2<f64>) -> Option<Array2<f64>> {
    let (sensors, bands) = power.dim();
    let gaps = power.iter().filter(|x| x.is_nan()).count();
    if gaps == 0 || !(3..=MOST_BANDS).contains(&bands) || sensors < 4 {
        return None;
    }
    let mut before = (f64::INFINITY, 0);
    let mut warm: Option<(usize, Factor)> = None;
    for rank in 1..=MOST.min(bands - 1).min(sensors - 1) {
        // Bands that too few read to be known keep their gaps.
        let solid = read_by_more(power, rank);
        let known = power.select(Axis(1), &solid);
        if known.iter().all(|x| !x.is_nan()) {
            return None;
        }
        let all: Vec<Row> =
            known.rows().into_iter().map(|row| Row::new(row.iter().copied())).collect();
        let usable = usable(&all, solid.len(), rank)?;
        let every = usable.len().div_ceil(MOST_SENSORS);
        let rows: Vec<&Row> = usable.iter().step_by(every).copied().collect();
        let same = warm.as_ref().filter(|(bands, _)| *bands == solid.len()).map(|(_, f)| f);
        let found = Factor::search(&rows, solid.len(), rank, same)?;
        if found.error < EXACT {
            let known = fill(&known, &all, &found.factor)?;
            let mut whole = power.clone();
            for (band, column) in solid.iter().zip(known.columns()) {
                whole.column_mut(*band).assign(&column);
            }
            return Some(whole);
        }
        let stuck = if found.error > NO_GAIN * before.0 { before.1 + 1 } else { 0 };
        if stuck == 2 {
            return None;
        }
        before = (found.error, stuck);
        warm = Some((solid.len(), found.factor));
    }
    None
}

/// The same for readings with noise, at a rank that is told: what their best factor says in the gaps.
/// A gap stays one where that is nothing above zero, and in bands that few sensors read. Sensors count
/// by their noise: what is found to be the same for all of them, and a share of what each reads. None
/// where nothing is missing or too much.
pub(crate) fn filled(power: &Array2<f64>, rank: usize, noise_share: f64) -> Option<Array2<f64>> {
    let (sensors, bands) = power.dim();
    let whole = power.iter().all(|x| !x.is_nan());
    if whole || !(3..=MOST_BANDS).contains(&bands) || rank >= bands.min(sensors) {
        return None;
    }
    let solid = read_by_more(power, READ_BY * rank);
    let known = power.select(Axis(1), &solid);
    let all: Vec<Row> = known.rows().into_iter().map(|row| Row::new(row.iter().copied())).collect();
    let first = best_factor(&all, solid.len(), rank)?;
    let additive = noise(&first, &all);
    let all: Vec<Row> = all.into_iter().map(|row| row.heard_above(additive, noise_share)).collect();
    let factor = best_factor(&all, solid.len(), rank)?;
    let mut whole = power.clone();
    for (mut line, row) in whole.rows_mut().into_iter().zip(&all) {
        let Some(split) = Some(row).filter(|r| r.bands.len() > rank).and_then(|r| factor.split(r))
        else {
            continue;
        };
        for (i, &band) in solid.iter().enumerate() {
            let value: f64 = (0..rank).map(|r| factor.values[i * rank + r] * split.slf[r]).sum();
            if line[band].is_nan() && value > 0.0 {
                line[band] = row.scale * value;
            }
        }
    }
    Some(whole)
}

/// The factor that the sensors say, or enough of them.
fn best_factor(all: &[Row], bands: usize, rank: usize) -> Option<Factor> {
    let usable = usable(all, bands, rank)?;
    let every = usable.len().div_ceil(MOST_SENSORS);
    let rows: Vec<&Row> = usable.iter().step_by(every).copied().collect();
    Factor::search(&rows, bands, rank, None).map(|found| found.factor)
}

/// Additive noise: the median over sensors of what a factor leaves of their readings.
fn noise(factor: &Factor, all: &[Row]) -> f64 {
    let mut left: Vec<f64> = all
        .iter()
        .filter(|row| row.bands.len() > factor.rank)
        .filter_map(|row| {
            let square: f64 = factor.split(row)?.left.iter().map(|x| x * x).sum();
            let free = (row.bands.len() - factor.rank) as f64;
            Some(row.scale * (square / free).sqrt())
        })
        .collect();
    left.sort_by(f64::total_cmp);
    left.get(left.len() / 2).copied().unwrap_or(0.0)
}

/// One sensor: which bands it read, and what, divided by their root mean square or their noise.
struct Row {
    bands: Vec<usize>,
    values: Vec<f64>,
    scale: f64,
}

impl Row {
    fn new(readings: impl Iterator<Item = f64>) -> Self {
        let (bands, mut values): (Vec<usize>, Vec<f64>) =
            readings.enumerate().filter(|(_, x)| !x.is_nan()).unzip();
        let square = values.iter().map(|x| x * x).sum::<f64>() / values.len().max(1) as f64;
        let scale = square.sqrt();
        if scale > 0.0 {
            values.iter_mut().for_each(|x| *x /= scale);
        }
        Self { bands, values, scale }
    }

    /// Divided by its noise instead: additive, and a share of what it reads.
    fn heard_above(mut self, additive: f64, share: f64) -> Self {
        let scale = additive.hypot(share * self.scale);
        if scale > 0.0 {
            self.values.iter_mut().for_each(|x| *x *= self.scale / scale);
            self.scale = scale;
        }
        self
    }
}

/// The sensors that say something about a factor of some rank; None where a band is read by too few
/// of them to be known, or where so few readings could be met by a factor of that rank whatever
/// they are.
fn usable(all: &[Row], bands: usize, rank: usize) -> Option<Vec<&Row>> {
    let rows: Vec<&Row> =
        all.iter().filter(|row| row.bands.len() > rank && row.scale > 0.0).collect();
    let mut read = vec![0usize; bands];
    rows.iter().flat_map(|row| &row.bands).for_each(|&band| read[band] += 1);
    let checks: usize = rows.iter().map(|row| row.bands.len() - rank).sum();
    let unknown = rank * (bands - rank);
    let known = read.iter().all(|&n| n > rank) && checks > MARGIN.0 * unknown + MARGIN.1;
    known.then_some(rows)
}

/// The bands' factor, row by row: bands x rank.
#[derive(Clone)]
struct Factor {
    rank: usize,
    values: Vec<f64>,
}

struct Found {
    factor: Factor,
    /// Root mean square of what is left of the scaled readings.
    error: f64,
}

/// How a sensor's readings split into a combination of the factor and what is left.
struct Split {
    /// Coefficients.
    slf: Vec<f64>,
    /// Orthonormal columns of the factor at the sensor's bands, band by band.
    basis: Vec<f64>,
    left: Vec<f64>,
}

impl Factor {
    /// The best factor of several starts, or the first that is exact.
    fn search(rows: &[&Row], bands: usize, rank: usize, warm: Option<&Factor>) -> Option<Found> {
        let mut best: Option<Found> = None;
        for fillings in [0, FILLINGS] {
            let factor = match warm {
                Some(warm) if fillings == 0 => warm.grown(rows, bands),
                _ => Self::leading(rows, bands, rank, fillings),
            };
            let found = factor.descend(rows, bands);
            if best.as_ref().is_none_or(|best| found.error < best.error) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.error < EXACT) {
                break;
            }
        }
        best
    }

    /// Columns made orthonormal, in their order.
    fn orthonormal(mut self, bands: usize) -> Self {
        let rank = self.rank;
        for r in 0..rank {
            for _ in 0..2 {
                for q in 0..r {
                    let dot: f64 = (0..bands)
                        .map(|k| self.values[k * rank + r] * self.values[k * rank + q])
                        .sum();
                    (0..bands)
                        .for_each(|k| self.values[k * rank + r] -= dot * self.values[k * rank + q]);
                }
            }
            let norm = (0..bands).map(|k| self.values[k * rank + r].powi(2)).sum::<f64>().sqrt();
            let norm = norm.max(f64::MIN_POSITIVE);
            (0..bands).for_each(|k| self.values[k * rank + r] /= norm);
        }
        self
    }

    /// The leading directions of the readings with gaps filled by the bands' means, and then by what
    /// these directions say, so many times.
    fn leading(rows: &[&Row], bands: usize, rank: usize, fillings: usize) -> Self {
        let (mut sum, mut count) = (vec![0.0; bands], vec![0.0; bands]);
        for row in rows {
            for (&band, value) in row.bands.iter().zip(&row.values) {
                sum[band] += value;
                count[band] += 1.0;
            }
        }
        let mut data: Vec<f64> = Vec::with_capacity(rows.len() * bands);
        for row in rows {
            let first = data.len();
            data.extend(sum.iter().zip(&count).map(|(s, n)| s / f64::max(*n, 1.0)));
            for (&band, value) in row.bands.iter().zip(&row.values) {
                data[first + band] = *value;
            }
        }
        let values =
            (0..bands * rank).map(|i| if i / rank == i % rank { 1.0 } else { 0.1 }).collect();
        let mut factor = Factor { rank, values }.orthonormal(bands);
        for round in 0..=fillings {
            factor = factor.turned(&data, bands, if round == 0 { 20 } else { 2 });
            for (n, row) in rows.iter().enumerate().filter(|_| round < fillings) {
                let line = &mut data[n * bands..(n + 1) * bands];
                let part: Vec<f64> = (0..rank)
                    .map(|r| (0..bands).map(|k| line[k] * factor.values[k * rank + r]).sum())
                    .collect();
                let mut known = row.bands.iter().zip(&row.values).peekable();
                for (k, slot) in line.iter_mut().enumerate() {
                    *slot = match known.next_if(|(band, _)| **band == k) {
                        Some((_, value)) => *value,
                        None => (0..rank).map(|r| part[r] * factor.values[k * rank + r]).sum(),
                    };
                }
            }
        }
        factor
    }

    /// Orthogonal iteration: towards the leading right singular vectors of a table.
    fn turned(mut self, data: &[f64], bands: usize, rounds: usize) -> Self {
        let rank = self.rank;
        for _ in 0..rounds {
            let mut next = vec![0.0; bands * rank];
            let mut part = vec![0.0; rank];
            for line in data.chunks_exact(bands) {
                part.fill(0.0);
                for (x, own) in line.iter().zip(self.values.chunks_exact(rank)) {
                    part.iter_mut().zip(own).for_each(|(p, c)| *p += x * c);
                }
                for (x, slot) in line.iter().zip(next.chunks_exact_mut(rank)) {
                    slot.iter_mut().zip(&part).for_each(|(n, p)| *n += x * p);
                }
            }
            self = Factor { rank, values: next }.orthonormal(bands);
        }
        self
    }

    /// One column more: the leading direction of what is left.
    fn grown(&self, rows: &[&Row], bands: usize) -> Self {
        let mut left = vec![0.0; rows.len() * bands];
        for (n, row) in rows.iter().enumerate() {
            if let Some(split) = self.split(row) {
                for (&band, x) in row.bands.iter().zip(&split.left) {
                    left[n * bands + band] = *x;
                }
            }
        }
        let first = Factor { rank: 1, values: vec![1.0; bands] }.orthonormal(bands);
        let more = first.turned(&left, bands, 20);
        let rank = self.rank + 1;
        let values = (0..bands)
            .flat_map(|k| {
                let own = &self.values[k * self.rank..(k + 1) * self.rank];
                own.iter().copied().chain([more.values[k]])
            })
            .collect();
        Factor { rank, values }.orthonormal(bands)
    }

    /// None where the sensor's bands cannot tell the columns apart.
    fn split(&self, row: &Row) -> Option<Split> {
        let (rank, count) = (self.rank, row.bands.len());
        let mut basis: Vec<f64> = row
            .bands
            .iter()
            .flat_map(|&k| self.values[k * rank..(k + 1) * rank].iter().copied())
            .collect();
        let mut upper = vec![0.0; rank * rank];
        for r in 0..rank {
            let norm =
                |basis: &[f64]| (0..count).map(|i| basis[i * rank + r].powi(2)).sum::<f64>().sqrt();
            let whole = norm(&basis);
            for _ in 0..2 {
                for q in 0..r {
                    let dot: f64 =
                        (0..count).map(|i| basis[i * rank + r] * basis[i * rank + q]).sum();
                    upper[q * rank + r] += dot;
                    (0..count).for_each(|i| basis[i * rank + r] -= dot * basis[i * rank + q]);
                }
            }
            let own = norm(&basis);
            if own.is_nan() || own <= 1e-9 * whole || own == 0.0 {
                return None;
            }
            upper[r * rank + r] = own;
            (0..count).for_each(|i| basis[i * rank + r] /= own);
        }
        let mut left = row.values.clone();
        let mut slf = vec![0.0; rank];
        for r in 0..rank {
            let dot: f64 = (0..count).map(|i| basis[i * rank + r] * left[i]).sum();
            slf[r] = dot;
            (0..count).for_each(|i| left[i] -= dot * basis[i * rank + r]);
        }
        for r in (0..rank).rev() {
            let known: f64 = (r + 1..rank).map(|q| upper[r * rank + q] * slf[q]).sum();
            slf[r] = (slf[r] - known) / upper[r * rank + r];
        }
        Some(Split { slf, basis, left })
    }

    /// Sum of squares of what is left, and the splits; None where a sensor cannot be split.
    fn splits(&self, rows: &[&Row]) -> Option<(f64, Vec<Split>)> {
        let splits: Vec<Split> = rows.iter().map(|row| self.split(row)).collect::<Option<_>>()?;
        let sum = splits.iter().flat_map(|s| &s.left).map(|x| x * x).sum();
        Some((sum, splits))
    }

    fn descend(mut self, rows: &[&Row], bands: usize) -> Found {
        let readings: usize = rows.iter().map(|row| row.bands.len()).sum();
        let error = |sum: f64| (sum / readings.max(1) as f64).sqrt();
        let Some((mut sum, mut splits)) = self.splits(rows) else {
            return Found { factor: self, error: f64::INFINITY };
        };
        let (mut damping, mut slow) = (1e-3, 0);
        for _ in 0..STEPS.0 {
            if error(sum) < 0.01 * EXACT {
                break;
            }
            let (system, aim) = self.normal_equations(rows, &splits, bands);
            let size = self.values.len();
            let mean = (0..size).map(|i| system[(i, i)]).sum::<f64>() / size as f64;
            let mut better = None;
            for _ in 0..6 {
                let mut damped = system.clone();
                (0..size).for_each(|i| damped[(i, i)] += damping * mean + f64::MIN_POSITIVE);
                let mut step = Mat::from_fn(size, 1, |i, _| aim[i]);
                if let Some(factor) = Cholesky::new(damped.as_ref()) {
                    factor.half_solve(step.as_mut());
                    factor.other_half_solve(step.as_mut());
                    let moved = (0..size).map(|i| self.values[i] + step[(i, 0)]).collect();
                    let tried = Factor { rank: self.rank, values: moved }.orthonormal(bands);
                    if let Some((less, split)) = tried.splits(rows).filter(|(s, _)| *s < sum) {
                        better = Some((tried, less, split));
                        break;
                    }
                }
                damping *= 10.0;
            }
            let Some((tried, less, split)) = better else { break };
            slow = if less.sqrt() > (1.0 - STEPS.1) * sum.sqrt() { slow + 1 } else { 0 };
            (self, sum, splits) = (tried, less, split);
            damping = (0.1 * damping).max(1e-14);
            if slow == STEPS.2 {
                break;
            }
        }
        Found { factor: self, error: error(sum) }
    }

    /// Of the Gauss-Newton step, by bands and columns; the lower half of the matrix.
    fn normal_equations(
        &self,
        rows: &[&Row],
        splits: &[Split],
        bands: usize,
    ) -> (Mat<f64>, Vec<f64>) {
        let (rank, size) = (self.rank, bands * self.rank);
        let mut system = Mat::<f64>::zeros(size, size);
        let mut aim = vec![0.0; size];
        for (row, split) in rows.iter().zip(splits) {
            for (i, &k) in row.bands.iter().enumerate() {
                for r in 0..rank {
                    aim[k * rank + r] += split.left[i] * split.slf[r];
                }
                let own = &split.basis[i * rank..(i + 1) * rank];
                for (j, &l) in row.bands[..=i].iter().enumerate() {
                    let other = &split.basis[j * rank..(j + 1) * rank];
                    let along: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                    let apart = f64::from(u8::from(i == j)) - along;
                    for q in 0..rank {
                        let weight = apart * split.slf[q];
                        for r in 0..rank {
                            system[(k * rank + r, l * rank + q)] += weight * split.slf[r];
                        }
                    }
                }
            }
        }
        (system, aim)
    }
}

/// Fills what the factor says; None where a sensor that it must explain says otherwise.
fn fill(power: &Array2<f64>, rows: &[Row], factor: &Factor) -> Option<Array2<f64>> {
    let rank = factor.rank;
    let mut whole = power.clone();
    for (mut line, row) in whole.rows_mut().into_iter().zip(rows) {
        if row.bands.len() == line.len() || row.scale == 0.0 {
            continue;
        }
        // What reads too little keeps its gaps.
        let Some(split) = Some(row).filter(|r| r.bands.len() > rank).and_then(|r| factor.split(r))
        else {
            continue;
        };
        if split.left.iter().any(|x| x.abs() > 100.0 * EXACT) {
            return None;
        }
        for (k, slot) in line.iter_mut().enumerate().filter(|(_, x)| x.is_nan()) {
            let value: f64 = (0..rank).map(|r| factor.values[k * rank + r] * split.slf[r]).sum();
            *slot = (row.scale * value).max(0.0);
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests;
