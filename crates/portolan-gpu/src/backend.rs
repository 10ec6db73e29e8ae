//! What the engine needs of a device: memory, copies, launches. The driver is one, the emulator of
//! the tests another.

use std::sync::Arc;

use thiserror::Error;

/// What a device or its driver said.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// A request for memory that the device does not have.
    #[error("out of device memory ({bytes} bytes more)")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// A kernel that needs more shared memory than the device has.
    #[error(
        "{kernel} needs {bytes} bytes of shared memory: give fewer channels or a smaller kernel"
    )]
    TooLarge {
        /// The kernel.
        kernel: &'static str,
        /// What it needs.
        bytes: u32,
    },
    /// The progress callback asked to stop.
    #[error("stopped before the fit was finished")]
    Cancelled,
    /// Any other failure.
    #[error("{call}: {what}")]
    Failed {
        /// The call that failed.
        call: &'static str,
        /// The driver's words.
        what: String,
    },
}

/// A launch: so many blocks of so many threads, blocks next to each other in x as clusters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub kernel: &'static str,
    pub grid: [u32; 3],
    pub threads: u32,
    pub cluster: u32,
    pub shared_bytes: u32,
}

/// Plain numbers that may cross to a device as bytes.
///
/// # Safety
/// The type has no padding and no pointers of the host.
pub(crate) unsafe trait Plain: Copy + Default + 'static {}
unsafe impl Plain for u8 {}
unsafe impl Plain for i32 {}
unsafe impl Plain for f32 {}
unsafe impl Plain for f64 {}

pub(crate) trait Backend: std::fmt::Debug + Send + Sync {
    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError>;
    fn free(&self, at: u64);
    fn upload(&self, at: u64, bytes: &[u8]) -> Result<(), DeviceError>;
    fn download(&self, at: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;
    fn zero(&self, at: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Launches a kernel that takes one structure.
    ///
    /// # Safety
    /// `args` is what the kernel takes, and its pointers are to memory of this device that is
    /// large enough.
    unsafe fn launch(&self, launch: &Launch, args: &[u8]) -> Result<(), DeviceError>;
    /// Waits until everything is done, and says if anything failed.
    fn finish(&self) -> Result<(), DeviceError>;
    /// Whether blocks can form clusters.
    fn clusters(&self) -> bool;
    /// Clusters of a launch that run side by side.
    fn clusters_at_once(&self, launch: &Launch) -> Result<usize, DeviceError>;
}

/// Memory of a device; goes back when dropped.
#[derive(Debug)]
pub(crate) struct Buffer<T> {
    backend: Arc<dyn Backend>,
    at: u64,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    pub fn zeros(backend: &Arc<dyn Backend>, len: usize) -> Result<Self, DeviceError> {
        let buffer = Self::new(backend, len)?;
        backend.zero(buffer.at, len * size_of::<T>())?;
        Ok(buffer)
    }

    pub fn of(backend: &Arc<dyn Backend>, values: &[T]) -> Result<Self, DeviceError> {
        let buffer = Self::new(backend, values.len())?;
        if !values.is_empty() {
            backend.upload(buffer.at, bytes_of(values))?;
        }
        Ok(buffer)
    }

    /// Not written yet.
    pub fn new(backend: &Arc<dyn Backend>, len: usize) -> Result<Self, DeviceError> {
        let at = backend.alloc((len * size_of::<T>()).max(16))?;
        Ok(Self { backend: backend.clone(), at, len, of: std::marker::PhantomData })
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn get(&self) -> Result<Vec<T>, DeviceError> {
        let mut values = vec![T::default(); self.len];
        if self.len > 0 {
            // Plain types are as good as their bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(
                    values.as_mut_ptr().cast::<u8>(),
                    self.len * size_of::<T>(),
                )
            };
            self.backend.download(self.at, bytes)?;
        }
        Ok(values)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.backend.free(self.at);
    }
}

pub(crate) fn bytes_of<T: Copy>(values: &[T]) -> &[u8] {
    // Read only; argument structures have no padding that a kernel looks at.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}
