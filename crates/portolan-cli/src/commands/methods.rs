//! `portolan methods`: every method with its options.

use portolan::estimate::{Method, methods};
use serde_json::{Value, json};

use crate::args::MethodsArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};

pub fn run(args: &MethodsArgs) -> Result<(), Failure> {
    if args.json {
        return emit_json(&Value::Array(methods().iter().map(as_json).collect()));
    }
    emit(&methods().iter().map(as_text).collect::<Vec<_>>().join("\n"))
}

fn as_json(method: &Method) -> Value {
    let options: Vec<Value> = method
        .options()
        .map(|o| json!({ "name": o.name, "default": o.default, "takes": o.takes }))
        .collect();
    json!({ "name": method.name, "summary": method.summary, "options": options })
}

fn as_text(method: &Method) -> String {
    let mut lines = vec![format!("{}: {}", method.name, method.summary)];
    for option in method.options() {
        lines.push(format!("    {:<14} {}", option.name, option.takes));
        lines.push(format!("    {:<14} default: {}", "", option.default));
    }
    lines.join("\n") + "\n"
}
