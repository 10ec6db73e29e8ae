//! Tables as people read them: markdown, aligned so that it reads well in a terminal too. The paper's
//! numbers stand in brackets or in a column of their own, never inside a mean.

use crate::conventions::distances;
use crate::experiment::{Experiment, Section, TableCell};
use crate::journal::Journal;
use crate::record::Metric;
use crate::summary::{CellSummary, Mean};

/// An experiment as markdown: caption, tables, notes, pictures.
pub fn experiment(
    experiment: &Experiment,
    journal: &Journal,
    first_seed: u64,
    pictures: &[String],
) -> String {
    let mut text = format!("## {}\n\n{}\n", experiment.title, experiment.caption);
    for part in &experiment.sections {
        text += &format!("\n### {}\n", part.title);
        text += &section(part, journal, first_seed);
        for note in &part.notes {
            text += &format!("\n{note}\n");
        }
    }
    text += &conventions(experiment, journal, first_seed);
    for picture in pictures {
        text += &format!("\n![{}]({picture})\n", experiment.title);
    }
    text
}

/// Which SSIM comes closest to the paper's columns, where an experiment compares them.
fn conventions(experiment: &Experiment, journal: &Journal, first_seed: u64) -> String {
    if !experiment.compares_conventions {
        return String::new();
    }
    let of = |cell: &TableCell| CellSummary::of(cell, journal, first_seed);
    let found = distances(experiment, of);
    let Some(first) = found.first() else { return String::new() };
    let head = first.columns.iter().map(|(label, ..)| label.to_string());
    let mut rows = vec![header("SSIM of ln(x + a)", head.chain(["rms difference".into()]))];
    for distance in &found {
        let entry = |(_, ours, paper): &(&str, f64, f64)| {
            format!("{} [{}]", figure(*ours, 4), figure(*paper, 4))
        };
        let cells = distance.columns.iter().map(entry).chain([figure(distance.rms, 4)]);
        rows.push(header(&distance.name, cells));
    }
    format!(
        "\n### Which SSIM is the paper's?\n\nMeans over the rows of full precision by the \
         conventions in use; in brackets the paper's. The first is closest.\n\n{}",
        table(&rows)
    )
}

fn section(section: &Section, journal: &Journal, first_seed: u64) -> String {
    let of = |cell: &TableCell| CellSummary::of(cell, journal, first_seed);
    let maps: Vec<usize> =
        section.cells.iter().filter(|c| c.setup.is_some()).map(|c| of(c).maps).collect();
    let most = maps.iter().copied().max().unwrap_or(0);
    let there: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|m| section.cells.iter().any(|cell| of(cell).mean(*m).is_some()))
        .collect();
    let plural = if most == 1 { "" } else { "s" };
    let mut text = format!("\nMeans ± standard errors over {most} trial{plural}");
    text += if maps.iter().any(|n| *n != most) { "; (n) where there are fewer.\n" } else { ".\n" };
    let columns = section.column_labels();
    if let [only] = columns[..] {
        return text + &by_metric(section, only, &there, most, &of);
    }
    for metric in there {
        let printed = section.cells.iter().any(|cell| printed(cell, metric).is_some());
        let beside = if printed { "; in brackets what the paper prints" } else { "" };
        text += &format!("\n{}{beside}:\n\n", in_words(metric));
        let mut rows = vec![header(section.rows, columns.iter().map(|c| c.to_string()))];
        for row in section.row_labels() {
            let cells = columns.iter().map(|column| match section.cell(row, column) {
                Some(cell) => entry(cell, &of(cell), metric, most),
                None => String::new(),
            });
            rows.push(header(row, cells));
        }
        text += &table(&rows);
    }
    text
}

/// One column of results: the metrics side by side.
fn by_metric(
    section: &Section,
    column: &str,
    metrics: &[Metric],
    most: usize,
    of: &dyn Fn(&TableCell) -> CellSummary,
) -> String {
    let mut rows = vec![header(section.rows, metrics.iter().map(|m| in_words(*m).to_string()))];
    for row in section.row_labels() {
        let Some(cell) = section.cell(row, column) else { continue };
        let summary = of(cell);
        rows.push(header(row, metrics.iter().map(|m| entry(cell, &summary, *m, most))));
    }
    format!("\n{}", table(&rows))
}

fn header(first: &str, rest: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(first.to_string()).chain(rest).collect()
}

/// What the paper prints of a metric in a cell.
pub fn printed(cell: &TableCell, metric: Metric) -> Option<f64> {
    let printed = cell.printed.as_ref()?;
    match metric {
        Metric::Ssim => Some(printed.ssim),
        Metric::Seconds => printed.seconds,
        _ => None,
    }
}

fn entry(cell: &TableCell, summary: &CellSummary, metric: Metric, most: usize) -> String {
    let mut parts = Vec::new();
    match summary.mean(metric) {
        Some(Mean { mean, error }) => {
            let digits = metric.digits();
            let error = error.map_or(String::new(), |e| format!(" ± {}", figure(e, digits)));
            parts.push(figure(mean, digits) + &error);
            if summary.maps < most {
                parts.push(format!("({})", summary.maps));
            }
        }
        None => parts.push("-".into()),
    }
    if summary.failed > 0 {
        parts.push(format!("({} failed)", summary.failed));
    }
    parts.extend(printed(cell, metric).map(|p| format!("[{}]", figure(p, metric.digits()))));
    parts.join(" ")
}

/// A number without the zero before its point, as in the other tables of the project.
fn figure(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.split_once("0.") {
        Some(("", rest)) => format!(".{rest}"),
        Some(("-", rest)) => format!("-.{rest}"),
        _ => text,
    }
}

fn in_words(metric: Metric) -> &'static str {
    match metric {
        Metric::Ssim => "SSIM",
        Metric::SsimStrict => "SSIM, data range 2",
        Metric::RmseDb => "rmse dB",
        Metric::Roughness => "roughness over the truth's",
        Metric::OffGridRmseDb => "rmse dB off the grid",
        Metric::FitSeconds => "seconds of the fit alone",
        Metric::Seconds => "seconds, start included",
    }
}

/// Rows of cells as a markdown table; the first row is the header.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        rows.iter().filter_map(|row| row.get(i)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(|i| width(i).max(3)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = rows.first().map(line).unwrap_or_default();
    text += &line(&rule);
    rows.iter().skip(1).for_each(|row| text += &line(row));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_in_the_other_tables() {
        assert_eq!(figure(0.89481, 4), ".8948");
        assert_eq!(figure(-0.05, 2), "-.05");
        assert_eq!(figure(10.25, 2), "10.25");
        assert_eq!(figure(1.0, 4), "1.0000");
    }

    #[test]
    fn tables_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_string).to_vec();
        let text = table(&[row(["R", "unn"]), row(["10", ".9 ± .1"])]);
        assert_eq!(text, "| R   | unn     |\n| --- | ------- |\n| 10  | .9 ± .1 |\n");
    }
}
