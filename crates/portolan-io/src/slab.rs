//! A part of an array of an npz file: a range on every axis, read without the rest. In a stored
//! array the bytes are sought; a deflated one is streamed through up to the last of them.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use ndarray::{ArrayD, IxDyn};

use crate::error::{Check, Problem, quoted};
use crate::npz::{ADVICE, Npz, Numbers, skip_bytes};
use crate::store::{Store, reserve, row_major};

/// Bytes that are read at a time where the wanted ones lie close together.
const WINDOW: usize = 1 << 18;

impl Npz<'_> {
    /// The elements in a range of every axis, in row-major order.
    pub fn slab(&mut self, index: usize, ranges: &[Range<usize>]) -> Check<ArrayD<f64>> {
        let numbers = self.numbers(index)?;
        let array = self.array(index).clone();
        let name = self.entries()[index].name.clone();
        let shape = &array.header.shape;
        let inside =
            |(range, side): (&Range<usize>, &usize)| range.start <= range.end && range.end <= *side;
        if ranges.len() != shape.len() || !ranges.iter().zip(shape).all(inside) {
            return Err(self.wrong(index, format!("{ranges:?} is no part of shape {shape:?}")));
        }
        // Column-major order is row-major order of the axes reversed.
        let reversed = array.header.column_major;
        let (mut shape, mut ranges) = (shape.clone(), ranges.to_vec());
        if reversed {
            shape.reverse();
            ranges.reverse();
        }
        let part: Vec<usize> = ranges.iter().map(Range::len).collect();
        let copies = if reversed && part.len() > 1 { 2 } else { 1 };
        // A side of 0 makes the product of the others meaningless.
        let wanted = if part.contains(&0) { 0 } else { part.iter().product() };
        let mut values = reserve(&name, wanted, copies, ADVICE)?;
        if wanted > 0 {
            let runs = Runs::new(&shape, &ranges);
            let skip = array.header.length as u64;
            let read = if array.stored {
                let mut bytes = Sought { source: self.seekable(index)?, skip };
                runs.read(&mut bytes, numbers, &mut values)
            } else {
                let mut bytes = Streamed { source: self.stream(index)?, skip, at: 0 };
                runs.read(&mut bytes, numbers, &mut values)
            };
            let damaged = |error| format!("array {}: damaged: {error}", quoted(&name));
            read.map_err(|error| Problem::new(damaged(error)))?;
        }
        let whole = ArrayD::from_shape_vec(IxDyn(&part), values)
            .map_err(|error| self.wrong(index, error))?;
        Ok(if reversed { row_major(whole.reversed_axes()) } else { whole })
    }
}

/// The wanted elements as runs that lie together in the file, in the file's order.
struct Runs {
    /// Sides and ranges of the axes before those that a run covers.
    outer: Vec<(usize, Range<usize>)>,
    /// Elements per step on the last of the outer axes.
    stride: usize,
    /// First element of a run within its stride, and its length.
    first: usize,
    length: usize,
}

impl Runs {
    fn new(shape: &[usize], ranges: &[Range<usize>]) -> Self {
        // Axes from the end on that are wanted whole, and one more, make up a run.
        let whole = |axis: &usize| ranges[*axis] == (0..shape[*axis]);
        let covered = (0..shape.len()).rev().take_while(whole).count();
        let cut = shape.len().saturating_sub(covered + 1);
        let inner: usize = shape[cut..].iter().skip(1).product();
        let (first, length) = match ranges.get(cut) {
            Some(range) => (range.start * inner, range.len() * inner),
            None => (0, 1),
        };
        let outer = shape[..cut].iter().copied().zip(ranges[..cut].iter().cloned()).collect();
        Self { outer, stride: shape[cut..].iter().product(), first, length }
    }

    fn read(
        &self,
        source: &mut impl Bytes,
        numbers: Numbers,
        out: &mut Vec<f64>,
    ) -> io::Result<()> {
        let size = numbers.kind.size();
        // Reading what lies between runs costs less than seeking, unless it is much.
        let ahead = if self.stride.saturating_mul(size) <= WINDOW / 2 { WINDOW } else { 0 };
        let mut window = Window { start: 0, bytes: Vec::new(), end: numbers.count * size };
        let mut place: Vec<usize> = self.outer.iter().map(|(_, range)| range.start).collect();
        loop {
            let row = self.outer.iter().zip(&place).fold(0, |row, ((side, _), at)| row * side + at);
            let mut from = (row * self.stride + self.first) * size;
            let end = from + self.length * size;
            while from < end {
                let piece = (end - from).min(WINDOW / size * size);
                window.need(source, from, piece, ahead)?;
                numbers.kind.decode(numbers.big_endian, window.get(from, piece), out);
                from += piece;
            }
            if !self.advance(&mut place) {
                return Ok(());
            }
        }
    }

    /// Steps to the next place on the outer axes; false after the last.
    fn advance(&self, place: &mut [usize]) -> bool {
        for (at, (_, range)) in place.iter_mut().zip(&self.outer).rev() {
            *at += 1;
            if *at < range.end {
                return true;
            }
            *at = range.start;
        }
        false
    }
}

/// A stretch of the array's bytes.
struct Window {
    start: usize,
    bytes: Vec<u8>,
    /// Bytes of the whole array.
    end: usize,
}

impl Window {
    /// Makes sure that `length` bytes from `from` on are there.
    fn need(
        &mut self,
        source: &mut impl Bytes,
        from: usize,
        length: usize,
        ahead: usize,
    ) -> io::Result<()> {
        if from >= self.start && from + length <= self.start + self.bytes.len() {
            return Ok(());
        }
        // What was read of these bytes cannot be read again from a stream.
        let held = (self.start + self.bytes.len()).saturating_sub(from).min(self.bytes.len());
        self.bytes.drain(..self.bytes.len() - held);
        let wanted = length.max(ahead).min(self.end - from);
        self.bytes.resize(wanted, 0);
        self.start = from;
        source.read_at((from + held) as u64, &mut self.bytes[held..])
    }

    fn get(&self, from: usize, length: usize) -> &[u8] {
        &self.bytes[from - self.start..][..length]
    }
}

/// Elements' bytes by their position; asked for in rising order.
trait Bytes {
    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
}

struct Sought<S> {
    source: S,
    skip: u64,
}

impl<S: Read + Seek> Bytes for Sought<S> {
    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.source.seek(SeekFrom::Start(self.skip + at))?;
        self.source.read_exact(bytes)
    }
}

struct Streamed<S> {
    source: S,
    skip: u64,
    at: u64,
}

impl<S: Read> Bytes for Streamed<S> {
    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        skip_bytes(&mut self.source, self.skip + at - self.at)?;
        self.source.read_exact(bytes)?;
        self.skip = 0;
        self.at = at + bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use ndarray::{Array3, SliceInfoElem};
    use proptest::prelude::*;
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    /// An archive of 'a', stored or deflated, row-major or column-major, of 4 bytes an element.
    fn archive(array: &Array3<f64>, deflated: bool, column_major: bool) -> Vec<u8> {
        let mut npy = crate::npy::header("<f4", array.shape()).unwrap();
        if column_major {
            let text = String::from_utf8_lossy(&npy[10..]).replace("False", "True ");
            npy.splice(10.., text.into_bytes());
        }
        let order = if column_major { array.t() } else { array.view() };
        npy.extend(order.iter().flat_map(|v| (*v as f32).to_le_bytes()));
        let method = if deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method);
        archive.start_file("a.npy", options).unwrap();
        archive.write_all(&npy).unwrap();
        archive.finish().unwrap().into_inner()
    }

    fn range(side: usize) -> impl Strategy<Value = Range<usize>> {
        (0..=side, 0..=side).prop_map(|(a, b)| a.min(b)..a.max(b))
    }

    fn part() -> impl Strategy<Value = ((usize, usize, usize), [Range<usize>; 3])> {
        (1..9usize, 1..9usize, prop::sample::select(vec![1, 2, 5, 40_000])).prop_flat_map(
            |(rows, cols, bands)| {
                let ranges = [range(rows), range(cols), range(bands)];
                (Just((rows, cols, bands)), ranges)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_part_is_what_slicing_the_whole_gives(
            (shape, ranges) in part(), deflated: bool, column_major: bool,
        ) {
            let mut n = 0.0;
            let array = Array3::from_shape_simple_fn(shape, || { n += 1.0; n });
            let bytes = archive(&array, deflated, column_major);
            let mut npz = Npz::open(Cursor::new(&bytes)).unwrap();
            let found = npz.slab(0, &ranges).unwrap();
            let slices: Vec<SliceInfoElem> =
                ranges.iter().map(|range| SliceInfoElem::from(range.clone())).collect();
            let expected = array.view().into_dyn().slice_move(slices.as_slice());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let bytes = archive(&Array3::zeros((2, 3, 4)), false, false);
        let mut npz = Npz::open(Cursor::new(&bytes)).unwrap();
        assert!(npz.slab(0, &[0..3, 0..3, 0..4]).is_err());
        assert!(npz.slab(0, &[0..2, 0..3]).is_err());
        assert_eq!(npz.slab(0, &[0..0, 0..3, 0..4]).unwrap().len(), 0);
    }
}
