//! Zip archives: a file of an archive in memory, with a limit on what it unpacks to.

use std::io::Read;

use zip::ZipArchive;

use super::{Input, damaged};
use crate::error::{Check, Problem};
use crate::memory;
use crate::npz::ReadSeek;

/// What a file may unpack to: so many bytes, and so many for each packed byte.
const UNPACKED: u64 = 1 << 20;
const PER_BYTE: u64 = 256;

/// An open archive.
pub(super) struct Archive<'a>(ZipArchive<Box<dyn ReadSeek + 'a>>);

impl<'a> Archive<'a> {
    pub fn open(input: &'a mut Input<'_>) -> Check<Self> {
        let archive = ZipArchive::new(input.source.stream()?);
        archive.map(Self).map_err(|error| damaged("zip archive", error))
    }

    /// The first name for which this holds, shadows of macOS aside.
    pub fn find(&self, is: impl Fn(&str) -> bool) -> Option<String> {
        let names = self.0.file_names().filter_map(Result::ok);
        let mut names = names.filter(|name| !name.starts_with("__MACOSX/"));
        names.find(|name| is(&name.to_ascii_lowercase())).map(|name| name.into_owned())
    }

    /// The bytes of a file; None where there is none of that name.
    pub fn file(&mut self, name: &str) -> Check<Option<Vec<u8>>> {
        let entry = match self.0.by_name(name) {
            Ok(entry) => entry,
            Err(zip::result::ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(damaged("zip archive", error)),
        };
        let most = UNPACKED.max(entry.compressed_size().saturating_mul(PER_BYTE));
        memory::check("a file of the archive", entry.size().min(most), "unpack it elsewhere")?;
        let mut bytes = Vec::new();
        let read = entry.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| damaged("zip archive", error))?;
        match bytes.len() as u64 > most {
            true => Err(Problem::new(format!("{name} unpacks to more than it can hold"))),
            false => Ok(Some(bytes)),
        }
    }
}
