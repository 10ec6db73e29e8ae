//! What two maps of one area differ by, after minus before, with its standard deviation, and where it is
//! significant at a rate of false discoveries (Benjamini and Hochberg, Journal of the Royal Statistical
//! Society B 57, 1995). The two maps count as independent.

use std::ops::Range;
use std::path::Path;

use ndarray::{Array3, ArrayViewMut3, Axis, Zip, s};
use portolan::coverage::chance_above;
use portolan::{Frame, InputError, RadioMap};

use crate::error::{IoError, Result};
use crate::gis::{MapAbout, MapParts, Part, Quantity};
use crate::named_array::NamedArray;
use crate::npz;
use crate::output::{check_space, write_file};
use crate::unit_arrays::{frame_arrays, grid_arrays};

/// Two maps compared, rows x columns x bands.
#[derive(Clone, Debug)]
pub struct Difference {
    about: MapAbout,
    /// After minus before in dB; NaN where one of them is not known.
    pub difference_db: Array3<f64>,
    /// Its standard deviation, where both maps have one.
    pub spread_db: Option<Array3<f64>>,
    /// Where it is not due to chance; nowhere without a standard deviation.
    pub significant: Array3<bool>,
    /// Bands that only one of the maps has.
    pub left_out: Vec<String>,
    bands: Vec<BandDifference>,
}

/// What became of a band.
#[derive(Clone, Debug, PartialEq)]
pub struct BandDifference {
    /// Its label.
    pub label: String,
    /// Mean and root mean square of the difference in dB.
    pub mean_db: f64,
    /// Root mean square in dB.
    pub rms_db: f64,
    /// Shares of the known cells that are significantly louder and fainter.
    pub louder: f64,
    /// The share that is fainter.
    pub fainter: f64,
}

impl Difference {
    /// Compares the bands that both maps have, by their labels.
    ///
    /// ```
    /// use ndarray::Array3;
    /// use portolan::{Grid, RadioMap, Scale};
    /// use portolan_io::Difference;
    /// let grid = Grid::new(8, 6, 1.0)?;
    /// let map = |power: f64| -> Result<RadioMap, portolan::InputError> {
    ///     RadioMap::dense(grid, Array3::from_elem((8, 6, 1), power), Scale::Absolute)?
    ///         .with_spread_db(Some(Array3::from_elem((8, 6, 1), 2.0)))
    /// };
    /// let found = Difference::between(&map(1e-7)?, &map(1e-6)?, 0.05)?;
    /// assert!((found.difference_db[[3, 3, 0]] - 10.0).abs() < 1e-9);
    /// assert!(found.significant.iter().all(|cell| *cell));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn between(
        before: &RadioMap,
        after: &RadioMap,
        rate: f64,
    ) -> std::result::Result<Self, InputError> {
        let wrong = |text: String| Err(InputError::Request(text));
        if !(rate > 0.0 && rate < 1.0) {
            return wrong(format!("a rate of {rate}: it must lie between 0 and 1"));
        }
        if !before.grid().coincides(&after.grid()) {
            return wrong("the maps have other grids: draw both on one, or compare models".into());
        }
        if before.scale() != after.scale() {
            return wrong("the maps have other units".into());
        }
        if before.crs() != after.crs() && before.crs().is_some() && after.crs().is_some() {
            return wrong("the maps have other coordinate systems".into());
        }
        let (pairs, left_out) = matched(before, after)?;
        let grid = before.grid();
        let shape = (grid.rows(), grid.cols(), pairs.len());
        let offset = before.scale().link().offset();
        let level = |x: f64| 10.0 * (x + offset).log10();
        let mut difference_db = Array3::zeros(shape);
        let spreads = before.spread_db().zip(after.spread_db());
        let mut spread_db = spreads.map(|_| Array3::zeros(shape));
        let mut significant = Array3::from_elem(shape, false);
        for (slot, &(old, new)) in pairs.iter().enumerate() {
            let mut own = difference_db.index_axis_mut(Axis(2), slot);
            let (old_power, new_power) = (before.band(old), after.band(new));
            Zip::from(&mut own).and(&old_power).and(&new_power).for_each(|d, old, new| {
                let found = level(*new) - level(*old);
                *d = if found.is_finite() { found } else { f64::NAN };
            });
            let (Some(spread), Some((a, b))) = (&mut spread_db, spreads) else { continue };
            let mut both = spread.index_axis_mut(Axis(2), slot);
            let (a, b) = (a.index_axis(Axis(2), old), b.index_axis(Axis(2), new));
            Zip::from(&mut both).and(a).and(b).for_each(|s, a, b| *s = a.hypot(*b));
        }
        if let Some(spread) = &spread_db {
            let scores = Zip::from(&difference_db).and(spread).map_collect(|d, s| d / s);
            for slot in 0..pairs.len() {
                let own = s![.., .., slot..slot + 1];
                judge(&scores.slice(own).to_owned(), significant.slice_mut(own), rate);
            }
        }
        let bands: Vec<usize> = pairs.iter().map(|(old, _)| *old).collect();
        let frame = before.frame().select(&bands, before.bands())?;
        let about = MapAbout {
            grid,
            frame: Frame { crs: before.crs().or(after.crs()), ..frame },
            bands: pairs.len(),
            spread: spread_db.is_some(),
            noise_db: None,
            emitters: Vec::new(),
            quantity: Quantity::Difference,
        };
        let bands = Vec::new();
        let mut found = Self { about, difference_db, spread_db, significant, left_out, bands };
        found.bands = found.summed();
        Ok(found)
    }

    /// The same with NaN where it is not significant.
    pub fn significant_only(mut self) -> Self {
        Zip::from(&mut self.difference_db).and(&self.significant).for_each(|d, known| {
            if !known {
                *d = f64::NAN;
            }
        });
        self
    }

    /// What became of every band, all of its cells counted.
    pub fn bands(&self) -> &[BandDifference] {
        &self.bands
    }

    fn summed(&self) -> Vec<BandDifference> {
        let of = |band: usize| {
            let own = self.difference_db.index_axis(Axis(2), band);
            let called = self.significant.index_axis(Axis(2), band);
            let known = || own.iter().zip(called).filter(|(d, _)| !d.is_nan());
            let count = known().count().max(1) as f64;
            let mean = |value: &dyn Fn(f64, bool) -> f64| {
                known().map(|(d, called)| value(*d, *called)).sum::<f64>() / count
            };
            let share = |holds: bool| f64::from(u8::from(holds));
            BandDifference {
                label: self.about.frame.labels.label(band),
                mean_db: mean(&|d, _| d),
                rms_db: mean(&|d, _| d * d).sqrt(),
                louder: mean(&|d, called| share(called && d > 0.0)),
                fainter: mean(&|d, called| share(called && d < 0.0)),
            }
        };
        (0..self.about.bands).map(of).collect()
    }

    /// Writes `difference_db`, `spread_db` and `significant` with the grid, unit and bands (.npz).
    pub fn write_npz(&self, path: impl AsRef<Path>, force: bool) -> Result<()> {
        let path = path.as_ref();
        let real = |name: &'static str, values: &Array3<f64>| {
            NamedArray::real(name, values.clone().into_dyn().into())
        };
        let mut arrays = vec![real("difference_db", &self.difference_db)];
        arrays.extend(self.spread_db.as_ref().map(|spread| real("spread_db", spread)));
        let called = self.significant.view().into_dyn().into();
        arrays.push(NamedArray::truth("significant", called));
        arrays.extend(frame_arrays(&self.about.frame));
        arrays.extend(grid_arrays(self.about.grid));
        check_space(path, npz::length(&arrays))?;
        write_file(path, force, |out| npz::write(&arrays, out))
    }
}

impl MapParts for Difference {
    type Error = IoError;

    fn about(&self) -> &MapAbout {
        &self.about
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part> {
        let own = s![rows, cols, bands];
        let spread_db = self.spread_db.as_ref().map(|spread| spread.slice(own).to_owned());
        Ok(Part { level_db: self.difference_db.slice(own).to_owned(), spread_db })
    }
}

/// Numbers of the bands in both maps, before and after; and the labels of those in one only.
#[expect(clippy::type_complexity, reason = "pairs, and what is left")]
fn matched(
    before: &RadioMap,
    after: &RadioMap,
) -> std::result::Result<(Vec<(usize, usize)>, Vec<String>), InputError> {
    let named = |map: &RadioMap| map.labels().names().is_some() || map.freq_hz().is_some();
    if !(named(before) && named(after)) {
        if before.bands() != after.bands() {
            let (old, new) = (before.bands(), after.bands());
            let text =
                format!("{old} bands before and {new} after, and no labels to match them by");
            return Err(InputError::Request(text));
        }
        return Ok(((0..before.bands()).map(|band| (band, band)).collect(), Vec::new()));
    }
    let labels = |map: &RadioMap| -> Vec<String> {
        (0..map.bands()).map(|band| map.labels().label(band)).collect()
    };
    let (old, new) = (labels(before), labels(after));
    let pair = |(band, label): (usize, &String)| {
        Some((band, new.iter().position(|other| other == label)?))
    };
    let pairs: Vec<(usize, usize)> = old.iter().enumerate().filter_map(pair).collect();
    if pairs.is_empty() {
        return Err(InputError::Request("the maps have no band in common".into()));
    }
    let alone = old.iter().filter(|label| !new.contains(label));
    let left = alone.chain(new.iter().filter(|label| !old.contains(label))).cloned().collect();
    Ok((pairs, left))
}

/// The cells that are called different.
fn judge(scores: &Array3<f64>, mut called: ArrayViewMut3<'_, bool>, rate: f64) {
    let chance = |z: f64| 2.0 * chance_above(-z.abs(), 1.0, 0.0);
    let mut all: Vec<f64> = scores.iter().filter(|z| !z.is_nan()).map(|z| chance(*z)).collect();
    all.sort_by(f64::total_cmp);
    let count = all.len() as f64;
    let holds = |i: &usize| all[*i] <= rate * (i + 1) as f64 / count;
    let Some(last) = (0..all.len()).rev().find(holds) else { return };
    let most = all[last];
    Zip::from(&mut called).and(scores).for_each(|called, z| *called = chance(*z) <= most);
}

#[cfg(test)]
mod tests {
    use portolan::{BandLabels, Grid, Scale};

    use super::*;

    fn map(levels: Array3<f64>, spread: f64, names: &[&str]) -> RadioMap {
        let (rows, cols, bands) = levels.dim();
        let names = names.iter().map(|name| name.to_string()).collect();
        let spread = Array3::from_elem((rows, cols, bands), spread);
        let power = levels.mapv(|v: f64| 10f64.powf(0.1 * v));
        RadioMap::dense(Grid::new(rows, cols, 2.0).unwrap(), power, Scale::Absolute)
            .and_then(|map| map.with_labels(BandLabels::new(None, Some(names), bands)?))
            .and_then(|map| map.with_spread_db(Some(spread)))
            .unwrap()
    }

    #[test]
    fn false_discoveries_are_as_rare_as_said_and_changes_are_found() {
        // Errors of both maps are normal; the right half of the second band is 12 dB louder.
        let (rows, cols) = (60, 60);
        let normal = |seed: usize| {
            let unit = |n: usize| {
                let x = (n as f64 * 0.754_877_666 + seed as f64 * 0.569_840_29).fract();
                x.clamp(1e-9, 1.0)
            };
            Array3::from_shape_fn((rows, cols, 2), |(i, j, k)| {
                let n = (i * cols + j) * 2 + k;
                let angle = std::f64::consts::TAU * ((n * n) as f64 * 0.618_033_988).fract();
                (-2.0 * unit(n).ln()).sqrt() * angle.cos()
            })
        };
        let truth =
            Array3::from_shape_fn((rows, cols, 2), |(i, j, _)| -(60.0 + (i + j) as f64 / 5.0));
        let before = map(&truth + &(2.0 * normal(1)), 2.0, &["a", "b"]);
        let mut new = &truth + &(2.0 * normal(2));
        new.slice_mut(s![.., 30.., 1]).mapv_inplace(|level| level + 12.0);
        let after = map(new, 2.0, &["a", "b"]);
        let found = Difference::between(&before, &after, 0.05).unwrap();
        let bands = found.bands();
        assert!(bands[0].louder + bands[0].fainter < 0.01, "{:?}", bands[0]);
        assert!(
            (0.4..0.55).contains(&bands[1].louder) && bands[1].fainter < 0.03,
            "{:?}",
            bands[1]
        );
        let wrong = found.significant.slice(s![.., ..30, 1]).iter().filter(|c| **c).count();
        let all = found.significant.slice(s![.., .., 1]).iter().filter(|c| **c).count();
        assert!((wrong as f64) < 0.09 * all as f64, "{wrong} of {all}");
        assert!((found.spread_db.unwrap()[[3, 4, 0]] - 8f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn bands_are_matched_by_their_labels() {
        let level = |db: f64, bands: usize| Array3::from_elem((4, 5, bands), db);
        let (before, after) =
            (map(level(-60.0, 2), 1.0, &["a", "b"]), map(level(-50.0, 2), 1.0, &["c", "a"]));
        let found = Difference::between(&before, &after, 0.05).unwrap();
        assert_eq!((found.difference_db.dim(), found.left_out.len()), ((4, 5, 1), 2));
        let none = map(level(-50.0, 1), 1.0, &["z"]);
        assert!(Difference::between(&before, &none, 0.05).is_err());
        assert!(Difference::between(&before, &after, 0.0).is_err());
    }
}
