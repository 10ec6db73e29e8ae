//! Radio maps: power over space and frequency, dense or as a sum of emitters (paper, eq. 2).

use std::borrow::Cow;

use ndarray::{Array2, Array3, ArrayView3, Axis};

use crate::error::InputError;
use crate::findings::Exponent;
use crate::grid::{Cell, Grid};

/// A map as a sum over emitters of spatial loss field (SLF) times power spectral density (PSD):
/// X(i, j, k) = sum_r S_r(i, j) c_r(k).
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    /// Emitters x rows x columns.
    pub slf: Array3<f64>,
    /// Emitters x bands.
    pub psd: Array2<f64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Power {
    Dense(Array3<f64>),
    Factored(Factors),
}

/// Linear power in every cell and band. A factored map stays factored until a dense one is asked
/// for. NaN marks a cell that nobody knows (unmeasured, inside a building).
#[derive(Clone, Debug, PartialEq)]
pub struct RadioMap {
    grid: Grid,
    power: Power,
    freq_hz: Option<Vec<f64>>,
    spread_db: Option<Array3<f64>>,
    emitters: Vec<[f64; 2]>,
    emitter_se: Vec<[f64; 2]>,
    exponents: Vec<Exponent>,
}

impl RadioMap {
    /// From rows x columns x bands.
    pub fn dense(grid: Grid, power: Array3<f64>) -> Result<Self, InputError> {
        let (rows, cols, bands) = power.dim();
        if (rows, cols) != (grid.rows(), grid.cols()) || bands == 0 {
            return Err(InputError::Shape {
                what: "map",
                found: power.shape().to_vec(),
                expected: vec![grid.rows(), grid.cols(), bands.max(1)],
            });
        }
        check_power("map", power.view(), |(i, j, k)| format!("row {i}, col {j}, band {k}"))?;
        Ok(Self::new(grid, Power::Dense(power)))
    }

    /// From SLFs and PSDs.
    pub fn factored(grid: Grid, factors: Factors) -> Result<Self, InputError> {
        let (emitters, rows, cols) = factors.slf.dim();
        if (rows, cols) != (grid.rows(), grid.cols()) || emitters == 0 {
            return Err(InputError::Shape {
                what: "slf",
                found: factors.slf.shape().to_vec(),
                expected: vec![emitters.max(1), grid.rows(), grid.cols()],
            });
        }
        let bands = factors.psd.ncols();
        if factors.psd.nrows() != emitters || bands == 0 {
            return Err(InputError::Shape {
                what: "psd",
                found: factors.psd.shape().to_vec(),
                expected: vec![emitters, bands.max(1)],
            });
        }
        check_power("slf", factors.slf.view(), |(r, i, j)| {
            format!("emitter {r}, row {i}, col {j}")
        })?;
        check_power("psd", factors.psd.view().insert_axis(Axis(0)), |(_, r, k)| {
            format!("emitter {r}, band {k}")
        })?;
        if let Some(((r, k), _)) = factors.psd.indexed_iter().find(|(_, v)| v.is_nan()) {
            let place = format!("emitter {r}, band {k}");
            return Err(InputError::Power { what: "psd", place, value: f64::NAN });
        }
        Ok(Self::new(grid, Power::Factored(factors)))
    }

    fn new(grid: Grid, power: Power) -> Self {
        Self {
            grid,
            power,
            freq_hz: None,
            spread_db: None,
            emitters: Vec::new(),
            emitter_se: Vec::new(),
            exponents: Vec::new(),
        }
    }

    /// Attaches the centre frequency of every band.
    pub fn with_frequencies(mut self, freq_hz: Option<Vec<f64>>) -> Result<Self, InputError> {
        check_frequencies(freq_hz.as_deref(), self.bands())?;
        self.freq_hz = freq_hz;
        Ok(self)
    }

    /// Attaches the standard deviation of every entry in dB.
    pub fn with_spread_db(mut self, spread_db: Option<Array3<f64>>) -> Result<Self, InputError> {
        if let Some(spread) = &spread_db {
            let expected = vec![self.grid.rows(), self.grid.cols(), self.bands()];
            if spread.shape() != expected {
                let found = spread.shape().to_vec();
                return Err(InputError::Shape { what: "spread_db", found, expected });
            }
            check_power("spread_db", spread.view(), |(i, j, k)| {
                format!("row {i}, col {j}, band {k}")
            })?;
        }
        self.spread_db = spread_db;
        Ok(self)
    }

    /// Attaches emitter positions as row, column (fractions allowed, off the grid allowed).
    pub fn with_emitters(mut self, emitters: Vec<[f64; 2]>) -> Self {
        self.emitters = emitters;
        self
    }

    /// Attaches the standard errors of the positions in cells, one pair per emitter or none at all.
    pub fn with_emitter_se(mut self, emitter_se: Vec<[f64; 2]>) -> Result<Self, InputError> {
        self.check_per_emitter("emitter_se", emitter_se.len(), &[2])?;
        self.emitter_se = emitter_se;
        Ok(self)
    }

    /// Attaches path-loss exponents, one per emitter or none at all.
    pub fn with_exponents(mut self, exponents: Vec<Exponent>) -> Result<Self, InputError> {
        self.check_per_emitter("exponent", exponents.len(), &[])?;
        self.exponents = exponents;
        Ok(self)
    }

    fn check_per_emitter(
        &self,
        what: &'static str,
        found: usize,
        rest: &[usize],
    ) -> Result<(), InputError> {
        if found == 0 || found == self.emitters.len() {
            return Ok(());
        }
        let shape = |count: usize| [&[count], rest].concat();
        Err(InputError::Shape { what, found: shape(found), expected: shape(self.emitters.len()) })
    }

    pub fn grid(&self) -> Grid {
        self.grid
    }

    pub fn bands(&self) -> usize {
        match &self.power {
            Power::Dense(power) => power.dim().2,
            Power::Factored(factors) => factors.psd.ncols(),
        }
    }

    pub fn freq_hz(&self) -> Option<&[f64]> {
        self.freq_hz.as_deref()
    }

    pub fn spread_db(&self) -> Option<&Array3<f64>> {
        self.spread_db.as_ref()
    }

    /// Emitter positions as row, column; empty where unknown.
    pub fn emitters(&self) -> &[[f64; 2]] {
        &self.emitters
    }

    /// Standard errors of the positions in cells; empty where unknown.
    pub fn emitter_se(&self) -> &[[f64; 2]] {
        &self.emitter_se
    }

    /// Path-loss exponents; empty where unknown.
    pub fn exponents(&self) -> &[Exponent] {
        &self.exponents
    }

    /// The factors, where the map is kept that way.
    pub fn factors(&self) -> Option<&Factors> {
        match &self.power {
            Power::Dense(_) => None,
            Power::Factored(factors) => Some(factors),
        }
    }

    /// Writes the spectrum of one cell into `out` (length = bands).
    pub fn spectrum_into(&self, cell: Cell, out: &mut [f64]) {
        match &self.power {
            Power::Dense(power) => {
                for (o, k) in out.iter_mut().zip(0..) {
                    *o = power[[cell.row, cell.col, k]];
                }
            }
            Power::Factored(factors) => {
                out.fill(0.0);
                for (slf, psd) in factors.slf.outer_iter().zip(factors.psd.outer_iter()) {
                    let loss = slf[[cell.row, cell.col]];
                    for (o, c) in out.iter_mut().zip(psd) {
                        *o += loss * c;
                    }
                }
            }
        }
    }

    /// Rows x columns of one band.
    pub fn band(&self, band: usize) -> Array2<f64> {
        match &self.power {
            Power::Dense(power) => power.index_axis(Axis(2), band).to_owned(),
            Power::Factored(factors) => {
                let mut out = Array2::zeros((self.grid.rows(), self.grid.cols()));
                for (slf, psd) in factors.slf.outer_iter().zip(factors.psd.outer_iter()) {
                    out.scaled_add(psd[band], &slf);
                }
                out
            }
        }
    }

    /// Rows x columns x bands; borrowed where the map is dense already.
    pub fn to_dense(&self) -> Cow<'_, Array3<f64>> {
        match &self.power {
            Power::Dense(power) => Cow::Borrowed(power),
            Power::Factored(_) => {
                let (rows, cols) = (self.grid.rows(), self.grid.cols());
                let mut out = Array3::zeros((rows, cols, self.bands()));
                for (index, mut lane) in out.lanes_mut(Axis(2)).into_iter().enumerate() {
                    let lane = lane.as_slice_mut().expect("the last axis is contiguous");
                    self.spectrum_into(self.grid.cell(index), lane);
                }
                Cow::Owned(out)
            }
        }
    }
}

fn check_power(
    what: &'static str,
    power: ArrayView3<'_, f64>,
    place: impl Fn((usize, usize, usize)) -> String,
) -> Result<(), InputError> {
    // NaN passes: it marks the unknown.
    match power.indexed_iter().find(|&(_, &v)| v < 0.0 || v.is_infinite()) {
        Some((at, &value)) => Err(InputError::Power { what, place: place(at), value }),
        None => Ok(()),
    }
}

pub(crate) fn check_frequencies(freq_hz: Option<&[f64]>, bands: usize) -> Result<(), InputError> {
    let Some(freq_hz) = freq_hz else { return Ok(()) };
    if freq_hz.len() != bands {
        let found = vec![freq_hz.len()];
        return Err(InputError::Shape { what: "freq_hz", found, expected: vec![bands] });
    }
    match freq_hz.iter().position(|f| !(f.is_finite() && *f > 0.0)) {
        Some(band) => Err(InputError::Frequency { band, value: freq_hz[band] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array;

    fn factors() -> Factors {
        Factors {
            slf: Array::from_shape_fn((2, 3, 4), |(r, i, j)| (r + 2 * i + 3 * j) as f64 + 0.5),
            psd: Array::from_shape_fn((2, 5), |(r, k)| (3 * r + k) as f64 * 0.25),
        }
    }

    #[test]
    fn every_view_of_a_factored_map_agrees() {
        let grid = Grid::new(3, 4, 1.0).unwrap();
        let map = RadioMap::factored(grid, factors()).unwrap();
        let dense = map.to_dense();
        let mut spectrum = [0.0; 5];
        for i in 0..3 {
            for j in 0..4 {
                map.spectrum_into(Cell::new(i, j), &mut spectrum);
                for k in 0..5 {
                    assert_eq!(spectrum[k], dense[[i, j, k]]);
                    assert_eq!(map.band(k)[[i, j]], dense[[i, j, k]]);
                    let f = map.factors().unwrap();
                    let by_hand: f64 = (0..2).map(|r| f.slf[[r, i, j]] * f.psd[[r, k]]).sum();
                    assert!((by_hand - dense[[i, j, k]]).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn wrong_maps_are_refused() {
        let grid = Grid::new(3, 4, 1.0).unwrap();
        assert!(RadioMap::dense(grid, Array3::zeros((4, 3, 5))).is_err());
        let mut negative = Array3::zeros((3, 4, 5));
        negative[[1, 2, 3]] = -1.0;
        let error = RadioMap::dense(grid, negative).unwrap_err().to_string();
        assert!(error.contains("row 1, col 2, band 3"), "{error}");
        let mut bad = factors();
        bad.psd[[1, 2]] = f64::NAN;
        assert!(RadioMap::factored(grid, bad).is_err());
        let map = RadioMap::factored(grid, factors()).unwrap();
        assert!(map.with_frequencies(Some(vec![1e9; 4])).is_err());
    }
}
