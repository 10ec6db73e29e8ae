//! Linear interpolation over Delaunay triangles; outside the hull the nearest sensor.

use delaunator::{EMPTY, Point, triangulate};

use super::bands::{DOMAIN_OPTIONS, Domain};
use super::interpolated::Interpolated;
use super::weighted_mean::{Near, WeightedMean};
use super::{Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{Region, Site};

pub(super) const OPTIONS: &[&[OptionSpec]] = &[DOMAIN_OPTIONS];
pub(super) const KIND: &str = "linear";

/// Linear over Delaunay triangles, nearest outside the hull.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Linear, Method};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// let power = array![[1e-6], [1e-8], [1e-8]];
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let model = Linear::default().fit(&readings, &Context::default(), &Progress::silent())?;
/// // A half of the first sensor, a quarter of each of the others, in dB; outside the nearest.
/// let at = [Site::new(3.0, 3.0), Site::new(20.0, -1.0)];
/// let there = model.predict(&at, &Progress::silent())?;
/// assert!((there.power[[0, 0]] / 1e-7 - 1.0).abs() < 1e-9);
/// assert!((there.power[[1, 0]] / 1e-8 - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Linear {
    /// The domain in which values are linear.
    pub domain: Domain,
}

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("linear", "linear over Delaunay triangles, nearest outside the hull", build)
        .with_options(OPTIONS)
        .with_kinds(&[(KIND, Interpolated::<Linear>::boxed)]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(Linear { domain: Domain::from_options(options)? }))
}

impl Method for Linear {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        Interpolated::fit(*self, self.domain, readings, progress)
    }
}

/// Triangles over the sensors of a group.
pub(super) struct Mesh {
    index: Neighbours,
    /// Three sensors each.
    triangles: Vec<[usize; 3]>,
    /// The triangles that overlap each square of a lattice, square by square.
    overlapping: Vec<usize>,
    start: Vec<usize>,
    region: Region,
    across: usize,
    side: f64,
}

/// Coordinates in steps of about a micrometre from the low corner: which triangles there are must
/// not depend on where on Earth the survey lies.
fn snapped(sites: &[Site], low: Site) -> Vec<Point> {
    const STEP: f64 = 1.0 / (1 << 20) as f64;
    let snap = |x: f64| (x / STEP).round() * STEP;
    let point = |s: &Site| Point { x: snap(s.x_m - low.x_m), y: snap(s.y_m - low.y_m) };
    sites.iter().map(point).collect()
}

impl Mesh {
    fn new(sites: &[Site]) -> Self {
        let region = Region::around(sites).expect("a group has sensors");
        let found = triangulate(&snapped(sites, region.low)).triangles;
        let triangles: Vec<[usize; 3]> = found
            .chunks_exact(3)
            .filter(|t| t.iter().all(|s| *s != EMPTY))
            .map(|t| [t[0], t[1], t[2]])
            .collect();
        let extent = region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE);
        // About as many squares as triangles.
        let across = ((triangles.len() as f64).sqrt().ceil() as usize).clamp(1, 4096);
        let side = extent / across as f64;
        let mut mesh = Self {
            index: Neighbours::new(sites),
            overlapping: Vec::new(),
            start: vec![0; across * across + 1],
            triangles,
            region,
            across,
            side,
        };
        let spans: Vec<_> = mesh.triangles.iter().map(|t| mesh.span(t.map(|s| sites[s]))).collect();
        for [rows, cols] in &spans {
            for row in rows.0..=rows.1 {
                (cols.0..=cols.1).for_each(|col| mesh.start[row * across + col + 1] += 1);
            }
        }
        (1..mesh.start.len()).for_each(|i| mesh.start[i] += mesh.start[i - 1]);
        let mut next = mesh.start.clone();
        mesh.overlapping = vec![0; mesh.start[across * across]];
        for (t, [rows, cols]) in spans.iter().enumerate() {
            for row in rows.0..=rows.1 {
                for col in cols.0..=cols.1 {
                    let slot = &mut next[row * across + col];
                    mesh.overlapping[*slot] = t;
                    *slot += 1;
                }
            }
        }
        mesh
    }

    fn square(&self, x: f64) -> usize {
        ((x / self.side).max(0.0) as usize).min(self.across - 1)
    }

    /// First and last square along x and along y that some places touch.
    fn span(&self, sites: [Site; 3]) -> [(usize, usize); 2] {
        let around = Region::around(&sites).expect("three places");
        let low = self.region.low;
        let x = |s: Site| self.square(s.x_m - low.x_m);
        let y = |s: Site| self.square(s.y_m - low.y_m);
        [(x(around.low), x(around.high)), (y(around.low), y(around.high))]
    }

    /// Three sensors and their shares at a place; None outside the hull.
    fn corners(&self, sites: &[Site], at: Site) -> Option<[(usize, f64); 3]> {
        let low = self.region.low;
        let square = self.square(at.x_m - low.x_m) * self.across + self.square(at.y_m - low.y_m);
        let near = &self.overlapping[self.start[square]..self.start[square + 1]];
        near.iter().find_map(|&t| {
            let shares = shares(self.triangles[t].map(|s| sites[s]), at)?;
            Some([0, 1, 2].map(|i| (self.triangles[t][i], shares[i])))
        })
    }
}

/// Barycentric shares of a place inside a triangle; None outside. A place on an edge belongs to
/// both triangles and gets the same value from either.
fn shares([a, b, c]: [Site; 3], at: Site) -> Option<[f64; 3]> {
    let cross =
        |p: Site, q: Site| (p.x_m - a.x_m) * (q.y_m - a.y_m) - (q.x_m - a.x_m) * (p.y_m - a.y_m);
    let area = cross(b, c);
    if area == 0.0 {
        return None;
    }
    let (share_b, share_c) = (cross(at, c) / area, cross(b, at) / area);
    let share_a = 1.0 - share_b - share_c;
    (share_a.min(share_b).min(share_c) >= -1e-9).then_some([share_a, share_b, share_c])
}

impl WeightedMean for Linear {
    type Index = Mesh;

    const KIND: &'static str = KIND;
    const SEES_HEIGHTS: bool = false;

    fn index(sites: &[Site]) -> Mesh {
        Mesh::new(sites)
    }

    fn weigh(&self, mesh: &Mesh, sites: &[Site], at: Site, near: &mut Near) {
        match mesh.corners(sites, at) {
            Some(corners) => near.weights.extend(corners),
            None => {
                mesh.index.nearest(&at, 1, &mut near.found);
                near.weights.push((near.found[0].1, 1.0));
            }
        }
    }

    fn load(_archive: &Archive) -> Result<Self, EstimateError> {
        Ok(Self::default())
    }
}
