//! How well a mean explains a reading: squared error in ln(x + a), and probit bins for quantised
//! readings, behind one trait.

pub(crate) mod bin;
mod probit;
mod squared_error;

pub use probit::Probit;
pub use squared_error::SquaredError;

/// A floating-point type that the kernels work in.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
{
    /// The nearest value of this type.
    fn of(value: f64) -> Self;
    /// The same value in double precision.
    fn to_f64(self) -> f64;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
}

impl Real for f32 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Real for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

/// Loss of one entry with its first derivative in the mean mu, and the curvature that
/// Gauss-Newton and pseudo-data need (never negative). A missing entry has all three zero.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct EntryLoss<T> {
    /// What the entry costs: a squared error, or minus the logarithm of a probability.
    pub loss: T,
    /// Derivative of the loss in mu.
    pub gradient: T,
    /// Curvature of the loss in mu, 0 or more.
    pub curvature: T,
}

/// A likelihood of readings given their means mu = h(x). Rows are one sensor's bands; slices must
/// have one length.
pub trait Likelihood<T: Real>: Sync {
    /// What a sensor reports: a value of h(x), or a level.
    type Target: Copy + Send + Sync;

    /// Loss, gradient and curvature of one reading.
    fn entry(&self, target: Self::Target, mean: T) -> EntryLoss<T>;

    /// Writes the gradient of a row and returns its summed loss.
    fn gradient_row(&self, targets: &[Self::Target], means: &[T], gradient: &mut [T]) -> f64;

    /// As [`Likelihood::gradient_row`], and writes the curvature.
    fn score_row(
        &self,
        targets: &[Self::Target],
        means: &[T],
        gradient: &mut [T],
        curvature: &mut [T],
    ) -> f64;
}

#[cfg(test)]
mod tests;
