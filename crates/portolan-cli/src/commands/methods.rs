//! `portolan methods`: every method with its options.

use portolan::estimate::{Capability, Entry, methods};
use portolan_io::json::method_json;
use serde_json::Value;

use crate::args::MethodsArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};

pub fn run(args: &MethodsArgs) -> Result<(), Failure> {
    if args.json {
        return emit_json(&Value::Array(methods().into_iter().map(method_json).collect()));
    }
    emit(&methods().into_iter().map(as_text).collect::<Vec<_>>().join("\n"))
}

fn as_text(method: &Entry) -> String {
    let remarks = [
        (Capability::Spread, "spread"),
        (Capability::Heights, "heights"),
        (Capability::Start, "--start"),
        (Capability::Emitters, "--emitters"),
        (Capability::Transmitters, "--transmitters"),
        (Capability::Obstacles, "--walls, --floor-height"),
        (Capability::Device, "--device"),
        (Capability::Grid, "on a grid"),
        (Capability::Truth, "for experiments: needs --truth"),
    ];
    let remarks: Vec<&str> = remarks
        .into_iter()
        .filter(|(what, _)| method.has(*what))
        .map(|(_, remark)| remark)
        .collect();
    let remarks =
        if remarks.is_empty() { String::new() } else { format!(" [{}]", remarks.join(", ")) };
    let mut lines = vec![format!("{}: {}{remarks}", method.name, method.summary)];
    for option in method.options() {
        lines.push(format!("    {:<14} {}", option.name, option.takes));
        lines.push(format!("    {:<14} default: {}", "", option.default));
    }
    lines.join("\n") + "\n"
}
