//! Writing a file beside its name and renaming it when complete: no half files, no surprises.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::error::{IoError, Problem, Result};
use crate::memory::shown_bytes;

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

/// The same for a process that cannot wait: `None` where another thread is just naming a file.
pub fn try_abandon_writes() -> Option<impl Sized> {
    let mut files = match UNFINISHED.try_lock() {
        Ok(files) => files,
        Err(TryLockError::Poisoned(files)) => files.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    remove_all(&mut files);
    Some(files)
}

fn remove_all(files: &mut Vec<PathBuf>) {
    for file in files.drain(..) {
        // It may have failed by itself in the meantime; a folder may still be written into.
        for _ in 0..5 {
            if !file.is_dir() || std::fs::remove_dir_all(&file).is_ok() {
                break;
            }
        }
        let _ = std::fs::remove_file(file);
    }
}

/// Refuses an output that exists (unless `force`), whose folder does not or may not be written to,
/// or that is no file. Nothing is left in the folder.
pub fn check_output(path: &Path, force: bool) -> Result<()> {
    check_name(path, force)?;
    // Permissions say little: a folder may be on a disk that takes nothing, or belong to the system.
    Part::begin(path).map(drop).map_err(|error| {
        let problem = format!("its folder cannot be written to: {error}");
        Problem::new(problem).in_target(path)
    })
}

fn check_name(path: &Path, force: bool) -> Result<()> {
    if path.is_dir() {
        let problem = match (is_store_name(path), force) {
            (false, _) => "it is a folder, expected a file name",
            (true, false) => return Err(IoError::Exists { path: path.to_owned() }),
            (true, true) if is_store(path) => return Ok(()),
            (true, true) => "it is a folder that holds no Zarr store",
        };
        return Err(Problem::new(problem).in_target(path));
    }
    // Renaming onto a device would replace it.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(Problem::new("it is a device or a pipe, expected a file name").in_target(path));
    }
    if !folder(path).is_dir() {
        return Err(Problem::new("its folder does not exist").in_target(path));
    }
    match path.symlink_metadata() {
        Ok(_) if !force => Err(IoError::Exists { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            Err(Problem::new(format!("its name cannot be used: {error}")).in_target(path))
        }
        _ => Ok(()),
    }
}

/// Refuses an output that is one of the inputs, by whatever name: no `--force` replaces what is
/// being read.
pub fn check_output_is_not_input(output: &Path, inputs: &[&Path]) -> Result<()> {
    match inputs.iter().find(|input| is_same_file(output, input)) {
        Some(input) => {
            let input = input.display();
            let problem = format!("it is the input {input}: choose another name");
            Err(Problem::new(problem).in_target(output))
        }
        None => Ok(()),
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Refuses an output that is known to need more room than its disk has.
pub(crate) fn check_space(path: &Path, bytes: io::Result<u64>) -> Result<()> {
    let bytes = bytes.map_err(|source| IoError::Write { path: path.to_owned(), source })?;
    match free_space(path) {
        Some(free) if bytes > free => {
            let (bytes, free) = (shown_bytes(bytes), shown_bytes(free));
            Err(Problem::new(format!("it takes {bytes}, {free} are free there")).in_target(path))
        }
        _ => Ok(()),
    }
}

/// Bytes that may still be written to an output's disk; `None` where that is not known.
pub fn free_space(output: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(folder(output)).ok()?;
        found.f_bavail.checked_mul(found.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = output;
        None
    }
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
    check_name(path, force)?;
    let failed = |source| IoError::Write { path: path.to_owned(), source };
    let part = Part::begin(path).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 16, part.file());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    part.finish(path, force)
}

/// A file that is being filled beside its name; removed unless it is finished.
pub(crate) struct Part {
    temporary: NamedTempFile,
    _listed: Listed,
}

impl Part {
    /// A new file in the output's folder.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(".portolan-").suffix(".part");
        #[cfg(unix)]
        {
            // Temporary files are private by default; an output is as readable as any other file.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut files = unfinished();
        let temporary = builder.tempfile_in(folder(path))?;
        files.push(temporary.path().to_owned());
        let _listed = Listed(temporary.path().to_owned());
        Ok(Self { temporary, _listed })
    }

    pub fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Gives the file its name once everything is on disk.
    pub fn finish(self, path: &Path, force: bool) -> Result<()> {
        let failed = |source| IoError::Write { path: path.to_owned(), source };
        let Self { temporary, _listed } = self;
        temporary.as_file().sync_all().map_err(failed)?;
        let naming = unfinished();
        let renamed =
            if force { temporary.persist(path) } else { temporary.persist_noclobber(path) };
        drop(naming);
        match renamed {
            Ok(_) => Ok(()),
            Err(error) if !force && error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(IoError::Exists { path: path.to_owned() })
            }
            Err(error) => Err(failed(error.error)),
        }
    }
}

/// Whether an output of that name is a folder.
fn is_store_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zarr"))
}

/// Whether a folder holds what `--force` may replace: a Zarr store, of whatever version.
fn is_store(path: &Path) -> bool {
    ["zarr.json", ".zgroup"].iter().any(|name| path.join(name).is_file())
}

/// A folder that is being filled beside its name; removed unless it is finished.
pub(crate) struct Folder {
    temporary: TempDir,
    _listed: Listed,
}

impl Folder {
    /// A new folder beside the output.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(".portolan-").suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        let mut files = unfinished();
        let temporary = builder.tempdir_in(folder(path))?;
        files.push(temporary.path().to_owned());
        let _listed = Listed(temporary.path().to_owned());
        Ok(Self { temporary, _listed })
    }

    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the folder its name; what was there before goes when the new one is in place.
    pub fn finish(self, path: &Path, force: bool) -> Result<()> {
        check_name(path, force)?;
        let failed = |source| IoError::Write { path: path.to_owned(), source };
        let Self { temporary, _listed } = self;
        let naming = unfinished();
        let old = match path.symlink_metadata().is_ok() {
            true => {
                let aside = Builder::new()
                    .prefix(".portolan-")
                    .suffix(".old")
                    .tempdir_in(folder(path))
                    .map_err(failed)?;
                std::fs::rename(path, aside.path().join("old")).map_err(failed)?;
                Some(aside)
            }
            false => None,
        };
        if let Err(error) = std::fs::rename(temporary.path(), path) {
            if let Some(aside) = &old {
                std::fs::rename(aside.path().join("old"), path).map_err(failed)?;
            }
            return Err(failed(error));
        }
        // It has another name now: nothing is left to remove.
        let _ = temporary.keep();
        drop(naming);
        Ok(())
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

    #[test]
    fn an_output_is_never_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let [input, other] = ["map.npz", "other.npz"].map(|name| folder.path().join(name));
        std::fs::write(&input, b"one").unwrap();
        let same = folder.path().join(".").join("map.npz");
        let error = check_output_is_not_input(&same, &[&other, &input]).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("it is the input"), "{error}");
        check_output_is_not_input(&other, &[&input]).unwrap();
        check_output_is_not_input(&other, &[&other]).unwrap();
        std::fs::write(&other, b"one").unwrap();
        check_output_is_not_input(&other, &[&input]).unwrap();
        #[cfg(unix)]
        {
            let [link, twin] = ["link.npz", "twin.npz"].map(|name| folder.path().join(name));
            std::os::unix::fs::symlink(&input, &link).unwrap();
            std::fs::hard_link(&input, &twin).unwrap();
            for name in [&link, &twin] {
                assert!(check_output_is_not_input(name, &[&input]).is_err(), "{name:?}");
            }
        }
    }

    #[test]
    fn checking_an_output_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        check_output(&folder.path().join("map.npz"), false).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!unfinished().iter().any(|file| file.starts_with(folder.path())));
        let long = folder.path().join("x".repeat(300));
        assert!(check_output(&long, false).unwrap_err().is_input());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files_is_found_before_the_work() {
        // Even root cannot make a file there.
        let error = check_output(Path::new("/proc/map.npz"), true).unwrap_err();
        let text = error.to_string();
        assert!(error.is_input() && text.contains("folder cannot be written to"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_full_disk_is_found_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.npz");
        check_space(&path, Ok(1)).unwrap();
        let error = check_space(&path, Ok(u64::MAX)).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("it takes 18.4 EB"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_never_replaced() {
        let error = check_output(Path::new("/dev/null"), true).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("device"), "{error}");
    }
}
