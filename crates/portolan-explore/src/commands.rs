//! "Show me the command": what to type for what the page does.

use std::fmt::Display;

use portolan_io::drawn::GridWish;

use crate::answer::Refusal;
use crate::export::{What, Wish, wish_words};
use crate::library::{FitCall, Item, Library, Source};
use crate::surface::Surface;

/// A command line in the making.
pub struct Line(String);

impl Line {
    pub fn new(words: &[&str]) -> Self {
        let mut line = Self("portolan".into());
        words.iter().for_each(|word| line.word(word));
        line
    }

    pub fn word(&mut self, word: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
        self.0.push(' ');
        if !word.is_empty() && word.chars().all(plain) {
            self.0.push_str(word);
        } else {
            self.0.push_str(&format!("'{}'", word.replace('\'', r"'\''")));
        }
    }

    /// An option with its value, where there is one.
    pub fn option(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.word(name);
            self.word(&value.to_string());
        }
    }

    pub fn finish(self) -> String {
        self.0
    }
}

/// The names of the demonstration's files.
pub const DEMO: [&str; 2] = ["truth.npz", "readings.npz"];
/// How the demonstration is sensed.
pub const DEMO_FRACTION: f64 = 0.1;

/// What the command calls readings, what is said about them, and the lines that make them.
fn readings_file(item: &Item) -> (String, Vec<(String, String)>, Vec<String>) {
    match &item.source {
        Source::File { name, words } => (name.clone(), words.clone(), Vec::new()),
        Source::Demo => {
            let simulate = Line::new(&["simulate", "-o", DEMO[0]]);
            let mut sense = Line::new(&["sense", DEMO[0], "-o", DEMO[1]]);
            sense.option("--fraction", Some(DEMO_FRACTION));
            (DEMO[1].into(), Vec::new(), vec![simulate.finish(), sense.finish()])
        }
        Source::Fit(_) | Source::Given => ("readings.npz".into(), Vec::new(), Vec::new()),
    }
}

/// Adds what was said about a file.
fn said(line: &mut Line, words: &[(String, String)]) {
    words.iter().for_each(|(name, value)| line.option(&format!("--{name}"), Some(value)));
}

/// The file that holds an item, and the lines that make it.
fn file_of(library: &Library, item: &Item) -> (String, Vec<String>) {
    if let Source::Fit(call) = &item.source {
        return ("model.npz".into(), for_fit(library, call));
    }
    let (name, _, lines) = readings_file(item);
    let name = match item.source {
        Source::Given if item.readings().is_none() => "model.npz".into(),
        _ => name,
    };
    (name, lines)
}

/// The lines that fit a method.
pub fn for_fit(library: &Library, call: &FitCall) -> Vec<String> {
    let (name, words, mut lines) = match library.get(call.readings) {
        Ok(readings) => readings_file(&readings),
        Err(_) => ("readings.npz".into(), Vec::new(), Vec::new()),
    };
    let mut fit = Line::new(&["fit", &name, "-o", "model.npz"]);
    fit.option("--method", Some(&call.method));
    for (key, value) in &call.settings {
        fit.option("--set", Some(format!("{key}={value}")));
    }
    fit.option("--emitters", call.emitters);
    fit.option("--seed", Some(call.seed).filter(|seed| *seed != 0));
    said(&mut fit, &words);
    lines.push(fit.finish());
    lines
}

/// What the command's file is called that a wish asks for.
pub fn file_name(wish: &Wish) -> String {
    let stem = match wish.what {
        What::Model => "model",
        What::Readings => "readings-out",
        What::Emitters => "emitters",
        What::Map => "map",
        What::Picture => "picture",
        What::Spectrum => "bands",
        What::Factors => "factors",
        What::Coverage => "coverage",
        What::Place | What::Places => "answers",
    };
    // The ending goes into a file's name: letters and digits alone.
    let ending: String = wish.ending.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{stem}.{ending}")
}

/// The lines that make the file of a wish.
pub fn for_wish(library: &Library, item: &Item, wish: &Wish) -> Result<Vec<String>, Refusal> {
    let (file, mut lines) = file_of(library, item);
    let output = file_name(wish);
    let bands_alone = || Wish { grid: GridWish::default(), masks: Vec::new(), ..wish.clone() };
    let is_map = item.surface().is_ok_and(|surface| matches!(surface.as_ref(), Surface::Map(_)));
    match wish.what {
        What::Model => {}
        What::Readings => {
            let readings = library
                .readings_of(item)
                .ok_or_else(|| Refusal::input("there are no readings to write"))?;
            let (name, words, made) = readings_file(&readings);
            lines = made;
            let mut line = Line::new(&["convert", &name, &output]);
            said(&mut line, &words);
            lines.push(line.finish());
        }
        What::Emitters => lines.push(Line::new(&["convert", &file, &output]).finish()),
        What::Map if is_map => {
            let mut line = Line::new(&["convert", &file, &output]);
            wish_words(wish, &mut line);
            lines.push(line.finish());
        }
        What::Map => {
            let mut line = Line::new(&["predict", &file, "-o", &output]);
            wish_words(wish, &mut line);
            lines.push(line.finish());
        }
        What::Place => {
            let at = wish.place.ok_or_else(|| Refusal::input("say the place with x and y"))?;
            lines.push(format!("printf 'x_m,y_m\\n{},{}\\n' > places.csv", at.x_m, at.y_m));
            let mut line = Line::new(&["predict", &file, "places.csv", "-o", &output]);
            wish_words(&bands_alone(), &mut line);
            lines.push(line.finish());
        }
        What::Places => {
            let table = wish.table.as_ref().map_or("places.csv", |table| &table.name);
            let mut line = Line::new(&["predict", &file, table, "-o", &output]);
            wish_words(&bands_alone(), &mut line);
            lines.push(line.finish());
        }
        What::Coverage => {
            let mut line = Line::new(&["coverage", &file]);
            let above = wish.above.ok_or_else(|| Refusal::input("say the level with above"))?;
            line.option("--above", Some(above));
            wish_words(&Wish { masks: Vec::new(), ..wish.clone() }, &mut line);
            if wish.ending == "json" {
                lines.push(format!("{} --json > {output}", line.finish()));
            } else {
                line.option("-o", Some(output));
                lines.push(line.finish());
            }
        }
        What::Picture | What::Spectrum | What::Factors => {
            let mut map = file.clone();
            if !is_map {
                map = "map.npz".into();
                let mut line = Line::new(&["predict", &file, "-o", &map]);
                wish_words(&Wish { bands: None, masks: Vec::new(), ..wish.clone() }, &mut line);
                lines.push(line.finish());
            }
            let mut line = Line::new(&["plot", &map, "-o", &output]);
            match wish.what {
                What::Spectrum => line.word("--by-frequency"),
                What::Factors => line.word("--factors"),
                _ => line.option("--band", Some(wish.band)),
            }
            let plain = wish.what != What::Factors;
            if wish.what == What::Spectrum {
                wish_words(&bands_alone(), &mut line);
            }
            line.option("--above", wish.above.filter(|_| plain));
            let readings = library.readings_of(item).filter(|_| wish.sensors && plain);
            if let Some(readings) = readings {
                let (name, words, _) = readings_file(&readings);
                line.option("--readings", Some(name));
                said(&mut line, &words);
            }
            lines.push(line.finish());
        }
    }
    Ok(lines)
}

/// The lines that validate, or advise.
pub fn for_job(
    library: &Library,
    item: &Item,
    words: &[(&str, String)],
    command: &str,
) -> Vec<String> {
    let (file, said_words, mut lines) = match item.readings() {
        Some(_) => readings_file(item),
        None => {
            let (file, lines) = file_of(library, item);
            (file, Vec::new(), lines)
        }
    };
    let mut line = Line::new(&[command, &file]);
    words.iter().for_each(|(name, value)| line.option(name, Some(value)));
    said(&mut line, &said_words);
    lines.push(line.finish());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        let mut line = Line::new(&["fit", "my survey.csv"]);
        line.option("--columns", Some("x=X,y=it's"));
        line.option("--gather", None::<f64>);
        line.option("--cell-m", Some(0.5));
        let text = line.finish();
        assert_eq!(text, r"portolan fit 'my survey.csv' --columns 'x=X,y=it'\''s' --cell-m 0.5");
    }
}
