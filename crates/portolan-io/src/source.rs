//! A file that is being read: an archive stays on disk and is read in parts, anything else is taken
//! into memory, as is what cannot be rewound (a pipe).

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::OnceLock;

use crate::error::{Check, IoError, Problem, Result};
use crate::format::{Format, detect, open_store};
use crate::npz::{Npz, ReadSeek};
use crate::records::sigmf::recordings;
use crate::store::Store;
use crate::{mannheim, memory};

/// The first bytes of a zip archive.
const ZIP: &[u8] = b"PK";

/// How much of a pipe is read before the memory is looked at again.
const PIECE: u64 = 1 << 24;

/// An open file.
pub(crate) enum Source {
    Archive(BufReader<File>),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file; `-` is standard input, read once and kept.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return standard_input().map(|bytes| Source::Memory(bytes.to_vec()));
        }
        if let Some(first) =
            path.is_dir().then(|| recordings(path)).and_then(|all| all.into_iter().next())
        {
            // The reader takes all recordings of a folder.
            return contents(&first).map(Source::Memory);
        }
        let mut file = open(path)?;
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        let mut first = Vec::new();
        if regular {
            let failed = |source| IoError::Read { path: path.to_owned(), source };
            file.by_ref().take(ZIP.len() as u64).read_to_end(&mut first).map_err(failed)?;
            file.seek(SeekFrom::Start(0)).map_err(failed)?;
        }
        match first == ZIP {
            true => Ok(Source::Archive(BufReader::with_capacity(1 << 16, file))),
            false => contents_of(file, path).map(Source::Memory),
        }
    }

    /// The format that the caller asks for, else the one that the bytes and the name tell.
    pub fn format(&mut self, path: &Path, asked: Option<Format>) -> Check<Format> {
        match (&self, asked) {
            // A caller who says "mat" does not know the version.
            (Source::Memory(_), Some(Format::Mat5)) | (_, None) => {}
            (_, Some(asked)) => return Ok(asked),
        }
        match self {
            Source::Archive(file) => detect(path, ZIP, archive_names(file).as_deref()),
            Source::Memory(bytes) => {
                let names = match bytes.starts_with(ZIP) {
                    true => archive_names(Cursor::new(bytes.as_slice())),
                    false => None,
                };
                detect(path, bytes, names.as_deref())
            }
        }
    }

    /// The file from its first byte.
    pub fn stream(&mut self) -> Check<Box<dyn ReadSeek + '_>> {
        match self {
            Source::Archive(file) => {
                let unreadable = |error| Problem::new(format!("reading stopped: {error}"));
                file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
                Ok(Box::new(file))
            }
            Source::Memory(bytes) => Ok(Box::new(Cursor::new(bytes.as_slice()))),
        }
    }

    /// The file itself, at whatever byte.
    pub fn into_stream(self) -> Box<dyn ReadSeek> {
        match self {
            Source::Archive(file) => Box::new(file),
            Source::Memory(bytes) => Box::new(Cursor::new(bytes)),
        }
    }

    /// The bytes of a file that was taken into memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Source::Archive(_) => &[],
            Source::Memory(bytes) => bytes,
        }
    }

    pub fn store(&mut self, format: Format) -> Check<Box<dyn Store + '_>> {
        match format {
            Format::Npz => Ok(Box::new(Npz::open(self.stream()?)?)),
            _ => open_store(format, self.bytes()),
        }
    }
}

/// The names in a zip archive, in small letters; None where it is damaged.
pub(crate) fn archive_names(archive: impl Read + Seek) -> Option<Vec<String>> {
    let archive = zip::ZipArchive::new(archive).ok()?;
    Some(mannheim::archive_names(&archive).collect())
}

/// What stands on standard input.
fn standard_input() -> Result<&'static [u8]> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = BYTES.get() {
        return Ok(bytes);
    }
    let mut bytes = Vec::new();
    let failed = |source| IoError::Read { path: "-".into(), source };
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
    Ok(BYTES.get_or_init(|| bytes))
}

fn open(path: &Path) -> Result<File> {
    let open = |source| IoError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(open)?;
    if file.metadata().map_err(open)?.is_dir() {
        return Err(Problem::new("is a folder, expected a file").in_file(path));
    }
    Ok(file)
}

/// A whole file in memory.
pub(crate) fn contents(path: &Path) -> Result<Vec<u8>> {
    contents_of(open(path)?, path)
}

fn contents_of(mut file: File, path: &Path) -> Result<Vec<u8>> {
    const ADVICE: &str = "save it as .npz, which is read in parts";
    let failed = |source| IoError::Read { path: path.to_owned(), source };
    let fits = |bytes: u64| {
        memory::check("the file", bytes, ADVICE).map_err(|problem| problem.in_file(path))
    };
    let length = file.metadata().map_or(0, |found| found.len());
    fits(length)?;
    let mut bytes = Vec::new();
    // A file that does not know its length, or grows while it is read, is asked for bit by bit.
    loop {
        let piece = PIECE.max(length.saturating_sub(bytes.len() as u64).saturating_add(1));
        if file.by_ref().take(piece).read_to_end(&mut bytes).map_err(failed)? == 0 {
            return Ok(bytes);
        }
        // A vector that grows is copied to one of twice the size.
        if bytes.len() == bytes.capacity() {
            fits(2 * bytes.len() as u64)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_stay_on_disk_and_the_rest_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"PK and more").unwrap();
        let mut source = Source::open(&path).unwrap();
        assert!(matches!(source, Source::Archive(_)) && source.bytes().is_empty());
        let mut text = String::new();
        source.stream().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "PK and more");
        for bytes in [&b""[..], b"P", b"row,col\n"] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Source::open(&path).unwrap().bytes(), bytes);
            assert_eq!(contents(&path).unwrap(), bytes);
        }
    }
}
