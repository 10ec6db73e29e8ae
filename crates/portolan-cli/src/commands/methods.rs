//! `portolan methods`: every method with its options.

use portolan::estimate::{Registered, methods};
use portolan_io::told::method_json;
use serde_json::Value;

use crate::args::MethodsArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};

pub fn run(args: &MethodsArgs) -> Result<(), Failure> {
    if args.json {
        return emit_json(&Value::Array(methods().iter().map(method_json).collect()));
    }
    emit(&methods().iter().map(as_text).collect::<Vec<_>>().join("\n"))
}

fn as_text(method: &Registered) -> String {
    let remarks = [
        (method.gives_spread, "spread"),
        (method.takes_start, "--start"),
        (method.takes_emitters, "--emitters"),
        (method.takes_transmitters, "--transmitters"),
        (method.on_grid, "on a grid"),
        (method.needs_truth, "for experiments: needs --truth"),
    ];
    let remarks: Vec<&str> = remarks.iter().filter(|r| r.0).map(|r| r.1).collect();
    let remarks =
        if remarks.is_empty() { String::new() } else { format!(" [{}]", remarks.join(", ")) };
    let mut lines = vec![format!("{}: {}{remarks}", method.name, method.summary)];
    for option in method.options() {
        lines.push(format!("    {:<14} {}", option.name, option.takes));
        lines.push(format!("    {:<14} default: {}", "", option.default));
    }
    lines.join("\n") + "\n"
}
