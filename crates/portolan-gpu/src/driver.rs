//! The CUDA driver, loaded when it is first asked for: no toolkit, no link to it. Every call's
//! result is looked at.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::{DriverError, result, sys};

use crate::backend::{Backend, DeviceError, Launch};
use crate::kernels::{LAYERED, RESIDENT};

/// The driver that reads our PTX: that of CUDA 12.0.
const OLDEST_DRIVER: i32 = 12_000;

/// A device that is ready.
pub(crate) struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    capability: (i32, i32),
    /// With the shared memory that each was allowed.
    functions: Mutex<HashMap<&'static str, (Function, u32)>>,
    most_shared: u32,
    /// For launches without clusters, and for those with.
    modules: Vec<sys::CUmodule>,
}

#[derive(Clone, Copy)]
struct Function(sys::CUfunction);

// The driver's handles may be used from any thread that has made the context its own, which every
// call here does first.
unsafe impl Send for Cuda {}
unsafe impl Sync for Cuda {}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cuda").field("name", &self.name).finish_non_exhaustive()
    }
}

fn failed(call: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| {
        let text = |text: Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(|_| format!("{:?}", error.0), |t| t.to_string_lossy().into_owned())
        };
        DeviceError::Failed {
            call,
            what: format!("{} ({})", text(error.error_string()), text(error.error_name())),
        }
    }
}

impl Cuda {
    /// The device with this number.
    pub fn open(ordinal: usize) -> Result<Self, String> {
        // A missing library would panic further down.
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no CUDA driver (libcuda) on this machine".into());
        }
        let words = |error: DeviceError| error.to_string();
        result::init().map_err(failed("cuInit")).map_err(words)?;
        let mut version = 0;
        unsafe { sys::cuDriverGetVersion(&mut version) }
            .result()
            .map_err(failed("cuDriverGetVersion"))
            .map_err(words)?;
        if version < OLDEST_DRIVER {
            return Err(format!(
                "the CUDA driver is of version {}.{}: 12.0 or later is needed",
                version / 1000,
                version % 1000 / 10
            ));
        }
        let count =
            result::device::get_count().map_err(failed("cuDeviceGetCount")).map_err(words)?;
        if ordinal >= count as usize {
            return Err(format!(
                "the CUDA driver sees {count} device(s), none with number {ordinal}"
            ));
        }
        Self::start(ordinal).map_err(words)
    }

    fn start(ordinal: usize) -> Result<Self, DeviceError> {
        let device = result::device::get(ordinal as i32).map_err(failed("cuDeviceGet"))?;
        let name = result::device::get_name(device).map_err(failed("cuDeviceGetName"))?;
        let attribute = |which| {
            unsafe { result::device::get_attribute(device, which) }
                .map_err(failed("cuDeviceGetAttribute"))
        };
        use sys::CUdevice_attribute as Attribute;
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        if capability.0 < 8 {
            return Err(DeviceError::Failed {
                call: "device",
                what: format!(
                    "{name} has compute capability {}.{}: 8.0 or later is needed",
                    capability.0, capability.1
                ),
            });
        }
        let most_shared =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32;
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(failed("cuDevicePrimaryCtxRetain"))?;
        let mut cuda = Self {
            device,
            context,
            name,
            capability,
            functions: Mutex::default(),
            most_shared,
            modules: Vec::new(),
        };
        cuda.enter()?;
        let mut sources = vec![LAYERED];
        if cuda.clusters() {
            sources.push(RESIDENT);
        }
        for source in sources {
            let ptx = source.ptx().map_err(|error| DeviceError::Failed {
                call: "kernels",
                what: format!("they do not decompress: {error}"),
            })?;
            let module = unsafe { result::module::load_data(ptx.as_ptr().cast()) }
                .map_err(failed("cuModuleLoadData"))?;
            cuda.modules.push(module);
        }
        Ok(cuda)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    fn enter(&self) -> Result<(), DeviceError> {
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("cuCtxSetCurrent"))
    }

    fn function(&self, launch: &Launch) -> Result<Function, DeviceError> {
        if launch.shared_bytes > self.most_shared {
            let Launch { kernel, shared_bytes: bytes, .. } = *launch;
            return Err(DeviceError::TooLarge { kernel, bytes });
        }
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = functions.get(launch.kernel).copied();
        if let Some((function, _)) = known.filter(|(_, allowed)| *allowed >= launch.shared_bytes) {
            return Ok(function);
        }
        let name = || CString::new(launch.kernel).expect("names of kernels hold no zero byte");
        let module = self.modules[usize::from(launch.cluster > 0)];
        let function = unsafe { result::module::get_function(module, name()) }
            .map_err(failed("cuModuleGetFunction"))?;
        use sys::CUfunction_attribute_enum as Attribute;
        // More than 48 KB must be asked for.
        unsafe {
            result::function::set_function_attribute(
                function,
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                launch.shared_bytes as i32,
            )
        }
        .map_err(failed("cuFuncSetAttribute"))?;
        functions.insert(launch.kernel, (Function(function), launch.shared_bytes));
        Ok(Function(function))
    }
}

impl Backend for Cuda {
    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.enter()?;
        unsafe { result::malloc_sync(bytes) }.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::OutOfMemory { bytes },
            _ => failed("cuMemAlloc")(error),
        })
    }

    fn free(&self, at: u64) {
        // Nothing can be done about a failure here; the next call reports it.
        if self.enter().is_ok() {
            let _ = unsafe { result::free_sync(at) };
        }
    }

    fn upload(&self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        unsafe { result::memcpy_htod_sync(at, bytes) }.map_err(failed("cuMemcpyHtoD"))
    }

    fn download(&self, at: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        unsafe { result::memcpy_dtoh_sync(bytes, at) }.map_err(failed("cuMemcpyDtoH"))
    }

    fn zero(&self, at: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        unsafe { result::memset_d8_sync(at, 0, bytes) }.map_err(failed("cuMemsetD8"))
    }

    unsafe fn launch(&self, launch: &Launch, args: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        let function = self.function(launch)?;
        let mut cluster = cluster_of(launch);
        let config = config_of(launch, &mut cluster);
        let mut params = [args.as_ptr().cast_mut().cast::<c_void>()];
        unsafe {
            sys::cuLaunchKernelEx(&config, function.0, params.as_mut_ptr(), std::ptr::null_mut())
        }
        .result()
        .map_err(failed("cuLaunchKernelEx"))
    }

    fn finish(&self) -> Result<(), DeviceError> {
        self.enter()?;
        result::ctx::synchronize().map_err(failed("cuCtxSynchronize"))
    }

    fn clusters(&self) -> bool {
        self.capability.0 >= 9
    }

    fn clusters_at_once(&self, launch: &Launch) -> Result<usize, DeviceError> {
        self.enter()?;
        let function = self.function(launch)?;
        let mut cluster = cluster_of(launch);
        let config = config_of(launch, &mut cluster);
        let mut found = 0;
        unsafe { sys::cuOccupancyMaxActiveClusters(&mut found, function.0, &config) }
            .result()
            .map_err(failed("cuOccupancyMaxActiveClusters"))?;
        Ok(found.max(1) as usize)
    }
}

fn cluster_of(launch: &Launch) -> sys::CUlaunchAttribute {
    let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim =
        sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: launch.cluster, y: 1, z: 1 };
    attribute
}

/// Points to `cluster`.
fn config_of(launch: &Launch, cluster: &mut sys::CUlaunchAttribute) -> sys::CUlaunchConfig {
    let [x, y, z] = launch.grid;
    sys::CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: launch.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: launch.shared_bytes,
        hStream: std::ptr::null_mut(),
        attrs: cluster,
        numAttrs: u32::from(launch.cluster > 0),
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // The process is about to end or the device to be left; a failure changes nothing.
        let _ = self.enter();
        for &module in &self.modules {
            let _ = unsafe { result::module::unload(module) };
        }
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}
