//! Radio maps: power over space and frequency, dense or as a sum of emitters (paper, eq. 2).

use std::borrow::Cow;

use ndarray::{Array2, Array3, ArrayView3, Axis};

use crate::crs::Crs;
use crate::error::InputError;
use crate::findings::Exponent;
use crate::frame::Frame;
use crate::grid::{Cell, Grid};
use crate::labels::BandLabels;
use crate::scale::Scale;
use crate::site::Site;

/// A map as a sum over emitters of spatial loss field (SLF) times power spectral density (PSD):
/// X(i, j, k) = sum_r S_r(i, j) c_r(k).
///
/// ```
/// use ndarray::{Array3, array};
/// use portolan::{Factors, Grid, RadioMap, Scale};
/// let slf = Array3::from_shape_fn((2, 3, 3), |(r, i, j)| if r == 0 { 1.0 } else { (i + j) as f64 });
/// let factors = Factors { slf, psd: array![[1e-3, 0.0], [1e-4, 2e-4]] };
/// let map = RadioMap::factored(Grid::new(3, 3, 1.0)?, factors, Scale::paper())?;
/// assert!((map.band(0)[[2, 1]] - 1.3e-3).abs() < 1e-15);
/// # Ok::<(), portolan::InputError>(())
/// ```
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
/// for. NaN marks an unmeasured cell, or one inside a building.
///
/// ```
/// use ndarray::Array3;
/// use portolan::{Cell, Grid, RadioMap, Scale};
/// let grid = Grid::new(3, 4, 1.0)?;
/// let map = RadioMap::dense(grid, Array3::from_elem((3, 4, 2), 1e-7), Scale::Absolute)?;
/// let mut spectrum = [0.0; 2];
/// map.spectrum_into(Cell::new(2, 3), &mut spectrum);
/// assert_eq!(spectrum, [1e-7; 2]);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RadioMap {
    grid: Grid,
    power: Power,
    frame: Frame,
    spread_db: Option<Array3<f64>>,
    noise_db: Option<Vec<f64>>,
    emitters: Vec<Site>,
    emitter_se_m: Vec<[f64; 2]>,
    emitter_bands: Vec<usize>,
    exponents: Vec<Exponent>,
}

impl RadioMap {
    /// From rows x columns x bands.
    pub fn dense(grid: Grid, power: Array3<f64>, scale: Scale) -> Result<Self, InputError> {
        let (rows, cols, bands) = power.dim();
        if (rows, cols) != (grid.rows(), grid.cols()) || bands == 0 {
            return Err(InputError::Shape {
                what: "map",
                found: power.shape().to_vec(),
                expected: vec![grid.rows(), grid.cols(), bands.max(1)],
            });
        }
        check_power("map", power.view(), |(i, j, k)| format!("row {i}, col {j}, band {k}"))?;
        Ok(Self::new(grid, Power::Dense(power), scale))
    }

    /// From SLFs and PSDs.
    pub fn factored(grid: Grid, factors: Factors, scale: Scale) -> Result<Self, InputError> {
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
        Ok(Self::new(grid, Power::Factored(factors), scale))
    }

    fn new(grid: Grid, power: Power, scale: Scale) -> Self {
        Self {
            grid,
            power,
            frame: Frame::new(scale),
            spread_db: None,
            noise_db: None,
            emitters: Vec::new(),
            emitter_se_m: Vec::new(),
            emitter_bands: Vec::new(),
            exponents: Vec::new(),
        }
    }

    /// Attaches frequencies and names of the bands.
    pub fn with_labels(mut self, labels: BandLabels) -> Result<Self, InputError> {
        self.frame = self.frame.labelled(&labels, self.bands())?;
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

    /// Attaches the standard deviation in dB of a reading's own noise, for each band.
    pub fn with_noise_db(mut self, noise_db: Option<Vec<f64>>) -> Result<Self, InputError> {
        if let Some(noise) = &noise_db {
            if noise.len() != self.bands() {
                let (found, expected) = (vec![noise.len()], vec![self.bands()]);
                return Err(InputError::Shape { what: "noise_db", found, expected });
            }
            if let Some(band) = noise.iter().position(|n| !(n.is_finite() && *n >= 0.0)) {
                let (place, value) = (format!("band {band}"), noise[band]);
                return Err(InputError::Power { what: "noise_db", place, value });
            }
        }
        self.noise_db = noise_db;
        Ok(self)
    }

    /// Attaches the places of the emitters (off the grid allowed).
    pub fn with_emitters(mut self, emitters: Vec<Site>) -> Self {
        self.emitters = emitters;
        self
    }

    /// Attaches the standard errors of the places in metres along x and y, one pair per emitter or
    /// none at all.
    pub fn with_emitter_se_m(mut self, emitter_se_m: Vec<[f64; 2]>) -> Result<Self, InputError> {
        self.check_per_emitter("emitter_se", emitter_se_m.len(), &[2])?;
        self.emitter_se_m = emitter_se_m;
        Ok(self)
    }

    /// Attaches the bands of emitters that transmit in one band each, one per emitter or none at all.
    ///
    /// ```
    /// # use ndarray::Array3;
    /// # use portolan::{Grid, RadioMap, Scale, Site};
    /// # let power = Array3::from_elem((4, 5, 3), 1e-7);
    /// let map = RadioMap::dense(Grid::new(4, 5, 1.0)?, power, Scale::Absolute)?
    ///     .with_emitters(vec![Site::new(0.0, 2.0), Site::new(3.0, 3.0)])
    ///     .with_emitter_bands(vec![2, 0])?;
    /// assert_eq!(map.emitters_of(2).collect::<Vec<_>>(), [0]);
    /// assert_eq!(map.emitters_of(1).count(), 0);
    /// let some = map.select_bands(&[1, 2])?;
    /// assert_eq!((some.emitters(), some.emitter_bands()), (&[Site::new(0.0, 2.0)][..], &[1][..]));
    /// assert!(map.with_emitter_bands(vec![0, 3]).is_err());
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_emitter_bands(mut self, emitter_bands: Vec<usize>) -> Result<Self, InputError> {
        self.check_per_emitter("emitter_band", emitter_bands.len(), &[])?;
        if let Some(band) = emitter_bands.iter().find(|band| **band >= self.bands()) {
            let last = self.bands() - 1;
            return Err(InputError::Request(format!(
                "an emitter of band {band}: the map has bands 0 to {last}"
            )));
        }
        self.emitter_bands = emitter_bands;
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

    /// What the map is drawn on.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// What its numbers mean.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// What powers are measured in.
    pub fn scale(&self) -> Scale {
        self.frame.scale
    }

    /// The same powers on another scale.
    pub fn with_scale(mut self, scale: Scale) -> Self {
        self.frame.scale = scale;
        self
    }

    /// Where on Earth the grid lies, where known.
    pub fn crs(&self) -> Option<Crs> {
        self.frame.crs
    }

    /// Says where on Earth the grid lies.
    pub fn with_crs(mut self, crs: Option<Crs>) -> Self {
        self.frame.crs = crs;
        self
    }

    /// Frequencies and names of the bands.
    pub fn labels(&self) -> &BandLabels {
        &self.frame.labels
    }

    /// Number of bands.
    pub fn bands(&self) -> usize {
        match &self.power {
            Power::Dense(power) => power.dim().2,
            Power::Factored(factors) => factors.psd.ncols(),
        }
    }

    /// Centre frequencies of the bands, where known.
    pub fn freq_hz(&self) -> Option<&[f64]> {
        self.frame.labels.freq_hz()
    }

    /// Standard deviation of every entry in dB, where known.
    pub fn spread_db(&self) -> Option<&Array3<f64>> {
        self.spread_db.as_ref()
    }

    /// Standard deviation of a reading's own noise in dB, for each band, where known.
    pub fn noise_db(&self) -> Option<&[f64]> {
        self.noise_db.as_deref()
    }

    /// Standard deviation in dB of a reading taken in a cell: the map's and the reading's own.
    pub fn reading_spread_db(&self) -> Option<Array3<f64>> {
        let (spread, noise) = (self.spread_db.as_ref()?, self.noise_db.as_ref()?);
        let mut both = spread.clone();
        for (mut band, noise) in both.axis_iter_mut(Axis(2)).zip(noise) {
            band.mapv_inplace(|s| s.hypot(*noise));
        }
        Some(both)
    }

    /// Where the emitters stand; empty where unknown.
    pub fn emitters(&self) -> &[Site] {
        &self.emitters
    }

    /// Standard errors of the emitters' places in metres; empty where unknown.
    pub fn emitter_se_m(&self) -> &[[f64; 2]] {
        &self.emitter_se_m
    }

    /// The bands of emitters that transmit in one band each; empty where they do not, or where that is
    /// unknown.
    pub fn emitter_bands(&self) -> &[usize] {
        &self.emitter_bands
    }

    /// Numbers of the emitters that a band may have: all but those that transmit in another one only.
    pub fn emitters_of(&self, band: usize) -> impl Iterator<Item = usize> {
        let own = move |r: &usize| self.emitter_bands.get(*r).is_none_or(|of| *of == band);
        (0..self.emitters.len()).filter(own)
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
        self.powers_into(cell, 0..self.bands(), out);
    }

    /// The powers of one cell in some bands.
    fn powers_into(&self, cell: Cell, bands: impl Iterator<Item = usize> + Clone, out: &mut [f64]) {
        match &self.power {
            Power::Dense(power) => {
                for (o, k) in out.iter_mut().zip(bands) {
                    *o = power[[cell.row, cell.col, k]];
                }
            }
            Power::Factored(factors) => {
                out.fill(0.0);
                for (slf, psd) in factors.slf.outer_iter().zip(factors.psd.outer_iter()) {
                    let loss = slf[[cell.row, cell.col]];
                    for (o, k) in out.iter_mut().zip(bands.clone()) {
                        *o += loss * psd[k];
                    }
                }
            }
        }
    }

    /// Power between cell centres: bilinear in dB, held at the edge of the grid. A power of zero
    /// counts as `floor`.
    pub fn spectrum_at(&self, site: Site, floor: f64, out: &mut [f64]) {
        self.powers_at(site, floor, 0..self.bands(), out);
    }

    /// The same in some bands.
    pub(crate) fn powers_at(
        &self,
        site: Site,
        floor: f64,
        bands: impl Iterator<Item = usize> + Clone,
        out: &mut [f64],
    ) {
        let corners = corners(self.grid, site);
        let mut spectrum = vec![0.0; out.len()];
        if let Some((cell, _)) = corners.iter().find(|(_, weight)| *weight == 1.0) {
            return self.powers_into(*cell, bands, out);
        }
        out.fill(0.0);
        for (cell, weight) in corners.into_iter().filter(|(_, weight)| *weight > 0.0) {
            self.powers_into(cell, bands.clone(), &mut spectrum);
            out.iter_mut().zip(&spectrum).for_each(|(o, x)| *o += weight * x.max(floor).ln());
        }
        out.iter_mut().for_each(|o| *o = o.exp());
    }

    /// The map of some bands, in that order; emitters of other bands only are left out.
    pub fn select_bands(&self, bands: &[usize]) -> Result<Self, InputError> {
        let frame = self.frame.select(bands, self.bands())?;
        let power = match &self.power {
            Power::Dense(power) => Power::Dense(power.select(Axis(2), bands)),
            Power::Factored(factors) => Power::Factored(Factors {
                slf: factors.slf.clone(),
                psd: factors.psd.select(Axis(1), bands),
            }),
        };
        let noise = |all: &Vec<f64>| bands.iter().map(|&band| all[band]).collect();
        let place = |band: usize| bands.iter().position(|chosen| *chosen == band);
        // Factored maps keep every emitter, as their factors do.
        let dropped = |r: usize| {
            matches!(self.power, Power::Dense(_))
                && self.emitter_bands.get(r).is_some_and(|own| place(*own).is_none())
        };
        let kept: Vec<usize> = (0..self.emitters.len()).filter(|r| !dropped(*r)).collect();
        let emitter_bands: Option<Vec<usize>> =
            kept.iter().map(|&r| place(*self.emitter_bands.get(r)?)).collect();
        Ok(Self {
            power,
            frame,
            emitters: picked(&self.emitters, &kept),
            emitter_se_m: picked(&self.emitter_se_m, &kept),
            emitter_bands: emitter_bands.unwrap_or_default(),
            exponents: picked(&self.exponents, &kept),
            spread_db: self.spread_db.as_ref().map(|all| all.select(Axis(2), bands)),
            noise_db: self.noise_db.as_ref().map(noise),
            grid: self.grid,
        })
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

    /// Power, rows x columns x bands, and the spread: moved out where the map is dense already.
    pub fn into_dense(mut self) -> (Array3<f64>, Option<Array3<f64>>) {
        let spread = self.spread_db.take();
        match self.power {
            Power::Dense(power) => (power, spread),
            Power::Factored(_) => (self.to_dense().into_owned(), spread),
        }
    }
}

/// The four cells around a place and their bilinear weights; the grid's edge is held.
pub(crate) fn corners(grid: Grid, site: Site) -> [(Cell, f64); 4] {
    let [row, col] = grid.position(site);
    let along = |at: f64, cells: usize| {
        let at = at.clamp(0.0, cells as f64 - 1.0);
        // Rounding must not take a cell's own centre for a place beside it.
        let at = if (at - at.round()).abs() < 1e-9 { at.round() } else { at };
        let low = (at.floor() as usize).min(cells.saturating_sub(2));
        (low, (low + 1).min(cells - 1), at - low as f64)
    };
    let (top, bottom, down) = along(row, grid.rows());
    let (left, right, across) = along(col, grid.cols());
    [
        (Cell::new(top, left), (1.0 - down) * (1.0 - across)),
        (Cell::new(top, right), (1.0 - down) * across),
        (Cell::new(bottom, left), down * (1.0 - across)),
        (Cell::new(bottom, right), down * across),
    ]
}

/// Some of the values; none where there are none.
fn picked<T: Copy>(all: &[T], kept: &[usize]) -> Vec<T> {
    kept.iter().filter_map(|&r| all.get(r).copied()).collect()
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
        let map = RadioMap::factored(grid, factors(), Scale::paper()).unwrap();
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
    fn between_cells_decibels_are_bilinear() {
        let grid = Grid::new(3, 3, 2.0).unwrap().with_origin(Site::new(10.0, -4.0)).unwrap();
        // 10 log10 of the power is 2 row - 5 col.
        let power = Array3::from_shape_fn((3, 3, 1), |(i, j, _)| {
            10f64.powf((2.0 * i as f64 - 5.0 * j as f64) / 10.0)
        });
        let map = RadioMap::dense(grid, power, Scale::Absolute).unwrap();
        for (at, want) in [
            ([0.0, 0.0], 0.0),
            ([0.5, 0.25], -0.25),
            ([2.0, 2.0], -6.0),
            ([1.75, 1.5], -4.0),
            ([-3.0, 9.0], -10.0),
        ] {
            let mut out = [0.0];
            map.spectrum_at(grid.site_at(at), 0.0, &mut out);
            assert!((10.0 * out[0].log10() - want).abs() < 1e-12, "{at:?}");
        }
    }

    #[test]
    fn wrong_maps_are_refused() {
        let grid = Grid::new(3, 4, 1.0).unwrap();
        assert!(RadioMap::dense(grid, Array3::zeros((4, 3, 5)), Scale::paper()).is_err());
        let mut negative = Array3::zeros((3, 4, 5));
        negative[[1, 2, 3]] = -1.0;
        let error = RadioMap::dense(grid, negative, Scale::paper()).unwrap_err().to_string();
        assert!(error.contains("row 1, col 2, band 3"), "{error}");
        let mut bad = factors();
        bad.psd[[1, 2]] = f64::NAN;
        assert!(RadioMap::factored(grid, bad, Scale::paper()).is_err());
        let map = RadioMap::factored(grid, factors(), Scale::paper()).unwrap();
        let four = BandLabels::from_frequencies(vec![1e9; 4]).unwrap();
        assert!(map.clone().with_labels(four).is_err());
        assert!(map.clone().with_noise_db(Some(vec![1.0; 4])).is_err());
        assert!(map.with_noise_db(Some(vec![f64::NAN; 5])).is_err());
    }
}
