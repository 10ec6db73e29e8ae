//! Writing a file beside its name and renaming it when complete: no half files, no surprises.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::Builder;

use crate::error::{IoError, Problem, Result};

/// The temporary files that are being filled.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every file that is still being written, for a process that is about to end. No file
/// gets its name while the guard lives.
pub fn abandon_writes() -> impl Sized {
    let mut files = unfinished();
    remove_all(&mut files);
    files
}

fn remove_all(files: &mut Vec<PathBuf>) {
    for file in files.drain(..) {
        // It may have failed by itself in the meantime.
        let _ = std::fs::remove_file(file);
    }
}

/// Refuses an output that exists (unless `force`), whose folder does not, or that is no file.
pub fn check_output(path: &Path, force: bool) -> Result<()> {
    if path.is_dir() {
        return Err(Problem::new("it is a folder, expected a file name").in_target(path));
    }
    // Renaming onto a device would replace it.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(Problem::new("it is a device or a pipe, expected a file name").in_target(path));
    }
    if !folder(path).is_dir() {
        return Err(Problem::new("its folder does not exist").in_target(path));
    }
    if !force && path.symlink_metadata().is_ok() {
        return Err(IoError::Exists { path: path.to_owned() });
    }
    Ok(())
}

/// Writes finished bytes, a picture say.
pub fn write_bytes(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    write_file(path, force, |out| out.write_all(bytes))
}

/// Calls `fill` with a temporary file and gives it its name once everything is on disk.
pub(crate) fn write_file(
    path: &Path,
    force: bool,
    fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<()> {
    check_output(path, force)?;
    let failed = |source| IoError::Write { path: path.to_owned(), source };
    let mut builder = Builder::new();
    builder.prefix(".portolan-").suffix(".part");
    #[cfg(unix)]
    {
        // Temporary files are private by default; an output is as readable as any other file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let temporary = {
        let mut files = unfinished();
        let temporary = builder.tempfile_in(folder(path)).map_err(failed)?;
        files.push(temporary.path().to_owned());
        temporary
    };
    let _listed = Listed(temporary.path().to_owned());
    let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    temporary.as_file().sync_all().map_err(failed)?;
    let _naming = unfinished();
    let renamed = if force { temporary.persist(path) } else { temporary.persist_noclobber(path) };
    match renamed {
        Ok(_) => Ok(()),
        Err(error) if !force && error.error.kind() == io::ErrorKind::AlreadyExists => {
            Err(IoError::Exists { path: path.to_owned() })
        }
        Err(error) => Err(failed(error.error)),
    }
}

/// Takes a temporary file off the list when it is finished or has failed.
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().retain(|file| *file != self.0);
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.npz");
        let error = write_file(&path, false, |out| {
            out.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(!error.unwrap_err().is_input());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn abandoned_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let half = folder.path().join(".portolan-1.part");
        std::fs::write(&half, b"half").unwrap();
        let mut files = vec![half, folder.path().join("gone by itself")];
        remove_all(&mut files);
        assert!(files.is_empty());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_file_is_not_listed_as_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let listed = || unfinished().iter().filter(|file| file.starts_with(folder.path())).count();
        let path = folder.path().join("map.npz");
        write_file(&path, false, |out| {
            assert_eq!(listed(), 1);
            out.write_all(b"whole")
        })
        .unwrap();
        assert_eq!(listed(), 0);
    }

    #[test]
    fn an_existing_file_needs_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.npz");
        write_file(&path, false, |out| out.write_all(b"one")).unwrap();
        let error = write_file(&path, false, |out| out.write_all(b"two")).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("--force"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        write_file(&path, true, |out| out.write_all(b"two")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert!(check_output(&folder.path().join("no/where.npz"), true).unwrap_err().is_input());
        assert!(check_output(folder.path(), true).unwrap_err().is_input());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_never_replaced() {
        let error = check_output(Path::new("/dev/null"), true).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("device"), "{error}");
    }
}
