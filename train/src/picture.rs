//! Sheets of samples beside draws of the simulator.

use std::path::Path;

use anyhow::{Context, Result};
use ndarray::Array2;
use portolan_io::picture::{Figure, HeatPanel};

use crate::evaluate::brightest;
use crate::fields::{CELLS, DB, SIDE, SPAN};

/// Fields in a row.
pub const COLUMNS: usize = 4;

/// Rows of fields (o-values) that share a name.
pub struct Sheet<'a> {
    pub name: &'a str,
    pub fields: &'a [f32],
}

pub fn write(path: &Path, heading: &str, note: &str, sheets: &[Sheet]) -> Result<()> {
    let mut figure =
        Figure { heading: heading.to_owned(), note: note.to_owned(), ..Figure::default() };
    let mut panels = Vec::new();
    for sheet in sheets {
        for (index, field) in sheet.fields.chunks(CELLS).enumerate() {
            let (_, peak) = brightest(field);
            let field = Array2::from_shape_fn((SIDE, SIDE), |(i, j)| {
                f64::from((field[i * SIDE + j] - peak) * SPAN) * DB
            });
            let mut panel = HeatPanel::new(format!("{} {}", sheet.name, index + 1), field, 1.0);
            panel.limits = (-50.0, 0.0);
            panel.bar = Some("below the peak [dB]".to_owned());
            panels.push(panel);
        }
    }
    figure.add_maps(panels, COLUMNS);
    std::fs::write(path, figure.draw().png()).with_context(|| format!("cannot write {path:?}"))
}
