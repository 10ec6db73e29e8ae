//! What the sensors report: a spectrum at each of a few cells, in power or in quantised levels.

use ndarray::Array2;

use crate::error::InputError;
use crate::grid::{Cell, Grid};
use crate::map::check_frequencies;
use crate::quantiser::{MISSING_LEVEL, Quantiser};

/// The values of a set of readings, sensors x bands.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Linear power; NaN = missing.
    Power(Array2<f64>),
    /// Levels of a quantiser; 255 = missing.
    Levels { levels: Array2<u8>, quantiser: Quantiser },
}

impl Values {
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Values::Power(power) => power.dim(),
            Values::Levels { levels, .. } => levels.dim(),
        }
    }
}

/// Readings of at least two sensors, checked when they are made: cells lie on the grid and differ,
/// values are usable, every band is read by someone.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    grid: Grid,
    cells: Vec<Cell>,
    values: Values,
    freq_hz: Option<Vec<f64>>,
}

impl Readings {
    /// One row of `values` per cell of `cells`.
    pub fn new(grid: Grid, cells: Vec<Cell>, values: Values) -> Result<Self, InputError> {
        let (sensors, bands) = values.dim();
        if sensors != cells.len() {
            let found = vec![sensors, bands];
            let expected = vec![cells.len(), bands];
            return Err(InputError::Shape { what: "values", found, expected });
        }
        if bands == 0 {
            return Err(InputError::NoBands);
        }
        check_cells(grid, &cells)?;
        if sensors < 2 {
            return Err(InputError::TooFewSensors { found: sensors });
        }
        match &values {
            Values::Power(power) => check_values(power)?,
            Values::Levels { levels, quantiser } => check_levels(levels, quantiser)?,
        }
        Ok(Self { grid, cells, values, freq_hz: None })
    }

    /// As [`Readings::new`], but sensors that share a cell become one: powers are averaged, levels
    /// too (rounded to the nearest). Returns how many sensors were merged away.
    pub fn merged(
        grid: Grid,
        cells: Vec<Cell>,
        values: Values,
    ) -> Result<(Self, usize), InputError> {
        let mut place = std::collections::HashMap::new();
        let mut unique = Vec::with_capacity(cells.len());
        let group: Vec<usize> = cells
            .iter()
            .map(|&cell| {
                *place.entry(cell).or_insert_with(|| {
                    unique.push(cell);
                    unique.len() - 1
                })
            })
            .collect();
        let merged_away = cells.len() - unique.len();
        if merged_away == 0 || values.dim().0 != cells.len() {
            return Ok((Self::new(grid, cells, values)?, 0));
        }
        let values = match values {
            Values::Power(power) => {
                check_values(&power)?;
                Values::Power(mean_by_group(&power, &group, unique.len()))
            }
            Values::Levels { levels, quantiser } => {
                check_levels(&levels, &quantiser)?;
                let as_f64 = levels.mapv(|l| if l == MISSING_LEVEL { f64::NAN } else { l.into() });
                let mean = mean_by_group(&as_f64, &group, unique.len());
                let levels =
                    mean.mapv(|v| if v.is_nan() { MISSING_LEVEL } else { v.round() as u8 });
                Values::Levels { levels, quantiser }
            }
        };
        Ok((Self::new(grid, unique, values)?, merged_away))
    }

    /// Attaches the centre frequency of every band.
    pub fn with_frequencies(mut self, freq_hz: Option<Vec<f64>>) -> Result<Self, InputError> {
        check_frequencies(freq_hz.as_deref(), self.bands())?;
        self.freq_hz = freq_hz;
        Ok(self)
    }

    pub fn grid(&self) -> Grid {
        self.grid
    }

    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub fn sensors(&self) -> usize {
        self.cells.len()
    }

    pub fn bands(&self) -> usize {
        self.values.dim().1
    }

    /// Cells times bands of the map that the readings belong to.
    pub fn entries(&self) -> usize {
        self.grid.cells() * self.bands()
    }

    pub fn values(&self) -> &Values {
        &self.values
    }

    pub fn freq_hz(&self) -> Option<&[f64]> {
        self.freq_hz.as_deref()
    }

    /// Linear power, sensors x bands, NaN = missing; levels are decoded to the middle of their bin.
    pub fn power(&self) -> Array2<f64> {
        match &self.values {
            Values::Power(power) => power.clone(),
            Values::Levels { levels, quantiser } => {
                levels.mapv(
                    |level| {
                        if level == MISSING_LEVEL { f64::NAN } else { quantiser.decode(level) }
                    },
                )
            }
        }
    }

    /// Number of missing entries.
    pub fn gaps(&self) -> usize {
        match &self.values {
            Values::Power(power) => power.iter().filter(|v| v.is_nan()).count(),
            Values::Levels { levels, .. } => levels.iter().filter(|&&l| l == MISSING_LEVEL).count(),
        }
    }

    /// The readings of some of the sensors, by index: for held-out sensors and cross-validation.
    pub fn subset(&self, sensors: &[usize]) -> Result<Self, InputError> {
        let cells = sensors.iter().map(|&s| self.cells[s]).collect();
        let axis = ndarray::Axis(0);
        let values = match &self.values {
            Values::Power(power) => Values::Power(power.select(axis, sensors)),
            Values::Levels { levels, quantiser } => Values::Levels {
                levels: levels.select(axis, sensors),
                quantiser: quantiser.clone(),
            },
        };
        Self::new(self.grid, cells, values)?.with_frequencies(self.freq_hz.clone())
    }
}

pub(crate) fn check_cells(grid: Grid, cells: &[Cell]) -> Result<(), InputError> {
    let mut seen = std::collections::HashMap::with_capacity(cells.len());
    for (sensor, &cell) in cells.iter().enumerate() {
        let Cell { row, col } = cell;
        if !grid.contains(cell) {
            let (rows, cols) = (grid.rows(), grid.cols());
            let (row, col) = (row as i64, col as i64);
            return Err(InputError::OffGrid { sensor, row, col, rows, cols });
        }
        if let Some(first) = seen.insert(cell, sensor) {
            return Err(InputError::DuplicateCell { first, second: sensor, row, col });
        }
    }
    Ok(())
}

fn check_values(power: &Array2<f64>) -> Result<(), InputError> {
    // NaN is a gap; only negative and infinite values are wrong.
    let wrong = |v: f64| v < 0.0 || v.is_infinite();
    if let Some(((sensor, band), &value)) = power.indexed_iter().find(|(_, v)| wrong(**v)) {
        let place = format!("sensor {sensor}, band {band}");
        return Err(InputError::Power { what: "reading", place, value });
    }
    for (band, column) in power.columns().into_iter().enumerate() {
        if column.iter().all(|v| v.is_nan()) {
            return Err(InputError::EmptyBand { band });
        }
    }
    if power.iter().all(|v| v.is_nan() || *v == 0.0) {
        return Err(InputError::AllZero);
    }
    Ok(())
}

fn check_levels(levels: &Array2<u8>, quantiser: &Quantiser) -> Result<(), InputError> {
    let edges = quantiser.edges().len();
    for ((sensor, band), &level) in levels.indexed_iter() {
        if level != MISSING_LEVEL && usize::from(level) > edges {
            return Err(InputError::Level { level, sensor, band, edges });
        }
    }
    for (band, column) in levels.columns().into_iter().enumerate() {
        if column.iter().all(|&level| level == MISSING_LEVEL) {
            return Err(InputError::EmptyBand { band });
        }
    }
    Ok(())
}

fn mean_by_group(values: &Array2<f64>, group: &[usize], groups: usize) -> Array2<f64> {
    let mut sum = Array2::<f64>::zeros((groups, values.ncols()));
    let mut count = Array2::<f64>::zeros((groups, values.ncols()));
    for ((sensor, band), &value) in values.indexed_iter() {
        if !value.is_nan() {
            sum[[group[sensor], band]] += value;
            count[[group[sensor], band]] += 1.0;
        }
    }
    // 0 / 0 would be a NaN whose sign depends on the processor: a gap is always the same bytes.
    ndarray::Zip::from(&mut sum).and(&count).for_each(|sum, &count| {
        *sum = if count > 0.0 { *sum / count } else { f64::NAN };
    });
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn grid() -> Grid {
        Grid::new(4, 5, 1.0).unwrap()
    }

    fn power(values: Array2<f64>, cells: &[(usize, usize)]) -> Result<Readings, InputError> {
        let cells = cells.iter().map(|&(r, c)| Cell::new(r, c)).collect();
        Readings::new(grid(), cells, Values::Power(values))
    }

    #[test]
    fn every_wrong_input_has_its_own_error() {
        let ok = array![[1.0, 2.0], [3.0, f64::NAN]];
        assert!(power(ok.clone(), &[(0, 0), (3, 4)]).is_ok());
        let off = power(ok.clone(), &[(0, 0), (4, 0)]);
        assert!(matches!(off, Err(InputError::OffGrid { sensor: 1, row: 4, .. })));
        let twice = power(ok.clone(), &[(1, 1), (1, 1)]);
        assert!(matches!(twice, Err(InputError::DuplicateCell { first: 0, second: 1, .. })));
        assert!(matches!(power(ok, &[(0, 0)]), Err(InputError::Shape { .. })));
        let one = power(array![[1.0]], &[(0, 0)]);
        assert_eq!(one, Err(InputError::TooFewSensors { found: 1 }));
        let none = power(Array2::zeros((0, 3)), &[]);
        assert_eq!(none, Err(InputError::TooFewSensors { found: 0 }));
        let negative = power(array![[1.0], [-2.0]], &[(0, 0), (0, 1)]);
        assert!(negative.unwrap_err().to_string().contains("sensor 1, band 0"));
        let zero = power(array![[0.0], [0.0]], &[(0, 0), (0, 1)]);
        assert_eq!(zero, Err(InputError::AllZero));
        let empty = power(array![[1.0, f64::NAN], [1.0, f64::NAN]], &[(0, 0), (0, 1)]);
        assert_eq!(empty, Err(InputError::EmptyBand { band: 1 }));
    }

    #[test]
    fn sensors_in_one_cell_are_averaged() {
        let cells = vec![Cell::new(0, 0), Cell::new(2, 2), Cell::new(0, 0)];
        let values = array![[1.0, f64::NAN], [5.0, 6.0], [3.0, f64::NAN]];
        let (readings, merged) = Readings::merged(grid(), cells, Values::Power(values)).unwrap();
        assert_eq!(merged, 1);
        assert_eq!(readings.sensors(), 2);
        assert_eq!(readings.power()[[0, 0]], 2.0);
        assert!(readings.power()[[0, 1]].is_nan());
        assert_eq!(readings.gaps(), 1);
    }

    #[test]
    fn levels_beyond_the_quantiser_are_refused() {
        let quantiser = Quantiser::new(vec![-3.0, -1.0], 0.5, 1e-6).unwrap();
        let cells = vec![Cell::new(0, 0), Cell::new(0, 1)];
        let good = Values::Levels { levels: array![[2], [255]], quantiser: quantiser.clone() };
        assert_eq!(Readings::new(grid(), cells.clone(), good).unwrap().gaps(), 1);
        let bad = Values::Levels { levels: array![[3], [0]], quantiser };
        assert!(matches!(
            Readings::new(grid(), cells, bad),
            Err(InputError::Level { level: 3, .. })
        ));
    }
}
