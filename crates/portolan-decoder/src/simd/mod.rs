//! Vectors of single precision: loads and stores, functions of numbers, and room aligned for them.
//!
//! Every function here and in the kernels must end up inside the one that
//! [`fearless_simd::dispatch`] compiles for the processor's instructions, closures included:
//! whatever is not inlined is compiled for the baseline and calls each instruction as a function.
//! A kernel that several call is compiled once where it is `inline(never)` around `vectorize`.

mod buffer;

pub use buffer::Buffer;

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// The widest vectors hold this many numbers: rows are padded to multiples of it.
pub const LANES: usize = 16;

/// A number of entries rounded up to whole vectors.
pub fn padded(entries: usize) -> usize {
    entries.next_multiple_of(LANES)
}

/// The vector that begins at an index.
#[inline(always)]
pub fn load<S: Simd>(simd: S, from: &[f32], at: usize) -> S::f32s {
    S::f32s::from_slice(simd, &from[at..at + S::f32s::LEN])
}

/// Writes a vector from an index on.
#[inline(always)]
pub fn store<S: Simd>(value: S::f32s, to: &mut [f32], at: usize) {
    value.store_slice(&mut to[at..at + S::f32s::LEN]);
}

/// A vector of one number.
#[inline(always)]
pub fn splat<S: Simd>(simd: S, value: f32) -> S::f32s {
    S::f32s::splat(simd, value)
}

/// The sum of a vector's numbers.
#[inline(always)]
pub(crate) fn reduce<S: Simd>(_: S, value: S::f32s) -> f32 {
    value.reduce_sum()
}

/// The sum of every one of as many vectors as a vector has numbers, the first of `each`: pairs are
/// folded into one vector until one is left.
#[inline(always)]
pub(crate) fn reduce_many<S: Simd>(_: S, mut each: [S::f32s; LANES]) -> S::f32s {
    let mut half = S::f32s::LEN / 2;
    while half > 0 {
        for k in 0..half {
            let (a, b) = (each[k], each[k + half]);
            each[k] = a.zip_low(b) + a.zip_high(b);
        }
        half /= 2;
    }
    each[0]
}

/// The vectors of a run added up.
#[inline(always)]
fn fold<S: Simd>(simd: S, run: &[f32]) -> S::f32s {
    let mut sum = load(simd, run, 0);
    for lane in (S::f32s::LEN..run.len()).step_by(S::f32s::LEN) {
        sum += load(simd, run, lane);
    }
    sum
}

/// Adds the sums of runs of `width` numbers, whole vectors, that follow each other.
#[inline(always)]
pub(crate) fn add_reduced<S: Simd>(simd: S, width: usize, from: &[f32], to: &mut [f32]) {
    let n = S::f32s::LEN;
    let (many, rest) = to.split_at_mut(to.len() / n * n);
    let (from, from_rest) = from.split_at(many.len() * width);
    for (from, to) in from.chunks_exact(n * width).zip(many.chunks_exact_mut(n)) {
        let mut each = [splat(simd, 0.0); LANES];
        for (each, from) in each.iter_mut().zip(from.chunks_exact(width)) {
            *each = fold(simd, from);
        }
        store::<S>(load(simd, to, 0) + reduce_many(simd, each), to, 0);
    }
    for (from, to) in from_rest.chunks_exact(width).zip(rest) {
        *to += fold(simd, from).reduce_sum();
    }
}

/// Copies whole vectors; fewer numbers than fill one at the end are left out.
#[inline(always)]
pub(crate) fn copy<S: Simd>(simd: S, from: &[f32], to: &mut [f32]) {
    let n = S::f32s::LEN;
    for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
        store::<S>(load(simd, from, 0), to, 0);
    }
}

/// exp(x), relative error below 2e-7; x is held within (-87.3, 88.3).
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let splat = |value: f32| S::f32s::splat(simd, value);
    let x = x.max(splat(-87.3)).min(splat(88.3));
    let whole = (x * splat(std::f32::consts::LOG2_E)).round_ties_even();
    // ln 2 in two parts, so that the first product is exact.
    let r = whole.mul_add(splat(-0.693_359_4), x);
    let r = whole.mul_add(splat(2.121_944_4e-4), r);
    let mut p = splat(1.987_569_1e-4);
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p.mul_add(r, splat(c));
    }
    let p = (p * r).mul_add(r, r) + splat(1.0);
    let power: S::i32s = whole.to_int();
    p * ((power + 127) << 23).bitcast::<S::f32s>()
}

/// [`ln`] of every number of a vector.
#[inline(always)]
pub fn ln_each<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let bits: S::i32s = x.bitcast();
    let exponent = (bits - HALF_ROOT) >> 23;
    let e: S::f32s = exponent.to_float();
    let m = (bits - (exponent << 23)).bitcast::<S::f32s>() - splat(simd, 1.0);
    let mut p = splat(simd, LN[0]);
    for c in &LN[1..] {
        p = p.mul_add(m, splat(simd, *c));
    }
    let square = m * m;
    let tail = (p * m).mul_sub(square, square * 0.5);
    // ln 2 in two parts, so that the large one is exact.
    e.mul_add(splat(simd, 0.693_359_4), e.mul_add(splat(simd, -2.121_944_4e-4), tail) + m)
}

/// Bits of sqrt(1/2): the mantissa is split there so that the polynomial is centred on 1.
const HALF_ROOT: i32 = 0x3f35_04f3;

/// The logarithm's polynomial, highest power first.
const LN: [f32; 9] = [
    7.037_683_6e-2,
    -1.151_461e-1,
    1.167_699_9e-1,
    -1.242_014_1e-1,
    1.424_932_3e-1,
    -1.666_805_8e-1,
    2.000_071_5e-1,
    -2.499_999_4e-1,
    3.333_333e-1,
];

/// Natural logarithm of a positive normal number to about 1e-7, in operations that vectorise: the
/// exponent taken off, a minimax polynomial for the mantissa in [sqrt(1/2), sqrt(2)) (coefficients
/// of the Cephes library's single-precision logarithm).
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let bits = x.to_bits() as i32;
    let exponent = (bits - HALF_ROOT) >> 23;
    let mantissa = f32::from_bits((bits - (exponent << 23)) as u32);
    let (e, m) = (exponent as f32, mantissa - 1.0);
    let mut p = LN[0];
    for c in &LN[1..] {
        p = p * m + c;
    }
    let square = m * m;
    let tail = p * m * square - 0.5 * square;
    // ln 2 in two parts, so that the large one is exact.
    (e * -2.121_944_4e-4 + tail) + m + e * 0.693_359_4
}

/// Natural logarithms, to single precision.
pub fn ln_all(values: &[f64]) -> Vec<f32> {
    let narrow: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    let mut found = vec![0.0; values.len()];
    dispatch!(Level::new(), simd => {
        let _ = simd;
        for (found, v) in found.iter_mut().zip(&narrow) {
            *found = ln(*v);
        }
    });
    // What is missing, and what single precision does not hold.
    let held = f32::MIN_POSITIVE..=f32::MAX;
    for (k, _) in narrow.iter().enumerate().filter(|(_, v)| !held.contains(v)) {
        found[k] = values[k].ln() as f32;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_good_to_single_precision() {
        let mut x = 1.3e-30f32;
        while x < 1e30 {
            let (got, want) = (f64::from(ln(x)), f64::from(x).ln());
            assert!((got - want).abs() < 2e-7 * want.abs().max(1.0), "{x}: {got} {want}");
            let each = dispatch!(Level::new(), simd => ln_each(simd, splat(simd, x))[0]);
            assert!((f64::from(each) - want).abs() < 2e-7 * want.abs().max(1.0), "{x}: {each}");
            x *= 1.37;
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn logarithms_know_what_single_precision_does_not_hold() {
        let values = [1.0, 1e-60, 0.0, 1e300, 2.5e-39, 7.0, f64::NAN];
        let found = ln_all(&values);
        for (got, x) in found.iter().zip(values).filter(|(_, x)| *x > 0.0) {
            assert!((f64::from(*got) / x.ln() - 1.0).abs() < 1e-6 || x == 1.0, "{x}: {got}");
        }
        assert!(found[2] == f32::NEG_INFINITY && found[6].is_nan());
    }

    #[test]
    fn the_exponential_is_good_to_single_precision() {
        let at: Vec<f32> = (-870..880).map(|x| x as f32 / 10.0 + 0.013).collect();
        let mut found = at.clone();
        dispatch!(Level::new(), simd => exp_all(simd, &mut found));
        for (x, got) in at.iter().zip(found) {
            let (got, want) = (f64::from(got), f64::from(*x).exp());
            assert!((got - want).abs() < 2e-7 * want, "{x}: {got} {want}");
        }
    }

    #[inline(always)]
    fn exp_all<S: Simd>(simd: S, values: &mut [f32]) {
        for value in values {
            *value = exp(simd, splat(simd, *value))[0];
        }
    }

    #[test]
    fn buffers_begin_on_a_cache_line() {
        for (len, guard) in [(0, 0), (5, 3), (160, 16)] {
            let buffer = Buffer::new(len, guard);
            let (all, first) = buffer.with_guards();
            assert!(first >= guard && all.len() >= first + len + guard);
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % (4 * LANES)), (len, 0));
        }
    }
}
