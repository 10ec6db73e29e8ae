//! The frame of a zip archive whose entries are stored and whose lengths are known beforehand, so
//! that they can be filled in any order (PKWARE's APPNOTE, sections 4.3.7 to 4.3.16; zip64 where a
//! length or an offset needs it).

/// What a 32-bit field holds where the true number stands in a zip64 field.
const ELSEWHERE: u32 = u32::MAX;

/// 1980-01-01, the first day a zip can name: the bytes depend on the content alone.
const DATE: u16 = 0x21;

/// The permissions that `unzip` gives: a plain file, rw-r--r--.
const MODE: u32 = 0o100_644 << 16;

/// One stored entry.
#[derive(Clone, Debug)]
pub(crate) struct StoredEntry {
    pub name: String,
    pub length: u64,
    /// Where the local header stands.
    pub offset: u64,
    pub crc: u32,
}

/// Entries one after the other; lengths are kept, check sums come later.
pub(crate) fn layout(entries: impl IntoIterator<Item = (String, u64)>) -> Vec<StoredEntry> {
    let mut offset = 0;
    let entries = entries.into_iter().map(|(name, length)| {
        let entry = StoredEntry { name, length, offset, crc: 0 };
        offset = entry.data() + length;
        entry
    });
    entries.collect()
}

impl StoredEntry {
    fn is_large(&self) -> bool {
        self.length >= u64::from(ELSEWHERE)
    }

    /// Where the first byte of the content stands.
    pub fn data(&self) -> u64 {
        self.offset + self.local_header().len() as u64
    }

    pub fn end(&self) -> u64 {
        self.data() + self.length
    }

    /// What stands before the content.
    pub fn local_header(&self) -> Vec<u8> {
        let mut large = Vec::new();
        if self.is_large() {
            large.extend(self.length.to_le_bytes());
            large.extend(self.length.to_le_bytes());
        }
        let extra = zip64(&large);
        let mut header = b"PK\x03\x04".to_vec();
        self.shared_part(&mut header, &extra);
        header.extend(self.name.as_bytes());
        header.extend(extra);
        header
    }

    /// The entry's line in the directory at the end.
    fn directory_line(&self) -> Vec<u8> {
        let mut large = Vec::new();
        if self.is_large() {
            large.extend(self.length.to_le_bytes());
            large.extend(self.length.to_le_bytes());
        }
        if self.offset >= u64::from(ELSEWHERE) {
            large.extend(self.offset.to_le_bytes());
        }
        let extra = zip64(&large);
        let mut line = b"PK\x01\x02".to_vec();
        // Made on Unix by version 4.5.
        line.extend([45, 3]);
        self.shared_part(&mut line, &extra);
        // No comment, first disk, binary content.
        line.extend([0; 6]);
        line.extend(MODE.to_le_bytes());
        line.extend(short(self.offset).to_le_bytes());
        line.extend(self.name.as_bytes());
        line.extend(extra);
        line
    }

    /// From the version that is needed to the length of the extra field.
    fn shared_part(&self, out: &mut Vec<u8>, extra: &[u8]) {
        let version: u16 = if extra.is_empty() { 20 } else { 45 };
        // No flags, stored, midnight.
        for number in [version, 0, 0, 0, DATE] {
            out.extend(number.to_le_bytes());
        }
        for number in [self.crc, short(self.length), short(self.length)] {
            out.extend(number.to_le_bytes());
        }
        for number in [self.name.len() as u16, extra.len() as u16] {
            out.extend(number.to_le_bytes());
        }
    }
}

/// The directory that ends an archive whose last entry ends where it stands.
pub(crate) fn directory(entries: &[StoredEntry]) -> Vec<u8> {
    let start = entries.last().map_or(0, StoredEntry::end);
    let mut bytes: Vec<u8> = entries.iter().flat_map(StoredEntry::directory_line).collect();
    let (count, length) = (entries.len() as u64, bytes.len() as u64);
    if start >= u64::from(ELSEWHERE) || count >= u64::from(u16::MAX) {
        bytes.extend(b"PK\x06\x06");
        bytes.extend(44u64.to_le_bytes());
        bytes.extend([45, 3, 45, 0]);
        bytes.extend([0; 8]);
        for number in [count, count, length, start] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(b"PK\x06\x07\0\0\0\0");
        bytes.extend((start + length).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
    }
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([short(length).to_le_bytes(), short(start).to_le_bytes()].concat());
    bytes.extend([0; 2]);
    bytes
}

fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(ELSEWHERE)
}

fn zip64(numbers: &[u8]) -> Vec<u8> {
    match numbers.len() {
        0 => Vec::new(),
        length => [&1u16.to_le_bytes()[..], &(length as u16).to_le_bytes(), numbers].concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Seek, SeekFrom};

    use zip::ZipArchive;

    use super::*;

    /// A file of which only some pieces are not zero.
    struct Sparse {
        pieces: Vec<(u64, Vec<u8>)>,
        length: u64,
        at: u64,
    }

    impl Read for Sparse {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let there = (self.length - self.at).min(out.len() as u64) as usize;
            for (n, byte) in out[..there].iter_mut().enumerate() {
                let at = self.at + n as u64;
                let piece = self.pieces.iter().find_map(|(start, bytes)| {
                    bytes.get(usize::try_from(at.checked_sub(*start)?).ok()?)
                });
                *byte = piece.copied().unwrap_or(0);
            }
            self.at += there as u64;
            Ok(there)
        }
    }

    impl Seek for Sparse {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.at = match to {
                SeekFrom::Start(at) => at,
                SeekFrom::End(by) => self.length.saturating_add_signed(by),
                SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            };
            Ok(self.at)
        }
    }

    #[test]
    fn a_small_archive_is_what_the_zip_crate_reads() {
        let contents: [&[u8]; 3] = [b"one", b"", b"three"];
        let names = ["a.npy", "b.npy", "c.npy"].map(str::to_owned);
        let mut entries =
            layout(names.iter().cloned().zip(contents.map(|bytes| bytes.len() as u64)));
        let mut bytes = Vec::new();
        for (entry, content) in entries.iter_mut().zip(contents) {
            let mut crc = flate2::Crc::new();
            crc.update(content);
            entry.crc = crc.sum();
            bytes.extend(entry.local_header());
            bytes.extend(content);
        }
        bytes.extend(directory(&entries));
        let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
        for (n, content) in contents.iter().enumerate() {
            let mut file = archive.by_index(n).unwrap();
            assert_eq!(file.name_raw(), names[n].as_bytes());
            let mut found = Vec::new();
            file.read_to_end(&mut found).unwrap();
            assert_eq!(found, *content);
        }
    }

    #[test]
    fn entries_and_offsets_beyond_4_gb() {
        let giant = 5_000_000_000;
        let names = ["a.npy", "b.npy", "c.npy"].map(str::to_owned);
        let entries = layout(names.into_iter().zip([giant, u64::from(u32::MAX), 7]));
        let mut pieces: Vec<(u64, Vec<u8>)> =
            entries.iter().map(|entry| (entry.offset, entry.local_header())).collect();
        let start = entries[2].end();
        pieces.push((start, directory(&entries)));
        let length = start + pieces[3].1.len() as u64;
        let mut archive = ZipArchive::new(Sparse { pieces, length, at: 0 }).unwrap();
        assert_eq!(archive.len(), 3);
        for (n, entry) in entries.iter().enumerate() {
            let file = archive.by_index(n).unwrap();
            assert_eq!((file.size(), file.compressed_size()), (entry.length, entry.length));
            assert_eq!(file.header_start(), entry.offset);
            assert_eq!(file.data_start(), Some(entry.data()));
        }
    }
}
