//! Aligned room for vectors.

use super::LANES;

/// Numbers that start on a cache line, with room on both sides for shifted reads.
#[derive(Debug)]
pub struct Buffer {
    data: Vec<f32>,
    first: usize,
    len: usize,
}

impl Buffer {
    /// So many zeros, with room for `guard` numbers on both sides.
    pub fn new(len: usize, guard: usize) -> Self {
        let guard = guard.next_multiple_of(LANES);
        let data = vec![0.0f32; len + 2 * guard + LANES];
        let align = data.as_ptr().align_offset(4 * LANES).min(LANES);
        Self { first: guard + align, data, len }
    }

    /// Everything, the room on both sides included, and where the numbers begin in it.
    pub(crate) fn with_guards(&self) -> (&[f32], usize) {
        (&self.data, self.first)
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data[self.first..self.first + self.len]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[self.first..self.first + self.len]
    }
}
