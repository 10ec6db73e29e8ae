//! Models as named arrays and back.

use super::{Archive, Candidate, Model, ModelEmitter, Report, Room, damaged};
use crate::devices::Devices;
use crate::error::{EstimateError, InputError};
use crate::estimate::{ColumnFinding, Saved};
use crate::findings::Exponent;
use crate::frame::Frame;
use crate::grid::Grid;
use crate::points::Points;
use crate::site::{Point, Region, Site};

/// The version that this library writes; newer ones are refused.
pub(crate) const VERSION: usize = 2;
/// The array by which a model is known.
const MARK: &str = "portolan_model";

impl Archive {
    /// Whether these are the arrays of a model.
    pub fn is_model(&self) -> bool {
        self.has(MARK)
    }

    /// Adds places: a row of x, y and, where they are not all 0, z for each.
    pub fn put_sites(&mut self, name: &str, sites: &[Site]) {
        let columns = if sites.iter().all(|site| site.z_m == 0.0) { 2 } else { 3 };
        let matrix = ndarray::Array2::from_shape_fn((sites.len(), columns), |(i, axis)| {
            sites[i].coordinate(axis)
        });
        self.put_matrix(name, &matrix);
    }

    /// Places, as [`Archive::put_sites`] wrote them.
    pub fn sites(&self, name: &str) -> Result<Vec<Site>, InputError> {
        let matrix = self.matrix(name)?;
        if ![2, 3].contains(&matrix.ncols()) || matrix.iter().any(|v| !v.is_finite()) {
            return Err(damaged(name, "is not made of places"));
        }
        Ok(matrix.rows().into_iter().map(|row| Site::of(row.iter().copied())).collect())
    }
}

impl Model {
    /// The result of the fit as named arrays: small, and enough to predict the same to the last
    /// bit.
    ///
    /// ```
    /// # use ndarray::array;
    /// # use portolan::estimate::{Kriging, Method};
    /// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
    /// # let sites = vec![Site::new(0.0, 0.0), Site::new(8.0, 1.0), Site::new(3.0, 7.5), Site::new(9.0, 9.0)];
    /// # let power = array![[1e-7, 2e-7], [2e-8, 1e-8], [5e-9, 1e-9], [4e-9, f64::NAN]];
    /// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
    /// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
    /// let again = portolan::Model::from_archive(&model.to_archive())?;
    /// let at = [Site::new(1.0, 1.0)];
    /// let there = |model: &portolan::Model| model.predict(&at, &Progress::silent());
    /// assert_eq!(there(&again)?, there(&model)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_archive(&self) -> Archive {
        let mut archive = Archive::default();
        archive.put_whole(MARK, [VERSION]);
        archive.put_text("kind", [self.predictor.kind().to_string()]);
        archive.put_whole("bands", [self.bands]);
        self.frame.save(&mut archive);
        if let Some(grid) = self.grid {
            archive.put_whole("grid", [grid.rows(), grid.cols()]);
            grid.save(&mut archive);
        }
        archive.put_sites("region", &[self.region.low, self.region.high]);
        self.points.save(&mut archive);
        archive.put_number("loudest", self.loudest);
        self.report.save(&mut archive);
        save_emitters(&self.emitters, &mut archive);
        if let Some(stated) = &self.stated_db {
            archive.put_vector("stated_noise_db", stated);
        }
        if let Some(devices) = &self.devices {
            archive.put_text("devices", devices.names.iter().cloned());
            archive.put_vector("device_offset_db", &devices.offset_db);
            archive.put_vector("device_se_db", &devices.se_db);
            archive.put_number("device_spread_db", devices.spread_db);
        }
        let mut own = Archive::default();
        self.predictor.save(&mut own);
        archive.put_all("fit_", &own);
        archive
    }

    /// The model behind what [`Model::to_archive`] gave.
    pub fn from_archive(archive: &Archive) -> Result<Self, EstimateError> {
        Self::from_archive_within(archive, u64::MAX)
    }

    /// The same, where a model that takes more than `free_bytes` of memory is refused. Methods that
    /// live on a grid draw on it while they are read, and a damaged archive may claim any grid.
    pub fn from_archive_within(archive: &Archive, free_bytes: u64) -> Result<Self, EstimateError> {
        if !archive.is_model() {
            return Err(InputError::Request("these arrays are not a model".into()).into());
        }
        let version = archive.count(MARK)?;
        if version > VERSION {
            return Err(InputError::Request(format!(
                "the model is of version {version}, this program reads up to {VERSION}: use a \
                 newer program, or fit the readings again"
            ))
            .into());
        }
        let bands = archive.count("bands")?;
        let grid = archive.has("grid").then(|| load_grid(archive)).transpose()?;
        let &[low, high] = &archive.sites("region")?[..] else {
            return Err(damaged("region", "is not two places").into());
        };
        let own = Archive::new(archive.entries().filter_map(|(name, stored)| {
            Some((name.strip_prefix("fit_")?.to_string(), stored.clone()))
        }));
        let kind = archive.word("kind")?;
        let stated = archive.has("stated_noise_db").then(|| archive.finite("stated_noise_db"));
        let stated_db = stated.transpose()?;
        if stated_db.as_ref().is_some_and(|s| s.len() != bands || s.iter().any(|n| *n < 0.0)) {
            return Err(damaged("stated_noise_db", "is not a deviation for every band").into());
        }
        Ok(Self {
            frame: Frame::load(archive, bands)?,
            bands,
            grid,
            region: Region { low, high },
            points: Points::load(archive)?,
            loudest: archive.number("loudest")?,
            report: Report::load(archive)?,
            emitters: load_emitters(archive, bands)?,
            stated_db,
            devices: archive.has("devices").then(|| load_devices(archive)).transpose()?,
            predictor: Saved::new(&own, bands, Room { grid, free_bytes }).load(kind)?.into(),
        })
    }
}

fn load_devices(archive: &Archive) -> Result<Devices, InputError> {
    let names = archive.text("devices")?.to_vec();
    let (offset, se) = (archive.finite("device_offset_db")?, archive.finite("device_se_db")?);
    Devices::known(names, offset, se, archive.number("device_spread_db")?)
}

fn load_grid(archive: &Archive) -> Result<Grid, InputError> {
    let (sides, origin) = (archive.whole("grid")?, archive.vector("origin_m")?);
    let (&[rows, cols], 2 | 3) = (&sides[..], origin.len()) else {
        return Err(damaged("grid", "is not two numbers"));
    };
    let origin = Site::of(origin.iter().copied());
    Grid::new(rows, cols, archive.number("cell_m")?)?.with_origin(origin)
}

impl Grid {
    /// Adds the arrays `cell_m` and `origin_m`, which say where it lies.
    pub fn save(&self, archive: &mut Archive) {
        archive.put_scalar("cell_m", self.cell_m());
        let Site { x_m, y_m, z_m } = self.origin();
        let origin = [x_m, y_m, z_m];
        archive.put_vector("origin_m", if z_m == 0.0 { &origin[..2] } else { &origin });
    }
}

impl Report {
    fn save(&self, archive: &mut Archive) {
        archive.put_text("method", [self.method.clone()]);
        if let Some(chosen) = &self.chosen {
            archive.put_text("chosen", [chosen.clone()]);
        }
        archive.put_text("candidates", self.candidates.iter().map(|c| c.method.clone()));
        let errors: Vec<f64> =
            self.candidates.iter().map(|c| c.rmse_db.unwrap_or(f64::NAN)).collect();
        archive.put_vector("candidates_rmse_db", &errors);
        let weights: Vec<f64> =
            self.candidates.iter().map(|c| c.weight.unwrap_or(f64::NAN)).collect();
        archive.put_vector("candidates_weight", &weights);
        archive.put_whole("iterations", [self.iterations]);
        archive.put_number("loss", self.loss.unwrap_or(f64::NAN));
        archive.put_text("fitted", self.fitted.iter().map(|(name, _)| name.clone()));
        let fitted: Vec<f64> = self.fitted.iter().map(|(_, value)| *value).collect();
        archive.put_vector("fitted_values", &fitted);
        archive.put_text("notes", self.notes.iter().cloned());
        if !self.columns.is_empty() {
            archive.put_text("columns", self.columns.iter().map(|c| c.name.clone()));
            let values = ndarray::Array2::from_shape_fn((self.columns.len(), 4), |(i, k)| {
                let c = &self.columns[i];
                let known = |error: Option<f64>| error.unwrap_or(f64::NAN);
                [c.loss_db, c.loss_se_db, known(c.rmse_db), known(c.rmse_without_db)][k]
            });
            archive.put_matrix("columns_values", &values);
        }
    }

    fn load(archive: &Archive) -> Result<Self, InputError> {
        let known = |value: f64| Some(value).filter(|v| !v.is_nan());
        let errors = archive.vector("candidates_rmse_db")?;
        let weights = match archive.has("candidates_weight") {
            true => archive.vector("candidates_weight")?,
            false => vec![f64::NAN; errors.len()],
        };
        let candidates = archive.text("candidates")?.iter().cloned().zip(errors).zip(weights);
        let columns = match archive.has("columns") {
            true => archive.text("columns")?.to_vec(),
            false => Vec::new(),
        };
        let values = match columns.is_empty() {
            true => ndarray::Array2::zeros((0, 4)),
            false => archive.matrix("columns_values")?,
        };
        if values.dim() != (columns.len(), 4) {
            return Err(damaged("columns_values", "is not four numbers a column"));
        }
        let column = |(name, row): (String, ndarray::ArrayView1<'_, f64>)| ColumnFinding {
            name,
            loss_db: row[0],
            loss_se_db: row[1],
            rmse_db: known(row[2]),
            rmse_without_db: known(row[3]),
        };
        let columns = columns.into_iter().zip(values.rows()).map(column).collect();
        let fitted = archive.text("fitted")?.iter().cloned().zip(archive.vector("fitted_values")?);
        let chosen = archive.has("chosen").then(|| archive.word("chosen")).transpose()?;
        Ok(Self {
            method: archive.word("method")?.to_string(),
            chosen: chosen.map(str::to_string),
            candidates: candidates
                .map(|((method, rmse_db), weight)| Candidate {
                    method,
                    rmse_db: known(rmse_db),
                    weight: known(weight),
                })
                .collect(),
            iterations: archive.count("iterations")?,
            loss: known(archive.number("loss")?),
            loss_trace: Vec::new(),
            fitted: fitted.collect(),
            columns,
            notes: archive.text("notes")?.to_vec(),
        })
    }
}

fn save_emitters(emitters: &[ModelEmitter], archive: &mut Archive) {
    if emitters.is_empty() {
        return;
    }
    let pick = |of: &dyn Fn(&ModelEmitter) -> f64| emitters.iter().map(of).collect::<Vec<f64>>();
    archive.put_sites("emitters", &emitters.iter().map(|e| e.at).collect::<Vec<_>>());
    for (axis, name) in ["emitters_x_se_m", "emitters_y_se_m"].into_iter().enumerate() {
        archive.put_vector(name, &pick(&|e| e.at_se_m.map_or(f64::NAN, |se| se[axis])));
    }
    archive.put_vector("exponent", &pick(&|e| e.exponent.map_or(f64::NAN, |e| e.value)));
    archive.put_vector("exponent_se", &pick(&|e| e.exponent.map_or(f64::NAN, |e| e.se)));
    archive.put_vector("power_share", &pick(&|e| e.power_share));
    let psd = ndarray::Array2::from_shape_fn((emitters.len(), emitters[0].psd.len()), |(r, k)| {
        emitters[r].psd[k]
    });
    archive.put_matrix("psd", &psd);
    for (r, emitter) in emitters.iter().enumerate().filter(|(_, e)| !e.places.is_empty()) {
        let (weights, places): (Vec<f64>, Vec<Site>) = emitter.places.iter().copied().unzip();
        archive.put_vector(&format!("emitter_weights_{r}"), &weights);
        archive.put_sites(&format!("emitter_places_{r}"), &places);
    }
}

fn load_emitters(archive: &Archive, bands: usize) -> Result<Vec<ModelEmitter>, InputError> {
    if !archive.has("emitters") {
        return Ok(Vec::new());
    }
    let places = archive.sites("emitters")?;
    let column = |name: &str| {
        let values = archive.vector(name)?;
        let fits = values.len() == places.len();
        if fits { Ok(values) } else { Err(damaged(name, "does not have one number an emitter")) }
    };
    let (x, y) = (column("emitters_x_se_m")?, column("emitters_y_se_m")?);
    let (exponent, exponent_se) = (column("exponent")?, column("exponent_se")?);
    let (share, psd) = (column("power_share")?, archive.matrix("psd")?);
    if psd.dim() != (places.len(), bands) {
        return Err(damaged("psd", "is not emitters x bands"));
    }
    let may_stand = |r: usize| -> Result<Vec<(f64, Site)>, InputError> {
        let name = format!("emitter_weights_{r}");
        if !archive.has(&name) {
            return Ok(Vec::new());
        }
        let (weights, places) =
            (archive.finite(&name)?, archive.sites(&format!("emitter_places_{r}"))?);
        match weights.len() == places.len() && weights.iter().all(|w| *w >= 0.0) {
            true => Ok(weights.into_iter().zip(places).collect()),
            false => Err(damaged(&name, "does not fit the places")),
        }
    };
    let emitter = |(r, at): (usize, &Site)| ModelEmitter {
        at: *at,
        at_se_m: Some([x[r], y[r]]).filter(|se| !se[0].is_nan()),
        exponent: Some(Exponent { value: exponent[r], se: exponent_se[r] })
            .filter(|e| !e.value.is_nan()),
        psd: psd.row(r).to_vec(),
        power_share: share[r],
        places: Vec::new(),
    };
    let found = places.iter().enumerate().map(emitter).enumerate();
    found.map(|(r, emitter)| Ok(ModelEmitter { places: may_stand(r)?, ..emitter })).collect()
}
