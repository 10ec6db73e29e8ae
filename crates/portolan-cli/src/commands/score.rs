//! `portolan score`: how close a map is to the truth.

use portolan::score::{Score, score};
use serde_json::{Value, json};

use super::{load_map, options_for};
use crate::args::ScoreArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure};

pub fn run(args: &ScoreArgs) -> Result<(), Failure> {
    check_offset(args.offset)?;
    let options = options_for(&[&args.map, &args.truth], &args.read.options())?;
    let (map, truth) = (load_map(&args.map, &options[0])?, load_map(&args.truth, &options[1])?);
    let score = score(&map, &truth, args.offset).map_err(|e| Failure::from(e).about(&args.map))?;
    if args.json { emit_json(&as_json(&score)) } else { emit(&as_text(&score)) }
}

pub fn check_offset(offset: Option<f64>) -> Result<(), Failure> {
    match offset {
        Some(offset) if !(offset.is_finite() && offset >= 0.0) => {
            Err(Failure::input(format!("--offset {offset}: it must be 0 or more")))
        }
        _ => Ok(()),
    }
}

pub fn as_json(score: &Score) -> Value {
    json!({
        "ssim": score.ssim,
        "ssim_strict": score.ssim_strict,
        "rmse_db": score.rmse_db,
        "lnre": score.lnre,
        "nmse": score.nmse,
        "roughness": score.roughness,
        "coverage_90": score.coverage_90,
        "offset": score.offset,
        "entries": score.entries,
    })
}

fn as_text(score: &Score) -> String {
    let mut lines = vec![
        format!("SSIM           {}", figure(score.ssim, 4)),
        format!("SSIM, strict   {}", figure(score.ssim_strict, 4)),
        format!("rmse           {:.3} dB", score.rmse_db),
        format!("log error      {:.4} (relative)", score.lnre),
        format!("NMSE           {:.4} (linear power)", score.nmse),
    ];
    if let Some(roughness) = score.roughness {
        lines.push(format!("roughness      {roughness:.2} times the truth's"));
    }
    if let Some(coverage) = score.coverage_90 {
        lines.push(format!("90 % interval  covers {:.1} %", 100.0 * coverage));
    }
    let scale =
        if score.offset > 0.0 { format!("ln(x + {:e})", score.offset) } else { "ln x".to_string() };
    lines.push(format!("entries        {}, compared as {scale}", score.entries));
    lines.join("\n")
}
