//! Thin-plate splines (Duchon 1977): the smoothest surface, in bending energy, through the
//! readings. s(x) = sum_i w_i |x - x_i|^2 ln |x - x_i| + a plane, with sum w = 0, sum w x = 0.

use faer::Mat;
use ndarray::Array2;

use super::bands::{DOMAIN_OPTIONS, Domain, Group};
use super::interpolated::{self, Cut, Interpolated, Surface, cut_by_neighbours, local_note};
use super::{Context, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::linalg::{product, solve_general};
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{Site, extent_m};

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "smoothing",
        default: "0 (through the readings, as SciPy)",
        takes: "a number, 0 or more: added on the diagonal, in square metres",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 2000 sensors, then 96",
        takes: "how many nearest sensors a place looks at",
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
    /// How many nearest sensors a place looks at; by default all up to 2000, then 96.
    pub neighbours: Option<usize>,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(ThinPlate {
        domain: Domain::from_options(options)?,
        smoothing: options.number("smoothing", 0.0..f64::INFINITY)?.unwrap_or(0.0),
        neighbours: options.count("neighbours", 3..=MOST_TOGETHER)?,
    }))
}

impl Method for ThinPlate {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let local = self.neighbours(readings.sensors());
        let mut model = Interpolated::fit(*self, self.domain, readings, progress)?;
        model.report_mut().notes.extend(local.map(local_note));
        Ok(model)
    }
}

impl ThinPlate {
    fn neighbours(&self, sensors: usize) -> Option<usize> {
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
            None => Spline::through(group, None, self.smoothing).map(Fitted::Whole),
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
        group: &Group,
        near: Option<&[usize]>,
        at: &[Site],
        out: &mut [f64],
    ) -> Result<(), EstimateError> {
        match fitted {
            Fitted::Whole(spline) => spline.evaluate(at, out),
            Fitted::Local { .. } => {
                Spline::through(group, near, self.smoothing)?.evaluate(at, out);
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
pub(super) struct Spline {
    sites: Vec<Site>,
    plane: Plane,
    scale: f64,
    /// Kernel weights above plane coefficients, per band.
    coefficients: Mat<f64>,
}

impl Spline {
    /// Through all sensors of a group or some of them.
    fn through(
        group: &Group,
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
        // The spline does not depend on the unit of length; near 1 the system is best conditioned.
        let extent = extent_m(&sites);
        let scale = if extent > f64::MIN_POSITIVE { 1.4 / extent } else { 1.0 };
        let plane = Plane::through(&sites);
        let (n, p) = (sites.len(), plane.terms);
        let mut spline = Self { sites, plane, scale, coefficients: Mat::zeros(0, 0) };
        let system = spline.system(smoothing);
        let bands = group.values.ncols();
        let value = |i: usize, k: usize| if i < n { group.values[[sensors[i], k]] } else { 0.0 };
        let rhs = Mat::from_fn(n + p, bands, value);
        spline.coefficients = solve_general(system.as_ref(), rhs.as_ref()).ok_or_else(|| {
            EstimateError::Numerical(format!("no thin-plate spline passes through {n} sensors"))
        })?;
        Ok(spline)
    }

    /// The matrix of kernel and plane.
    fn system(&self, smoothing: f64) -> Mat<f64> {
        let (n, p, unit) = (self.sites.len(), self.plane.terms, self.scale * self.scale);
        let mut system = Mat::zeros(n + p, n + p);
        for j in 0..n {
            for i in 0..n {
                system[(i, j)] = kernel(unit * self.sites[i].squared_m2(self.sites[j]));
            }
            // SciPy's smoothing is in metres; the scaled kernel is smaller by the square of the
            // unit.
            system[(j, j)] += smoothing * unit;
            for (k, value) in self.plane.basis(self.sites[j]).into_iter().take(p).enumerate() {
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

    fn evaluate(&self, at: &[Site], out: &mut [f64]) {
        let (n, p) = (self.sites.len(), self.plane.terms);
        let mut basis = Mat::zeros(n + p, at.len());
        for (j, &site) in at.iter().enumerate() {
            for i in 0..n {
                basis[(i, j)] = kernel(self.scale * self.scale * self.sites[i].squared_m2(site));
            }
            for (k, value) in self.plane.basis(site).into_iter().take(p).enumerate() {
                basis[(n + k, j)] = value;
            }
        }
        let values = product(basis.transpose(), self.coefficients.as_ref());
        for (j, spectrum) in out.chunks_mut(values.ncols()).enumerate() {
            spectrum.iter_mut().enumerate().for_each(|(k, v)| *v = values[(j, k)]);
        }
    }
}

/// The polynomial part: a plane, a slope along the line that all sensors lie on, or the level of a
/// single sensor.
struct Plane {
    terms: usize,
    centre: Site,
    along: Option<[f64; 2]>,
    scale: f64,
}

impl Plane {
    fn through(sites: &[Site]) -> Self {
        let (n, first) = (sites.len() as f64, sites[0]);
        let mean = |f: fn(&Site) -> f64| {
            f(&first) + sites.iter().map(|s| f(s) - f(&first)).sum::<f64>() / n
        };
        let centre = Site::new(mean(|s| s.x_m), mean(|s| s.y_m));
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for site in sites {
            let (x, y) = (site.x_m - centre.x_m, site.y_m - centre.y_m);
            xx += x * x;
            xy += x * y;
            yy += y * y;
        }
        let total = xx + yy;
        let flat = xx * yy - xy * xy <= 1e-10 * total * total;
        let along = flat.then_some(if xx >= yy { [xx, xy] } else { [xy, yy] }).map(|[x, y]| {
            let norm = x.hypot(y).max(f64::MIN_POSITIVE);
            [x / norm, y / norm]
        });
        let terms = if total == 0.0 { 1 } else { 3 - usize::from(flat) };
        let scale = if total > 0.0 { (n / total).sqrt() } else { 1.0 };
        Self { terms, centre, along, scale }
    }

    fn basis(&self, site: Site) -> [f64; 3] {
        let x = self.scale * (site.x_m - self.centre.x_m);
        let y = self.scale * (site.y_m - self.centre.y_m);
        match self.along {
            Some([dx, dy]) => [1.0, x * dx + y * dy, 0.0],
            None => [1.0, x, y],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load;
    use crate::grid::Grid;

    fn group(sites: Vec<Site>, values: Array2<f64>) -> Group {
        let (share, stated) = (vec![1.0; sites.len()], vec![0.0; sites.len()]);
        Group { bands: vec![0], sites, values, share, stated }
    }

    /// `thin_plate.npz` was made by SciPy's RBFInterpolator.
    #[test]
    fn equal_to_scipy() {
        let fixture = load("thin_plate");
        let sites: Vec<Site> = fixture["at"].1.chunks(2).map(|p| Site::new(p[0], p[1])).collect();
        let values = fixture["values"].1.clone();
        let values = Array2::from_shape_vec((sites.len(), 1), values).unwrap();
        let spline = Spline::through(&group(sites, values), None, 0.0).unwrap();
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
            let spline = Spline::through(&all, Some(&kept), 0.0).unwrap();
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
        let spline = Spline::through(&group(sites.clone(), values), None, 0.0).unwrap();
        let mut got = vec![0.0; 6];
        spline.evaluate(&sites, &mut got);
        for (i, value) in got.iter().enumerate() {
            assert!((value - 1.0 - 0.5 * i as f64).abs() < 1e-9);
        }
    }
}
