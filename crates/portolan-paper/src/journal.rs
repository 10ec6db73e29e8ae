//! The journal: one line per finished trial, appended whole and synced, so that a run that is stopped
//! at any moment loses only what was being computed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::ReproduceError;
use crate::record::Record;

/// Its name in the folder of the results.
pub const FILE: &str = "journal.jsonl";

/// Finished trials by key, and the file that remembers them.
pub struct Journal {
    file: File,
    path: PathBuf,
    records: HashMap<String, Record>,
}

impl Journal {
    /// Opens or begins the journal of a folder, for this process alone. A last line that was cut
    /// off by a kill is dropped.
    pub fn open(folder: &Path) -> Result<Self, ReproduceError> {
        let path = folder.join(FILE);
        let failed = |source| ReproduceError::Journal { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(ReproduceError::Busy { path }),
            // Where locks are not supported one must not run twice.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        let mut records = HashMap::new();
        let bad = |line: usize, problem: String| {
            let path = path.clone();
            ReproduceError::BadJournal { path, line, problem }
        };
        let mut lines = 0;
        for line in bytes[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            lines += 1;
            let parsed = str::from_utf8(line).map_err(|e| e.to_string()).and_then(Record::parse);
            let record = parsed.map_err(|problem| bad(lines, problem))?;
            records.insert(record.key.clone(), record);
        }
        if bytes[whole..].first().is_some_and(|byte| *byte != b'{') {
            return Err(bad(lines + 1, "it is no journal of experiments".into()));
        }
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::Start(whole as u64)).map_err(failed)?;
        Ok(Self { file, path, records })
    }

    pub fn get(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// One more than the highest trial of any record.
    pub fn trials(&self) -> usize {
        self.records.values().map(|record| record.trial + 1).max().unwrap_or(0)
    }

    /// Adds a finished trial.
    pub fn add(&mut self, record: Record) -> Result<(), ReproduceError> {
        let mut line = record.line();
        // Kept as it will be read again, so that a resumed run and an unbroken one agree.
        let kept = Record::parse(&line).unwrap_or(record);
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|source| ReproduceError::Journal { path: self.path.clone(), source })?;
        self.records.insert(kept.key.clone(), kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Outcome;

    fn record(trial: usize) -> Record {
        let key = format!("trial seed={trial}");
        Record { key, trial, outcome: Outcome::Failed("no numbers here".into()) }
    }

    #[test]
    fn a_cut_line_is_dropped_and_the_rest_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        (0..3).for_each(|trial| journal.add(record(trial)).unwrap());
        drop(journal);
        let path = folder.path().join(FILE);
        let bytes = std::fs::read(&path).unwrap();
        let two = 1 + bytes.iter().rposition(|b| *b == b'{').unwrap();
        for cut in two..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut journal = Journal::open(folder.path()).unwrap();
            assert_eq!((journal.len(), journal.trials()), (2, 2), "cut at {cut}");
            journal.add(record(2)).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "cut at {cut}");
        }
    }

    #[test]
    fn a_journal_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let first = Journal::open(folder.path()).unwrap();
        assert!(matches!(Journal::open(folder.path()), Err(ReproduceError::Busy { .. })));
        drop(first);
        assert!(Journal::open(folder.path()).is_ok());
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["hello\n", "hello"] {
            std::fs::write(folder.path().join(FILE), text).unwrap();
            let Err(error) = Journal::open(folder.path()) else { panic!("it is no journal") };
            assert!(error.to_string().contains("line 1"), "{error}");
            assert_eq!(std::fs::read(folder.path().join(FILE)).unwrap(), text.as_bytes());
        }
    }
}
