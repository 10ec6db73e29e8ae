//! Files that were dropped into the page: kept in a folder of our own until the explorer ends.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use portolan::Model;
use portolan_io::json::summary_json;
use portolan_io::parse::base_name;
use portolan_io::{
    Content as Read, FileSummary, Loaded, PlaceTable, ReadOptions, first_lines, inspect, read,
    read_places, read_readings,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answer::Refusal;
use crate::library::{Content, Item, Library, Source};
use crate::surface::Surface;

/// Bytes of one upload.
pub const MOST_BYTES: usize = 64 << 20;
/// Uploads that are kept.
const MOST_FILES: usize = 16;
/// Lines of a table that a preview shows.
const LINES: usize = 8;
/// Columns of a table that a preview shows.
const COLUMNS: usize = 600;

/// What was said about a file: names of the command's options, and their values.
pub type Fields = Vec<(String, String)>;

/// A file that was uploaded.
#[derive(Clone)]
pub struct Upload {
    pub id: u32,
    /// What its owner calls it.
    pub name: String,
    pub bytes: usize,
    path: PathBuf,
}

/// All uploads.
pub struct Uploads {
    folder: TempDir,
    files: Mutex<(u32, Vec<Upload>)>,
}

/// Letters of a name in our folder, and of its ending.
const LONGEST_STORED: (usize, usize) = (80, 12);

/// What a file is called in our folder: letters, digits and a few signs. The ending stays, because it
/// says what the file is.
fn stored(name: &str) -> String {
    let plain = |text: &str, most: usize| -> String {
        let kept = |c: char| if c.is_alphanumeric() || ".-_".contains(c) { c } else { '_' };
        text.chars().map(kept).take(most).collect()
    };
    let name = name.trim_start_matches('.');
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let stem = plain(if stem.is_empty() { "upload" } else { stem }, LONGEST_STORED.0);
    match plain(ending, LONGEST_STORED.1) {
        ending if ending.is_empty() => stem,
        ending => format!("{stem}.{ending}"),
    }
}

impl Uploads {
    pub fn new() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("portolan-explore-").tempdir()?;
        Ok(Self { folder, files: Mutex::default() })
    }

    /// Keeps a file under a name that cannot lead anywhere else.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<Upload, Refusal> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.0 += 1;
        let (id, name) = (files.0, base_name(Path::new(name)));
        let folder = self.folder.path().join(id.to_string());
        let path = folder.join(stored(&name));
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(&path, bytes))
            .map_err(|error| Refusal::broken(format!("{name} could not be kept: {error}")))?;
        let upload = Upload { id, name, bytes: bytes.len(), path };
        files.1.push(upload.clone());
        if files.1.len() > MOST_FILES {
            let old = files.1.remove(0);
            // A file that cannot be removed goes with the folder.
            let _ = std::fs::remove_file(old.path);
        }
        Ok(upload)
    }

    pub fn get(&self, id: u32) -> Result<Upload, Refusal> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let found = files.1.iter().find(|upload| upload.id == id).cloned();
        found.ok_or_else(|| {
            Refusal::missing(format!("there is no upload {id}: drop the file again"))
        })
    }
}

/// The options that words make.
pub fn options(words: &[(String, String)]) -> Result<ReadOptions, Refusal> {
    let mut options = ReadOptions::default();
    for (name, value) in words {
        options.tell(name, value).map_err(Refusal::input)?;
    }
    Ok(options)
}

/// No receiver reads as much, in dBm: such a level is a code.
const LOUDEST_DBM: f64 = 50.0;

/// Says so where levels are too high to be levels.
fn too_loud(summary: &FileSummary) -> Option<String> {
    let most = 10.0 * summary.range?.1.log10();
    let is = summary.unit == Some("dbm") && most > LOUDEST_DBM;
    is.then(|| {
        format!("the highest level is {most:.0} dBm, which nothing reads: does it mean not heard?")
    })
}

impl Upload {
    /// The first lines, and what the file would be with these words.
    pub fn preview(&self, words: &Fields) -> Value {
        let lines = first_lines(&self.path, LINES).unwrap_or_default();
        let lines: Vec<Vec<&String>> =
            lines.iter().map(|line| line.iter().take(COLUMNS).collect()).collect();
        let found = options(words).and_then(|options| Ok(inspect(&self.path, &options)?));
        let warning = found.as_ref().ok().and_then(too_loud);
        let (summary, problem) = match found {
            Ok(summary) => (Some(summary_json(&summary)), None),
            Err(refusal) => (None, Some(self.plain(refusal).message)),
        };
        json!({
            "upload": self.id, "name": self.name, "bytes": self.bytes, "lines": lines,
            "summary": summary, "problem": problem, "warning": warning,
        })
    }

    /// Reads it as a table of places of a model.
    pub fn places(&self, model: &Model) -> Result<PlaceTable, Refusal> {
        read_places(&self.path, model.crs(), model.height_m(), None)
            .map_err(|error| self.plain(error.into()))
    }

    /// Reads it and takes it into the library.
    pub fn open(&self, library: &Library, words: &Fields) -> Result<Arc<Item>, Refusal> {
        open(library, &self.path, &self.name, words).map_err(|refusal| self.plain(refusal))
    }

    /// A refusal that calls the file by its own name.
    fn plain(&self, refusal: Refusal) -> Refusal {
        let message = refusal.message.replace(&self.path.display().to_string(), &self.name);
        Refusal { message, ..refusal }
    }
}

/// Reads a file and takes it into the library under a name.
pub fn open(
    library: &Library,
    path: &Path,
    name: &str,
    words: &Fields,
) -> Result<Arc<Item>, Refusal> {
    let options = options(words)?;
    // A bare array or a table could be either; where it is a survey, it is for readings.
    let Loaded { value, warnings } = match read(path, &options) {
        Ok(found) => found,
        Err(error) => match read_readings(path, &options) {
            Ok(found) => Loaded { value: Read::Readings(found.value), warnings: found.warnings },
            Err(_) => return Err(error.into()),
        },
    };
    let content = match value {
        Read::Readings(readings) => Content::Readings(Arc::new(readings)),
        Read::Map(map) => Content::Surface(Arc::new(Surface::Map(Box::new(map)))),
        Read::Model(model) => Content::Surface(Arc::new(Surface::Model(model))),
    };
    let source = Source::File { name: name.to_string(), words: words.clone() };
    library.add(base_name(Path::new(name)), source, content, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        for (given, kept) in [
            ("survey.csv", "survey.csv"),
            ("../../etc/passwd", "passwd"),
            ("..", "unnamed"),
            ("a b;rm -rf.csv", "a_b_rm_-rf.csv"),
            (".hidden.csv", "hidden.csv"),
            ("C:\\x\\y.csv", "C__x_y.csv"),
            ("", "unnamed"),
            ("\u{0}\n", "unnamed"),
        ] {
            assert_eq!(stored(&base_name(Path::new(given))), kept, "{given:?}");
        }
        let long = stored(&format!("{}.npz", "x".repeat(150)));
        assert!(long.len() < 90 && long.ends_with("x.npz"), "{long}");
        let uploads = Uploads::new().unwrap();
        for i in 0..20 {
            let upload = uploads.add("../x.csv", b"x_m,y_m,dbm_1GHz\n0,0,-1\n1,1,-2\n").unwrap();
            assert!(upload.path.starts_with(uploads.folder.path()), "{i}");
        }
        assert!(uploads.get(1).is_err() && uploads.get(20).is_ok());
    }
}
