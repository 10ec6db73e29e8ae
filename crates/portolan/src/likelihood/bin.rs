//! The probability of one bin of a quantiser, exact in the tails and in narrow bins.
//!
//! In the tails both terms of Phi(high) - Phi(low) underflow; there the scaled function
//! erfcx(x) = exp(x^2) erfc(x) keeps every digit (Abramowitz and Stegun, 7.1.23). Bins narrower than
//! the noise are integrated rather than subtracted.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// ln(sqrt(2 pi)).
pub(super) const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Six-point Gauss-Legendre rule on [-1, 1]: abscissae and weights of the positive half.
const GAUSS: [(f64, f64); 3] = [
    (0.238_619_186_083_196_9, 0.467_913_934_572_691_05),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_36),
];

/// One bin in units of sigma: ln P, (phi(low) - phi(high)) / P and
/// (high phi(high) - low phi(low)) / P.
pub(crate) struct Bin {
    pub log_probability: f64,
    pub score: f64,
    pub edge_moment: f64,
}

impl Bin {
    /// The bin between two edges, for a mean of 0 and a deviation of 1.
    pub fn between(low: f64, high: f64, width: f64) -> Self {
        let middle = 0.5 * (low + high);
        if width * middle.abs().max(1.0) < 0.5 {
            Self::narrow(middle, width)
        } else if low > 0.0 {
            Self::tail(low, high, width)
        } else if high < 0.0 {
            let mirrored = Self::tail(-high, -low, width);
            Self { score: -mirrored.score, ..mirrored }
        } else {
            Self::central(low, high)
        }
    }

    /// The mean lies inside or at the edge of a bin that is not narrow.
    fn central(low: f64, high: f64) -> Self {
        let outside = 0.5 * (libm::erfc(high * FRAC_1_SQRT_2) + libm::erfc(-low * FRAC_1_SQRT_2));
        let inside = if outside < 0.5 {
            1.0 - outside
        } else {
            0.5 * (libm::erf(high * FRAC_1_SQRT_2) + libm::erf(-low * FRAC_1_SQRT_2))
        };
        let log_probability = if outside < 0.5 { (-outside).ln_1p() } else { inside.ln() };
        let density = |z: f64| (-0.5 * z * z - LN_SQRT_TAU).exp();
        let moment = |z: f64| if z.is_finite() { z * density(z) } else { 0.0 };
        Self {
            log_probability,
            score: (density(low) - density(high)) / inside,
            edge_moment: (moment(high) - moment(low)) / inside,
        }
    }

    /// 0 < low < high: everything relative to the density at the near edge.
    fn tail(low: f64, high: f64, width: f64) -> Self {
        // exp(-(high^2 - low^2) / 2), without the cancellation far out.
        let exponent = -width * (low + 0.5 * width);
        let fade = exponent.exp();
        let mass = erfcx(low * FRAC_1_SQRT_2) - fade * erfcx(high * FRAC_1_SQRT_2);
        let far_moment = if fade > 0.0 { high * fade } else { 0.0 };
        let scale = (2.0 / PI).sqrt() / mass;
        Self {
            log_probability: (0.5 * mass).ln() - 0.5 * low * low,
            score: -exponent.exp_m1() * scale,
            edge_moment: (far_moment - low) * scale,
        }
    }

    /// Narrower than the density varies: integrate exp(-middle t - t^2 / 2) over the bin.
    fn narrow(middle: f64, width: f64) -> Self {
        let half = 0.5 * width;
        let integral: f64 = GAUSS
            .iter()
            .map(|&(x, weight)| {
                let t = half * x;
                weight * (-0.5 * t * t).exp() * (middle * t).cosh()
            })
            .sum();
        let mass = width * integral;
        let edge = 2.0 * (-0.5 * half * half).exp();
        let (sinh, cosh) = ((middle * half).sinh(), (middle * half).cosh());
        Self {
            log_probability: mass.ln() - 0.5 * middle * middle - LN_SQRT_TAU,
            score: edge * sinh / mass,
            edge_moment: edge * (half * cosh - middle * sinh) / mass,
        }
    }
}

/// exp(x^2) erfc(x) for x >= 0.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 10.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    let step = 0.5 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..10 {
        term *= -f64::from(2 * k + 1) * step;
        sum += term;
    }
    sum / (x * PI.sqrt())
}
