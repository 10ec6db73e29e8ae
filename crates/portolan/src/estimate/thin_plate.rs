//! Thin-plate splines (Duchon 1977): the smoothest surface, in bending energy, through the
//! readings. s(x) = sum_i w_i |x - x_i|^2 ln |x - x_i| + a plane, with sum w = 0, sum w x = 0.

use faer::{Mat, MatRef};
use ndarray::Array2;

use super::bands::{DOMAIN_OPTIONS, Domain, Group};
use super::interpolated::{self, Cut, Interpolated, Surface, cut_by_neighbours, local_note};
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::linalg::{columns, product, solve_general};
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{Point, Site, extent_m, middle};

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "smoothing",
        default: "0 (through the readings, as SciPy)",
        takes: "a number, 0 or more: added on the diagonal, in square metres",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 2000 sensors, then 96",
        takes: "number of nearest sensors used for a place",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, DOMAIN_OPTIONS];
pub(super) const KIND: &str = "thin_plate";

/// Sensors beyond which one system for all is too slow.
pub(super) const MOST_TOGETHER: usize = 2000;
const NEIGHBOURS: usize = 96;

/// Thin-plate splines through the readings.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Method, ThinPlate};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// let power = array![[1e-6], [1e-8], [1e-8]];
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let model = ThinPlate::default().fit(&readings, &Context::default(), &Progress::silent())?;
/// // Three readings make a plane in dB.
/// let there = model.predict(&[Site::new(0.0, 0.0), Site::new(3.0, 3.0)], &Progress::silent())?;
/// assert!((there.power[[0, 0]] / 1e-6 - 1.0).abs() < 1e-9);
/// assert!((there.power[[1, 0]] / 1e-7 - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct ThinPlate {
    /// The domain in which the surface is smooth.
    pub domain: Domain,
    /// Added on the diagonal: 0 goes through the readings.
    pub smoothing: f64,
    /// Number of nearest sensors used for a place; by default all up to 2000, then 96.
    pub neighbours: Option<usize>,
}

pub(super) fn from_options(options: &Options) -> Result<ThinPlate, InputError> {
    Ok(ThinPlate {
        domain: Domain::from_options(options)?,
        smoothing: options.number("smoothing", 0.0..f64::INFINITY)?.unwrap_or(0.0),
        neighbours: options.count("neighbours", 3..=MOST_TOGETHER)?,
    })
}

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("thin_plate", "thin-plate spline through the readings", build)
        .with_capabilities(&[Capability::Heights])
        .with_options(OPTIONS)
        .with_kinds(&[(KIND, Interpolated::<ThinPlate>::boxed)]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(from_options(options)?))
}

impl Method for ThinPlate {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let local = self.neighbours(readings.places());
        let mut model = Interpolated::fit(*self, self.domain, readings, progress)?;
        model.report_mut().notes.extend(local.map(local_note));
        Ok(model)
    }
}

impl ThinPlate {
    pub(super) fn neighbours(&self, sensors: usize) -> Option<usize> {
        let usual = (sensors > MOST_TOGETHER).then_some(NEIGHBOURS);
        self.neighbours.or(usual).filter(|n| *n < sensors)
    }
}

pub(super) enum Fitted {
    Whole(Spline),
    Local { index: Neighbours, count: usize },
}

impl Surface for ThinPlate {
    type State = Fitted;

    const KIND: &'static str = KIND;

    fn prepare(&self, group: &Group) -> Result<Fitted, EstimateError> {
        match self.neighbours(group.sites.len()) {
            None => {
                let all: Vec<usize> = (0..group.bands.len()).collect();
                Spline::of_group(group, &all, None, self.smoothing).map(Fitted::Whole)
            }
            Some(count) => Ok(Fitted::Local { index: Neighbours::new(&group.sites), count }),
        }
    }

    fn cut(&self, fitted: &Fitted, _group: &Group, at: &[Site]) -> Vec<Cut> {
        match fitted {
            Fitted::Whole(_) => interpolated::blocks(at.len()),
            Fitted::Local { index, count } => cut_by_neighbours(index, at, *count),
        }
    }

    fn evaluate(
        &self,
        fitted: &Fitted,
        (group, bands): (&Group, &[usize]),
        near: Option<&[usize]>,
        at: &[Site],
        out: &mut [f64],
    ) -> Result<(), EstimateError> {
        match fitted {
            Fitted::Whole(spline) => spline.evaluate_bands(at, bands, out),
            Fitted::Local { .. } => {
                Spline::of_group(group, bands, near, self.smoothing)?.evaluate(at, out);
            }
        }
        Ok(())
    }

    fn leave_one_out(&self, fitted: &Fitted, group: &Group) -> Option<Array2<f64>> {
        let Fitted::Whole(spline) = fitted else { return None };
        let own = spline.inverse_diagonal(self.smoothing)?;
        Some(Array2::from_shape_fn(group.values.dim(), |(i, k)| {
            group.values[[i, k]] - spline.coefficients[(i, k)] / own[i]
        }))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("smoothing", self.smoothing);
        archive.put_whole("neighbours", self.neighbours);
    }

    fn load(archive: &Archive) -> Result<Self, EstimateError> {
        Ok(Self {
            smoothing: archive.number("smoothing")?,
            neighbours: archive.whole("neighbours")?.first().copied(),
            ..Self::default()
        })
    }
}

/// r^2 ln r from the squared distance.
fn kernel(d2: f64) -> f64 {
    if d2 > 0.0 { 0.5 * d2 * d2.ln() } else { 0.0 }
}

/// A spline through the readings of several bands.
pub(super) struct Spline<P = Site> {
    sites: Vec<P>,
    plane: Plane,
    scale: f64,
    /// Kernel weights above plane coefficients, per band.
    coefficients: Mat<f64>,
}

impl Spline {
    /// Through all sensors of a group or some of them, in some of its bands.
    fn of_group(
        group: &Group,
        bands: &[usize],
        some: Option<&[usize]>,
        smoothing: f64,
    ) -> Result<Self, EstimateError> {
        let all: Vec<usize>;
        let sensors = match some {
            Some(sensors) => sensors,
            None => {
                all = (0..group.sites.len()).collect();
                &all
            }
        };
        let sites: Vec<Site> = sensors.iter().map(|&s| group.sites[s]).collect();
        let value = |i: usize, k: usize| group.values[[sensors[i], bands[k]]];
        Spline::through(sites, bands.len(), value, smoothing)
    }
}

impl<P: Point> Spline<P> {
    /// Through a value at every place in every band.
    pub fn through(
        sites: Vec<P>,
        bands: usize,
        value: impl Fn(usize, usize) -> f64,
        smoothing: f64,
    ) -> Result<Self, EstimateError> {
        // The spline does not depend on the unit of length; near 1 the system is best conditioned.
        let extent = extent_m(&sites);
        let scale = if extent > f64::MIN_POSITIVE { 1.4 / extent } else { 1.0 };
        let plane = Plane::through(&sites);
        let (n, p) = (sites.len(), plane.terms());
        let mut spline = Self { sites, plane, scale, coefficients: Mat::zeros(0, 0) };
        let system = spline.system(smoothing);
        let rhs = Mat::from_fn(n + p, bands, |i, k| if i < n { value(i, k) } else { 0.0 });
        spline.coefficients = solve_general(system.as_ref(), rhs.as_ref()).ok_or_else(|| {
            EstimateError::Numerical(format!("no thin-plate spline passes through {n} sensors"))
        })?;
        Ok(spline)
    }

    /// The matrix of kernel and plane.
    fn system(&self, smoothing: f64) -> Mat<f64> {
        let (n, p, unit) = (self.sites.len(), self.plane.terms(), self.scale * self.scale);
        let mut system = Mat::zeros(n + p, n + p);
        for j in 0..n {
            for i in 0..n {
                system[(i, j)] = kernel(unit * self.sites[i].squared(&self.sites[j]));
            }
            // SciPy's smoothing is in metres; the scaled kernel is smaller by the square of the
            // unit.
            system[(j, j)] += smoothing * unit;
            for (k, value) in self.plane.basis(&self.sites[j]).enumerate() {
                system[(n + k, j)] = value;
                system[(j, n + k)] = value;
            }
        }
        system
    }

    /// The sensors' part of the diagonal of the inverse.
    fn inverse_diagonal(&self, smoothing: f64) -> Option<Vec<f64>> {
        let system = self.system(smoothing);
        let inverse =
            solve_general(system.as_ref(), Mat::identity(system.nrows(), system.nrows()).as_ref())?;
        let own: Vec<f64> = (0..self.sites.len()).map(|i| inverse[(i, i)]).collect();
        own.iter().all(|v| *v != 0.0).then_some(own)
    }

    pub fn evaluate(&self, at: &[P], out: &mut [f64]) {
        self.evaluate_with(self.coefficients.as_ref(), at, out);
    }

    fn evaluate_bands(&self, at: &[P], bands: &[usize], out: &mut [f64]) {
        let own = columns(self.coefficients.as_ref(), bands);
        self.evaluate_with(own.as_ref(), at, out);
    }

    fn evaluate_with(&self, coefficients: MatRef<'_, f64>, at: &[P], out: &mut [f64]) {
        let (n, p) = (self.sites.len(), self.plane.terms());
        let mut basis = Mat::zeros(n + p, at.len());
        for (j, site) in at.iter().enumerate() {
            for i in 0..n {
                basis[(i, j)] = kernel(self.scale * self.scale * self.sites[i].squared(site));
            }
            for (k, value) in self.plane.basis(site).enumerate() {
                basis[(n + k, j)] = value;
            }
        }
        let values = product(basis.transpose(), coefficients);
        for (j, spectrum) in out.chunks_mut(values.ncols()).enumerate() {
            spectrum.iter_mut().enumerate().for_each(|(k, v)| *v = values[(j, k)]);
        }
    }
}

/// The polynomial part: a constant and a slope in every direction that the sensors span. On a line
/// that is one, for a single sensor none.
struct Plane {
    centre: Vec<f64>,
    directions: Vec<Vec<f64>>,
    scale: f64,
}

impl Plane {
    fn through<P: Point>(sites: &[P]) -> Self {
        let centre = middle(sites);
        let axes = centre.len();
        let mut scatter = vec![vec![0.0; axes]; axes];
        for site in sites {
            let apart: Vec<f64> =
                centre.iter().enumerate().map(|(axis, c)| site.coordinate(axis) - c).collect();
            for (row, x) in scatter.iter_mut().zip(&apart) {
                row.iter_mut().zip(&apart).for_each(|(s, y)| *s += x * y);
            }
        }
        let total: f64 = (0..axes).map(|axis| scatter[axis][axis]).sum();
        let scale = if total > 0.0 { (sites.len() as f64 / total).sqrt() } else { 1.0 };
        Self { directions: spanned(scatter, 1e-10 * total), centre, scale }
    }

    fn terms(&self) -> usize {
        1 + self.directions.len()
    }

    fn basis<P: Point>(&self, site: &P) -> impl Iterator<Item = f64> {
        let slope = |direction: &Vec<f64>| -> f64 {
            let along = direction.iter().zip(&self.centre).enumerate();
            self.scale * along.map(|(axis, (d, c))| d * (site.coordinate(axis) - c)).sum::<f64>()
        };
        std::iter::once(1.0).chain(self.directions.iter().map(slope))
    }
}

/// Directions that span what a scatter matrix spans, by Cholesky's method with pivots; the axes
/// themselves where it spans everything.
fn spanned(scatter: Vec<Vec<f64>>, least: f64) -> Vec<Vec<f64>> {
    let axes = scatter.len();
    let mut left = scatter.clone();
    let mut directions: Vec<Vec<f64>> = Vec::new();
    for _ in 0..axes {
        let largest = |a: usize, b: usize| if left[b][b] > left[a][a] { b } else { a };
        let pivot = (1..axes).fold(0, largest);
        let variance = left[pivot][pivot];
        if variance <= least || variance <= 0.0 {
            break;
        }
        let column = left[pivot].clone();
        for (i, row) in left.iter_mut().enumerate() {
            let share = column[i] / variance;
            row.iter_mut().zip(&column).for_each(|(value, c)| *value -= share * c);
        }
        // Its own column of the scatter, at right angles to those before.
        let mut direction = scatter[pivot].clone();
        for other in &directions {
            let along: f64 = direction.iter().zip(other).map(|(a, b)| a * b).sum();
            direction.iter_mut().zip(other).for_each(|(d, o)| *d -= along * o);
        }
        let norm = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|d| *d /= norm);
        directions.push(direction);
    }
    if directions.len() < axes {
        return directions;
    }
    (0..axes).map(|i| (0..axes).map(|j| f64::from(u8::from(i == j))).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load;
    use crate::gaussian_process::Scatter;
    use crate::grid::Grid;

    fn group(sites: Vec<Site>, values: Array2<f64>) -> Group {
        let (share, stated) = (vec![1.0; sites.len()], vec![0.0; sites.len()]);
        Group { bands: vec![0], sites, values, share, stated, scatter: Scatter::default() }
    }

    /// `thin_plate.npz` was made by SciPy's RBFInterpolator.
    #[test]
    fn equal_to_scipy() {
        let fixture = load("thin_plate");
        let sites: Vec<Site> = fixture["at"].1.chunks(2).map(|p| Site::new(p[0], p[1])).collect();
        let values = fixture["values"].1.clone();
        let values = Array2::from_shape_vec((sites.len(), 1), values).unwrap();
        let spline = Spline::of_group(&group(sites, values), &[0], None, 0.0).unwrap();
        let at = Grid::new(64, 64, 1.0).unwrap().sites();
        let mut got = vec![0.0; at.len()];
        spline.evaluate(&at, &mut got);
        for (got, want) in got.iter().zip(&fixture["predicted"].1) {
            assert!((got - want).abs() < 1e-8, "{got} {want}");
        }
    }

    #[test]
    fn leaving_a_sensor_out_equals_a_spline_without_it() {
        let sites: Vec<Site> =
            (0..14).map(|i| Site::new(f64::from(i * i % 17), f64::from(i) + 0.3)).collect();
        let values = Array2::from_shape_fn((14, 1), |(i, _)| (i * 7 % 5) as f64 - 0.4 * i as f64);
        let surface = ThinPlate::default();
        let all = group(sites.clone(), values.clone());
        let got = surface.leave_one_out(&surface.prepare(&all).unwrap(), &all).unwrap();
        for out in 0..14 {
            let kept: Vec<usize> = (0..14).filter(|i| *i != out).collect();
            let spline = Spline::of_group(&all, &[0], Some(&kept), 0.0).unwrap();
            let mut want = [0.0];
            spline.evaluate(&[sites[out]], &mut want);
            assert!((got[[out, 0]] - want[0]).abs() < 1e-7, "{} {}", got[[out, 0]], want[0]);
        }
    }

    #[test]
    fn sensors_on_a_line_are_enough() {
        let sites: Vec<Site> =
            (0..6).map(|i| Site::new(f64::from(2 * i) + 0.25, f64::from(3 * i))).collect();
        let values = Array2::from_shape_fn((6, 1), |(i, _)| 1.0 + 0.5 * i as f64);
        let spline = Spline::of_group(&group(sites.clone(), values), &[0], None, 0.0).unwrap();
        let mut got = vec![0.0; 6];
        spline.evaluate(&sites, &mut got);
        for (i, value) in got.iter().enumerate() {
            assert!((value - 1.0 - 0.5 * i as f64).abs() < 1e-9);
        }
    }
}
