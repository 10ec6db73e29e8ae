//! What may be known beside the values: labels, a grid, a floor, repeats, noise, time, devices.

use ndarray::Array2;

use super::{NotHeard, Readings, Values};
use crate::crs::Crs;
use crate::devices::Devices;
use crate::error::InputError;
use crate::grid::Grid;
use crate::labels::BandLabels;
use crate::link::DB_PER_LN;
use crate::site::Site;

/// A share of the heard readings above which a floor cannot lie.
const MOST_BELOW_FLOOR: f64 = 0.05;

impl Readings {
    /// Attaches frequencies and names of the bands.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{BandLabels, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, 5e-7], [8e-8, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let labels = BandLabels::from_frequencies(vec![2.412e9, 2.437e9])?;
    /// let readings = readings.with_labels(labels)?;
    /// assert_eq!(readings.labels().label(1), "2437MHz");
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_labels(mut self, labels: BandLabels) -> Result<Self, InputError> {
        self.frame = self.frame.labelled(&labels, self.bands())?;
        Ok(self)
    }

    /// Says whose offsets were taken out of the readings.
    pub fn with_devices(self, devices: Option<Devices>) -> Self {
        Self { devices, ..self }
    }

    /// Says where on Earth the sites lie.
    pub fn with_crs(mut self, crs: Option<Crs>) -> Self {
        self.frame.crs = crs;
        self
    }

    /// Attaches the grid of the survey area; sensors need not stand on its cells' centres.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{Cell, Grid, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, 5e-7], [8e-8, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let grid = Grid::new(8, 4, 0.5)?;
    /// let readings = readings.with_grid(Some(grid))?;
    /// assert_eq!(readings.cells(grid)?[1], Cell::new(7, 3));
    /// // A sensor outside of it is an error.
    /// assert!(readings.with_grid(Some(Grid::new(2, 2, 0.5)?)).is_err());
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_grid(mut self, grid: Option<Grid>) -> Result<Self, InputError> {
        if let Some(grid) = grid {
            self.check_on(grid)?;
        }
        // Cells without a height are at that of the readings.
        let height = self.height_m();
        self.grid = grid.map(|grid| if grid.z_m() == 0.0 { grid.at_height(height) } else { grid });
        Ok(self)
    }

    /// Marks entries that were listened for and not heard; `floor` is the power below which a
    /// band is not heard, for each band. Marked entries must be gaps among the values.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, 5e-7], [8e-8, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// // The second sensor listened to the second band and heard nothing above -65 dBm.
    /// let silent = array![[false, false], [false, true]];
    /// let readings = readings.with_not_heard(silent, vec![1e-8, 10f64.powf(-6.5)])?;
    /// assert_eq!(readings.gaps(), 0);
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_not_heard(
        mut self,
        entries: Array2<bool>,
        floor: Vec<f64>,
    ) -> Result<Self, InputError> {
        let (sensors, bands) = self.values.dim();
        if entries.dim() != (sensors, bands) || floor.len() != bands {
            let found = entries.shape().to_vec();
            let expected = vec![sensors, bands];
            return Err(InputError::Shape { what: "not_heard", found, expected });
        }
        let Values::Power(power) = &self.values else {
            return Err(InputError::Request("levels cannot be marked as not heard".into()));
        };
        for (band, &floor) in floor.iter().enumerate() {
            if !(floor.is_finite() && floor > 0.0) {
                return Err(InputError::Request(format!(
                    "the floor of band {band} is a power of {floor}: it must be positive"
                )));
            }
            let heard = power.column(band).iter().filter(|x| !x.is_nan()).count();
            let above = power.column(band).iter().filter(|x| **x < floor).count();
            if above as f64 > MOST_BELOW_FLOOR * heard as f64 {
                let floor = DB_PER_LN * floor.ln();
                return Err(InputError::Floor { band, floor, above, heard });
            }
        }
        let wrong = |(at, silent): (_, &bool)| (*silent && !power[at].is_nan()).then_some(at);
        if let Some((sensor, band)) = entries.indexed_iter().find_map(wrong) {
            return Err(InputError::Request(format!(
                "sensor {sensor}, band {band} has a reading and is marked as not heard"
            )));
        }
        self.not_heard = Some(NotHeard { entries, floor, below: None });
        Ok(self)
    }

    /// Says that every sensor reported its strongest band alone, as phones report the cell that serves
    /// them: its other bands were weaker than that.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, f64::NAN], [f64::NAN, 8e-8]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let readings = readings.with_strongest_only()?;
    /// let weaker = readings.not_heard().unwrap();
    /// assert_eq!((weaker.entries[[0, 1]], weaker.limit(0, 1)), (true, 1e-7));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_strongest_only(self) -> Result<Self, InputError> {
        let power = self.power();
        let strongest = |row: ndarray::ArrayView1<'_, f64>| {
            row.iter().copied().filter(|x| !x.is_nan()).fold(0.0, f64::max)
        };
        let below: Vec<f64> = power.rows().into_iter().map(strongest).collect();
        // A row without a reading says nothing of any band.
        let weaker = |(at, _): (usize, usize)| below[at] > 0.0;
        let entries = Array2::from_shape_fn(power.dim(), |at| weaker(at) && power[at].is_nan());
        self.with_weaker(entries, below)
    }

    /// Marks entries that were weaker than a power, one for every sensor that has such entries.
    pub fn with_weaker(self, entries: Array2<bool>, below: Vec<f64>) -> Result<Self, InputError> {
        if below.len() != self.sensors() {
            let (found, expected) = (vec![below.len()], vec![self.sensors()]);
            return Err(InputError::Shape { what: "below", found, expected });
        }
        let marked = |sensor: usize| {
            entries.nrows() > sensor && entries.row(sensor).iter().any(|entry| *entry)
        };
        let wrong = |(sensor, b): (usize, &f64)| marked(sensor) && !(b.is_finite() && *b > 0.0);
        if let Some(sensor) = below.iter().enumerate().position(wrong) {
            let (value, expected) = (below[sensor], "a positive power");
            return Err(InputError::Entry { what: "limit", sensor, band: 0, value, expected });
        }
        let power = self.power();
        let faintest = |column: ndarray::ArrayView1<'_, f64>| {
            column.iter().copied().filter(|x| !x.is_nan()).fold(f64::INFINITY, f64::min)
        };
        let floor = power.columns().into_iter().map(faintest).collect();
        let mut marked = self.with_not_heard(entries, floor)?;
        if let Some(not_heard) = &mut marked.not_heard {
            not_heard.below = Some(below);
        }
        Ok(marked)
    }

    /// Says how often each entry was read (sensors x bands, 1 or more where there is a reading).
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, 5e-7], [8e-8, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let readings = readings.with_repeats(Some(array![[12.0, 9.0], [3.0, 0.0]]))?;
    /// assert_eq!(readings.repeats().map(|n| n[[0, 1]]), Some(9.0));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_repeats(mut self, repeats: Option<Array2<f64>>) -> Result<Self, InputError> {
        self.check_entries("number of readings", repeats.as_ref(), 1.0, "1 or more")?;
        self.repeats = repeats;
        Ok(self)
    }

    /// States the standard deviation of each entry in dB (sensors x bands, 0 or more).
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, 5e-7], [8e-8, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// assert!(readings.clone().with_noise_db(Some(array![[-1.0, 2.0], [1.0, 2.0]])).is_err());
    /// let readings = readings.with_noise_db(Some(array![[1.0, 2.0], [1.0, 2.0]]))?;
    /// assert_eq!(readings.noise_db().map(|sd| sd[[1, 0]]), Some(1.0));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_noise_db(mut self, noise_db: Option<Array2<f64>>) -> Result<Self, InputError> {
        self.check_entries("noise", noise_db.as_ref(), 0.0, "0 dB or more")?;
        self.noise_db = noise_db;
        Ok(self)
    }

    /// Says when each sensor was read, in seconds of one clock.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::{Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
    /// # let power = array![[1e-7, 5e-7], [8e-8, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let readings = readings.with_time_s(Some(vec![0.0, 61.5]))?;
    /// assert_eq!(readings.subset(&[1, 0])?.time_s(), Some(&[61.5, 0.0][..]));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn with_time_s(mut self, time_s: Option<Vec<f64>>) -> Result<Self, InputError> {
        self.points = self.points.with_time_s(time_s)?;
        Ok(self)
    }

    fn check_entries(
        &self,
        what: &'static str,
        entries: Option<&Array2<f64>>,
        least: f64,
        expected: &'static str,
    ) -> Result<(), InputError> {
        let Some(entries) = entries else { return Ok(()) };
        if entries.dim() != self.values.dim() {
            let (sensors, bands) = self.values.dim();
            let found = entries.shape().to_vec();
            return Err(InputError::Shape { what, found, expected: vec![sensors, bands] });
        }
        let power = self.power();
        for ((sensor, band), &value) in entries.indexed_iter() {
            let there = !power[[sensor, band]].is_nan();
            if there && !(value >= least && value.is_finite()) {
                return Err(InputError::Entry { what, sensor, band, value, expected });
            }
        }
        Ok(())
    }

    pub(super) fn check_on(&self, grid: Grid) -> Result<(), InputError> {
        match self.sites().iter().position(|&site| grid.cell_at(site).is_none()) {
            None => Ok(()),
            Some(sensor) => {
                let Site { x_m, y_m, .. } = self.sites()[sensor];
                let (rows, cols) = (grid.rows(), grid.cols());
                Err(InputError::OffGrid { sensor, x_m, y_m, rows, cols })
            }
        }
    }
}
