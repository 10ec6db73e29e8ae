//! Where a trace comes from: plain text, gzip, or the only text file of a zip archive. Nothing is
//! unpacked as a whole.

use std::io::{BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::trace::{self, Medians};
use crate::error::{Check, Problem};

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the medians out of a trace in any wrapping, told by the first bytes.
pub(crate) fn medians(mut source: impl Read + Seek) -> Check<Medians> {
    let unreadable = |error| Problem::new(format!("reading stopped: {error}"));
    let mut first = Vec::new();
    source.by_ref().take(2).read_to_end(&mut first).map_err(unreadable)?;
    source.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let source = BufReader::new(source);
    if first == GZIP {
        return trace::read(BufReader::new(MultiGzDecoder::new(source)));
    }
    if first != b"PK" {
        return trace::read(source);
    }
    let damaged = |error| Problem::new(format!("damaged zip archive: {error}"));
    let mut archive = ZipArchive::new(source).map_err(damaged)?;
    let traces = text_files(&archive);
    let [index] = traces[..] else {
        let found = traces.len();
        return Err(Problem::new(format!("{found} text files in the archive, expected one trace")));
    };
    trace::read(BufReader::new(archive.by_index(index).map_err(damaged)?))
}

/// Whether the first bytes are those of a trace, or of an archive that holds text and no arrays.
pub(crate) fn is_trace(bytes: &[u8]) -> bool {
    if bytes.starts_with(&GZIP) {
        return true;
    }
    if bytes.starts_with(b"PK") {
        let archive = ZipArchive::new(std::io::Cursor::new(bytes));
        return archive.is_ok_and(|archive| names_of_trace(&names(&archive).collect::<Vec<_>>()));
    }
    let mut lines = bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    lines
        .find(|line| !line.is_empty() && !line.starts_with(b"#"))
        .is_some_and(|line| line.starts_with(b"t=") && line.contains(&b';'))
}

/// Whether an archive of files with these names holds text and no arrays.
pub(crate) fn names_of_trace(names: &[String]) -> bool {
    !names.iter().any(|name| name.ends_with(".npy")) && names.iter().any(|name| is_text(name))
}

/// Whether a name is that of a trace. macOS adds a shadow of every file.
fn is_text(name: &str) -> bool {
    !name.starts_with("__macosx/") && (name.ends_with(".txt") || name.ends_with(".trace"))
}

fn text_files<S: Read + Seek>(archive: &ZipArchive<S>) -> Vec<usize> {
    names(archive).enumerate().filter(|(_, name)| is_text(name)).map(|(index, _)| index).collect()
}

/// The names in an archive, in small letters; empty where one is damaged.
pub(crate) fn names<S: Read + Seek>(archive: &ZipArchive<S>) -> impl Iterator<Item = String> {
    (0..archive.len()).map(|index| match archive.name_for_index(index) {
        Some(Ok(name)) => name.to_ascii_lowercase(),
        _ => String::new(),
    })
}
