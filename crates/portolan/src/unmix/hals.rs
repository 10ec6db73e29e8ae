//! Non-negative factors by hierarchical alternating least squares with several sweeps per side
//! (Gillis and Glineur 2012) and extrapolation with restarts (Ang and Gillis 2019). Gaps are filled
//! with the model's own values before every round, which never raises the loss over what is there.

use super::small::dot;

/// Sweeps over the emitters before the other side's turn.
const SWEEPS: usize = 6;

/// A matrix of readings, sensor after sensor, and its factors, emitter after emitter.
pub(super) struct Hals {
    pub rank: usize,
    pub sensors: usize,
    pub bands: usize,
    pub data: Vec<f64>,
    /// Positions of the gaps in `data`.
    pub gaps: Vec<usize>,
    pub slf: Vec<f64>,
    pub psd: Vec<f64>,
}

impl Hals {
    /// Runs until a round improves the loss by less than `tolerance` of it; returns the loss over
    /// the entries that are there, relative to their sum of squares.
    pub(super) fn run(&mut self, rounds: usize, tolerance: f64) -> f64 {
        let (rank, sensors, bands) = (self.rank, self.sensors, self.bands);
        let mut gram = vec![0.0; rank * rank];
        let mut slf_side = vec![0.0; rank * sensors];
        let mut psd_side = vec![0.0; rank * bands];
        let (mut slf_old, mut psd_old) = (self.slf.clone(), self.psd.clone());
        let (mut slf_ahead, mut psd_ahead) = (self.slf.clone(), self.psd.clone());
        let (mut momentum, mut growth) = (0.5f64, 1.05f64);
        let mut loss = f64::INFINITY;
        for _ in 0..rounds {
            self.fill_gaps();
            slf_ahead.copy_from_slice(&self.slf);
            self.against_psd(&psd_ahead, &mut slf_side);
            grams(&psd_ahead, rank, &mut gram);
            sweep(&mut self.slf, &slf_side, &gram, rank);
            extrapolate(&self.slf, &slf_old, momentum, &mut slf_ahead);
            self.against_slf(&slf_ahead, &mut psd_side);
            grams(&slf_ahead, rank, &mut gram);
            self.psd.copy_from_slice(&psd_ahead);
            sweep(&mut self.psd, &psd_side, &gram, rank);
            extrapolate(&self.psd, &psd_old, momentum, &mut psd_ahead);
            let now = self.loss();
            if now > loss {
                // Overshot: fall back to the last good pair, without momentum.
                self.slf.copy_from_slice(&slf_old);
                self.psd.copy_from_slice(&psd_old);
                psd_ahead.copy_from_slice(&psd_old);
                momentum *= 0.5;
                growth = 1.0 + 0.5 * (growth - 1.0);
                if momentum < 1e-3 {
                    break;
                }
                continue;
            }
            slf_old.copy_from_slice(&self.slf);
            psd_old.copy_from_slice(&self.psd);
            momentum = (momentum * growth).min(0.98);
            let settled = loss - now < tolerance * now || now < 1e-28;
            loss = now;
            if settled {
                break;
            }
        }
        loss
    }

    fn fill_gaps(&mut self) {
        let (rank, sensors, bands) = (self.rank, self.sensors, self.bands);
        for &gap in &self.gaps {
            let (n, k) = (gap / bands, gap % bands);
            self.data[gap] =
                (0..rank).map(|r| self.slf[r * sensors + n] * self.psd[r * bands + k]).sum();
        }
    }

    /// Z C^T, emitter after emitter.
    fn against_psd(&self, psd: &[f64], out: &mut [f64]) {
        for (n, row) in self.data.chunks_exact(self.bands).enumerate() {
            for (r, c) in psd.chunks_exact(self.bands).enumerate() {
                out[r * self.sensors + n] = lanes(row, c);
            }
        }
    }

    /// S^T Z, emitter after emitter.
    fn against_slf(&self, slf: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (n, row) in self.data.chunks_exact(self.bands).enumerate() {
            for (r, sum) in out.chunks_exact_mut(self.bands).enumerate() {
                let s = slf[r * self.sensors + n];
                sum.iter_mut().zip(row).for_each(|(o, z)| *o += s * z);
            }
        }
    }

    /// Relative squared residual over the entries that are there.
    pub(super) fn loss(&self) -> f64 {
        let (rank, sensors, bands) = (self.rank, self.sensors, self.bands);
        let (mut sum, mut total) = (0.0, 0.0);
        let mut model = vec![0.0; bands];
        let mut gaps = self.gaps.iter().peekable();
        for (n, row) in self.data.chunks_exact(bands).enumerate() {
            model.copy_from_slice(row);
            for r in 0..rank {
                let s = self.slf[r * sensors + n];
                let psd = &self.psd[r * bands..(r + 1) * bands];
                model.iter_mut().zip(psd).for_each(|(m, c)| *m -= s * c);
            }
            let mut energy = lanes(row, row);
            while let Some(&&gap) = gaps.peek().filter(|&&&gap| gap < (n + 1) * bands) {
                model[gap % bands] = 0.0;
                energy -= row[gap % bands] * row[gap % bands];
                gaps.next();
            }
            sum += lanes(&model, &model);
            total += energy;
        }
        sum / total.max(f64::MIN_POSITIVE)
    }
}

/// A dot product in eight lanes.
pub(super) fn lanes(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (pairs, rest) = (a.chunks_exact(8).zip(b.chunks_exact(8)), a.len() - a.len() % 8);
    for (x, y) in pairs {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + dot(&a[rest..], &b[rest..])
}

fn grams(rows: &[f64], rank: usize, out: &mut [f64]) {
    let length = rows.len() / rank;
    for p in 0..rank {
        for q in 0..=p {
            let value = lanes(&rows[p * length..][..length], &rows[q * length..][..length]);
            out[p * rank + q] = value;
            out[q * rank + p] = value;
        }
    }
}

/// Coordinate descent on min |Z - S C|^2 over the rows of one side, given the other's products.
fn sweep(rows: &mut [f64], products: &[f64], gram: &[f64], rank: usize) {
    let length = rows.len() / rank;
    for _ in 0..SWEEPS {
        for r in 0..rank {
            let own = gram[r * rank + r];
            if own <= 0.0 {
                continue;
            }
            let (before, rest) = rows.split_at_mut(r * length);
            let (row, after) = rest.split_at_mut(length);
            for i in 0..length {
                let mut value = products[r * length + i];
                for q in 0..r {
                    value -= gram[r * rank + q] * before[q * length + i];
                }
                for q in r + 1..rank {
                    value -= gram[r * rank + q] * after[(q - r - 1) * length + i];
                }
                row[i] = (value / own).max(0.0);
            }
        }
    }
}

fn extrapolate(now: &[f64], old: &[f64], momentum: f64, out: &mut [f64]) {
    for ((o, n), p) in out.iter_mut().zip(now).zip(old) {
        *o = (n + momentum * (n - p)).max(0.0);
    }
}
