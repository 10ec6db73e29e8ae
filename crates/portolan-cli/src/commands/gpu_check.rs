//! `portolan gpu-check`: every kernel of the CUDA engine against the processor, on random problems.

use portolan_gpu::{CudaEngine, Verdict, check};
use serde_json::json;

use crate::args::GpuCheckArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};
use crate::watch::check_interrupt;

pub fn run(args: &GpuCheckArgs) -> Result<(), Failure> {
    let failed = |error: portolan::engine::EngineError| Failure::Run(error.to_string());
    let engine = CudaEngine::new().map_err(failed)?;
    if !args.json {
        emit(engine.device())?;
    }
    let mut told = Ok(());
    let verdicts = check(&engine, |verdict| {
        if !args.json && told.is_ok() {
            told = emit(&line(verdict));
        }
        told.is_ok() && check_interrupt().is_ok()
    });
    told?;
    check_interrupt()?;
    let verdicts = verdicts.map_err(failed)?;
    let wrong = verdicts.iter().filter(|verdict| !verdict.passed).count();
    if args.json {
        let all: Vec<_> = verdicts.iter().map(as_json).collect();
        emit_json(&json!({ "device": engine.device(), "comparisons": all, "failed": wrong }))?;
    } else {
        emit(&format!("{} of {} passed", verdicts.len() - wrong, verdicts.len()))?;
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Failure::Run(format!("{wrong} comparison(s) with the processor failed"))),
    }
}

fn line(verdict: &Verdict) -> String {
    let word = if verdict.passed { "pass" } else { "FAIL" };
    format!(
        "{word}  loss apart {:.1e}, unknowns {:.1e} steps  {}",
        verdict.loss, verdict.steps, verdict.name
    )
}

fn as_json(verdict: &Verdict) -> serde_json::Value {
    json!({
        "name": verdict.name, "passed": verdict.passed,
        "loss_apart": verdict.loss, "steps_apart": verdict.steps,
    })
}
