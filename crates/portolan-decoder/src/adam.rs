//! Adam (Kingma and Ba, 2015, algorithm 1) on flat slices, with PyTorch's semantics.

use std::ops::{Add, Div, Mul, Sub};

use fearless_simd::{Level, dispatch};

/// Decay of the first moment.
const BETA1: f64 = 0.9;
/// Decay of the second moment.
const BETA2: f64 = 0.999;
/// Added to the root of the second moment.
const EPSILON: f64 = 1e-8;

/// `f32` or `f64`.
pub trait Float:
    Copy + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The nearest value of this type.
    fn of(value: f64) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The value, or 0 where it is negative.
    fn positive_part(self) -> Self;
}

macro_rules! float {
    ($t:ty) => {
        impl Float for $t {
            fn of(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn positive_part(self) -> Self {
                self.max(0.0)
            }
        }
    };
}
float!(f32);
float!(f64);

/// Moments of a set of parameters. The learning rate is given at each step, so schedules are the
/// caller's.
#[derive(Clone, Debug)]
pub struct Adam<T> {
    first: Vec<T>,
    second: Vec<T>,
    steps: i32,
    level: Level,
}

impl<T: Float> Adam<T> {
    /// For `len` parameters, before the first step.
    pub fn new(len: usize) -> Self {
        Self {
            first: vec![T::default(); len],
            second: vec![T::default(); len],
            steps: 0,
            level: Level::new(),
        }
    }

    /// Forgets all steps.
    pub fn reset(&mut self) {
        self.first.fill(T::default());
        self.second.fill(T::default());
        self.steps = 0;
    }

    /// Moves `params` against `grad`.
    ///
    /// # Panics
    /// If the lengths differ from the one given to [`Adam::new`].
    pub fn step(&mut self, rate: f64, params: &mut [T], grad: &[T]) {
        self.update(
            rate,
            params,
            grad,
            #[inline(always)]
            |value| value,
        );
    }

    /// Moves `params` against `grad`, then projects them onto values >= 0.
    ///
    /// # Panics
    /// If the lengths differ from the one given to [`Adam::new`].
    pub fn step_nonnegative(&mut self, rate: f64, params: &mut [T], grad: &[T]) {
        self.update(rate, params, grad, T::positive_part);
    }

    fn update(&mut self, rate: f64, params: &mut [T], grad: &[T], project: impl Fn(T) -> T) {
        let len = self.first.len();
        assert!(params.len() == len && grad.len() == len, "one gradient for each parameter");
        self.steps += 1;
        let size = T::of(rate / (1.0 - BETA1.powi(self.steps)));
        let scale = T::of((1.0 - BETA2.powi(self.steps)).sqrt().recip());
        let (keep1, take1) = (T::of(BETA1), T::of(1.0 - BETA1));
        let (keep2, take2) = (T::of(BETA2), T::of(1.0 - BETA2));
        let epsilon = T::of(EPSILON);
        dispatch!(self.level, simd => {
            let _ = simd;
            let moments = self.first.iter_mut().zip(self.second.iter_mut());
            for ((p, g), (m, v)) in params.iter_mut().zip(grad).zip(moments) {
                *m = keep1 * *m + take1 * *g;
                *v = keep2 * *v + take2 * *g * *g;
                *p = project(*p - size * *m / (v.sqrt() * scale + epsilon));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_step_has_the_size_of_the_rate() {
        let mut params = [1.0f64, -2.0, 0.5];
        Adam::new(3).step(0.1, &mut params, &[3.0, -0.2, 0.0]);
        for (p, expected) in params.iter().zip([0.9, -1.9, 0.5]) {
            assert!((p - expected).abs() < 1e-7, "{p} {expected}");
        }
    }

    #[test]
    fn projection_keeps_values_at_zero_or_above() {
        let mut adam = Adam::<f32>::new(2);
        let mut params = [0.05, 1.0];
        adam.step_nonnegative(0.1, &mut params, &[1.0, 1.0]);
        assert_eq!(params[0], 0.0);
        assert!((params[1] - 0.9).abs() < 1e-6);
    }

    #[test]
    fn a_quadratic_is_minimised() {
        let mut adam = Adam::<f64>::new(1);
        let mut x = [5.0];
        for _ in 0..2000 {
            let grad = [2.0 * (x[0] - 3.0)];
            adam.step(0.05, &mut x, &grad);
        }
        assert!((x[0] - 3.0).abs() < 1e-3);
        adam.reset();
        assert_eq!(adam.steps, 0);
    }
}
