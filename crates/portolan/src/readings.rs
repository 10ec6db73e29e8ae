//! What the sensors report: a spectrum at each of a few places, in power or in quantised levels,
//! with what is known about each entry.

mod attached;
mod checks;
mod repeats;

use ndarray::{Array2, Axis};

use crate::crs::Crs;
use crate::devices::Devices;
use crate::error::InputError;
use crate::frame::Frame;
use crate::grid::{Cell, Grid, default_grid};
use crate::labels::BandLabels;
use crate::link::{Link, noise_floor, quiet_offset};
use crate::points::Points;
use crate::quantiser::{MISSING_LEVEL, Quantiser};
use crate::scale::Scale;
use crate::site::{Region, Site};

pub(crate) use checks::check_sites;
use checks::{check_enough, check_heard, check_levels, check_power};

/// The values of a set of readings, sensors x bands.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Linear power; NaN = missing.
    Power(Array2<f64>),
    /// Levels of a quantiser; 255 = missing.
    Levels {
        /// One level per sensor and band.
        levels: Array2<u8>,
        /// What the levels mean.
        quantiser: Quantiser,
    },
}

impl Values {
    /// Sensors and bands.
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Values::Power(power) => power.dim(),
            Values::Levels { levels, .. } => levels.dim(),
        }
    }

    fn select(&self, sensors: &[usize]) -> Self {
        match self {
            Values::Power(power) => Values::Power(power.select(Axis(0), sensors)),
            Values::Levels { levels, quantiser } => Values::Levels {
                levels: levels.select(Axis(0), sensors),
                quantiser: quantiser.clone(),
            },
        }
    }
}

/// Readings in at least two rows, checked when they are made: places are finite, values are usable,
/// every band is heard by someone. A row is what a sensor read at a place at once: two visits to one
/// place are two rows, and how far they differ tells the noise.
///
/// ```
/// use ndarray::array;
/// use portolan::{Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
/// let dbm = array![[-70.0, -63.0], [-71.0, f64::NAN]];
/// let power = dbm.mapv(|p: f64| 10f64.powf(p / 10.0));
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// assert_eq!((readings.sensors(), readings.bands(), readings.gaps()), (2, 2, 1));
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    points: Points,
    values: Values,
    frame: Frame,
    grid: Option<Grid>,
    not_heard: Option<NotHeard>,
    repeats: Option<Array2<f64>>,
    noise_db: Option<Array2<f64>>,
    devices: Option<Devices>,
    /// They need not be enough for a map.
    further: bool,
    /// Heights were multiplied so that they count like metres along the ground.
    lifted: bool,
}

/// Entries that are only known to lie below a floor.
#[derive(Clone, Debug, PartialEq)]
pub struct NotHeard {
    /// Sensors x bands.
    pub entries: Array2<bool>,
    /// The power below which a band is not heard.
    pub floor: Vec<f64>,
    /// Power that the unheard entries of each sensor lie below instead, where that is known: a phone
    /// that reports the strongest cell alone says so of the others.
    pub below: Option<Vec<f64>>,
}

impl NotHeard {
    /// The most that an entry can be.
    pub fn limit(&self, sensor: usize, band: usize) -> f64 {
        self.below.as_ref().map_or(self.floor[band], |below| below[sensor])
    }
}

impl Readings {
    /// One row of `values` for each point. Where the scale has no zero, powers of zero are "not heard",
    /// below the faintest reading of their band.
    ///
    /// ```
    /// use ndarray::array;
    /// use portolan::{InputError, Readings, Scale, Site, Values};
    /// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25), Site::new(0.0, 9.0)];
    /// let readings = Readings::new(sites, Values::Power(array![[1e-7], [0.0], [2e-8]]), Scale::Absolute)?;
    /// assert_eq!(readings.not_heard().map(|silent| silent.floor[0]), Some(2e-8));
    /// // One sensor is too few.
    /// let alone = Readings::new(vec![Site::new(0.0, 0.0)], Values::Power(array![[1e-7]]), Scale::Absolute);
    /// assert_eq!(alone.unwrap_err(), InputError::TooFewSensors { found: 1 });
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn new(
        points: impl Into<Points>,
        values: Values,
        scale: Scale,
    ) -> Result<Self, InputError> {
        let points = points.into();
        check_sites(points.sites())?;
        Self::checked(points, values, scale, false)
    }

    /// Readings to update a model with ([`Model::update`](crate::Model::update)): one is enough, and
    /// bands may be empty. Methods that are to fit them want what [`Readings::new`] wants.
    ///
    /// ```
    /// use ndarray::array;
    /// use portolan::estimate::{Kriging, Method};
    /// use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// let one = Values::Power(array![[1e-7, f64::NAN]]);
    /// let new = Readings::further(vec![Site::new(0.0, 0.0)], one, Scale::Absolute)?;
    /// assert!(Kriging::default().fit(&new, &Context::default(), &Progress::silent()).is_err());
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn further(
        points: impl Into<Points>,
        values: Values,
        scale: Scale,
    ) -> Result<Self, InputError> {
        let points = points.into();
        check_sites(points.sites())?;
        Self::checked(points, values, scale, true)
    }

    fn checked(
        points: Points,
        mut values: Values,
        scale: Scale,
        further: bool,
    ) -> Result<Self, InputError> {
        let (sensors, bands) = values.dim();
        if sensors != points.len() {
            let found = vec![sensors, bands];
            let expected = vec![points.len(), bands];
            return Err(InputError::Shape { what: "values", found, expected });
        }
        if bands == 0 {
            return Err(InputError::NoBands);
        }
        if sensors == 0 {
            return Err(InputError::TooFewSensors { found: sensors });
        }
        match &values {
            Values::Power(power) => {
                check_power(power)?;
                if !further {
                    check_heard(power)?;
                }
            }
            Values::Levels { levels, quantiser } => check_levels(levels, quantiser)?,
        }
        let mut not_heard = None;
        if let Values::Power(power) = &mut values
            && !scale.has_zero()
            && power.iter().any(|x| *x == 0.0)
        {
            let entries = power.mapv(|x| x == 0.0);
            power.mapv_inplace(|x| if x == 0.0 { f64::NAN } else { x });
            let least = |column: ndarray::ArrayView1<'_, f64>| {
                column.iter().copied().filter(|x| !x.is_nan()).fold(f64::INFINITY, f64::min)
            };
            let floor = power.columns().into_iter().map(least).collect();
            not_heard = Some(NotHeard { entries, floor, below: None });
        }
        if !further {
            check_enough(&values)?;
        }
        Ok(Self {
            further,
            points,
            values,
            frame: Frame::new(scale),
            grid: None,
            not_heard,
            repeats: None,
            noise_db: None,
            devices: None,
            lifted: false,
        })
    }

    /// Where and when they were taken, row by row; places may repeat.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Where the sensors stand, row by row.
    pub fn sites(&self) -> &[Site] {
        self.points.sites()
    }

    /// Number of rows: a sensor that was read twice counts twice.
    pub fn sensors(&self) -> usize {
        self.points.len()
    }

    /// Number of bands.
    pub fn bands(&self) -> usize {
        self.values.dim().1
    }

    /// What was read.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// What their numbers mean.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// What powers are measured in.
    pub fn scale(&self) -> Scale {
        self.frame.scale
    }

    /// Where on Earth the sites lie, where known.
    pub fn crs(&self) -> Option<Crs> {
        self.frame.crs
    }

    /// Frequencies and names of the bands.
    pub fn labels(&self) -> &BandLabels {
        &self.frame.labels
    }

    /// Centre frequencies of the bands, where known.
    pub fn freq_hz(&self) -> Option<&[f64]> {
        self.frame.labels.freq_hz()
    }

    /// The grid of the survey area, where there is one.
    pub fn grid(&self) -> Option<Grid> {
        self.grid
    }

    /// Entries that were listened for and not heard.
    pub fn not_heard(&self) -> Option<&NotHeard> {
        self.not_heard.as_ref()
    }

    /// How often each entry was read, where known.
    pub fn repeats(&self) -> Option<&Array2<f64>> {
        self.repeats.as_ref()
    }

    /// Stated standard deviation of each entry in dB, where there is one.
    pub fn noise_db(&self) -> Option<&Array2<f64>> {
        self.noise_db.as_ref()
    }

    /// When each sensor was read, where known.
    pub fn time_s(&self) -> Option<&[f64]> {
        self.points.time_s()
    }

    /// The usual one of the stated deviations of each band.
    pub(crate) fn usual_noise_db(&self) -> Option<Vec<f64>> {
        let (noise, power) = (self.noise_db.as_ref()?, self.power());
        let usual =
            |(noise, power): (ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>)| {
                let read = noise.iter().zip(power).filter(|(_, power)| !power.is_nan());
                let squares: Vec<f64> = read.map(|(noise, _)| noise * noise).collect();
                (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
            };
        Some(noise.columns().into_iter().zip(power.columns()).map(usual).collect())
    }

    /// The devices whose offsets were taken out of the readings.
    pub fn devices(&self) -> Option<&Devices> {
        self.devices.as_ref()
    }

    /// Linear power, sensors x bands, NaN = missing or not heard; levels are decoded to the middle
    /// of their bin.
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

    /// The greatest power, 0 where there is none.
    pub(crate) fn loudest(&self) -> f64 {
        let greatest = |power: &Array2<f64>| {
            power.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max)
        };
        match &self.values {
            Values::Power(power) => greatest(power),
            Values::Levels { .. } => greatest(&self.power()),
        }
    }

    /// As [`Readings::power`], with the floor where an entry was not heard: the most it can be.
    pub fn power_or_floor(&self) -> Array2<f64> {
        let mut power = self.power();
        if let Some(not_heard) = &self.not_heard {
            let silent = not_heard.entries.indexed_iter().filter(|(_, silent)| **silent);
            for ((sensor, band), _) in silent {
                power[[sensor, band]] = not_heard.limit(sensor, band);
            }
        }
        power
    }

    /// Number of missing entries; those not heard are not missing.
    pub fn gaps(&self) -> usize {
        let silent =
            self.not_heard.as_ref().map_or(0, |n| n.entries.iter().filter(|e| **e).count());
        match &self.values {
            Values::Power(power) => power.iter().filter(|v| v.is_nan()).count() - silent,
            Values::Levels { levels, .. } => levels.iter().filter(|&&l| l == MISSING_LEVEL).count(),
        }
    }

    /// The link in which readings are interpolated: that of the quantiser for levels, ln x where
    /// every power is positive, and ln(x + a) above the noise where some are zero.
    pub fn link(&self) -> Link {
        match &self.values {
            Values::Levels { quantiser, .. } => quantiser.link(),
            Values::Power(power) if power.iter().any(|x| *x == 0.0) => {
                self.frame.scale.link().above_noise(power.iter().copied())
            }
            Values::Power(_) => Link::LOG,
        }
    }

    /// A link with a positive offset, for methods whose model of a power may be zero: that of the
    /// scale, or one so small that it flattens no reading.
    pub fn floored_link(&self) -> Link {
        match &self.values {
            Values::Levels { quantiser, .. } => quantiser.link(),
            Values::Power(power) => {
                let powers = || power.iter().copied();
                let link = self.frame.scale.link();
                let offset =
                    if link.offset() > 0.0 { link.offset() } else { quiet_offset(powers()) };
                Link::new(offset.max(noise_floor(powers()).unwrap_or(0.0)))
            }
        }
    }

    /// The survey area: the grid's, or the rectangle around the sensors.
    pub fn region(&self) -> Region {
        let around = || self.points.region().expect("there are sensors");
        self.grid.map_or_else(around, |grid| grid.region())
    }

    /// The grid of the survey area, or one around the sensors: cells of 1 m, or of a round number
    /// of metres that makes at most 256 of them along the longer side.
    pub fn grid_or_default(&self) -> Result<Grid, InputError> {
        if let Some(grid) = self.grid {
            return Ok(grid);
        }
        Ok(default_grid(self.region())?.at_height(self.height_m()))
    }

    /// The height at which half of the readings or more were taken, in metres.
    pub fn height_m(&self) -> f64 {
        self.points.height_m()
    }

    /// Whether readings were taken at more than one height.
    pub fn has_heights(&self) -> bool {
        self.points.has_heights()
    }

    /// Whether they are for an update, and need not be enough for a map.
    pub fn is_further(&self) -> bool {
        self.further
    }

    /// Whether a map can be made of them.
    pub(crate) fn check_enough(&self) -> Result<(), InputError> {
        check_enough(&self.values)
    }

    /// The same with all heights multiplied, where they do not yet count like metres along the ground.
    pub(crate) fn lifted(&self, factor: f64) -> Self {
        let lift = |site: Site| site.at_height(factor * site.z_m);
        Self {
            points: self.points.moved(lift),
            grid: self.grid.map(|grid| grid.at_height(factor * grid.z_m())),
            lifted: true,
            ..self.clone()
        }
    }

    /// The same with all sensors at one height.
    pub(crate) fn at_height(&self, z_m: f64) -> Self {
        let points = self.points.moved(|site| site.at_height(z_m));
        Self { points, grid: self.grid.map(|grid| grid.at_height(z_m)), ..self.clone() }
    }

    /// The same with every entry multiplied, and without times.
    pub(crate) fn levelled(&self, factor: &Array2<f64>) -> Result<Self, InputError> {
        let values = Values::Power(self.power() * factor);
        let points = self.points.untimed();
        let whole = Self::checked(points.clone(), values, self.frame.scale, self.further)?;
        Ok(Self { values: whole.values, points, ..self.clone() })
    }

    pub(crate) fn is_lifted(&self) -> bool {
        self.lifted
    }

    /// The cells of a grid that the sensors stand in.
    pub fn cells(&self, grid: Grid) -> Result<Vec<Cell>, InputError> {
        self.check_on(grid)?;
        Ok(self.sites().iter().filter_map(|&site| grid.cell_at(site)).collect())
    }

    /// The readings of some of the sensors, by index: for held-out sensors and cross-validation.
    pub fn subset(&self, sensors: &[usize]) -> Result<Self, InputError> {
        self.some(sensors, self.further)
    }

    /// The same for [`Model::update`](crate::Model::update): one sensor is enough, and bands may be
    /// empty.
    pub fn further_subset(&self, sensors: &[usize]) -> Result<Self, InputError> {
        self.some(sensors, true)
    }

    fn some(&self, sensors: &[usize], further: bool) -> Result<Self, InputError> {
        let (points, values) = (self.points.select(sensors), self.values.select(sensors));
        let part = Self::checked(points, values, self.frame.scale, further)?;
        let pick = |entries: &Array2<f64>| entries.select(Axis(0), sensors);
        Ok(Self {
            frame: self.frame.clone(),
            grid: self.grid,
            not_heard: self.not_heard.as_ref().map(|n| NotHeard {
                entries: n.entries.select(Axis(0), sensors),
                floor: n.floor.clone(),
                below: n.below.as_ref().map(|b| sensors.iter().map(|&s| b[s]).collect()),
            }),
            repeats: self.repeats.as_ref().map(pick),
            noise_db: self.noise_db.as_ref().map(pick),
            devices: self.devices.clone(),
            lifted: self.lifted,
            ..part
        })
    }

    /// All sensors' readings of some of the bands.
    pub(crate) fn with_bands(&self, bands: &[usize]) -> Result<Self, InputError> {
        let values = match &self.values {
            Values::Power(power) => Values::Power(power.select(Axis(1), bands)),
            Values::Levels { levels, quantiser } => Values::Levels {
                levels: levels.select(Axis(1), bands),
                quantiser: quantiser.clone(),
            },
        };
        let part = Self::checked(self.points.clone(), values, self.frame.scale, self.further)?;
        let pick = |entries: &Array2<f64>| entries.select(Axis(1), bands);
        Ok(Self {
            frame: self.frame.select(bands, self.bands())?,
            grid: self.grid,
            not_heard: self.not_heard.as_ref().map(|n| NotHeard {
                entries: n.entries.select(Axis(1), bands),
                floor: bands.iter().map(|&band| n.floor[band]).collect(),
                below: n.below.clone(),
            }),
            repeats: self.repeats.as_ref().map(pick),
            noise_db: self.noise_db.as_ref().map(pick),
            devices: self.devices.clone(),
            lifted: self.lifted,
            ..part
        })
    }

    /// The same among the bands of a model: bands are known by their labels, where both have some, and
    /// those that are missing are gaps.
    pub(crate) fn in_bands_of(
        &self,
        labels: &BandLabels,
        bands: usize,
    ) -> Result<Self, InputError> {
        let none = BandLabels::default();
        let to: Vec<usize> = match self.frame.labels == none || *labels == none {
            true if self.bands() != bands => {
                let message = format!("the model has {bands} bands, the update {}", self.bands());
                return Err(InputError::Request(message));
            }
            true => return Ok(self.clone()),
            false => (0..self.bands())
                .map(|band| labels.same(&self.frame.labels, band))
                .collect::<Result<_, _>>()?,
        };
        fn spread<T: Clone>(entries: &Array2<T>, to: &[usize], bands: usize, gap: T) -> Array2<T> {
            let mut wide = Array2::from_elem((entries.nrows(), bands), gap);
            for (column, &band) in entries.columns().into_iter().zip(to) {
                wide.column_mut(band).assign(&column);
            }
            wide
        }
        let values = match &self.values {
            Values::Power(power) => Values::Power(spread(power, &to, bands, f64::NAN)),
            Values::Levels { levels, quantiser } => Values::Levels {
                levels: spread(levels, &to, bands, MISSING_LEVEL),
                quantiser: quantiser.clone(),
            },
        };
        let wide = Self::checked(self.points.clone(), values, self.frame.scale, true)?;
        let not_heard = self.not_heard.as_ref().map(|n| {
            let mut floor = vec![f64::INFINITY; bands];
            to.iter().zip(&n.floor).for_each(|(&band, own)| floor[band] = *own);
            NotHeard {
                entries: spread(&n.entries, &to, bands, false),
                floor,
                below: n.below.clone(),
            }
        });
        Ok(Self {
            frame: Frame { labels: labels.clone(), ..self.frame },
            grid: self.grid,
            not_heard,
            repeats: self.repeats.as_ref().map(|all| spread(all, &to, bands, 1.0)),
            noise_db: self.noise_db.as_ref().map(|all| spread(all, &to, bands, 0.0)),
            devices: self.devices.clone(),
            lifted: self.lifted,
            ..wide
        })
    }

    /// The same sensors and bands with other values and nothing known of their noise.
    pub(crate) fn with_values(&self, values: Values) -> Result<Self, InputError> {
        let points = self.points.untimed();
        let fresh = Self::checked(points, values, self.frame.scale, self.further)?;
        let (frame, devices) = (self.frame.clone(), self.devices.clone());
        Ok(Self { frame, grid: self.grid, devices, lifted: self.lifted, ..fresh })
    }
}

#[cfg(test)]
mod tests;
