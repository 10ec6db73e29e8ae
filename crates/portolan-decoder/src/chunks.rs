//! Work shared out by chunks. They are worked on in any order, or at the same time, and what they sum
//! is added in the order of the chunks: the result does not depend on the number of threads.

/// Calls `work(chunk, its part of each buffer)` for every chunk.
pub(super) fn each_chunk<const N: usize>(
    parallel: bool,
    chunks: usize,
    buffers: [&mut [f32]; N],
    work: &(impl Fn(usize, [&mut [f32]; N]) + Sync),
) {
    each_from(parallel, 0, chunks, buffers, &mut [], &|chunk, parts, _: &mut [f32]| {
        work(chunk, parts);
    });
}

/// The same with room to work in: one per chunk where they run at the same time, else one for all.
pub(super) fn each_from<const N: usize>(
    parallel: bool,
    first: usize,
    chunks: usize,
    mut buffers: [&mut [f32]; N],
    scratch: &mut [f32],
    work: &(impl Fn(usize, [&mut [f32]; N], &mut [f32]) + Sync),
) {
    if chunks == 1 {
        return work(first, buffers, scratch);
    }
    let half = chunks / 2;
    let mut rest: [&mut [f32]; N] = std::array::from_fn(|_| Default::default());
    for (buffer, rest) in buffers.iter_mut().zip(&mut rest) {
        let whole = std::mem::take(buffer);
        let at = whole.len() / chunks * half;
        (*buffer, *rest) = whole.split_at_mut(at);
    }
    if parallel {
        let at = scratch.len() / chunks * half;
        let (left, right) = scratch.split_at_mut(at);
        rayon::join(
            || each_from(parallel, first, half, buffers, left, work),
            || each_from(parallel, first + half, chunks - half, rest, right, work),
        );
    } else {
        each_from(parallel, first, half, buffers, scratch, work);
        each_from(parallel, first + half, chunks - half, rest, scratch, work);
    }
}
