//! Loads and stores. Every function here and in the kernels must end up inside the one that
//! [`fearless_simd::dispatch`] compiles for the processor's instructions, closures included:
//! whatever is not inlined is compiled for the baseline and calls each instruction as a function.

use fearless_simd::prelude::*;

#[inline(always)]
pub(crate) fn load<S: Simd>(simd: S, from: &[f32], at: usize) -> S::f32s {
    S::f32s::from_slice(simd, &from[at..at + S::f32s::LEN])
}

#[inline(always)]
pub(crate) fn store<S: Simd>(value: S::f32s, to: &mut [f32], at: usize) {
    value.store_slice(&mut to[at..at + S::f32s::LEN]);
}

#[inline(always)]
pub(crate) fn splat<S: Simd>(simd: S, value: f32) -> S::f32s {
    S::f32s::splat(simd, value)
}
