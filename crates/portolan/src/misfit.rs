//! How badly a factored map misses the readings, with its gradients: for every sensor the spectrum
//! x = sum_r s_r c_r, its mean h(x) = ln(x + a) or x, and the likelihood of what was read.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

use crate::likelihood::Likelihood;
use crate::simd::{LANES, ln, load, padded, splat, store};

/// Readings at the sensors and room for one pass over them.
pub(crate) struct Misfit<L: Likelihood<f32>> {
    likelihood: L,
    /// Sensors x padded bands.
    targets: Vec<L::Target>,
    sensors: usize,
    padded: usize,
    offset: f32,
    /// The mean is x itself instead of ln(x + a).
    linear: bool,
    power: Vec<f32>,
    mean: Vec<f32>,
    slope: Vec<f32>,
    level: Level,
}

/// Rows of `bands` numbers with zeros up to whole vectors after each.
pub(crate) fn padded_rows(rows: &[f32], bands: usize) -> Vec<f32> {
    let width = padded(bands);
    let mut out = vec![0.0; rows.len() / bands * width];
    for (to, row) in out.chunks_exact_mut(width).zip(rows.chunks_exact(bands)) {
        to[..bands].copy_from_slice(row);
    }
    out
}

/// The reverse of [`padded_rows`].
pub(crate) fn cropped_rows(rows: &[f32], bands: usize) -> Vec<f32> {
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
            power: vec![0.0; width],
            mean: vec![0.0; width],
            slope: vec![0.0; width],
            level: Level::new(),
        }
    }

    /// The same with x itself as the mean: targets are powers.
    pub fn linear(likelihood: L, targets: &[L::Target], missing: L::Target, bands: usize) -> Self {
        Self { linear: true, ..Self::new(likelihood, targets, missing, bands, 0.0) }
    }

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
        let (sensors, width, step) = (self.sensors, self.padded, S::f32s::LEN);
        let (power, mean, slope) = (&mut self.power[..], &mut self.mean[..], &mut self.slope[..]);
        grad_psd.fill(0.0);
        let mut loss = 0.0;
        for (n, targets) in self.targets.chunks_exact(width).enumerate() {
            for k in (0..width).step_by(step) {
                let mut x = splat(simd, self.offset);
                for (r, spectrum) in psd.chunks_exact(width).enumerate() {
                    let s = splat(simd, slf_at[r * sensors + n]);
                    x = load(simd, spectrum, k).mul_add(s, x);
                }
                store::<S>(x, power, k);
            }
            if self.linear {
                loss += self.likelihood.gradient_row(targets, power, slope);
            } else {
                let (chunks, _) = power.as_chunks::<LANES>();
                for (mean, x) in mean.as_chunks_mut::<LANES>().0.iter_mut().zip(chunks) {
                    for lane in 0..LANES {
                        mean[lane] = ln(x[lane]);
                    }
                }
                loss += self.likelihood.gradient_row(targets, mean, slope);
                for k in (0..width).step_by(step) {
                    let d = load(simd, slope, k) / load(simd, power, k);
                    store::<S>(d, slope, k);
                }
            }
            let rows = psd.chunks_exact(width).zip(grad_psd.chunks_exact_mut(width));
            for (r, (spectrum, grad)) in rows.enumerate() {
                let s = splat(simd, slf_at[r * sensors + n]);
                let mut sum = splat(simd, 0.0);
                for k in (0..width).step_by(step) {
                    let d = load(simd, slope, k);
                    sum = d.mul_add(load(simd, spectrum, k), sum);
                    store::<S>(d.mul_add(s, load(simd, grad, k)), grad, k);
                }
                grad_slf[r * sensors + n] = sum.reduce_sum();
            }
        }
        loss
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
