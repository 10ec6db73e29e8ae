//! The kernels on the processor, for tests: the same sources, built by the C++ compiler of this
//! machine, every thread a fibre.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use libloading::Library;

use crate::backend::{Backend, DeviceError, Launch};
use crate::kernels::tests::are_compiled;

type LaunchFn =
    unsafe extern "C" fn(*const c_char, *const c_int, c_int, c_int, usize, *const c_void) -> c_int;

pub(crate) struct Emulated {
    library: &'static Library,
    /// What the device has, in bytes, and what is taken.
    memory: Mutex<(usize, Vec<Box<[u64]>>)>,
    clusters: bool,
    short: AtomicBool,
}

impl std::fmt::Debug for Emulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Emulated")
    }
}

/// The library, built once for all tests; none where there is no C++ compiler.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder for the emulator");
            let to = folder.path().join("emulated.so");
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/emulated.cpp");
            let built = Command::new("c++")
                .args([
                    "-std=c++17",
                    "-O1",
                    "-DPORTOLAN_EMULATED",
                    "-shared",
                    "-fPIC",
                    "-Wl,-Bsymbolic",
                    "-w",
                ])
                .arg(&source)
                .arg("-o")
                .arg(&to)
                .status();
            match built {
                Err(_) => None,
                Ok(status) => {
                    assert!(status.success(), "the kernels do not compile as C++");
                    Some(unsafe { Library::new(&to) }.expect("the emulator loads"))
                }
            }
        })
        .as_ref()
}

impl Emulated {
    pub fn new(bytes: usize, clusters: bool) -> Option<Arc<Self>> {
        let library = library()?;
        let memory = Mutex::new((bytes, Vec::new()));
        Some(Arc::new(Self { library, memory, clusters, short: AtomicBool::new(false) }))
    }

    /// Whether a request for memory was ever turned down.
    pub fn was_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }
}

/// The emulator has one set of fibres.
static RUNNING: Mutex<()> = Mutex::new(());

impl Backend for Emulated {
    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError> {
        let mut memory = self.memory.lock().unwrap();
        if bytes > memory.0 {
            self.short.store(true, Ordering::Relaxed);
            return Err(DeviceError::OutOfMemory { bytes });
        }
        memory.0 -= bytes.div_ceil(8) * 8;
        // What nobody wrote must not look like a number.
        memory.1.push(vec![u64::MAX; bytes.div_ceil(8)].into_boxed_slice());
        Ok(memory.1.last().unwrap().as_ptr() as u64)
    }

    fn free(&self, at: u64) {
        let mut memory = self.memory.lock().unwrap();
        let place = memory.1.iter().position(|block| block.as_ptr() as u64 == at).unwrap();
        let block = memory.1.swap_remove(place);
        memory.0 += 8 * block.len();
    }

    fn upload(&self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        Ok(())
    }

    fn download(&self, at: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn zero(&self, at: u64, bytes: usize) -> Result<(), DeviceError> {
        unsafe { std::ptr::write_bytes(at as *mut u8, 0, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch, args: &[u8]) -> Result<(), DeviceError> {
        // What runs here must be there on a device too.
        assert!(are_compiled(launch.kernel, launch.cluster > 0), "no PTX of {}", launch.kernel);
        let _running = RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let function =
            unsafe { self.library.get::<LaunchFn>(b"portolan_launch") }.expect("the entry");
        let name = CString::new(launch.kernel).unwrap();
        let grid = launch.grid.map(|side| side as c_int);
        let code = unsafe {
            function(
                name.as_ptr(),
                grid.as_ptr(),
                launch.threads as c_int,
                launch.cluster as c_int,
                launch.shared_bytes as usize,
                args.as_ptr().cast(),
            )
        };
        assert_eq!(code, 0, "the emulator has no kernel {}", launch.kernel);
        Ok(())
    }

    fn finish(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn clusters(&self) -> bool {
        self.clusters
    }

    fn clusters_at_once(&self, _: &Launch) -> Result<usize, DeviceError> {
        Ok(2)
    }
}
