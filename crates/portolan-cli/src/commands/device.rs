//! Where fits run: finding the device that was asked for.

use std::sync::Arc;

use portolan::engine::Engine;
use portolan::estimate::{Capability, check_used, method};

use super::MethodCall;
use crate::args::DeviceName;
use crate::failure::Failure;
use crate::output::say;

/// Gives the calls whose methods have engines the one that was asked for.
pub fn give_engine(device: DeviceName, calls: &mut [MethodCall]) -> Result<(), Failure> {
    if device == DeviceName::Cpu {
        return Ok(());
    }
    let takes = |call: &MethodCall| method(&call.name).is_ok_and(|m| m.has(Capability::Device));
    if !calls.iter().any(takes) {
        if device == DeviceName::Auto {
            return Ok(());
        }
        let names = calls.iter().map(|call| call.name.as_str());
        return Ok(check_used(Capability::Device, names)?);
    }
    let engine = match (cuda(device == DeviceName::Auto), device) {
        (Ok(engine), _) => engine,
        (Err(reason), DeviceName::Auto) => {
            say(&format!("portolan: note: {reason}; the fit runs on the processor"));
            return Ok(());
        }
        (Err(reason), _) => return Err(Failure::Run(format!("--device cuda: {reason}"))),
    };
    calls.iter_mut().filter(|call| takes(call)).for_each(|call| call.engine = Some(engine.clone()));
    Ok(())
}

/// The engine of the first CUDA device, or why there is none; a lenient one leaves to the
/// processor what it cannot do.
#[cfg(feature = "cuda")]
fn cuda(lenient: bool) -> Result<Arc<dyn Engine>, String> {
    let engine = portolan_gpu::CudaEngine::new().map_err(|error| error.to_string())?;
    Ok(match lenient {
        true => Arc::new(portolan_gpu::Lenient::new(engine)),
        false => Arc::new(engine),
    })
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: bool) -> Result<Arc<dyn Engine>, String> {
    Err("this portolan was built without the feature cuda".into())
}
