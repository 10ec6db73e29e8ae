//! "Show me the command": what to type for what the page does.

use std::fmt::Display;

use portolan_io::export::GridRequest;

use crate::answer::Refusal;
use crate::library::{FitCall, Item, Library, Source};
use crate::request::{ExportRequest, What};
use crate::surface::Surface;
use crate::uploads::Fields;

/// A command line in the making.
pub struct Line(String);

impl Line {
    pub fn new(words: &[&str]) -> Self {
        Self::of("portolan", words)
    }

    fn of(program: &str, words: &[&str]) -> Self {
        let mut line = Self(program.into());
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
/// A file that needs words, for a command that takes none.
const CONVERTED: &str = "converted.npz";

/// A file as a command names it, what is said about it, and the lines that make it.
#[derive(Default)]
struct Named {
    name: String,
    words: Fields,
    lines: Vec<String>,
}

impl Named {
    fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A file of the user's. A dash in front would make an option of its name.
    fn file(name: &str, words: &Fields) -> Self {
        let name = if name.starts_with('-') { format!("./{name}") } else { name.into() };
        Self { name, words: words.clone(), lines: Vec::new() }
    }
}

/// What the command calls readings.
fn readings_file(item: &Item) -> Named {
    match &item.source {
        Source::File { name, words } => Named::file(name, words),
        Source::Demo => {
            let simulate = Line::new(&["simulate", "-o", DEMO[0]]);
            let mut sense = Line::new(&["sense", DEMO[0], "-o", DEMO[1]]);
            sense.option("--fraction", Some(DEMO_FRACTION));
            Named { lines: vec![simulate.finish(), sense.finish()], ..Named::new(DEMO[1]) }
        }
        Source::Fit(_) | Source::Given => Named::new("readings.npz"),
    }
}

/// Adds what was said about a file.
fn said(line: &mut Line, words: &Fields) {
    for (name, value) in words {
        match name.as_str() {
            // These stand alone.
            "strict" | "accept" if value == "false" => {}
            "strict" | "accept" => line.word(&format!("--{name}")),
            _ => line.option(&format!("--{name}"), Some(value)),
        }
    }
}

fn is_map(item: &Item) -> bool {
    item.surface().is_ok_and(|surface| matches!(surface.as_ref(), Surface::Map(_)))
}

/// The file that holds an item.
fn file_of(library: &Library, item: &Item) -> Named {
    match &item.source {
        Source::Fit(call) => Named { lines: for_fit(library, call), ..Named::new("model.npz") },
        _ if item.readings().is_some() => readings_file(item),
        // A model says everything about itself, and its commands take no such words.
        Source::File { name, words } if is_map(item) => Named::file(name, words),
        Source::File { name, .. } => Named::file(name, &Fields::new()),
        Source::Given | Source::Demo if is_map(item) => Named::new("map.npz"),
        Source::Given | Source::Demo => Named::new("model.npz"),
    }
}

/// The lines that fit a method.
pub fn for_fit(library: &Library, call: &FitCall) -> Vec<String> {
    let Named { name, words, mut lines } = match library.get(call.readings) {
        Ok(readings) => readings_file(&readings),
        Err(_) => Named::new("readings.npz"),
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

/// The name that the command gives to the file of a request.
pub fn file_name(request: &ExportRequest) -> String {
    let stem = match request.what {
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
    let ending: String =
        request.ending.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{stem}.{ending}")
}

/// The command's words for the grid, bands and masks of a request.
fn request_words(request: &ExportRequest, line: &mut Line) {
    let GridRequest { grid, cell_m, origin, region, z_m } = request.grid;
    line.option("--grid", grid.map(|(rows, cols)| format!("{rows}x{cols}")));
    line.option("--cell-m", cell_m);
    line.option("--origin", origin.map(|(x, y)| format!("{x},{y}")));
    let corners =
        region.map(|r| format!("{},{},{},{}", r.low.x_m, r.low.y_m, r.high.x_m, r.high.y_m));
    line.option("--region", corners);
    line.option("--z", z_m);
    let bands = request
        .bands
        .as_ref()
        .map(|b| b.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    line.option("--bands", bands);
    request.masks.iter().for_each(|mask| line.option("--mask", Some(mask)));
}

/// What a picture shows and how it looks, where that is not the usual.
fn look_words(request: &ExportRequest, line: &mut Line) {
    let list = |values: &[f64]| {
        let words: Vec<String> = values.iter().map(f64::to_string).collect();
        Some(words.join(",")).filter(|list| !list.is_empty())
    };
    line.option("--above", request.above);
    if request.spread {
        line.word("--spread");
    }
    line.option("--colours", request.colours.filter(|name| *name != "viridis"));
    line.option("--range", request.range.map(|(low, high)| format!("{low},{high}")));
    line.option("--levels", list(&request.levels));
    line.option("--contours", list(&request.contours));
    title_word(request, line);
}

/// The heading; a dash in front would make an option of it.
fn title_word(request: &ExportRequest, line: &mut Line) {
    match &request.title {
        Some(title) if title.starts_with('-') => line.word(&format!("--title={title}")),
        title => line.option("--title", title.as_ref()),
    }
}

/// Whether the command's file holds the very bytes of the export. A model that came from a file is
/// written anew, perhaps by a later version.
pub fn same_bytes(item: &Item, request: &ExportRequest) -> bool {
    request.what != What::Model || matches!(item.source, Source::Fit(_))
}

/// The lines that make the file of a request.
pub fn for_request(
    library: &Library,
    item: &Item,
    request: &ExportRequest,
) -> Result<Vec<String>, Refusal> {
    let Named { name: file, words, mut lines } = file_of(library, item);
    let output = file_name(request);
    let bands_alone =
        || ExportRequest { grid: GridRequest::default(), masks: Vec::new(), ..request.clone() };
    let is_map = is_map(item);
    match request.what {
        What::Model => {
            if matches!(item.source, Source::File { .. }) && file != output {
                lines.push(Line::of("cp", &[&file, &output]).finish());
            }
        }
        What::Readings => {
            let readings = library
                .readings_of(item)
                .ok_or_else(|| Refusal::input("there are no readings to write"))?;
            let Named { name, words, lines: made } = readings_file(&readings);
            lines = made;
            let mut line = Line::new(&["convert", &name, &output]);
            said(&mut line, &words);
            lines.push(line.finish());
        }
        What::Emitters => lines.push(Line::new(&["convert", &file, &output]).finish()),
        What::Map if is_map => {
            let mut line = Line::new(&["convert", &file, &output]);
            request_words(
                &ExportRequest { grid: GridRequest::default(), ..request.clone() },
                &mut line,
            );
            said(&mut line, &words);
            lines.push(line.finish());
        }
        What::Map => {
            let mut line = Line::new(&["predict", &file, "-o", &output]);
            request_words(request, &mut line);
            lines.push(line.finish());
        }
        What::Place => {
            let at = request.place.ok_or_else(|| Refusal::input("say the place with x and y"))?;
            lines.push(match request.grid.z_m {
                Some(z) => {
                    format!("printf 'x_m,y_m,z_m\\n{},{},{z}\\n' > places.csv", at.x_m, at.y_m)
                }
                None => format!("printf 'x_m,y_m\\n{},{}\\n' > places.csv", at.x_m, at.y_m),
            });
            let mut line = Line::new(&["predict", &file, "places.csv", "-o", &output]);
            request_words(&bands_alone(), &mut line);
            lines.push(line.finish());
        }
        What::Places => {
            let table = request.table.as_ref().map_or("places.csv", |table| &table.name);
            let table = Named::file(table, &Fields::new()).name;
            let mut line = Line::new(&["predict", &file, &table, "-o", &output]);
            request_words(&bands_alone(), &mut line);
            lines.push(line.finish());
        }
        What::Coverage => {
            let mut file = file;
            if !words.is_empty() {
                // This command takes no words about a file.
                let mut line = Line::new(&["convert", &file, CONVERTED]);
                said(&mut line, &words);
                lines.push(line.finish());
                file = CONVERTED.into();
            }
            let mut line = Line::new(&["coverage", &file]);
            let above = request.above.ok_or_else(|| Refusal::input("say the level with above"))?;
            line.option("--above", Some(above));
            request_words(&ExportRequest { masks: Vec::new(), ..request.clone() }, &mut line);
            if request.ending == "json" {
                lines.push(format!("{} --json > {output}", line.finish()));
            } else {
                line.option("-o", Some(output));
                title_word(request, &mut line);
                lines.push(line.finish());
            }
        }
        What::Picture | What::Spectrum | What::Factors => {
            let mut map = file.clone();
            if !is_map {
                map = "map.npz".into();
                let mut line = Line::new(&["predict", &file, "-o", &map]);
                request_words(
                    &ExportRequest { bands: None, masks: Vec::new(), ..request.clone() },
                    &mut line,
                );
                lines.push(line.finish());
            }
            let mut line = Line::new(&["plot", &map, "-o", &output]);
            match request.what {
                What::Spectrum => line.word("--by-frequency"),
                What::Factors => line.word("--factors"),
                _ => line.option("--band", Some(request.band)),
            }
            let plain = request.what != What::Factors;
            if request.what == What::Spectrum {
                request_words(&bands_alone(), &mut line);
            }
            if plain {
                look_words(request, &mut line);
            }
            said(&mut line, &words);
            let readings = library.readings_of(item).filter(|_| request.sensors && plain);
            if let Some(readings) = readings {
                let Named { name, words, .. } = readings_file(&readings);
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
    let Named { name, words: about, mut lines } = file_of(library, item);
    let mut line = Line::new(&[command, &name]);
    words.iter().for_each(|(name, value)| line.option(name, Some(value)));
    said(&mut line, &about);
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
