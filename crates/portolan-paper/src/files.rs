//! Results as files: markdown, CSV, JSON and pictures for every experiment, and one page of all that
//! the journal holds.

use std::path::Path;

use portolan::Emitters;
use portolan_io::picture::PictureKind;
use portolan_io::write_bytes;
use serde_json::{Value, json};

use crate::data::Data;
use crate::error::ReproduceError;
use crate::experiment::{Experiment, Section, TableCell};
use crate::journal::Journal;
use crate::record::Metric;
use crate::summary::CellSummary;
use crate::{markdown, pictures};

/// The page with everything.
pub const PAGE: &str = "reproduction.md";

/// Where results come from and go to.
pub struct Desk<'a> {
    pub folder: &'a Path,
    pub journal: &'a Journal,
    pub data: &'a Data,
    pub first_seed: u64,
}

impl Desk<'_> {
    /// Whether the journal holds anything of an experiment.
    pub fn has(&self, experiment: &Experiment) -> bool {
        experiment.cells().any(|cell| !self.summary(cell).is_empty())
    }

    /// Whether it holds most of it: cells that other experiments share do not count for much.
    pub fn has_most(&self, experiment: &Experiment) -> bool {
        let setups = experiment.cells().filter(|cell| cell.setup.is_some());
        let (there, missing): (Vec<&TableCell>, Vec<&TableCell>) =
            setups.partition(|cell| !self.summary(cell).is_empty());
        there.len() > missing.len()
    }

    fn summary(&self, cell: &TableCell) -> CellSummary {
        CellSummary::of(cell, self.journal, self.first_seed)
    }

    /// Writes the files of one experiment; returns its markdown.
    pub fn write(&self, experiment: &Experiment) -> Result<String, ReproduceError> {
        let save = |name: &str, bytes: &[u8]| write_bytes(&self.folder.join(name), bytes, true);
        let mut names = Vec::new();
        for (name, picture) in pictures::draw(experiment, self)? {
            save(&name, &PictureKind::Png.bytes(&picture, None)?.0)?;
            names.push(name);
        }
        let text = markdown::experiment(experiment, self.journal, self.first_seed, &names);
        save(&format!("{}.md", experiment.name), text.as_bytes())?;
        save(&format!("{}.csv", experiment.name), &self.csv(experiment))?;
        let mut json = format!("{:#}", self.json(experiment));
        json.push('\n');
        save(&format!("{}.json", experiment.name), json.as_bytes())?;
        Ok(text)
    }

    /// Writes the page of every experiment that the journal holds most of.
    pub fn write_page(&self, experiments: &[Experiment]) -> Result<(), ReproduceError> {
        let mut page = format!(
            "# Reproduction\n\nportolan {}. Trial t has seed {} + t, for the map (or the split of \
             measured cells), the sensors and the methods. Numbers in brackets are the paper's.\n",
            env!("CARGO_PKG_VERSION"),
            self.first_seed
        );
        for experiment in experiments.iter().filter(|experiment| self.has_most(experiment)) {
            let drawn = pictures::names(experiment);
            let there = drawn.into_iter().filter(|name| self.folder.join(name).exists());
            page.push('\n');
            let names: Vec<String> = there.collect();
            page += &markdown::experiment(experiment, self.journal, self.first_seed, &names);
        }
        Ok(write_bytes(&self.folder.join(PAGE), page.as_bytes(), true)?)
    }

    fn csv(&self, experiment: &Experiment) -> Vec<u8> {
        let mut lines = csv::Writer::from_writer(Vec::new());
        let mut header: Vec<String> =
            ["section", "row", "column", "method", "emitters", "maps", "failed"]
                .map(String::from)
                .to_vec();
        for metric in Metric::ALL {
            header.extend([metric.name().to_string(), format!("{}_error", metric.name())]);
        }
        header
            .extend(["paper_table", "paper_column", "paper_ssim", "paper_seconds"].map(Into::into));
        let mut rows = vec![header];
        for section in &experiment.sections {
            rows.extend(section.cells.iter().map(|cell| self.csv_row(section, cell)));
        }
        let written = rows.iter().try_for_each(|row| lines.write_record(row));
        written.expect("rows of equal length always fit into memory");
        lines.into_inner().expect("a vector takes everything")
    }

    fn csv_row(&self, section: &Section, cell: &TableCell) -> Vec<String> {
        let summary = self.summary(cell);
        let text = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        let mut row = vec![
            section.name.to_string(),
            cell.row.clone(),
            cell.column.clone(),
            cell.setup.as_ref().map_or(String::new(), |setup| setup.method.to_string()),
            told(cell),
            summary.maps.to_string(),
            summary.failed.to_string(),
        ];
        for metric in Metric::ALL {
            let mean = summary.mean(metric);
            row.extend([text(mean.map(|m| m.mean)), text(mean.and_then(|m| m.error))]);
        }
        let printed = cell.printed.as_ref();
        row.extend([
            printed.map_or(String::new(), |p| p.table.clone()),
            printed.map_or(String::new(), |p| p.column.clone()),
            text(printed.map(|p| p.ssim)),
            text(printed.and_then(|p| p.seconds)),
        ]);
        row
    }

    fn json(&self, experiment: &Experiment) -> Value {
        let sections: Vec<Value> = experiment
            .sections
            .iter()
            .map(|section| {
                let cells: Vec<Value> = section.cells.iter().map(|c| self.json_cell(c)).collect();
                json!({ "name": section.name, "title": section.title, "rows": section.rows,
                        "notes": section.notes, "cells": cells })
            })
            .collect();
        json!({
            "experiment": experiment.name,
            "title": experiment.title,
            "caption": experiment.caption,
            "version": env!("CARGO_PKG_VERSION"),
            "first_seed": self.first_seed,
            "sections": sections,
        })
    }

    fn json_cell(&self, cell: &TableCell) -> Value {
        let summary = self.summary(cell);
        let mut value = json!({
            "row": cell.row,
            "column": cell.column,
            "scene": cell.setup.as_ref().map(|setup| setup.scene.to_string()),
            "method": cell.setup.as_ref().map(|setup| setup.method.to_string()),
            "emitters": told(cell),
            "maps": summary.maps,
            "failed": summary.failed,
        });
        for metric in Metric::ALL {
            let mean = summary.mean(metric);
            value[metric.name()] =
                mean.map_or(Value::Null, |m| json!({ "mean": m.mean, "standard_error": m.error }));
        }
        value["paper"] = cell.printed.as_ref().map_or(Value::Null, |p| {
            json!({ "table": p.table, "column": p.column, "ssim": p.ssim, "seconds": p.seconds })
        });
        value
    }
}

/// The number of emitters that a cell's method is told.
fn told(cell: &TableCell) -> String {
    match cell.setup.as_ref().map(|setup| setup.emitters) {
        Some(Emitters::Count(count)) => count.to_string(),
        Some(Emitters::Auto) => "auto".into(),
        None => String::new(),
    }
}
