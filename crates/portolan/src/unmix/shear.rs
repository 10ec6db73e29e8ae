//! Choosing among the factorisations that fit exactly. They differ by shears: C_i gains e C_j and
//! S_j loses e S_i, which leaves S C as it is for any e and keeps the volume of (S, C). So the
//! likelihoods of the factors themselves may be compared. Path loss, shadowing and fading spectra
//! spread over decades, so both are taken as log-normal, each emitter with its own level and
//! spread: minimise sum_r N (mean ln s_r + ln sd ln s_r) + K (mean ln c_r + ln sd ln c_r). This is
//! maximum-likelihood independent component analysis (Hyvarinen, Karhunen and Oja 2001, chapter 9)
//! inside the non-negative cone.

use fearless_simd::{Level, dispatch};

use super::cone::Pair;
use super::small::{cholesky, solve};

const SWEEPS: usize = 12;
const NEWTON_STEPS: usize = 3;
const ROW_STEPS: usize = 3;
/// Distances from either end of the feasible interval, as powers of e, that the first sweeps try.
const TRIALS: [f64; 7] = [0.7, 1.5, 3.0, 5.0, 8.0, 12.0, 17.0];
/// What is added before taking logarithms, as a share of the row's mean: large at first, so that
/// the deep and narrow valleys of small entries come last.
const FLOORS: [f64; 4] = [1e-2, 1e-4, 1e-7, 0.0];

/// A function value with its first two derivatives.
#[derive(Clone, Copy)]
struct Jet {
    value: f64,
    slope: f64,
    bend: f64,
}

impl Pair {
    /// Moves along shears to the likeliest factors; both sides must be positive. Returns the
    /// negative log-likelihood.
    pub(super) fn likeliest(&mut self) -> f64 {
        let (bands, sensors) = (self.psd.len() / self.rank, self.slf.len() / self.rank);
        let mut row = RowStep::new(self.rank, bands, sensors);
        for floor in FLOORS {
            for sweep in 0..SWEEPS {
                let mut gained = self.sweep_pairs(sweep < 2, floor);
                for i in 0..self.rank {
                    for _ in 0..ROW_STEPS {
                        let gain = row.step(self, i, floor);
                        gained = gained.max(gain);
                        if gain < 1e-3 {
                            break;
                        }
                    }
                }
                if gained < 1e-2 {
                    break;
                }
            }
        }
        // Levels move between the sides freely: compare likelihoods at one level.
        self.normalise();
        let rows = self.psd.chunks_exact(bands).chain(self.slf.chunks_exact(sensors));
        rows.map(|row| dispersion_value(row, row, 0.0, floor_of(row, 0.0))).sum()
    }

    /// One shear after another; returns the largest gain.
    fn sweep_pairs(&mut self, search: bool, floor: f64) -> f64 {
        let (rank, bands) = (self.rank, self.psd.len() / self.rank);
        let sensors = self.slf.len() / rank;
        let mut gained = 0.0f64;
        for i in 0..rank {
            for j in (0..rank).filter(|&j| j != i) {
                let (psd_i, psd_j) = two(&mut self.psd, bands, i, j);
                let (slf_i, slf_j) = two(&mut self.slf, sensors, i, j);
                let (along, gain) = best_shear(psd_i, psd_j, slf_i, slf_j, search, floor);
                if along != 0.0 {
                    psd_i.iter_mut().zip(&*psd_j).for_each(|(c, d)| *c += along * d);
                    slf_j.iter_mut().zip(&*slf_i).for_each(|(s, t)| *s -= along * t);
                }
                gained = gained.max(gain);
            }
        }
        gained
    }
}

/// All shears into one C_i at once: a step in the metric of the barrier, which follows the narrow
/// valleys that single shears cannot.
struct RowStep {
    metric: Vec<f64>,
    slope: Vec<f64>,
    direction: Vec<f64>,
    change: Vec<f64>,
}

impl RowStep {
    fn new(rank: usize, bands: usize, _sensors: usize) -> Self {
        Self {
            metric: vec![0.0; rank * rank],
            slope: vec![0.0; rank],
            direction: vec![0.0; rank],
            change: vec![0.0; bands],
        }
    }

    /// Returns the gain in likelihood.
    fn step(&mut self, pair: &mut Pair, i: usize, floor: f64) -> f64 {
        let rank = pair.rank;
        let (bands, sensors) = (pair.psd.len() / rank, pair.slf.len() / rank);
        let psd_floor = floor_of(&pair.psd[i * bands..][..bands], floor);
        self.metric.fill(0.0);
        for k in 0..bands {
            let inverse = 1.0 / (pair.psd[i * bands + k] + psd_floor);
            for p in 0..rank {
                let ratio = pair.psd[p * bands + k] * inverse;
                for q in 0..=p {
                    self.metric[p * rank + q] += ratio * pair.psd[q * bands + k] * inverse;
                }
            }
        }
        let mut start = 0.0;
        for p in (0..rank).filter(|&p| p != i) {
            let own = &pair.psd[i * bands..][..bands];
            let psd = dispersion(own, &pair.psd[p * bands..][..bands], 0.0, psd_floor);
            let slf_p = &pair.slf[p * sensors..][..sensors];
            let slf_i = &pair.slf[i * sensors..][..sensors];
            let slf_floor = floor_of(slf_p, floor);
            let slf = dispersion(slf_p, slf_i, 0.0, slf_floor);
            self.slope[p] = psd.slope - slf.slope;
            start += slf.value;
            for (s, t) in slf_p.iter().zip(slf_i) {
                let ratio = t / (s + slf_floor);
                self.metric[p * rank + p] += ratio * ratio;
            }
        }
        let own = &pair.psd[i * bands..][..bands];
        start += dispersion_value(own, own, 0.0, psd_floor);
        for p in 0..rank {
            self.metric[i * rank + p] = 0.0;
            self.metric[p * rank + i] = 0.0;
        }
        self.metric[i * rank + i] = 1.0;
        self.slope[i] = 0.0;
        cholesky(&mut self.metric, rank);
        for (d, s) in self.direction.iter_mut().zip(&self.slope) {
            *d = -s;
        }
        solve(&self.metric, rank, &mut self.direction);
        self.direction[i] = 0.0;
        let limit = self.limit(pair, i);
        if !(limit > 0.0 && self.direction.iter().all(|d| d.is_finite())) {
            return 0.0;
        }
        let mut best = (start, 0.0);
        for share in [0.99, 0.9, 0.5, 0.2, 0.05, 0.01] {
            let along = (share * limit).min(1e3);
            let value = self.value(pair, i, along, floor, psd_floor);
            if value < best.0 {
                best = (value, along);
            } else if best.1 > 0.0 {
                break;
            }
        }
        let along = best.1;
        if along > 0.0 {
            for p in (0..rank).filter(|&p| p != i) {
                let e = along * self.direction[p];
                for k in 0..bands {
                    pair.psd[i * bands + k] += e * pair.psd[p * bands + k];
                }
                for n in 0..sensors {
                    pair.slf[p * sensors + n] -= e * pair.slf[i * sensors + n];
                }
            }
        }
        start - best.0
    }

    /// How far the direction can be followed before something turns negative; `change` is left
    /// holding the direction of C_i.
    fn limit(&mut self, pair: &Pair, i: usize) -> f64 {
        let rank = pair.rank;
        let (bands, sensors) = (pair.psd.len() / rank, pair.slf.len() / rank);
        let mut limit = f64::INFINITY;
        for k in 0..bands {
            self.change[k] = (0..rank).map(|p| self.direction[p] * pair.psd[p * bands + k]).sum();
            if self.change[k] < 0.0 {
                limit = limit.min(pair.psd[i * bands + k] / -self.change[k]);
            }
        }
        for p in (0..rank).filter(|&p| self.direction[p] > 0.0) {
            for n in 0..sensors {
                let room = pair.slf[p * sensors + n] / pair.slf[i * sensors + n];
                limit = limit.min(room / self.direction[p]);
            }
        }
        limit
    }

    fn value(&self, pair: &Pair, i: usize, along: f64, floor: f64, psd_floor: f64) -> f64 {
        let (bands, sensors) = (pair.psd.len() / pair.rank, pair.slf.len() / pair.rank);
        let own = &pair.psd[i * bands..][..bands];
        let slf_i = &pair.slf[i * sensors..][..sensors];
        let slfs = (0..pair.rank).filter(|&p| p != i).map(|p| {
            let slf_p = &pair.slf[p * sensors..][..sensors];
            let e = -along * self.direction[p];
            dispersion_value(slf_p, slf_i, e, floor_of(slf_p, floor))
        });
        slfs.sum::<f64>() + dispersion_value(own, &self.change, along, psd_floor)
    }
}

/// Rows i and j of a flat matrix.
fn two(rows: &mut [f64], length: usize, i: usize, j: usize) -> (&mut [f64], &mut [f64]) {
    let (low, high) = rows.split_at_mut(i.max(j) * length);
    let (first, second) = (&mut low[i.min(j) * length..][..length], &mut high[..length]);
    if i < j { (first, second) } else { (second, first) }
}

fn floor_of(row: &[f64], share: f64) -> f64 {
    // Zeros have no logarithm, hence the least share.
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    (share.max(1e-18) * mean).max(f64::MIN_POSITIVE)
}

/// length * (mean + ln sd) of ln(row + e other + floor), and its derivatives in e.
fn dispersion(row: &[f64], other: &[f64], e: f64, floor: f64) -> Jet {
    let length = row.len() as f64;
    let sums = dispatch!(Level::new(), simd => {
        let _ = simd;
        moments::<true>(row, other, e, floor)
    });
    let [m, mm, g, gg, mg, mgg] = sums.map(|sum| sum / length);
    let variance = variance(m, mm);
    let slope = 2.0 * (mg - m * g);
    let bend = 2.0 * (gg - g * g) - 2.0 * (mgg - m * gg);
    let ratio = slope / variance;
    Jet {
        value: length * (m + 0.5 * variance.ln()),
        slope: length * (g + 0.5 * ratio),
        bend: length * (-gg + 0.5 * bend / variance - 0.5 * ratio * ratio),
    }
}

/// The value of `dispersion` alone, which costs less.
fn dispersion_value(row: &[f64], other: &[f64], e: f64, floor: f64) -> f64 {
    let length = row.len() as f64;
    let sums = dispatch!(Level::new(), simd => {
        let _ = simd;
        moments::<false>(row, other, e, floor)
    });
    let (m, mm) = (sums[0] / length, sums[1] / length);
    length * (m + 0.5 * variance(m, mm).ln())
}

/// The constant keeps a flat row (one band, equal sensors) from having likelihood infinity.
fn variance(mean: f64, mean_square: f64) -> f64 {
    (mean_square - mean * mean).max(0.0) + 1e-4
}

/// Sums of l, l^2, q, q^2, l q and l q^2, with l = ln(row + e other + floor) and q its derivative in
/// e; the first two alone where not `SLOPES`.
#[inline(always)]
fn moments<const SLOPES: bool>(row: &[f64], other: &[f64], e: f64, floor: f64) -> [f64; 6] {
    let mut sums = [[0.0; LANES]; 6];
    let (rows, row_end) = row.as_chunks::<LANES>();
    let (others, other_end) = other.as_chunks::<LANES>();
    for (a, b) in rows.iter().zip(others) {
        add::<SLOPES>(&mut sums, a, b, e, floor);
    }
    if !row_end.is_empty() {
        // Ones add nothing to any sum.
        let (mut last_row, mut last_other) = ([1.0 - floor; LANES], [0.0; LANES]);
        last_row[..row_end.len()].copy_from_slice(row_end);
        last_other[..other_end.len()].copy_from_slice(other_end);
        add::<SLOPES>(&mut sums, &last_row, &last_other, e, floor);
    }
    sums.map(|lanes| lanes.iter().sum())
}

const LANES: usize = 8;

#[inline(always)]
fn add<const SLOPES: bool>(
    sums: &mut [[f64; LANES]; 6],
    row: &[f64; LANES],
    other: &[f64; LANES],
    e: f64,
    floor: f64,
) {
    let (mut l, mut q) = ([0.0; LANES], [0.0; LANES]);
    for i in 0..LANES {
        let value = row[i] + e * other[i];
        let value = if value > 0.0 { value } else { 0.0 } + floor;
        l[i] = ln(value);
        q[i] = other[i] / value;
    }
    for i in 0..LANES {
        sums[0][i] += l[i];
        sums[1][i] += l[i] * l[i];
    }
    if SLOPES {
        for i in 0..LANES {
            sums[2][i] += q[i];
            sums[3][i] += q[i] * q[i];
            sums[4][i] += l[i] * q[i];
            sums[5][i] += l[i] * q[i] * q[i];
        }
    }
}

/// Natural logarithm of a positive normal number to about 1e-15, in operations that vectorise: the
/// exponent taken off, and the series of artanh for the mantissa in [sqrt(1/2), sqrt(2)).
#[inline(always)]
fn ln(x: f64) -> f64 {
    /// Bits of 1 less those of sqrt(1/2).
    const UP: u64 = 0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd;
    /// Set above a small whole number, these bits make it a float that much larger.
    const WHOLE: (u64, f64) = (0x4330_0000_0000_0000, 4_503_599_627_370_496.0);
    let bits = x.to_bits();
    let biased = bits.wrapping_add(UP) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(biased << 52).wrapping_add(1023 << 52));
    let e = f64::from_bits(biased | WHOLE.0) - (WHOLE.1 + 1023.0);
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut p = 1.0 / 23.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        p = p * square + 1.0 / odd;
    }
    // ln 2 in two parts, so that the large one is exact.
    let tail = 2.0 * s * square * p + e * 1.908_214_929_270_587_7e-10;
    (tail + 2.0 * s) + e * 6.931_471_803_691_238e-1
}

/// The best e for C_i + e C_j, S_j - e S_i within what keeps both positive, and what it gains.
fn best_shear(
    psd_i: &[f64],
    psd_j: &[f64],
    slf_i: &[f64],
    slf_j: &[f64],
    search: bool,
    floor: f64,
) -> (f64, f64) {
    let least = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(x, y)| x / y.max(f64::MIN_POSITIVE)).fold(f64::INFINITY, f64::min)
    };
    let (down, up) = (least(psd_i, psd_j), least(slf_j, slf_i));
    let width = down + up;
    if !(width > 0.0 && width.is_finite()) {
        return (0.0, 0.0);
    }
    let (psd_floor, slf_floor) = (floor_of(psd_i, floor), floor_of(slf_j, floor));
    let at = |e: f64| {
        let (psd, slf) =
            (dispersion(psd_i, psd_j, e, psd_floor), dispersion(slf_j, slf_i, -e, slf_floor));
        Jet {
            value: psd.value + slf.value,
            slope: psd.slope - slf.slope,
            bend: psd.bend + slf.bend,
        }
    };
    let start = at(0.0);
    let (mut best, mut now) = (0.0, start);
    if search {
        let value = |e: f64| {
            dispersion_value(psd_i, psd_j, e, psd_floor)
                + dispersion_value(slf_j, slf_i, -e, slf_floor)
        };
        let mut least = start.value;
        for trial in TRIALS {
            let share = (-trial).exp() * width;
            for e in [share - down, up - share] {
                let there = value(e);
                if there < least {
                    (best, least) = (e, there);
                }
            }
        }
        if best != 0.0 {
            now = at(best);
        }
    }
    for _ in 0..NEWTON_STEPS {
        let newton = -now.slope / now.bend.abs().max(f64::MIN_POSITIVE);
        // Never more than most of the way to a wall.
        let (low, high) = (-0.9 * (best + down), 0.9 * (up - best));
        let mut step = newton.clamp(low, high);
        let mut moved = false;
        for _ in 0..5 {
            let jet = at(best + step);
            if jet.value < now.value {
                moved = now.value - jet.value > 1e-6;
                (best, now) = (best + step, jet);
                break;
            }
            step *= 0.25;
        }
        if !moved {
            break;
        }
    }
    (best, start.value - now.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_good_to_rounding() {
        let mut x = 1.3e-300;
        while x < 1e300 {
            let (got, want): (f64, f64) = (ln(x), f64::ln(x));
            assert!((got - want).abs() <= 1e-15 * want.abs().max(0.3), "{x}: {got} {want}");
            x *= 1.237;
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn derivatives_are_finite_differences() {
        let row: Vec<f64> = (1..20).map(|i| (0.3 * f64::from(i)).exp()).collect();
        let other: Vec<f64> = (1..20).map(|i| 2.0 + (1.7 * f64::from(i)).sin()).collect();
        let (e, step) = (0.2, 1e-5);
        let at = |e: f64| dispersion(&row, &other, e, 1e-30);
        let slope = (at(e + step).value - at(e - step).value) / (2.0 * step);
        let bend = (at(e + step).slope - at(e - step).slope) / (2.0 * step);
        assert!((at(e).slope - slope).abs() < 1e-6 * slope.abs(), "{} {slope}", at(e).slope);
        assert!((at(e).bend - bend).abs() < 1e-6 * bend.abs(), "{} {bend}", at(e).bend);
    }

    #[test]
    fn shears_leave_the_product_alone() {
        let psd = vec![1.0, 2.0, 0.1, 0.3, 0.2, 4.0];
        let slf = vec![1.0, 5.0, 0.2, 3.0, 0.5, 0.1, 2.0, 0.7];
        let mut pair = Pair { rank: 2, psd: psd.clone(), slf: slf.clone() };
        pair.likeliest();
        assert_ne!(pair.psd, psd);
        for n in 0..4 {
            for k in 0..3 {
                let product = |s: &[f64], c: &[f64]| s[n] * c[k] + s[4 + n] * c[3 + k];
                let (was, is) = (product(&slf, &psd), product(&pair.slf, &pair.psd));
                assert!((was - is).abs() < 1e-12 * was);
            }
        }
        assert!(pair.psd.iter().chain(&pair.slf).all(|v| *v > 0.0));
    }
}
