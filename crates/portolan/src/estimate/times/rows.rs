//! Readings by place and session, in logarithms of power.

use ndarray::{Array2, Axis};

use super::sessions::Sessions;
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::along_curve;
use crate::link::DB_PER_LN;
use crate::model::{Archive, damaged};
use crate::readings::Readings;
use crate::site::Site;

/// The rows of readings, in their order.
#[derive(Clone)]
pub(super) struct Rows {
    pub sites: Vec<Site>,
    pub time_s: Vec<f64>,
    /// Rows x bands, ln power; NaN = gap.
    pub values: Array2<f64>,
    /// How often each entry was read, and its stated deviation in dB.
    pub repeats: Option<Array2<f64>>,
    pub noise_db: Option<Array2<f64>>,
    /// The place of each row, among the places.
    pub place: Vec<usize>,
    /// In an order of their own.
    pub places: Vec<Site>,
    pub session: Vec<Option<usize>>,
    pub sessions: Sessions,
}

impl Rows {
    pub fn of(readings: &Readings, time_s: &[f64]) -> Self {
        let (repeats, noise) = (readings.repeats().cloned(), readings.noise_db().cloned());
        let values = readings.power().mapv(f64::ln);
        Self::new(readings.sites().to_vec(), time_s.to_vec(), values, repeats, noise)
    }

    /// These and further rows; those without a time have none.
    pub fn with(&self, readings: &Readings) -> Self {
        let unknown = vec![f64::NAN; readings.sensors()];
        let new = Self::of(readings, readings.time_s().unwrap_or(&unknown));
        let both = |own: &Array2<f64>, new: &Array2<f64>| {
            ndarray::concatenate(Axis(0), &[own.view(), new.view()]).expect("the same bands")
        };
        // What is not stated is usual.
        let stated = |own: &Option<Array2<f64>>, more: &Option<Array2<f64>>, usual: f64| {
            let known = |all: &Option<Array2<f64>>, shape: &Array2<f64>| {
                all.clone().unwrap_or_else(|| Array2::from_elem(shape.dim(), usual))
            };
            (own.is_some() || more.is_some())
                .then(|| both(&known(own, &self.values), &known(more, &new.values)))
        };
        let joined = |own: &[f64], new: &[f64]| [own, new].concat();
        Self::new(
            self.sites.iter().chain(&new.sites).copied().collect(),
            joined(&self.time_s, &new.time_s),
            both(&self.values, &new.values),
            stated(&self.repeats, &new.repeats, 1.0),
            stated(&self.noise_db, &new.noise_db, 0.0),
        )
    }

    fn new(
        sites: Vec<Site>,
        time_s: Vec<f64>,
        values: Array2<f64>,
        repeats: Option<Array2<f64>>,
        noise_db: Option<Array2<f64>>,
    ) -> Self {
        let sessions = Sessions::of(&time_s, &sites);
        let (mut places, mut place): (Vec<Site>, Vec<usize>) = (Vec::new(), vec![0; sites.len()]);
        for row in along_curve(&sites) {
            if places.last().is_none_or(|last| last.bits() != sites[row].bits()) {
                places.push(sites[row]);
            }
            place[row] = places.len() - 1;
        }
        let session = sessions.of_row.clone();
        Self { sites, time_s, values, repeats, noise_db, place, places, session, sessions }
    }

    pub fn bands(&self) -> usize {
        self.values.ncols()
    }

    /// Rows that have a time and a reading of a band, by place and session: in whatever order they
    /// came.
    pub fn timed(&self, band: usize) -> Vec<usize> {
        let known = |row: &usize| !self.values[[*row, band]].is_nan();
        let mut rows: Vec<usize> = (0..self.sites.len())
            .filter(|row| self.session[*row].is_some())
            .filter(known)
            .collect();
        rows.sort_by(|a, b| {
            let key = |row: &usize| (self.place[*row], self.session[*row]);
            let value = |row: &usize| self.values[[*row, band]];
            key(a).cmp(&key(b)).then(value(a).total_cmp(&value(b)))
        });
        rows
    }

    /// One over how often an entry was read.
    pub fn share(&self, at: (usize, usize)) -> f64 {
        self.repeats.as_ref().map_or(1.0, |n| 1.0 / n[at].max(1.0))
    }

    /// The stated noise variance of an entry.
    pub fn stated(&self, at: (usize, usize)) -> f64 {
        self.noise_db.as_ref().map_or(0.0, |sd| (sd[at] / DB_PER_LN).powi(2))
    }

    pub fn save(&self, archive: &mut Archive) {
        archive.put_sites("sites", &self.sites);
        archive.put_vector("time_s", &self.time_s);
        archive.put_matrix("values", &self.values);
        if let Some(repeats) = &self.repeats {
            archive.put_matrix("repeats", repeats);
        }
        if let Some(noise) = &self.noise_db {
            archive.put_matrix("noise_db", noise);
        }
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let sites = archive.sites("sites")?;
        let (time_s, values) = (archive.vector("time_s")?, archive.matrix("values")?);
        let further = |name: &str| -> Result<Option<Array2<f64>>, InputError> {
            let found = archive.has(name).then(|| archive.matrix(name)).transpose()?;
            match found.as_ref().is_none_or(|all| all.dim() == (sites.len(), bands)) {
                true => Ok(found),
                false => Err(damaged(name, "does not fit the others")),
            }
        };
        let (repeats, noise) = (further("repeats")?, further("noise_db")?);
        let sound = !sites.is_empty()
            && values.dim() == (sites.len(), bands)
            && time_s.len() == sites.len()
            && values.iter().chain(&time_s).all(|v| !v.is_infinite())
            && time_s.iter().any(|t| !t.is_nan());
        if !sound {
            return Err(damaged("values", "does not fit the others").into());
        }
        Ok(Self::new(sites, time_s, values, repeats, noise))
    }
}
