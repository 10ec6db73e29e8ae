//! The result of a fit. A model predicts power and spread at any place, draws maps on any grid,
//! lists its emitters, and is written to and read from arrays.

mod archive;
mod emitters;
mod file;
mod gridded;
mod prediction;
mod report;

pub use archive::{Archive, Stored, damaged};
pub use emitters::ModelEmitter;
pub(crate) use emitters::{power_shares, weighted_places};
pub use gridded::{Drawing, DrawnGrid};
pub(crate) use gridded::{Gridded, Room};
pub use prediction::Prediction;
pub use report::{Candidate, Report};

use std::sync::Arc;

use ndarray::{Array2, Array3};

use crate::crs::Crs;
use crate::devices::Devices;
use crate::error::{EstimateError, InputError};
use crate::estimate::{Capability, Change, methods_with};
use crate::frame::Frame;
use crate::grid::Grid;
use crate::labels::BandLabels;
use crate::map::{Factors, RadioMap};
use crate::points::Points;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::scale::Scale;
use crate::site::{Region, Site};

/// The result of a method's fit: it predicts anywhere, and can be written. [`Model::new`] makes a
/// model of it. Only the first three are needed; what is not to be had stays as it is.
///
/// ```
/// use ndarray::Array2;
/// use portolan::model::{Archive, Predictor};
/// use portolan::{EstimateError, Model, Prediction, Progress, Readings, Scale, Site, Values};
///
/// /// The same power everywhere.
/// struct Level(Vec<f64>);
///
/// impl Predictor for Level {
///     fn kind(&self) -> &'static str {
///         "level"
///     }
///
///     fn predict(
///         &self,
///         at: &[Site],
///         bands: &[usize],
///         _progress: &Progress<'_>,
///     ) -> Result<Prediction, EstimateError> {
///         let power = Array2::from_shape_fn((at.len(), bands.len()), |(_, k)| self.0[bands[k]]);
///         Ok(Prediction::of_power(power))
///     }
///
///     fn save(&self, archive: &mut Archive) {
///         archive.put_vector("power", &self.0);
///     }
/// }
///
/// let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0)];
/// let readings = Readings::new(sites, Values::Power(ndarray::array![[1e-7], [3e-7]]), Scale::Absolute)?;
/// let model = Model::new(&readings, Level(vec![2e-7]));
/// assert_eq!(model.predict(&[Site::new(4.0, 4.0)], &Progress::silent())?.power[[0, 0]], 2e-7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Predictor: Send + Sync {
    /// The name under which it is written: the entry of its method says how it is read
    /// ([`Entry::with_kinds`](crate::estimate::Entry::with_kinds)).
    fn kind(&self) -> &'static str;

    /// Power and spread at places, for some bands. Places are finite and bands exist.
    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError>;

    /// The power of `predict` alone, where it costs less.
    fn power(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        Ok(self.predict(at, bands, progress)?.power)
    }

    /// Whether `power` costs less than `predict`.
    fn power_costs_less(&self) -> bool {
        false
    }

    /// SLFs and PSDs on a grid in some bands, where the fit is made of emitters and lives on that
    /// grid.
    fn factors(
        &self,
        _grid: Grid,
        _bands: &[usize],
        _progress: &Progress<'_>,
    ) -> Result<Option<FactoredDrawing>, EstimateError> {
        Ok(None)
    }

    /// Whether `factors` gives some on a grid.
    fn is_factored_on(&self, _grid: Grid) -> bool {
        false
    }

    /// Whether places at several heights are told apart.
    fn sees_heights(&self) -> bool {
        true
    }

    /// The same at points with moments of their own; those without one are asked at the latest.
    fn predict_points(
        &self,
        at: &Points,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.predict(at.sites(), bands, progress)
    }

    /// What it predicts at a moment; None where it does not tell moments apart.
    fn at_time(&self, _time_s: f64) -> Option<Box<dyn Predictor>> {
        None
    }

    /// Standard deviation of a reading's own noise in dB, per band, where it is known.
    fn noise_db(&self) -> Option<Vec<f64>> {
        None
    }

    /// Readings of every sensor as those at other places predict them (sensors of the readings x
    /// bands; NaN where a sensor has no reading), where that is to be had without fitting again.
    fn leave_one_out(&self, _sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        Ok(None)
    }

    /// Readings of some sensors (those x bands) as the others predict them with the law of all, where
    /// that is to be had without fitting again.
    fn predict_without(&self, _left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        Ok(None)
    }

    /// What it predicts with further readings of the same bands and the same law; None where the method
    /// must be fitted again.
    fn update(&self, _readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        Ok(None)
    }

    /// The emitters that its readings show now, where it finds them again after an update; None where
    /// they stay those of the fit.
    fn emitters(&self) -> Option<Vec<ModelEmitter>> {
        None
    }

    /// What it predicts from other readings of the same bands under the same law; None where the method
    /// must be fitted again.
    fn relearn(&self, _readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        Ok(None)
    }

    /// What further readings say has changed in every band, at a rate of false discoveries; None where
    /// it knows no history to judge by.
    fn changes(
        &self,
        _readings: &Readings,
        _rate: f64,
        _progress: &Progress<'_>,
    ) -> Result<Option<Vec<Change>>, EstimateError> {
        Ok(None)
    }

    /// Writes what it takes to predict the same to the last bit.
    fn save(&self, archive: &mut Archive);
}

/// Readings as the other sensors predict them, sensors x bands.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Linear power; NaN where a sensor has no reading.
    pub power: Array2<f64>,
    /// Standard deviation of a reading in dB, where it is known.
    pub reading_spread_db: Option<Array2<f64>>,
}

impl LeftOut {
    /// From the spread of the field, and the noise of every band.
    pub(crate) fn with_noise(
        power: Array2<f64>,
        mut spread_db: Array2<f64>,
        noise_db: &[f64],
    ) -> Self {
        for (mut column, noise) in spread_db.columns_mut().into_iter().zip(noise_db) {
            column.mapv_inplace(|s| s.hypot(*noise));
        }
        Self { power, reading_spread_db: Some(spread_db) }
    }
}

/// What an update says where the method does not find emitters again.
const EMITTERS_STAY: &str =
    "the update leaves the emitters as they were: fit all readings again to renew them";

/// SLFs and PSDs on a grid, and the spread of their product.
#[derive(Clone, Debug)]
pub struct FactoredDrawing {
    /// SLFs and PSDs.
    pub factors: Factors,
    /// Standard deviation in dB, rows x cols x bands, where it is known.
    pub spread_db: Option<Array3<f64>>,
}

/// The result of a fit. [`Method::fit`](crate::estimate::Method::fit) makes it.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Kriging, Method};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5)];
/// let power = array![[1e-7], [2e-8], [5e-9]];
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
/// let prediction = model.predict(&[Site::new(2.5, 2.5)], &Progress::silent())?;
/// assert!(prediction.power[[0, 0]] > 5e-9 && prediction.power[[0, 0]] < 1e-7);
/// assert!(prediction.spread_db.unwrap()[[0, 0]] > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Model {
    frame: Frame,
    bands: usize,
    grid: Option<Grid>,
    region: Region,
    /// What the readings were taken at.
    points: Points,
    loudest: f64,
    report: Report,
    emitters: Vec<ModelEmitter>,
    devices: Option<Devices>,
    /// Noise that readings of each band were said to have, beside what the predictor knows, in dB.
    stated_db: Option<Vec<f64>>,
    predictor: Arc<dyn Predictor>,
}

impl Model {
    /// A model of what a method found in some readings.
    pub fn new(readings: &Readings, predictor: impl Predictor + 'static) -> Self {
        Self::shared(readings, Arc::new(predictor))
    }

    fn shared(readings: &Readings, predictor: Arc<dyn Predictor>) -> Self {
        let mut report = Report::default();
        if readings.has_heights() && !predictor.sees_heights() {
            let heights = readings.sites().iter().map(|site| site.z_m);
            let (low, high) =
                heights.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), z| (l.min(z), h.max(z)));
            report.notes.push(format!(
                "readings from heights of {low} to {high} m are taken as if they were at one; {} \
                 tell heights apart",
                methods_with(Capability::Heights).join(", ")
            ));
        }
        Self {
            frame: readings.frame().clone(),
            bands: readings.bands(),
            grid: readings.grid(),
            region: readings.region(),
            points: readings.points().clone(),
            loudest: readings.loudest(),
            report,
            emitters: Vec::new(),
            devices: readings.devices().cloned(),
            stated_db: None,
            predictor,
        }
    }

    /// Power and spread at places, in all bands.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let at = [Site::new(1.0, 1.0), Site::new(8.0, 8.0)];
    /// let found = model.predict(&at, &Progress::silent())?;
    /// assert_eq!(found.power.dim(), (2, 2));
    /// assert!(found.power[[0, 0]] > found.power[[1, 0]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predict(
        &self,
        at: &[Site],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let all: Vec<usize> = (0..self.bands).collect();
        self.predict_bands(at, &all, progress)
    }

    /// Power and spread at places, in some bands.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let at = [Site::new(1.0, 1.0)];
    /// let second = model.predict_bands(&at, &[1], &Progress::silent())?;
    /// assert_eq!(second.power[[0, 0]], model.predict(&at, &Progress::silent())?.power[[0, 1]]);
    /// assert!(model.predict_bands(&at, &[2], &Progress::silent()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predict_bands(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.check(at, bands)?;
        self.finished(self.predictor.predict(at, bands, progress)?, bands)
    }

    /// Power and spread at points with moments of their own, in some bands. Points without a moment
    /// are asked at that of the latest reading.
    pub fn predict_points(
        &self,
        points: &Points,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.check(points.sites(), bands)?;
        self.finished(self.predictor.predict_points(points, bands, progress)?, bands)
    }

    /// A prediction checked, with the noise that was stated.
    fn finished(
        &self,
        mut prediction: Prediction,
        bands: &[usize],
    ) -> Result<Prediction, EstimateError> {
        check_finite(&prediction.power)?;
        if let (Some(stated), Some(spread)) = (&self.stated_db, &mut prediction.reading_spread_db) {
            for (mut column, &band) in spread.columns_mut().into_iter().zip(bands) {
                column.mapv_inplace(|own| own.hypot(stated[band]));
            }
        }
        Ok(prediction)
    }

    /// Whether [`Model::power_bands`] costs less than [`Model::predict_bands`].
    pub fn power_costs_less(&self) -> bool {
        self.predictor.power_costs_less()
    }

    /// The power of [`Model::predict_bands`] alone, places x bands.
    pub fn power_bands(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        self.check(at, bands)?;
        let power = self.predictor.power(at, bands, progress)?;
        check_finite(&power)?;
        Ok(power)
    }

    /// Power in every cell of a grid, cells x bands, without its spread.
    pub(crate) fn power_on(
        &self,
        grid: Grid,
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        let all: Vec<usize> = (0..self.bands).collect();
        self.power_bands(&grid.sites(), &all, progress)
    }

    fn check(&self, at: &[Site], bands: &[usize]) -> Result<(), InputError> {
        if let Some(place) = at.iter().position(|site| !site.is_finite()) {
            let Site { x_m, y_m, z_m } = at[place];
            return Err(InputError::Request(format!(
                "place {place} is at x {x_m}, y {y_m}, z {z_m}: places must be finite"
            )));
        }
        if let Some(band) = bands.iter().find(|band| **band >= self.bands) {
            let bands = self.bands;
            let message = format!("band {band}: the model has bands 0 to {}", bands - 1);
            return Err(InputError::Request(message));
        }
        Ok(())
    }

    /// The map on a grid, factored where the model is made of emitters.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Cell, Grid, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let grid = Grid::new(10, 10, 1.0)?;
    /// let map = model.map(grid, &Progress::silent())?;
    /// let there = model.predict(&[grid.site(Cell::new(4, 2))], &Progress::silent())?;
    /// assert_eq!(map.band(0)[[4, 2]], there.power[[0, 0]]);
    /// assert!(map.spread_db().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map(&self, grid: Grid, progress: &Progress<'_>) -> Result<RadioMap, EstimateError> {
        let all: Vec<usize> = (0..self.bands).collect();
        self.map_bands(grid, &all, progress)
    }

    /// The map of some bands, in that order: [`RadioMap::select_bands`] of the whole without drawing
    /// the others.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Grid, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let (grid, silent) = (Grid::new(10, 10, 1.0)?, Progress::silent());
    /// let second = model.map_bands(grid, &[1], &silent)?;
    /// assert_eq!(second, model.map(grid, &silent)?.select_bands(&[1])?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_bands(
        &self,
        grid: Grid,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<RadioMap, EstimateError> {
        self.check(&[], bands)?;
        let (map, spread) = match self.predictor.factors(grid, bands, progress)? {
            Some(drawing) => {
                (RadioMap::factored(grid, drawing.factors, self.frame.scale)?, drawing.spread_db)
            }
            None => {
                let found = self.predict_bands(&grid.sites(), bands, progress)?;
                let shape = (grid.rows(), grid.cols(), bands.len());
                let cube = |values: Array2<f64>| {
                    values.into_shape_with_order(shape).expect("every cell was asked for")
                };
                let map = RadioMap::dense(grid, cube(found.power), self.frame.scale)?;
                (map, found.spread_db.map(cube))
            }
        };
        let noise = self.noise_db().filter(|_| spread.is_some());
        let noise = noise.map(|all| bands.iter().map(|&band| all[band]).collect());
        let labels = self.frame.select(bands, self.bands)?.labels;
        let map = map.with_labels(labels)?.with_spread_db(spread)?;
        let place = |band: usize| bands.iter().position(|chosen| *chosen == band);
        let own: Option<Vec<usize>> = self.emitters.iter().map(ModelEmitter::band).collect();
        // Factored maps keep every emitter, as their factors do.
        let shown = |r: usize| match &own {
            Some(own) if map.factors().is_none() => place(own[r]).is_some(),
            _ => true,
        };
        let kept: Vec<usize> = (0..self.emitters.len()).filter(|r| shown(*r)).collect();
        let emitter_bands: Option<Vec<usize>> =
            own.and_then(|own| kept.iter().map(|&r| place(own[r])).collect());
        let emitters = || kept.iter().map(|&r| &self.emitters[r]);
        Ok(map
            .with_crs(self.frame.crs)
            .with_noise_db(noise)?
            .with_emitters(emitters().map(|e| e.at).collect())
            .with_emitter_se_m(emitters().filter_map(|e| e.at_se_m).collect())?
            .with_emitter_bands(emitter_bands.unwrap_or_default())?
            .with_exponents(emitters().filter_map(|e| e.exponent).collect())?)
    }

    /// Whether the map on a grid is kept as factors.
    pub fn is_factored_on(&self, grid: Grid) -> bool {
        self.predictor.is_factored_on(grid)
    }

    /// The map on the grid that the model was told, or on one around its sensors.
    pub fn default_map(&self, progress: &Progress<'_>) -> Result<RadioMap, EstimateError> {
        self.map(self.grid_or_default()?, progress)
    }

    /// The grid that the model was told, or one around its sensors.
    pub fn grid_or_default(&self) -> Result<Grid, InputError> {
        match self.grid {
            Some(grid) => Ok(grid),
            None => Ok(crate::grid::default_grid(self.region)?.at_height(self.height_m())),
        }
    }

    /// The height at which half of the readings or more were taken: that of maps, unless their grid
    /// has another.
    pub fn height_m(&self) -> f64 {
        self.points.height_m()
    }

    /// Whether it tells places at several heights apart.
    pub fn sees_heights(&self) -> bool {
        self.predictor.sees_heights()
    }

    /// Whether its readings were taken at several heights.
    pub fn has_heights(&self) -> bool {
        self.points.has_heights()
    }

    /// What its numbers mean.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// What powers are measured in.
    pub fn scale(&self) -> Scale {
        self.frame.scale
    }

    /// Number of bands.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Where on Earth the sites lie, where known.
    pub fn crs(&self) -> Option<Crs> {
        self.frame.crs
    }

    /// Frequencies and names of the bands.
    pub fn labels(&self) -> &BandLabels {
        &self.frame.labels
    }

    /// The grid that the model was told, where it was told one.
    pub fn grid(&self) -> Option<Grid> {
        self.grid
    }

    /// The survey area.
    pub fn region(&self) -> Region {
        self.region
    }

    /// Where and when its readings were taken.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Where the sensors stood.
    pub fn sites(&self) -> &[Site] {
        self.points.sites()
    }

    /// The greatest power that was read.
    pub fn loudest(&self) -> f64 {
        self.loudest
    }

    /// The report of the fit.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The emitters that the fit told apart; empty where it told none.
    ///
    /// ```
    /// use portolan::estimate::build;
    /// use portolan::{Context, Emitters, Grid, Progress};
    /// # use portolan::sense::{SensorLayout, Sensing, sense};
    /// # use portolan::simulate::{Scenario, simulate};
    /// let grid = Grid::new(16, 16, 1.0)?;
    /// let truth = simulate(&Scenario { bands: 8, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
    /// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 0))?;
    /// let context = Context { emitters: Emitters::Count(2), ..Context::default() };
    /// let model = build("field", [])?.fit(&readings, &context, &Progress::silent())?;
    /// let shares: f64 = model.emitters().iter().map(|emitter| emitter.power_share).sum();
    /// assert_eq!(model.emitters().len(), 2);
    /// assert!((shares - 1.0).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn emitters(&self) -> &[ModelEmitter] {
        &self.emitters
    }

    /// The devices whose offsets were taken out of the readings: predictions are for the average
    /// reading of the survey ([`Prediction::read_by`]).
    pub fn devices(&self) -> Option<&Devices> {
        self.devices.as_ref()
    }

    /// Whether predictions have a spread.
    pub fn gives_spread(&self) -> bool {
        self.noise_db().is_some()
    }

    /// Standard deviation of a reading's own noise in dB, per band, where it is known.
    pub fn noise_db(&self) -> Option<Vec<f64>> {
        let own = self.predictor.noise_db()?;
        Some(match &self.stated_db {
            Some(stated) => own.iter().zip(stated).map(|(own, more)| own.hypot(*more)).collect(),
            None => own,
        })
    }

    /// Power at every sensor as the others predict it, where the method can tell without fitting
    /// again: sensors x bands, NaN where a sensor has no reading.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let others = model.leave_one_out()?.expect("kriging can tell");
    /// assert_eq!(others.dim(), (4, 2));
    /// // What the others say about a sensor is not what it read.
    /// assert!((others[[0, 0]] / readings.power()[[0, 0]] - 1.0).abs() > 0.01);
    /// assert!(others[[3, 1]].is_nan());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn leave_one_out(&self) -> Result<Option<Array2<f64>>, EstimateError> {
        Ok(self.left_out()?.map(|left| left.power))
    }

    /// The same with the spread of readings, where the method knows it.
    pub(crate) fn left_out(&self) -> Result<Option<LeftOut>, EstimateError> {
        self.predictor.leave_one_out(self.sites())
    }

    /// Adds readings of the same bands. The law is not refitted: the model then predicts what all
    /// readings say under it, whichever came first.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7], [2e-8], [5e-9], [4e-9]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let mut model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let at = [Site::new(5.0, 5.0)];
    /// let before = model.predict(&at, &Progress::silent())?;
    /// let new = Readings::further(at.to_vec(), Values::Power(array![[3e-7]]), Scale::Absolute)?;
    /// model.update(&new)?;
    /// let after = model.predict(&at, &Progress::silent())?;
    /// assert!(after.power[[0, 0]] > before.power[[0, 0]]);
    /// assert!(after.spread_db.unwrap()[[0, 0]] < before.spread_db.unwrap()[[0, 0]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(&mut self, readings: &Readings) -> Result<(), EstimateError> {
        *self = self.updated(readings)?;
        Ok(())
    }

    /// The model that [`Model::update`] makes of this one.
    pub fn updated(&self, readings: &Readings) -> Result<Self, EstimateError> {
        self.check_update(readings)?;
        let readings = &readings.in_bands_of(&self.frame.labels, self.bands)?;
        let predictor = self.predictor.update(readings)?.ok_or_else(|| {
            let kind = self.predictor.kind();
            let able = "kriging, field with independent bands, nearest, idw, linear and \
                        thin_plate take further readings";
            InputError::Request(format!(
                "a model of {kind} cannot be updated: fit all readings again ({able})"
            ))
        })?;
        let Region { low, high } = self.region;
        let all: Vec<Site> = readings.sites().iter().copied().chain([low, high]).collect();
        let mut report = self.report.clone();
        let silent = readings.not_heard().map_or(0, |n| n.entries.iter().filter(|e| **e).count());
        if silent > 0 {
            report.notes.push(format!(
                "{silent} entries of the update were not heard and are left out: fit all readings \
                 again to use them"
            ));
        }
        if self.sees_times() && readings.points().time_span().is_none() {
            report.notes.push(
                "the update has no times: its readings take the mean level of their band".into(),
            );
        }
        let emitters = predictor.emitters().unwrap_or_else(|| {
            if !self.emitters.is_empty() && !report.notes.iter().any(|note| note == EMITTERS_STAY) {
                report.notes.push(EMITTERS_STAY.into());
            }
            self.emitters.clone()
        });
        Ok(Self {
            frame: self.frame.clone(),
            bands: self.bands,
            grid: self.grid,
            region: Region::around(&all).expect("there are places"),
            points: self.points.followed_by(readings.points()),
            loudest: self.loudest.max(readings.loudest()),
            report,
            emitters,
            devices: None,
            stated_db: self.stated_db.clone(),
            predictor: predictor.into(),
        })
    }

    /// The first and the last moment of its readings, in seconds; None where they have no times.
    pub fn time_span(&self) -> Option<(f64, f64)> {
        self.points.time_span()
    }

    /// When each of its readings was taken, where known; NaN for those that have no time.
    pub fn time_s(&self) -> Option<&[f64]> {
        self.points.time_s()
    }

    /// Whether it predicts other maps at other moments.
    pub fn sees_times(&self) -> bool {
        self.predictor.at_time(0.0).is_some()
    }

    /// The model at a moment, in seconds of its readings' clock: it predicts, draws and counts as any
    /// other. Without this a model is of its latest reading. Where readings were not seen to change,
    /// all moments are alike.
    ///
    /// ```
    /// # use ndarray::Array2;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// // Sixteen places, read in each of five months; every month 3 dB fainter.
    /// let sites: Vec<Site> = (0..80).map(|i| Site::new(f64::from(i % 4), f64::from(i / 4 % 4))).collect();
    /// let month = |i: usize| (i / 16) as f64;
    /// let power = Array2::from_shape_fn((80, 2), |(i, k)| {
    ///     let noise = ((i * 37 + k * 11) % 17) as f64 / 17.0;
    ///     10f64.powf(-6.0 + 0.1 * ((i % 16) as f64 - 3.0 * month(i) + noise))
    /// });
    /// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?
    ///     .with_time_s(Some((0..80).map(|i| 2.6e6 * month(i)).collect()))?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// assert_eq!(model.time_span(), Some((0.0, 4.0 * 2.6e6)));
    /// let at = [Site::new(2.0, 2.0)];
    /// let level = |time_s: f64| -> Result<f64, portolan::EstimateError> {
    ///     let power = model.at_time(time_s)?.predict(&at, &Progress::silent())?.power[[0, 0]];
    ///     Ok(10.0 * power.log10())
    /// };
    /// assert!((level(2.6e6)? - level(4.0 * 2.6e6)? - 9.0).abs() < 1.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at_time(&self, time_s: f64) -> Result<Self, EstimateError> {
        let wrong = |message: String| Err(InputError::Request(message).into());
        if !time_s.is_finite() {
            return wrong(format!("a moment of {time_s} s: moments must be finite"));
        }
        if self.time_span().is_none() {
            return wrong(
                "the model's readings have no times: it knows nothing of other moments".into(),
            );
        }
        let moment = self.predictor.at_time(time_s).map(Arc::from);
        Ok(Self {
            frame: self.frame.clone(),
            points: self.points.clone(),
            report: self.report.clone(),
            emitters: self.emitters.clone(),
            devices: self.devices.clone(),
            stated_db: self.stated_db.clone(),
            predictor: moment.unwrap_or_else(|| self.predictor.clone()),
            ..*self
        })
    }

    /// What new readings say has changed since the model's own: level, shape, gone or new, for every
    /// band. Scores are calibrated on how well each of the model's surveys is predicted from the
    /// others; of the bands called changed a share of `rate` is expected to be so by chance.
    pub fn changes(
        &self,
        readings: &Readings,
        rate: f64,
        progress: &Progress<'_>,
    ) -> Result<Vec<Change>, EstimateError> {
        if !(rate > 0.0 && rate < 1.0) {
            let message = format!("a rate of {rate}: it must lie between 0 and 1");
            return Err(InputError::Request(message).into());
        }
        self.check_update(readings)?;
        let none = BandLabels::default();
        let labelled = self.frame.labels != none && *readings.labels() != none;
        let known =
            |band: &usize| !labelled || self.frame.labels.same(readings.labels(), *band).is_ok();
        let (old, new): (Vec<usize>, Vec<usize>) = (0..readings.bands()).partition(known);
        let power = readings.power();
        let heard = |band: usize| power.column(band).iter().filter(|p| !p.is_nan()).count();
        let fresh = new.into_iter().map(|band| Change::new_band(band, heard(band)));
        if old.is_empty() {
            return Ok(fresh.collect());
        }
        let some = readings.with_bands(&old)?.in_bands_of(&self.frame.labels, self.bands)?;
        let found = self.predictor.changes(&some, rate, progress)?;
        let found = found.map(|found| found.into_iter().chain(fresh).collect());
        Ok(found.ok_or_else(|| {
            InputError::Request(
                "changes are judged by a history: fit kriging, field or auto to readings of several \
                 surveys with their times"
                    .into(),
            )
        })?)
    }

    fn check_update(&self, readings: &Readings) -> Result<(), InputError> {
        let wrong = |message: String| Err(InputError::Request(message));
        if readings.scale() != self.frame.scale {
            return wrong("the update has another unit than the model".into());
        }
        if readings.crs().is_some() && readings.crs() != self.frame.crs {
            return wrong("the update has another CRS than the model".into());
        }
        if self.devices.is_some() || readings.devices().is_some() {
            return wrong(
                "levels of devices are found from all readings: fit them again together".into(),
            );
        }
        let height = self.sites()[0].z_m;
        if !self.has_heights() && readings.sites().iter().any(|site| site.z_m != height) {
            return wrong(format!(
                "the model's readings were taken at a height of {height} m, those of the update at \
                 others: fit them again together"
            ));
        }
        let ground = |site: &Site| site.z_m == 0.0;
        if !self.sites().iter().any(ground) && readings.sites().iter().all(ground) {
            return wrong(
                "the model's readings have heights, those of the update have none".into(),
            );
        }
        Ok(())
    }

    /// What predicts.
    pub(crate) fn into_predictor(self) -> Arc<dyn Predictor> {
        self.predictor
    }

    /// A model of lifted readings as one of the readings themselves.
    pub(crate) fn lowered(
        self,
        readings: &Readings,
        lift: impl FnOnce(Arc<dyn Predictor>) -> Arc<dyn Predictor>,
    ) -> Self {
        let mut emitters = self.emitters;
        let height = readings.height_m();
        for emitter in &mut emitters {
            emitter.at = emitter.at.at_height(height);
            emitter.places.iter_mut().for_each(|(_, at)| *at = at.at_height(height));
        }
        let (grid, region) = (readings.grid(), readings.region());
        let (points, predictor) = (readings.points().clone(), lift(self.predictor));
        Self { grid, region, points, emitters, predictor, ..self }
    }

    /// The same model with another predictor made of its own.
    pub(crate) fn map_predictor(
        self,
        change: impl FnOnce(Arc<dyn Predictor>) -> Arc<dyn Predictor>,
    ) -> Self {
        Self { predictor: change(self.predictor), ..self }
    }

    /// A model of levelled readings as one of the readings themselves.
    pub(crate) fn in_time(
        self,
        readings: &Readings,
        wrap: impl FnOnce(Arc<dyn Predictor>) -> Arc<dyn Predictor>,
    ) -> Self {
        let points = readings.points().clone();
        Self { points, loudest: readings.loudest(), predictor: wrap(self.predictor), ..self }
    }

    pub(crate) fn predictor(&self) -> &dyn Predictor {
        self.predictor.as_ref()
    }

    /// The same model with the name of the method that was asked for in its report.
    pub fn named(mut self, method: &str) -> Self {
        self.report.method = method.to_string();
        self
    }

    /// The report of the fit, for a method to extend.
    pub fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    pub(crate) fn with_report(self, report: Report) -> Self {
        Self { report, ..self }
    }

    /// Says that readings have the noise that is stated of these, beside what the predictor knows.
    pub(crate) fn with_stated_noise(self, readings: &Readings) -> Self {
        Self { stated_db: readings.usual_noise_db(), ..self }
    }

    pub(crate) fn with_emitters(self, emitters: Vec<ModelEmitter>) -> Self {
        Self { emitters, ..self }
    }

    pub(crate) fn with_grid(self, grid: Option<Grid>) -> Self {
        Self { grid, ..self }
    }
}

fn check_finite(power: &Array2<f64>) -> Result<(), EstimateError> {
    match power.iter().all(|x| x.is_finite()) {
        true => Ok(()),
        false => Err(EstimateError::Numerical(
            "the prediction overflowed: the readings span too wide a range for this method".into(),
        )),
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("kind", &self.predictor.kind())
            .field("bands", &self.bands)
            .field("sensors", &self.points.len())
            .finish_non_exhaustive()
    }
}
