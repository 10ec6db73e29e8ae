//! Readings by place. Several visits to a place are their mean and how far they scatter: under normal
//! noise that is all that they say. Places come in an order of their own, so that nothing depends on
//! the order of the rows.

use std::collections::HashMap;

use ndarray::Array2;

use super::bands::Group;
use crate::gaussian_process::{Scatter, along_curve};
use crate::site::Site;

/// Places x bands, in the working domain.
pub(super) struct Places {
    sites: Vec<Site>,
    /// The row of the readings that stands at each place, where rows are apart.
    rows: Vec<usize>,
    /// NaN = gap.
    values: Array2<f64>,
    /// The nugget's share: one over the number of readings; 1 where None.
    share: Option<Array2<f64>>,
    /// Stated noise variance; 0 where None.
    stated: Option<Array2<f64>>,
    /// Sum of squares about the mean, number of rows and mean stated variance, where rows were
    /// joined.
    scattered: Option<[Array2<f64>; 3]>,
}

impl Places {
    /// Every row as a place of its own.
    pub fn apart(
        sites: &[Site],
        values: Array2<f64>,
        share: Option<Array2<f64>>,
        stated: Option<Array2<f64>>,
    ) -> Self {
        let order = along_curve(sites);
        let some = |all: Array2<f64>| all.select(ndarray::Axis(0), &order);
        Self {
            sites: order.iter().map(|&row| sites[row]).collect(),
            values: some(values),
            share: share.map(some),
            stated: stated.map(some),
            scattered: None,
            rows: order,
        }
    }

    /// Adds pseudo-readings (rows of the readings x bands; NaN where there is none) of a noise of
    /// their own.
    pub fn add_silence(&mut self, silence: &Array2<f64>, noise: &Array2<f64>) {
        let shape = self.values.dim();
        let share = self.share.get_or_insert_with(|| Array2::ones(shape));
        let stated = self.stated.get_or_insert_with(|| Array2::zeros(shape));
        for (place, &row) in self.rows.iter().enumerate() {
            for band in (0..shape.1).filter(|&band| !silence[[row, band]].is_nan()) {
                self.values[[place, band]] = silence[[row, band]];
                (share[[place, band]], stated[[place, band]]) = (0.0, noise[[row, band]]);
            }
        }
    }

    /// Rows at one place joined.
    pub fn joined(
        sites: &[Site],
        values: Array2<f64>,
        share: Option<Array2<f64>>,
        stated: Option<Array2<f64>>,
    ) -> Self {
        let visits = visits(sites);
        if visits.len() == sites.len() {
            return Self::apart(sites, values, share, stated);
        }
        let shape = (visits.len(), values.ncols());
        let mut joined = Self {
            sites: visits.iter().map(|rows| sites[rows[0]]).collect(),
            values: Array2::from_elem(shape, f64::NAN),
            share: Some(Array2::ones(shape)),
            stated: stated.is_some().then(|| Array2::zeros(shape)),
            scattered: None,
            rows: Vec::new(),
        };
        let mut scattered = [(); 3].map(|()| Array2::zeros(shape));
        for (place, rows) in visits.iter().enumerate() {
            for band in 0..shape.1 {
                let read: Vec<usize> =
                    rows.iter().copied().filter(|&row| !values[[row, band]].is_nan()).collect();
                let Some(&first) = read.first() else { continue };
                let at = [place, band];
                let count = |row: usize| share.as_ref().map_or(1.0, |s| 1.0 / s[[row, band]]);
                let noise = |row: usize| stated.as_ref().map_or(0.0, |s| s[[row, band]]);
                let total: f64 = read.iter().map(|&row| count(row)).sum();
                // About the first: one reading stays what it is, to the last bit.
                let origin = values[[first, band]];
                let off = |row: usize| values[[row, band]] - origin;
                let mean = read.iter().map(|&row| count(row) * off(row)).sum::<f64>() / total;
                joined.values[at] = origin + mean;
                if let Some(share) = &mut joined.share {
                    share[at] = 1.0 / total;
                }
                if let Some(stated) = &mut joined.stated {
                    let part = |&row: &usize| (count(row) / total).powi(2) * noise(row);
                    stated[at] = read.iter().map(part).sum();
                }
                scattered[0][at] =
                    read.iter().map(|&row| count(row) * (off(row) - mean).powi(2)).sum();
                scattered[1][at] = read.len() as f64;
                scattered[2][at] =
                    read.iter().map(|&row| noise(row)).sum::<f64>() / read.len() as f64;
            }
        }
        joined.scattered = Some(scattered);
        joined
    }

    /// The places that have a reading of a band, in order.
    pub fn present(&self, band: usize) -> Vec<usize> {
        let column = self.values.column(band);
        column.indexed_iter().filter(|(_, v)| !v.is_nan()).map(|(place, _)| place).collect()
    }

    /// How far the visits scatter in some bands that have these places.
    fn scatter(&self, places: &[usize], bands: &[usize]) -> Scatter {
        let Some([squares, rows, stated]) = &self.scattered else { return Scatter::default() };
        let often: Vec<usize> =
            places.iter().copied().filter(|&p| rows[[p, bands[0]]] > 1.0).collect();
        if often.is_empty() {
            return Scatter::default();
        }
        let freedom = |p: &usize| rows[[*p, bands[0]]] - 1.0;
        let total: f64 = often.iter().map(freedom).sum();
        Scatter {
            squares: bands
                .iter()
                .map(|&band| often.iter().map(|&p| squares[[p, band]]).sum())
                .collect(),
            freedom: total,
            stated: often.iter().map(|p| freedom(p) * stated[[*p, bands[0]]]).sum::<f64>() / total,
        }
    }

    /// Bands that miss the same places and have the same noise.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        let mut slots = HashMap::new();
        for band in 0..self.values.ncols() {
            let present = self.present(band);
            let bits = |of: Option<&Array2<f64>>| -> Vec<u64> {
                of.map_or(Vec::new(), |m| present.iter().map(|&p| m[[p, band]].to_bits()).collect())
            };
            let rows = self.scattered.as_ref().map(|s| &s[1]);
            let key = (
                present.clone(),
                bits(self.share.as_ref()),
                bits(self.stated.as_ref()),
                bits(rows),
            );
            let slot = *slots.entry(key).or_insert_with(|| {
                groups.push((present, Vec::new()));
                groups.len() - 1
            });
            groups[slot].1.push(band);
        }
        let made = groups.into_iter().map(|(places, bands)| self.group(&places, bands));
        made.collect()
    }

    /// Some bands at the places that all of them have.
    pub fn group(&self, places: &[usize], bands: Vec<usize>) -> Group {
        let column = |of: Option<&Array2<f64>>, usual: f64| {
            places.iter().map(|&p| of.map_or(usual, |m| m[[p, bands[0]]])).collect::<Vec<f64>>()
        };
        Group {
            sites: places.iter().map(|&p| self.sites[p]).collect(),
            values: Array2::from_shape_fn((places.len(), bands.len()), |(i, k)| {
                self.values[[places[i], bands[k]]]
            }),
            share: column(self.share.as_ref(), 1.0),
            stated: column(self.stated.as_ref(), 0.0),
            scatter: self.scatter(places, &bands),
            bands,
        }
    }
}

/// The rows of every place, places in an order of their own.
fn visits(sites: &[Site]) -> Vec<Vec<usize>> {
    let mut visits: Vec<Vec<usize>> = Vec::new();
    for row in along_curve(sites) {
        match visits.last_mut() {
            Some(rows) if sites[rows[0]].bits() == sites[row].bits() => rows.push(row),
            _ => visits.push(vec![row]),
        }
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn visits_become_their_mean_and_what_they_scatter() {
        let at = [(1.0, 2.0), (7.0, 0.0), (1.0, 2.0), (-3.0, 4.0), (1.0, 2.0)];
        let sites: Vec<Site> = at.iter().map(|&(x, y)| Site::new(x, y)).collect();
        let gap = f64::NAN;
        let values = array![[1.0, 5.0], [9.0, 8.0], [2.0, gap], [4.0, 3.0], [6.0, 7.0]];
        let groups = Places::joined(&sites, values.clone(), None, None).groups();
        assert_eq!(groups.len(), 2);
        for (group, mean, count, squares) in
            [(&groups[0], 3.0, 3.0, 14.0), (&groups[1], 6.0, 2.0, 2.0)]
        {
            let place = group.sites.iter().position(|s| *s == sites[0]).unwrap();
            assert_eq!((group.sites.len(), group.values[[place, 0]]), (3, mean));
            assert_eq!(group.share[place], 1.0 / count);
            assert_eq!(group.scatter.squares, [squares]);
            assert_eq!(group.scatter.freedom, count - 1.0);
        }
        // In any order of the rows.
        let turned: Vec<usize> = vec![3, 4, 1, 0, 2];
        let sites: Vec<Site> = turned.iter().map(|&i| sites[i]).collect();
        let values = values.select(ndarray::Axis(0), &turned);
        let again = Places::joined(&sites, values, None, None).groups();
        assert_eq!(again[0].sites, groups[0].sites);
        assert_eq!(again[0].values, groups[0].values);
    }
}
