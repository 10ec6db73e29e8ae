//! Walls of a plan: how many of each material the straight line crosses.

use std::collections::{BTreeSet, HashSet};

use ndarray::Array2;
use rayon::prelude::*;

use super::segments::Segments;
use super::{Between, LossColumn};
use crate::error::InputError;
use crate::model::{Archive, damaged};
use crate::site::{Region, Site};

pub(super) const KIND: &str = "walls";
/// Decibels that a wall may take before any reading.
const LOSS_SD_DB: f64 = 10.0;
/// Places that are looked at in one go.
const BLOCK: usize = 512;

/// One straight wall.
///
/// ```
/// use portolan::Site;
/// use portolan::between::Wall;
/// let wall = Wall::new(Site::new(0.0, 3.0), Site::new(6.0, 3.0), "brick");
/// assert_eq!(wall.heights_m, None);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Wall {
    /// One end.
    pub from: Site,
    /// The other end.
    pub to: Site,
    /// What it is made of; empty where that is not known.
    pub material: String,
    /// From which height to which it reaches; all heights where absent.
    pub heights_m: Option<(f64, f64)>,
}

impl Wall {
    /// A wall of all heights.
    pub fn new(from: Site, to: Site, material: &str) -> Self {
        Self { from, to, material: material.into(), heights_m: None }
    }

    /// The same wall from one height to another.
    pub fn between_heights(self, low_m: f64, high_m: f64) -> Self {
        Self { heights_m: Some((low_m, high_m)), ..self }
    }
}

/// The walls of a plan.
///
/// ```
/// use portolan::Site;
/// use portolan::between::{Between, Wall, Walls};
/// let walls = Walls::new(vec![
///     Wall::new(Site::new(2.0, -5.0), Site::new(2.0, 5.0), "brick"),
///     Wall::new(Site::new(4.0, -5.0), Site::new(4.0, 5.0), "glass"),
/// ])?;
/// let crossed = walls.between(Site::new(0.0, 0.0), &[Site::new(3.0, 0.0), Site::new(5.0, 1.0)]);
/// assert_eq!(crossed, ndarray::array![[1.0, 0.0], [1.0, 1.0]]);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Debug)]
pub struct Walls {
    walls: Vec<Wall>,
    materials: Vec<String>,
    /// The material of every wall.
    material: Vec<usize>,
    index: Segments,
}

impl Walls {
    /// At least one wall; ends must be finite. Walls without a length are left out, and a wall that was
    /// given before, as outlines of rooms that touch do: the same ends to a millimetre, heights and
    /// material.
    pub fn new(walls: Vec<Wall>) -> Result<Self, InputError> {
        let heights = |wall: &Wall| {
            wall.heights_m.is_none_or(|(low, high)| low.is_finite() && high.is_finite())
        };
        if let Some(wall) =
            walls.iter().find(|w| !(w.from.is_finite() && w.to.is_finite() && heights(w)))
        {
            let Wall { from, to, .. } = wall;
            return Err(InputError::Request(format!(
                "a wall from {}, {} to {}, {}: its ends must be finite",
                from.x_m, from.y_m, to.x_m, to.y_m
            )));
        }
        let point = |w: &Wall| (w.from.x_m, w.from.y_m) == (w.to.x_m, w.to.y_m);
        let mut known = HashSet::new();
        let walls: Vec<Wall> =
            walls.into_iter().filter(|w| !point(w) && known.insert(same(w))).collect();
        if walls.is_empty() {
            return Err(InputError::Request("a plan without a wall".into()));
        }
        let names: BTreeSet<&str> = walls.iter().map(|w| w.material.as_str()).collect();
        let materials: Vec<String> = names.into_iter().map(str::to_string).collect();
        let number = |w: &Wall| materials.iter().position(|m| *m == w.material).unwrap_or(0);
        let material = walls.iter().map(number).collect();
        let ends = walls.iter().map(|w| [w.from.x_m, w.from.y_m, w.to.x_m, w.to.y_m]).collect();
        Ok(Self { index: Segments::new(ends), materials, material, walls })
    }

    /// Every wall.
    pub fn walls(&self) -> &[Wall] {
        &self.walls
    }

    /// The rectangle around them.
    pub fn region(&self) -> Region {
        let ends: Vec<Site> = self.walls.iter().flat_map(|w| [w.from, w.to]).collect();
        Region::around(&ends).expect("there is a wall")
    }

    pub(super) fn load(archive: &Archive) -> Result<Self, InputError> {
        let wrong = |_| damaged("walls", "does not hold walls");
        let ends = archive.matrix("walls")?;
        let materials = archive.text("materials")?;
        if ends.ncols() != 6 || ends.nrows() != materials.len() {
            return Err(damaged("walls", "does not hold walls"));
        }
        let each = ends.rows().into_iter().zip(materials).map(|(row, material)| {
            let wall = Wall::new(Site::new(row[0], row[1]), Site::new(row[2], row[3]), material);
            match row[4].is_finite() {
                true => wall.between_heights(row[4], row[5]),
                false => wall,
            }
        });
        Self::new(each.collect()).map_err(wrong)
    }

    fn count(&self, from: Site, to: Site, counts: &mut [f64]) {
        counts.fill(0.0);
        self.index.crossings([from.x_m, from.y_m], [to.x_m, to.y_m], |wall, share| {
            let z_m = from.z_m + share * (to.z_m - from.z_m);
            if self.walls[wall].heights_m.is_none_or(|(low, high)| low <= z_m && z_m < high) {
                counts[self.material[wall]] += 1.0;
            }
        });
    }
}

/// Ends, heights and material of a wall, lengths in millimetres.
type Same = ([(i64, i64); 2], Option<(i64, i64)>, String);

/// Equal for walls that are the same, whichever end comes first.
fn same(wall: &Wall) -> Same {
    let millimetres = |v: f64| (1000.0 * v).round() as i64;
    let mut ends = [wall.from, wall.to].map(|end| (millimetres(end.x_m), millimetres(end.y_m)));
    ends.sort_unstable();
    let heights = wall.heights_m.map(|(low, high)| (millimetres(low), millimetres(high)));
    (ends, heights, wall.material.clone())
}

impl Between for Walls {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn columns(&self) -> Vec<LossColumn> {
        let name = |material: &String| match material.is_empty() {
            true => "wall".to_string(),
            false => material.clone(),
        };
        let column = |m| LossColumn::new(&name(m), LOSS_SD_DB).in_class("walls");
        self.materials.iter().map(column).collect()
    }

    fn between(&self, transmitter: Site, at: &[Site]) -> Array2<f64> {
        let mut counts = Array2::zeros((at.len(), self.materials.len()));
        let width = self.materials.len();
        let rows = counts.as_slice_mut().expect("rows lie one after the other");
        rows.par_chunks_mut(width * BLOCK).zip(at.par_chunks(BLOCK)).for_each(|(rows, at)| {
            for (row, site) in rows.chunks_mut(width).zip(at) {
                self.count(transmitter, *site, row);
            }
        });
        counts
    }

    fn save(&self, archive: &mut Archive) {
        let rows = Array2::from_shape_fn((self.walls.len(), 6), |(i, k)| {
            let Wall { from, to, heights_m, .. } = &self.walls[i];
            let (low, high) = heights_m.unwrap_or((f64::NAN, f64::NAN));
            [from.x_m, from.y_m, to.x_m, to.y_m, low, high][k]
        });
        archive.put_matrix("walls", &rows);
        archive.put_text("materials", self.walls.iter().map(|w| w.material.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_of_one_floor_is_crossed_there_only() {
        let wall = Wall::new(Site::new(5.0, -1.0), Site::new(5.0, 1.0), "brick");
        let walls = Walls::new(vec![wall.between_heights(0.0, 3.0)]).unwrap();
        let up = |z| Site::new(0.0, 0.0).at_height(z);
        let across = |z| [Site::new(10.0, 0.0).at_height(z)];
        assert_eq!(walls.between(up(1.0), &across(2.0))[[0, 0]], 1.0);
        assert_eq!(walls.between(up(4.0), &across(4.0))[[0, 0]], 0.0);
        // Half way the line is at 3.5 m.
        assert_eq!(walls.between(up(1.0), &across(6.0))[[0, 0]], 0.0);
    }

    #[test]
    fn plans_without_walls_are_refused() {
        assert!(Walls::new(Vec::new()).is_err());
        let at = Site::new(1.0, 1.0);
        assert!(Walls::new(vec![Wall::new(at, at, "")]).is_err());
        assert!(Walls::new(vec![Wall::new(at, Site::new(f64::NAN, 0.0), "")]).is_err());
    }

    #[test]
    fn an_edge_that_two_rooms_share_is_one_wall() {
        let wall = |ax: f64, ay: f64, bx: f64, by: f64, material: &str| {
            Wall::new(Site::new(ax, ay), Site::new(bx, by), material)
        };
        let given = vec![
            wall(5.0, 0.0, 5.0, 4.0, "brick"),
            wall(5.0, 4.0, 5.000_2, 0.0, "brick"),
            wall(5.0, 0.0, 5.0, 4.0, "glass"),
            wall(5.0, 0.0, 5.0, 4.0, "brick").between_heights(0.0, 3.0),
        ];
        let walls = Walls::new(given).unwrap();
        assert_eq!(walls.walls().len(), 3);
        let up = |x: f64| Site::new(x, 2.0).at_height(5.0);
        assert_eq!(walls.between(up(1.0), &[up(9.0)]), ndarray::array![[1.0, 1.0]]);
    }

    #[test]
    fn walls_are_written_and_read() {
        let walls = Walls::new(vec![
            Wall::new(Site::new(2.0, -5.0), Site::new(2.5, 5.0), "brick").between_heights(1.0, 4.0),
            Wall::new(Site::new(4.0, -5.0), Site::new(4.0, 5.5), ""),
        ])
        .unwrap();
        let mut archive = Archive::default();
        walls.save(&mut archive);
        let again = Walls::load(&archive).unwrap();
        assert_eq!((again.walls(), again.columns()), (walls.walls(), walls.columns()));
    }
}
