//! The area above a level, with several certainties: counted from a model or a map, written as JSON
//! and as a picture.

use ndarray::{Array2, Array3, Axis, s};
use portolan::coverage::{CERTAINTIES, Coverage, Covered};
use portolan::{
    BandLabels, Crs, EstimateError, Grid, InputError, Model, Progress, RadioMap, Scale,
};
use serde_json::{Value, json};

use crate::picture::{CoverageAbout, CoverageFigure, Scene, Typeface};

/// Entries that a model is asked for at once.
const STRIP: usize = 1 << 21;

/// What was counted, and of what.
pub struct Counted {
    /// Cells above the level.
    pub found: Coverage,
    /// Of which cells.
    pub grid: Grid,
    above: f64,
    figure: CoverageFigure,
    scale: Scale,
    crs: Option<Crs>,
    labels: Vec<String>,
}

impl Counted {
    /// Asks a model on a grid, in some bands.
    pub fn of_model(
        model: &Model,
        grid: Grid,
        bands: &[usize],
        above: f64,
        progress: &Progress<'_>,
    ) -> Result<Self, EstimateError> {
        let mut counted =
            Self::new(above, grid, model.scale(), model.crs(), (model.labels(), bands));
        let strip = (STRIP / (grid.cols() * bands.len()).max(1)).clamp(1, grid.rows());
        for first in (0..grid.rows()).step_by(strip) {
            let last = (first + strip).min(grid.rows());
            let share = |row: usize| row as f64 / grid.rows() as f64;
            let part = progress.part(share(first)..share(last));
            let sites = grid.sites_of_rows(first..last);
            let found = model.predict_bands(&sites, bands, &part)?;
            let shape = (last - first, grid.cols(), bands.len());
            let cube = |values: Array2<f64>| {
                values.into_shape_with_order(shape).expect("every cell of the strip was asked for")
            };
            counted.add(first, cube(found.power), found.spread_db.map(cube));
        }
        Ok(counted)
    }

    /// Counts some bands of a map.
    pub fn of_map(map: &RadioMap, bands: &[usize], above: f64) -> Self {
        let grid = map.grid();
        let mut counted = Self::new(above, grid, map.scale(), map.crs(), (map.labels(), bands));
        let mut power = Array3::zeros((grid.rows(), grid.cols(), bands.len()));
        for (slot, band) in bands.iter().enumerate() {
            power.slice_mut(s![.., .., slot]).assign(&map.band(*band));
        }
        let spread = map.spread_db().map(|spread| spread.select(Axis(2), bands));
        counted.add(0, power, spread);
        counted
    }

    fn new(
        above: f64,
        grid: Grid,
        scale: Scale,
        crs: Option<Crs>,
        (labels, bands): (&BandLabels, &[usize]),
    ) -> Self {
        Self {
            found: Coverage::new(bands.len(), above),
            figure: CoverageFigure::new(grid),
            grid,
            above,
            scale,
            crs,
            labels: bands.iter().map(|band| labels.label(*band)).collect(),
        }
    }

    /// Counts rows from `first` on.
    fn add(&mut self, first: usize, mut power: Array3<f64>, spread: Option<Array3<f64>>) {
        let offset = self.scale.link().offset();
        power.mapv_inplace(|x| 10.0 * (x + offset).log10());
        let best = self.found.add(power.view(), spread.as_ref().map(|spread| spread.view()));
        self.figure.add_rows(first, &best);
    }

    /// Bands, and the best of them where there are several.
    pub fn rows(&self) -> Vec<(String, Covered)> {
        let mut rows: Vec<(String, Covered)> =
            self.labels.iter().cloned().zip(self.found.bands.iter().copied()).collect();
        if rows.len() > 1 {
            rows.push(("best server".into(), self.found.best));
        }
        rows
    }

    /// Certainties that are told apart: one where there is no spread.
    pub fn certainties(&self) -> usize {
        if self.found.spread { CERTAINTIES.len() } else { 1 }
    }

    /// All of it in JSON.
    pub fn json(&self) -> Value {
        let cell_m2 = self.grid.cell_m().powi(2);
        let one = |covered: &Covered| {
            let count = self.certainties();
            let above: Vec<f64> =
                covered.above[..count].iter().map(|n| *n as f64 * cell_m2).collect();
            json!({
                "area_m2": covered.known as f64 * cell_m2,
                "above_m2": above,
                "share": &covered.shares()[..count],
                "expected_share": Some(covered.expected_share()).filter(|share| !share.is_nan()),
            })
        };
        let bands: Vec<Value> = self
            .labels
            .iter()
            .zip(&self.found.bands)
            .map(|(label, covered)| {
                let mut row = one(covered);
                row["label"] = json!(label);
                row
            })
            .collect();
        let unknown = self.found.cells - self.found.best.known;
        json!({
            "above_db": self.above,
            "unit": self.scale.decibels(),
            "cell_m": self.grid.cell_m(),
            "certainties": self.found.spread.then_some(CERTAINTIES),
            "unknown_m2": unknown as f64 * cell_m2,
            "bands": bands,
            "best_server": one(&self.found.best),
        })
    }

    /// The picture of it.
    pub fn scene(&self, title: Option<&str>, typeface: &Typeface) -> Result<Scene, InputError> {
        let (grid, count) = (self.grid, self.labels.len());
        let bands = match count {
            1 => self.labels[0].clone(),
            _ => format!("the best of {count} bands"),
        };
        let (rows, cols, cell_m) = (grid.rows(), grid.cols(), grid.cell_m());
        let level = self.above.to_string().replace('-', "−");
        let about = CoverageAbout {
            title,
            level: format!("{level} {}", self.scale.decibels()),
            note: format!("{bands}, {rows} × {cols} cells of {cell_m} m"),
            crs: self.crs,
        };
        self.figure.draw(&self.found, &about, typeface)
    }
}
