//! How badly a factored map misses the readings, with its gradients: for every sensor the spectrum
//! x = sum_r s_r c_r, its mean h(x) = ln(x + a) or x, and the likelihood of what was read.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

use crate::likelihood::Likelihood;
use portolan_decoder::simd::{Buffer, ln_each, load, padded, splat, store};

/// Readings at the sensors and room for one pass over them.
pub struct Misfit<L: Likelihood<f32>> {
    likelihood: L,
    /// Sensors x padded bands.
    targets: Vec<L::Target>,
    sensors: usize,
    padded: usize,
    offset: f32,
    /// The mean is x itself instead of ln(x + a).
    linear: bool,
    power: Buffer,
    mean: Buffer,
    slope: Buffer,
    level: Level,
}

/// Rows of `bands` numbers with zeros up to whole vectors after each.
pub fn padded_rows(rows: &[f32], bands: usize) -> Vec<f32> {
    let width = padded(bands);
    let mut out = vec![0.0; rows.len() / bands * width];
    for (to, row) in out.chunks_exact_mut(width).zip(rows.chunks_exact(bands)) {
        to[..bands].copy_from_slice(row);
    }
    out
}

/// The reverse of [`padded_rows`].
pub fn cropped_rows(rows: &[f32], bands: usize) -> Vec<f32> {
    rows.chunks_exact(padded(bands)).flat_map(|row| &row[..bands]).copied().collect()
}

impl<L: Likelihood<f32>> Misfit<L> {
    /// `targets` are sensors x bands; `missing` stands in the padding and adds nothing.
    pub fn new(
        likelihood: L,
        targets: &[L::Target],
        missing: L::Target,
        bands: usize,
        offset: f64,
    ) -> Self {
        let width = padded(bands);
        let rows = targets.chunks_exact(bands);
        let sensors = rows.len();
        let padding = || std::iter::repeat_n(missing, width - bands);
        let targets = rows.flat_map(|row| row.iter().copied().chain(padding())).collect();
        Self {
            likelihood,
            targets,
            sensors,
            padded: width,
            offset: offset as f32,
            linear: false,
            power: Buffer::new(BLOCK * width, 0),
            mean: Buffer::new(BLOCK * width, 0),
            slope: Buffer::new(BLOCK * width, 0),
            level: Level::new(),
        }
    }

    /// The same with x itself as the mean: targets are powers.
    pub fn linear(likelihood: L, targets: &[L::Target], missing: L::Target, bands: usize) -> Self {
        Self { linear: true, ..Self::new(likelihood, targets, missing, bands, 0.0) }
    }

    /// Sensors that were read.
    pub fn sensors(&self) -> usize {
        self.sensors
    }

    /// Bands with padding: the row length of PSDs and their gradient.
    pub fn padded(&self) -> usize {
        self.padded
    }

    /// The loss, with gradients in the SLFs at the sensors (emitters x sensors) and in the PSDs
    /// (emitters x padded bands); both are overwritten.
    pub fn gradient(
        &mut self,
        slf_at: &[f32],
        psd: &[f32],
        grad_slf: &mut [f32],
        grad_psd: &mut [f32],
    ) -> f64 {
        dispatch!(self.level, simd => self.pass(simd, slf_at, psd, grad_slf, grad_psd))
    }

    #[inline(always)]
    fn pass<S: Simd>(
        &mut self,
        simd: S,
        slf_at: &[f32],
        psd: &[f32],
        grad_slf: &mut [f32],
        grad_psd: &mut [f32],
    ) -> f64 {
        let (sensors, width) = (self.sensors, self.padded);
        grad_psd.fill(0.0);
        let mut loss = 0.0;
        for (block, targets) in self.targets.chunks(BLOCK * width).enumerate() {
            let (first, len) = (block * BLOCK, targets.len());
            let (power, mean) = (&mut self.power[..len], &mut self.mean[..len]);
            let slope = &mut self.slope[..len];
            for (n, power) in power.chunks_mut(2 * width).enumerate() {
                let slf = &slf_at[first + 2 * n..];
                if power.len() == 2 * width {
                    mix_all::<S, 2>(simd, slf, sensors, psd, self.offset, power);
                } else {
                    mix_all::<S, 1>(simd, slf, sensors, psd, self.offset, power);
                }
            }
            if self.linear {
                loss += self.likelihood.gradient_row(targets, power, slope);
            } else {
                // The division beside the logarithm, which leaves the divider idle.
                for k in (0..len).step_by(S::f32s::LEN) {
                    let x = load(simd, power, k);
                    store::<S>(splat(simd, 1.0) / x, power, k);
                    store::<S>(ln_each(simd, x), mean, k);
                }
                loss += self.likelihood.gradient_row(targets, mean, slope);
                for k in (0..len).step_by(S::f32s::LEN) {
                    let d = load(simd, slope, k) * load(simd, power, k);
                    store::<S>(d, slope, k);
                }
            }
            let rows = psd.chunks_exact(width).zip(grad_psd.chunks_exact_mut(width));
            for (r, (spectrum, grad)) in rows.enumerate() {
                let at = r * sensors + first..r * sensors + first + len / width;
                let (slf, grad_slf) = (&slf_at[at.clone()], &mut grad_slf[at]);
                let mut k = 0;
                while k < width {
                    let wide = 4 * S::f32s::LEN;
                    let begun = k > 0;
                    if k + wide <= width {
                        pull::<S, 4>(simd, (width, k, begun), slope, spectrum, slf, grad, grad_slf);
                        k += wide;
                    } else {
                        pull::<S, 1>(simd, (width, k, begun), slope, spectrum, slf, grad, grad_slf);
                        k += S::f32s::LEN;
                    }
                }
            }
        }
        loss
    }
}

/// Sensors worked on at a time: their numbers stay in the first cache, and what a sum over rows costs
/// at its end is shared by many.
const BLOCK: usize = 16;

/// The spectra a + sum_r s_r c_r at `M` sensors; `slf` begins with the first emitter's at the first.
#[inline(always)]
fn mix_all<S: Simd, const M: usize>(
    simd: S,
    slf: &[f32],
    sensors: usize,
    psd: &[f32],
    offset: f32,
    power: &mut [f32],
) {
    let (width, wide, mut k) = (power.len() / M, 4 * S::f32s::LEN, 0);
    while k < width {
        if k + wide <= width {
            mix::<S, M, 4>(simd, slf, (sensors, k), psd, offset, power);
            k += wide;
        } else {
            mix::<S, M, 1>(simd, slf, (sensors, k), psd, offset, power);
            k += S::f32s::LEN;
        }
    }
}

/// `N` vectors of them, from band `k` on.
#[inline(always)]
fn mix<S: Simd, const M: usize, const N: usize>(
    simd: S,
    slf: &[f32],
    (sensors, k): (usize, usize),
    psd: &[f32],
    offset: f32,
    power: &mut [f32],
) {
    let (n, width) = (S::f32s::LEN, power.len() / M);
    let mut x = [[splat(simd, offset); N]; M];
    for (spectrum, s) in psd.chunks_exact(width).zip(slf.chunks(sensors)) {
        let (spectrum, s) = (&spectrum[k..k + N * n], &s[..M]);
        for (x, s) in x.iter_mut().zip(s) {
            for (j, x) in x.iter_mut().enumerate() {
                *x = load(simd, spectrum, j * n).mul_add(splat(simd, *s), *x);
            }
        }
    }
    for (x, power) in x.iter().zip(power.chunks_exact_mut(width)) {
        for (j, x) in x.iter().enumerate() {
            store::<S>(*x, power, k + j * n);
        }
    }
}

/// Gradients of one emitter from `N` vectors of bands, from band `k` on, of some sensors: added to its
/// PSD's, and to those of its SLF where they are begun.
#[inline(always)]
fn pull<S: Simd, const N: usize>(
    simd: S,
    (width, k, begun): (usize, usize, bool),
    slope: &[f32],
    spectrum: &[f32],
    slf: &[f32],
    grad: &mut [f32],
    grad_slf: &mut [f32],
) {
    let n = S::f32s::LEN;
    let (mut spectra, mut sums) = ([splat(simd, 0.0); N], [splat(simd, 0.0); N]);
    for j in 0..N {
        spectra[j] = load(simd, spectrum, k + j * n);
        sums[j] = load(simd, grad, k + j * n);
    }
    for ((slope, s), out) in slope.chunks_exact(width).zip(slf).zip(grad_slf) {
        let (slope, s) = (&slope[k..k + N * n], splat(simd, *s));
        let mut along = splat(simd, 0.0);
        for j in 0..N {
            let d = load(simd, slope, j * n);
            along = d.mul_add(spectra[j], along);
            sums[j] = d.mul_add(s, sums[j]);
        }
        let along = along.reduce_sum();
        *out = if begun { *out + along } else { along };
    }
    for (j, sum) in sums.into_iter().enumerate() {
        store::<S>(sum, grad, k + j * n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::SquaredError;

    #[test]
    fn padding_comes_off_again() {
        let rows: Vec<f32> = (1..=40).map(|v| v as f32).collect();
        let wide = padded_rows(&rows, 20);
        assert_eq!((wide.len(), wide[19], wide[20], wide[32]), (64, 20.0, 0.0, 21.0));
        assert_eq!(cropped_rows(&wide, 20), rows);
    }

    #[test]
    fn gradients_are_finite_differences() {
        agrees(|targets, bands| Misfit::new(SquaredError::plain(), targets, f32::NAN, bands, 1e-3));
        agrees(|targets, bands| Misfit::linear(SquaredError::plain(), targets, f32::NAN, bands));
    }

    fn agrees(make: impl Fn(&[f32], usize) -> Misfit<SquaredError>) {
        let (sensors, bands, emitters) = (5, 19, 3);
        let value = |i: usize| ((i * 37 % 101) as f32 + 3.0) / 60.0;
        let mut targets: Vec<f32> = (0..sensors * bands).map(|i| -1.5 + value(i)).collect();
        targets[7] = f32::NAN;
        let mut misfit = make(&targets, bands);
        let width = misfit.padded();
        let slf: Vec<f32> = (0..emitters * sensors).map(|i| value(3 * i + 1)).collect();
        let mut psd = vec![0.0; emitters * width];
        for r in 0..emitters {
            (0..bands).for_each(|k| psd[r * width + k] = value(7 * r + 5 * k));
        }
        let mut slope_slf = vec![0.0; slf.len()];
        let mut slope_psd = vec![0.0; psd.len()];
        let (mut a, mut b) = (slope_slf.clone(), slope_psd.clone());
        misfit.gradient(&slf, &psd, &mut slope_slf, &mut slope_psd);
        let step = 1e-2f32;
        for i in 0..slf.len() {
            let mut moved = slf.clone();
            moved[i] += step;
            let up = misfit.gradient(&moved, &psd, &mut a, &mut b);
            moved[i] -= 2.0 * step;
            let down = misfit.gradient(&moved, &psd, &mut a, &mut b);
            let want = (up - down) / f64::from(2.0 * step);
            assert!((f64::from(slope_slf[i]) - want).abs() < 0.02 * want.abs() + 0.05);
        }
        for k in (0..emitters * width).filter(|k| k % width < bands) {
            let mut moved = psd.clone();
            moved[k] += step;
            let up = misfit.gradient(&slf, &moved, &mut a, &mut b);
            moved[k] -= 2.0 * step;
            let down = misfit.gradient(&slf, &moved, &mut a, &mut b);
            let want = (up - down) / f64::from(2.0 * step);
            assert!((f64::from(slope_psd[k]) - want).abs() < 0.05 * want.abs() + 0.05);
        }
    }
}
