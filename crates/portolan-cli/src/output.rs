//! Standard output, tables and messages.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Prints results; a reader that has gone away ends the command quietly.
pub fn emit(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Run(format!("standard output: {error}")),
        })
}

/// Prints a JSON object.
pub fn emit_json(value: &serde_json::Value) -> Result<(), Failure> {
    emit(&format!("{value:#}"))
}

/// Says something beside the results.
pub fn say(message: &str) {
    // Nobody reads standard error: nothing can be done about that.
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// Prints the warnings about an input or a result.
pub fn warn(messages: &[String]) {
    for message in messages {
        say(&format!("portolan: note: {message}"));
    }
}

/// A table with aligned columns: the first to the left, figures to the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        let cells = rows.iter().map(|r| r[i].chars().count());
        cells.chain([header[i].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(
                |(i, (cell, &w))| {
                    if i == 0 { format!("{cell:<w$}") } else { format!("{cell:>w$}") }
                },
            )
            .collect();
        padded.join("  ").trim_end().to_string()
    };
    let mut lines = vec![line(&mut header.iter().copied())];
    lines.push(widths.iter().map(|w| "-".repeat(*w)).collect::<Vec<_>>().join("  "));
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}

/// A figure for a table; a dash where there is none.
pub fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.digits$}"))
}
