//! exp(-x) of many numbers at once, in operations that vectorise: x = k ln 2 + r, a polynomial for
//! exp(-r), and the exponent put together from bits.

use fearless_simd::{Level, dispatch};

/// Added and taken away again, it rounds to a whole number and leaves it in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Beyond this the result is 0.
const LARGEST: f64 = 700.0;

/// Replaces every x (0 or more) by exp(-x), to about 2e-16 relative.
pub(crate) fn exp_minus(values: &mut [f64]) {
    dispatch!(Level::new(), simd => {
        let _ = simd;
        all(values)
    });
}

#[inline(always)]
fn all(values: &mut [f64]) {
    for value in values {
        *value = one(*value);
    }
}

#[inline(always)]
fn one(x: f64) -> f64 {
    let y = -(if x < LARGEST { x } else { LARGEST });
    let shifted = y * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (y - k * LN_2_HIGH) - k * LN_2_LOW;
    // 1 / 13!, 1 / 12!, .. 1: the remainder is below 1e-17 for |r| <= ln 2 / 2.
    let mut p = 1.605_904_383_682_161_3e-10;
    for c in [
        2.087_675_698_786_81e-9,
        2.505_210_838_544_172e-8,
        2.755_731_922_398_589e-7,
        2.755_731_922_398_589_3e-6,
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
        1.0,
        1.0,
    ] {
        p = p * r + c;
    }
    // The low bits of `shifted` are k; moved to the place of the exponent they multiply by 2^k.
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    if x < LARGEST { p * power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_to_the_exponential() {
        let mut values: Vec<f64> = (0..40_000).map(|i| 1e-9 * 1.0007f64.powi(i)).collect();
        values.extend([0.0, 0.5 * std::f64::consts::LN_2, 1.0, 37.5, 699.9, 701.0, 1e300]);
        let mut got = values.clone();
        exp_minus(&mut got);
        for (x, got) in values.iter().zip(got) {
            let want = (-x).exp();
            let wrong = (got - want).abs();
            assert!(wrong <= 4e-16 * want || (*x >= LARGEST && got == 0.0), "{x}: {got} {want}");
        }
    }
}
