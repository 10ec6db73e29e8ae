//! Places with any number of coordinates: a line, a building with its heights. The methods that ask
//! for nothing but distances fit them too.

use std::sync::Arc;

use faer::Mat;
use ndarray::{Array2, ArrayView2, Axis};
use rayon::prelude::*;

use super::bands::Domain;
use super::kriging::{self, Kriging, MOST_GROUPS, Own, Recipe, band_sills};
use super::mixture::Moments;
use super::thin_plate::{self, MOST_TOGETHER, Spline, ThinPlate};
use super::weighted_mean::Near;
use super::{Idw, Nearest, Options, idw, nearest};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{
    Covariance, Kriged, MOST_SENSORS, Neighbours, NuggetRole, Regression, Sample, Scatter, Sensors,
    WeightedCovariance, clustered, fit,
};
use crate::link::{DB_PER_LN, Link};
use crate::model::Prediction;
use crate::progress::Progress;
use crate::site::Point;

/// A method that asks for nothing but distances.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SpaceMethod {
    /// The nearest reading.
    Nearest(Nearest),
    /// Inverse distance weighting.
    Idw(Idw),
    /// Thin-plate splines.
    ThinPlate(ThinPlate),
    /// Kriging.
    Kriging(Kriging),
}

impl SpaceMethod {
    /// A method of the register with its options; None where it needs the plane.
    pub fn build(
        name: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Option<Self>, InputError> {
        Ok(Some(match name {
            nearest::KIND => {
                let options = Options::new(nearest::KIND, nearest::OPTIONS, options)?;
                Self::Nearest(Nearest { domain: Domain::from_options(&options)? })
            }
            idw::KIND => {
                let options = Options::new(idw::KIND, idw::OPTIONS, options)?;
                Self::Idw(idw::from_options(&options)?)
            }
            thin_plate::KIND => {
                let options = Options::new(thin_plate::KIND, thin_plate::OPTIONS, options)?;
                Self::ThinPlate(thin_plate::from_options(&options)?)
            }
            kriging::KIND => {
                let options = Options::new(kriging::KIND, kriging::OPTIONS, options)?;
                Self::Kriging(kriging::from_options(&options)?)
            }
            _ => return Ok(None),
        }))
    }

    fn link(&self) -> Option<Link> {
        let domain = match self {
            Self::Nearest(method) => method.domain,
            Self::Idw(method) => method.domain,
            Self::ThinPlate(method) => method.domain,
            Self::Kriging(method) => method.domain,
        };
        match domain {
            Domain::Log => Some(Link::LOG),
            Domain::LogOffset(offset) => Some(Link::new(offset)),
            Domain::Linear => None,
        }
    }
}

/// A place of so many coordinates.
#[derive(Clone)]
struct Spot(Arc<[f64]>);

impl Point for Spot {
    fn axes(&self) -> usize {
        self.0.len()
    }

    fn coordinate(&self, axis: usize) -> f64 {
        self.0[axis]
    }

    fn of(coordinates: impl Iterator<Item = f64>) -> Self {
        Self(coordinates.collect())
    }

    fn squared(&self, other: &Self) -> f64 {
        self.0.iter().zip(other.0.iter()).map(|(a, b)| (a - b) * (a - b)).sum()
    }
}

fn spots(points: ArrayView2<'_, f64>) -> Result<Vec<Spot>, InputError> {
    if points.iter().any(|x| !x.is_finite()) {
        return Err(InputError::Request("places must be finite".into()));
    }
    Ok(points.axis_iter(Axis(0)).map(|row| Spot(row.iter().copied().collect())).collect())
}

/// Readings at places with any number of coordinates.
///
/// ```
/// use ndarray::array;
/// use portolan::Progress;
/// use portolan::estimate::{SpaceMethod, SpaceReadings};
/// // Two floors of a building: x, y and height.
/// let points = array![[0.0, 0.0, 0.0], [9.0, 1.0, 0.0], [4.0, 8.0, 3.0], [1.0, 7.0, 3.0]];
/// let power = array![[1e-6], [1e-7], [1e-8], [2e-8]];
/// let readings = SpaceReadings { points, power, repeats: None };
/// let method = SpaceMethod::build("kriging", [])?.expect("kriging asks for distances alone");
/// let model = readings.fit(method, &Progress::silent())?;
/// let found = model.predict(array![[1.0, 1.0, 1.0]].view(), &Progress::silent())?;
/// assert!(found.power[[0, 0]] > 1e-8 && found.spread_db.unwrap()[[0, 0]] > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpaceReadings {
    /// Sensors x coordinates.
    pub points: Array2<f64>,
    /// Sensors x bands; NaN = missing.
    pub power: Array2<f64>,
    /// How often each entry was read.
    pub repeats: Option<Array2<f64>>,
}

impl SpaceReadings {
    /// Fits a method.
    pub fn fit(
        self,
        method: SpaceMethod,
        progress: &Progress<'_>,
    ) -> Result<SpaceModel, EstimateError> {
        let groups = self.groups(method.link())?;
        let laws = match &method {
            SpaceMethod::Kriging(kriging) => Some(laws(kriging, &groups, progress)?),
            _ => None,
        };
        self.assemble(method, laws, groups)
    }

    /// The model with laws that were fitted before.
    pub fn with_laws(
        self,
        method: SpaceMethod,
        laws: Option<Vec<WeightedCovariance>>,
    ) -> Result<SpaceModel, EstimateError> {
        let groups = self.groups(method.link())?;
        self.assemble(method, laws, groups)
    }

    fn assemble(
        self,
        method: SpaceMethod,
        laws: Option<Vec<WeightedCovariance>>,
        groups: Vec<SpaceGroup>,
    ) -> Result<SpaceModel, EstimateError> {
        let states = groups
            .iter()
            .map(|g| State::new(&method, laws.as_deref(), g))
            .collect::<Result<_, _>>()?;
        Ok(SpaceModel { readings: self, method, laws, groups, states })
    }

    fn check(&self) -> Result<(), InputError> {
        let (sensors, bands) = self.power.dim();
        let wrong = |message: String| Err(InputError::Request(message));
        if self.points.nrows() != sensors || self.points.ncols() == 0 {
            return wrong(format!("{sensors} readings at places of {:?}", self.points.dim()));
        }
        if self.repeats.as_ref().is_some_and(|r| r.dim() != self.power.dim()) {
            return wrong("repeats must be given for every entry".into());
        }
        if self.repeats.iter().flatten().any(|n| !(n.is_finite() && *n > 0.0)) {
            return wrong("repeats: a number above 0 for every entry".into());
        }
        if self.power.iter().any(|x| *x < 0.0 || x.is_infinite()) {
            return wrong("power must be 0 or more and finite".into());
        }
        let empty = |band: &usize| self.power.column(*band).iter().all(|x| x.is_nan());
        match (0..bands).find(empty) {
            Some(band) => wrong(format!("band {band} has no reading at all")),
            None => Ok(()),
        }
    }

    /// Bands that miss the same sensors and were read as often, in the working domain.
    fn groups(&self, link: Option<Link>) -> Result<Vec<SpaceGroup>, InputError> {
        self.check()?;
        let all = spots(self.points.view())?;
        let mut groups: Vec<(Vec<usize>, Vec<u64>, Vec<usize>)> = Vec::new();
        for (band, column) in self.power.columns().into_iter().enumerate() {
            let sensors: Vec<usize> =
                column.indexed_iter().filter(|(_, x)| !x.is_nan()).map(|(s, _)| s).collect();
            let often: Vec<u64> = match &self.repeats {
                Some(repeats) => sensors.iter().map(|&s| repeats[[s, band]].to_bits()).collect(),
                None => Vec::new(),
            };
            match groups.iter_mut().find(|(s, o, _)| *s == sensors && *o == often) {
                Some((_, _, bands)) => bands.push(band),
                None => groups.push((sensors, often, vec![band])),
            }
        }
        let in_domain = |x: f64| link.map_or(x, |link| link.apply(x));
        let made = groups.into_iter().map(|(sensors, _, bands)| {
            let own = |&s: &usize| self.repeats.as_ref().map_or(1.0, |r| 1.0 / r[[s, bands[0]]]);
            let values = Mat::from_fn(sensors.len(), bands.len(), |i, k| {
                in_domain(self.power[[sensors[i], bands[k]]])
            });
            let sample = Sample {
                sites: sensors.iter().map(|&s| all[s].clone()).collect(),
                share: sensors.iter().map(own).collect(),
                stated: vec![0.0; sensors.len()],
                scatter: Scatter::default(),
                values,
            };
            SpaceGroup { index: Neighbours::new(&sample.sites), sample, bands }
        });
        let made: Vec<SpaceGroup> = made.collect();
        if made.iter().any(|g| g.sample.values.col_iter().any(|c| c.iter().any(|v| !v.is_finite())))
        {
            return Err(InputError::Request(
                "a reading of no power at all has no logarithm: give domain=linear or offset"
                    .into(),
            ));
        }
        Ok(made)
    }
}

/// Bands that miss the same sensors.
struct SpaceGroup {
    bands: Vec<usize>,
    sample: Sample<Spot>,
    index: Neighbours<Spot>,
}

impl SpaceGroup {
    /// The nearest sensors of a place, in ascending order.
    fn near(&self, at: &Spot, count: usize) -> Vec<usize> {
        let mut found = Vec::new();
        self.index.nearest(at, count, &mut found);
        let mut near: Vec<usize> = found.into_iter().map(|(_, sensor)| sensor).collect();
        near.sort_unstable();
        near
    }
}

fn laws(
    kriging: &Kriging,
    groups: &[SpaceGroup],
    progress: &Progress<'_>,
) -> Result<Vec<WeightedCovariance>, EstimateError> {
    let log = !matches!(kriging.domain, Domain::Linear);
    let (_, fixed) = kriging.in_domain(log);
    let mut largest: Vec<&SpaceGroup> = groups.iter().collect();
    largest.sort_by_key(|g| std::cmp::Reverse(g.sample.values.nrows() * g.sample.values.ncols()));
    let samples: Vec<Sample<Spot>> = largest
        .into_iter()
        .take(MOST_GROUPS)
        .filter(|g| g.sample.sites.len() > 1)
        .map(|g| g.sample.clone())
        .collect();
    let prior = kriging.prior(log, || variance(groups));
    fit(&samples, kriging.covariance, kriging.trend, fixed, prior, progress)
}

fn variance(groups: &[SpaceGroup]) -> f64 {
    let values: Vec<f64> = groups
        .iter()
        .flat_map(|g| {
            g.sample.values.col_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>())
        })
        .collect();
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count
}

/// What is worked out once for a group of bands.
enum State {
    /// The readings themselves are enough.
    Plain,
    Spline(Spline<Spot>),
    Kriged(Vec<UnderLaw>),
}

/// A group of bands under one of the laws.
struct UnderLaw {
    law: WeightedCovariance,
    /// All sensors; None where every place looks at its own.
    whole: Option<Box<Regression<Spot>>>,
    /// Sill and noise variance of every band.
    sills: Vec<f64>,
    noise: Vec<f64>,
}

impl State {
    fn new(
        method: &SpaceMethod,
        laws: Option<&[WeightedCovariance]>,
        group: &SpaceGroup,
    ) -> Result<Self, EstimateError> {
        let Sample { sites, values, .. } = &group.sample;
        match (method, laws) {
            (SpaceMethod::ThinPlate(plates), _) if plates.neighbours(sites.len()).is_none() => {
                let value = |i, k| values[(i, k)];
                let spline =
                    Spline::through(sites.clone(), values.ncols(), value, plates.smoothing)?;
                Ok(State::Spline(spline))
            }
            (SpaceMethod::Kriging(kriging), Some(laws)) => {
                let each = laws.iter().map(|law| UnderLaw::new(kriging, *law, group));
                Ok(State::Kriged(each.collect::<Result<_, _>>()?))
            }
            _ => Ok(State::Plain),
        }
    }
}

impl UnderLaw {
    fn new(
        kriging: &Kriging,
        law: WeightedCovariance,
        group: &SpaceGroup,
    ) -> Result<Self, EstimateError> {
        let Sample { sites, .. } = &group.sample;
        let covariance = law.covariance;
        let whole = recipe(kriging).neighbours_of(sites.len(), MOST_TOGETHER).is_none();
        let regression = match whole {
            true => regression(kriging, covariance, &group.sample)?,
            false => {
                let kept = clustered(sites, MOST_SENSORS);
                regression(kriging, covariance, &group.sample.part(&kept))?
            }
        };
        let bands = group.bands.len();
        let found = match kriging.fixed.sill {
            Some(_) => vec![(covariance.sill, covariance.sill); bands],
            None => {
                let own = Own::of(regression.sills(), regression.freedom(), bands);
                band_sills(&own, covariance.sill)
            }
        };
        let ratio = covariance.nugget / covariance.sill.max(f64::MIN_POSITIVE);
        let (sills, noise) = found.into_iter().map(|(sill, own)| (sill, ratio * own)).unzip();
        Ok(Self { law, whole: whole.then(|| Box::new(regression)), sills, noise })
    }

    /// Means at places and variances in units of the sill.
    fn kriged(
        &self,
        kriging: &Kriging,
        group: &SpaceGroup,
        at: &[Spot],
    ) -> Result<Kriged, EstimateError> {
        if let Some(whole) = &self.whole {
            return Ok(whole.predict(at));
        }
        let sample = &group.sample;
        let bands = sample.values.ncols();
        let count = recipe(kriging).neighbours_of(sample.sites.len(), MOST_TOGETHER);
        let count = count.unwrap_or(sample.sites.len());
        let mut all = Kriged { mean: Mat::zeros(at.len(), bands), variance: Vec::new() };
        for (i, spot) in at.iter().enumerate() {
            let part = sample.part(&group.near(spot, count));
            let local = regression(kriging, self.law.covariance, &part)?;
            let found = local.predict(std::slice::from_ref(spot));
            (0..bands).for_each(|k| all.mean[(i, k)] = found.mean[(0, k)]);
            all.variance.extend(found.variance);
        }
        Ok(all)
    }
}

fn recipe(kriging: &Kriging) -> Recipe {
    Recipe {
        trend: kriging.trend,
        role: kriging.nugget_role,
        neighbours: kriging.neighbours,
        sill_fixed: kriging.fixed.sill.is_some(),
        levels: None,
        hearing: None,
    }
}

fn regression(
    kriging: &Kriging,
    law: Covariance,
    sample: &Sample<Spot>,
) -> Result<Regression<Spot>, EstimateError> {
    let ratio = law.nugget / law.sill.max(f64::MIN_POSITIVE);
    let sensors = Sensors::new(
        sample.sites.clone(),
        law.correlation(),
        (sample.noise(ratio, law.sill), ratio),
        (kriging.trend, None),
        kriging.nugget_role,
    )?;
    Ok(Regression::new(sensors, sample.values.as_ref()))
}

/// A fit to readings at places with any number of coordinates.
pub struct SpaceModel {
    readings: SpaceReadings,
    method: SpaceMethod,
    laws: Option<Vec<WeightedCovariance>>,
    groups: Vec<SpaceGroup>,
    states: Vec<State>,
}

/// Places that are predicted at once.
const BLOCK: usize = 256;

impl SpaceModel {
    /// What it was fitted to.
    pub fn readings(&self) -> &SpaceReadings {
        &self.readings
    }

    /// The covariances in the working domain with their weights, where the method has some: the
    /// likeliest first.
    pub fn laws(&self) -> Option<&[WeightedCovariance]> {
        self.laws.as_deref()
    }

    /// Power at places (rows of coordinates), and the spread where the method knows it.
    pub fn predict(
        &self,
        points: ArrayView2<'_, f64>,
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let (given, known) = (points.ncols(), self.readings.points.ncols());
        if given != known {
            let message = format!("places of {given} coordinates: the model has {known}");
            return Err(InputError::Request(message).into());
        }
        let at = spots(points)?;
        let dim = (at.len(), self.readings.power.ncols());
        let (mut power, mut spread) = (Array2::zeros(dim), Array2::zeros(dim));
        let mut noise = vec![0.0; dim.1];
        let link = self.method.link();
        for (group, state) in self.groups.iter().zip(&self.states) {
            let blocks: Vec<(Mat<f64>, Mat<f64>)> = at
                .par_chunks(BLOCK)
                .map(|block| {
                    progress.check()?;
                    self.block(group, state, block)
                })
                .collect::<Result<_, EstimateError>>()?;
            for (b, (values, variance)) in blocks.iter().enumerate() {
                for (i, k) in
                    (0..values.nrows()).flat_map(|i| (0..values.ncols()).map(move |k| (i, k)))
                {
                    let (place, value) = ([b * BLOCK + i, group.bands[k]], values[(i, k)]);
                    power[place] = link.map_or(value.max(0.0), |link| link.inverse(value));
                    if let State::Kriged(_) = state {
                        let sd = variance[(i, k)].sqrt();
                        // In linear power the spread in dB is the relative one, to first order.
                        let relative = if sd > 0.0 { sd / value.max(sd) } else { 0.0 };
                        spread[place] = DB_PER_LN * if link.is_some() { sd } else { relative };
                    }
                }
            }
            if let (State::Kriged(laws), SpaceMethod::Kriging(kriging), Some(_)) =
                (state, &self.method, link)
                && kriging.nugget_role == NuggetRole::Noise
            {
                for (k, &band) in group.bands.iter().enumerate() {
                    let variance = laws.iter().map(|own| own.law.weight * own.noise[k]);
                    noise[band] = DB_PER_LN * variance.sum::<f64>().sqrt();
                }
            }
        }
        Ok(match self.method {
            SpaceMethod::Kriging(_) => Prediction::with_spread(power, spread, &noise),
            _ => Prediction::of_power(power),
        })
    }

    /// Values at places (places x bands of the group) and, where kriged, their variances.
    fn block(
        &self,
        group: &SpaceGroup,
        state: &State,
        at: &[Spot],
    ) -> Result<(Mat<f64>, Mat<f64>), EstimateError> {
        let Sample { sites, values, .. } = &group.sample;
        let bands = values.ncols();
        let mut out = Mat::zeros(at.len(), bands);
        let mut variance = Mat::zeros(0, 0);
        let mut put = |i: usize, spectrum: &[f64]| {
            spectrum.iter().enumerate().for_each(|(k, v)| out[(i, k)] = *v);
        };
        match (&self.method, state) {
            (SpaceMethod::Nearest(_), _) => {
                for (i, spot) in at.iter().enumerate() {
                    let near = group.near(spot, 1)[0];
                    put(i, &(0..bands).map(|k| values[(near, k)]).collect::<Vec<_>>());
                }
            }
            (SpaceMethod::Idw(idw), _) => {
                let mut near = Near::default();
                for (i, spot) in at.iter().enumerate() {
                    near.weights.clear();
                    idw.weigh_at(&group.index, sites, spot, &mut near);
                    let of = |k| near.weights.iter().map(|(s, w)| w * values[(*s, k)]).sum();
                    put(i, &(0..bands).map(of).collect::<Vec<f64>>());
                }
            }
            (SpaceMethod::ThinPlate(_), State::Spline(spline)) => {
                let mut all = vec![0.0; at.len() * bands];
                spline.evaluate(at, &mut all);
                all.chunks(bands).enumerate().for_each(|(i, spectrum)| put(i, spectrum));
            }
            (SpaceMethod::ThinPlate(plates), _) => {
                let count = plates.neighbours(sites.len()).unwrap_or(sites.len());
                for (i, spot) in at.iter().enumerate() {
                    let near = group.near(spot, count);
                    let some = near.iter().map(|&s| sites[s].clone()).collect();
                    let value = |i: usize, k: usize| values[(near[i], k)];
                    let mut spectrum = vec![0.0; bands];
                    Spline::through(some, bands, value, plates.smoothing)?
                        .evaluate(std::slice::from_ref(spot), &mut spectrum);
                    put(i, &spectrum);
                }
            }
            (SpaceMethod::Kriging(kriging), State::Kriged(laws)) => {
                let mut moments = vec![Moments::default(); at.len() * bands];
                for own in laws {
                    let found = own.kriged(kriging, group, at)?;
                    for (j, moments) in moments.iter_mut().enumerate() {
                        let (i, k) = (j / bands, j % bands);
                        let variance = own.sills[k] * found.variance[i];
                        moments.add(own.law.weight, found.mean[(i, k)], variance);
                    }
                }
                variance = Mat::zeros(at.len(), bands);
                for (j, moments) in moments.iter().enumerate() {
                    let (i, k) = (j / bands, j % bands);
                    (out[(i, k)], variance[(i, k)]) = (moments.mean, moments.variance());
                }
            }
            (SpaceMethod::Kriging(_), _) => {}
        }
        Ok((out, variance))
    }
}

#[cfg(test)]
mod tests;
