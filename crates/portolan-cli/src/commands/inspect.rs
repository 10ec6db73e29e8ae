//! `portolan inspect`: the contents of a file, what its columns are read as, what is doubtful, and the
//! command that makes a map of it.

use portolan_io::json::summary_json;
use portolan_io::{FileKind, FileSummary, inspect};
use serde_json::json;

use super::warn_about;
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};

/// More places than this are gathered before they are mapped.
const MANY_PLACES: usize = 2000;

pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let summary = inspect(&args.file, &args.read.options())?;
    warn_about(&args.file, &summary.warnings);
    let command = command(&summary, std::env::args().skip(1));
    if args.json {
        let mut all = summary_json(&summary);
        all["command"] = json!(command);
        return emit_json(&all);
    }
    let next = command.map_or(String::new(), |command| format!("command    {command}\n"));
    emit(&format!("{summary}{next}"))
}

/// The command for a map, with the options that the file was inspected with; None where there is
/// nothing to draw.
fn command(summary: &FileSummary, given: impl Iterator<Item = String>) -> Option<String> {
    let (verb, more) = match summary.kind {
        FileKind::Readings => ("estimate", "-o map.npz"),
        FileKind::Model => ("predict", "-o map.npz"),
        FileKind::Map => ("plot", "-o map.png"),
        FileKind::Arrays => return None,
    };
    let mut words = vec!["portolan".to_string(), verb.to_string()];
    let kept = given.skip_while(|word| word != "inspect").skip(1).filter(|word| word != "--json");
    words.extend(kept.map(|word| quoted(&word)));
    let gathered = words.iter().any(|word| word.starts_with("--gather"));
    let walk = summary.crs.is_some() && summary.places.is_some_and(|places| places > MANY_PLACES);
    if summary.kind == FileKind::Readings && walk && !gathered {
        words.push("--gather 5".into());
    }
    words.push(more.into());
    Some(words.join(" "))
}

/// As a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("survey.csv"), "survey.csv");
        assert_eq!(quoted("my log.csv"), "'my log.csv'");
        assert_eq!(quoted("a'b"), "'a'\\''b'");
    }
}
