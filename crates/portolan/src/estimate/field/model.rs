//! What `field` and the oracle find: emitters with a field and a spectrum each.

use std::collections::HashMap;

use ndarray::{Array2, Array3, Axis};

use super::draw::{EmitterField, EmitterKriging, Fields};
use super::law::{Law, Mast, PathLoss, Shadow};
use crate::error::EstimateError;
use crate::grid::Grid;
use crate::link::DB_PER_LN;
use crate::map::Factors;
use crate::model::{Archive, FactoredDrawing, LeftOut, Prediction, Predictor, damaged};
use crate::progress::Progress;
use crate::site::{PlaceBits, Site};

/// Emitters with their fields and spectra.
pub(in crate::estimate) struct EmitterFields {
    kriging: EmitterKriging,
    /// Emitters x bands, and the variance of their logarithms.
    psd: Array2<f64>,
    psd_variance: Array2<f64>,
    /// Standard deviation of a reading's own noise in dB, per band.
    noise_db: Vec<f64>,
    /// What the fields' variances are multiplied by.
    widening: f64,
}

impl EmitterFields {
    pub fn new(
        kriging: EmitterKriging,
        psd: Array2<f64>,
        psd_variance: Array2<f64>,
        noise_db: Vec<f64>,
        widening: f64,
    ) -> Self {
        Self { kriging, psd, psd_variance, noise_db, widening }
    }

    /// SLFs (emitters x places) from drawn fields.
    fn slf(fields: &Fields) -> Result<Array2<f64>, EstimateError> {
        let slf = fields.mean.mapv(f64::exp);
        if slf.iter().any(|v| !v.is_finite()) {
            return Err(EstimateError::Numerical(
                "the fit diverged: ask for fewer emitters or check the unit of the readings".into(),
            ));
        }
        Ok(slf)
    }

    /// Power of a place and band, and its spread in dB:
    /// var ln t = sum_r J_r^2 (var f_r + var ln c_r).
    fn entry(&self, slf: &Array2<f64>, fields: &Fields, place: usize, band: usize) -> (f64, f64) {
        let (mut total, mut sum) = (0.0, 0.0);
        for r in 0..self.psd.nrows() {
            let part = slf[[r, place]] * self.psd[[r, band]];
            total += part;
            let variance = self.widening * fields.variance[[r, place]];
            sum += part * part * (variance + self.psd_variance[[r, band]]);
        }
        (total, if total > 0.0 { DB_PER_LN * sum.sqrt() / total } else { 0.0 })
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let sensors = archive.sites("sensors")?;
        let (psd, psd_variance) = (archive.matrix("psd")?, archive.matrix("psd_variance")?);
        let noise_db = archive.finite("noise_db")?;
        let emitters = psd.nrows();
        let sound = |m: &Array2<f64>| m.iter().all(|v| v.is_finite() && *v >= 0.0);
        if psd.dim() != (emitters, bands)
            || psd_variance.dim() != psd.dim()
            || noise_db.len() != bands
            || !sound(&psd)
            || !sound(&psd_variance)
        {
            return Err(damaged("psd", "does not fit the others").into());
        }
        let fields = (0..emitters)
            .map(|r| load_field(archive, &r.to_string(), sensors.len()))
            .collect::<Result<_, _>>()?;
        let neighbours = archive.whole("neighbours")?.first().copied();
        let widening = archive.number("widening")?;
        let kriging = EmitterKriging::unsolved(sensors, fields, neighbours);
        Ok(Self::new(kriging, psd, psd_variance, noise_db, widening))
    }
}

/// The field of that name, over so many sensors.
pub(super) fn load_field(
    archive: &Archive,
    r: &str,
    sensors: usize,
) -> Result<EmitterField, EstimateError> {
    let law_name = format!("law_{r}");
    let law = archive.finite(&law_name)?;
    let &[reference_m, exponent, exponent_sd, level, level_sd, decorrelation_m, sill] = &law[..]
    else {
        return Err(damaged(&law_name, "is not seven numbers").into());
    };
    let field = EmitterField {
        law: Law { reference_m, exponent, exponent_sd, level, level_sd },
        shadow: Shadow { decorrelation_m, sill },
        places: archive.sites(&format!("places_{r}"))?,
        weights: archive.finite(&format!("weights_{r}"))?,
        trends: archive
            .matrix(&format!("trends_{r}"))?
            .rows()
            .into_iter()
            // Older models have no evidence.
            .filter(|row| row.len() == 5 || row.len() == 6)
            .map(|row| PathLoss {
                level: row[0],
                exponent: row[1],
                covariance: [row[2], row[3], row[4]],
                log_evidence: row.get(5).copied().unwrap_or(0.0),
            })
            .collect(),
        masts: load_masts(archive, &format!("masts_{r}"))?,
        values: archive.finite(&format!("values_{r}"))?,
        noise: archive.finite(&format!("noise_{r}"))?,
    };
    let places = field.places.len();
    let fits = field.weights.len() == places
        && field.trends.len() == places
        && field.values.len() == sensors
        && field.noise.len() == sensors
        && field.masts.iter().all(|m| m.at.is_finite() && m.share > 0.0)
        && (field.masts.is_empty() || places == 1)
        && decorrelation_m > 0.0
        && sill >= 0.0;
    if fits { Ok(field) } else { Err(damaged(&law_name, "does not fit the others").into()) }
}

/// Known transmitters; older models have none.
fn load_masts(archive: &Archive, name: &str) -> Result<Vec<Mast>, EstimateError> {
    if !archive.has(name) {
        return Ok(Vec::new());
    }
    let matrix = archive.matrix(name)?;
    let rows = matrix.rows().into_iter().filter(|row| row.len() == 4);
    Ok(rows.map(|m| Mast { at: Site::new(m[0], m[1]).at_height(m[2]), share: m[3] }).collect())
}

/// Writes a field under a name.
pub(super) fn save_field(archive: &mut Archive, r: &str, field: &EmitterField) {
    let Law { reference_m, exponent, exponent_sd, level, level_sd } = field.law;
    let Shadow { decorrelation_m, sill } = field.shadow;
    let law = [reference_m, exponent, exponent_sd, level, level_sd, decorrelation_m, sill];
    archive.put_vector(&format!("law_{r}"), &law);
    archive.put_sites(&format!("places_{r}"), &field.places);
    archive.put_vector(&format!("weights_{r}"), &field.weights);
    let trends = Array2::from_shape_fn((field.trends.len(), 6), |(j, k)| {
        let PathLoss { level, exponent, covariance: [a, b, c], log_evidence } = field.trends[j];
        [level, exponent, a, b, c, log_evidence][k]
    });
    archive.put_matrix(&format!("trends_{r}"), &trends);
    let masts = Array2::from_shape_fn((field.masts.len(), 4), |(j, k)| {
        let m = &field.masts[j];
        [m.at.x_m, m.at.y_m, m.at.z_m, m.share][k]
    });
    archive.put_matrix(&format!("masts_{r}"), &masts);
    archive.put_vector(&format!("values_{r}"), &field.values);
    archive.put_vector(&format!("noise_{r}"), &field.noise);
}

impl Predictor for EmitterFields {
    fn kind(&self) -> &'static str {
        super::KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let fields = self.kriging.all_fields(at, progress)?;
        let slf = Self::slf(&fields)?;
        let mut power = Array2::zeros((at.len(), bands.len()));
        let mut spread = Array2::zeros((at.len(), bands.len()));
        for place in 0..at.len() {
            for (out, &band) in bands.iter().enumerate() {
                (power[[place, out]], spread[[place, out]]) =
                    self.entry(&slf, &fields, place, band);
            }
        }
        let noise: Vec<f64> = bands.iter().map(|&band| self.noise_db[band]).collect();
        Ok(Prediction::with_spread(power, spread, &noise))
    }

    fn factors(
        &self,
        grid: Grid,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Option<FactoredDrawing>, EstimateError> {
        let fields = self.kriging.all_fields(&grid.sites(), progress)?;
        let slf = Self::slf(&fields)?;
        let shape = (grid.rows(), grid.cols(), bands.len());
        let spread = Array3::from_shape_fn(shape, |(i, j, k)| {
            self.entry(&slf, &fields, i * grid.cols() + j, bands[k]).1
        });
        let slf = slf
            .into_shape_with_order((self.psd.nrows(), grid.rows(), grid.cols()))
            .expect("every cell was asked for");
        let factors = Factors { slf, psd: self.psd.select(Axis(1), bands) };
        Ok(Some(FactoredDrawing { factors, spread_db: Some(spread) }))
    }

    fn is_factored_on(&self, _grid: Grid) -> bool {
        true
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        Some(self.noise_db.clone())
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let Some(fields) = self.kriging.leave_one_out()? else { return Ok(None) };
        let places = self.kriging.sensors.iter().enumerate();
        let number: HashMap<PlaceBits, usize> = places.map(|(n, at)| (at.bits(), n)).collect();
        let rows: Option<Vec<usize>> =
            sensors.iter().map(|at| number.get(&at.bits()).copied()).collect();
        let Some(rows) = rows else { return Ok(None) };
        let slf = Self::slf(&fields)?;
        let shape = (sensors.len(), self.psd.ncols());
        let entries = Array2::from_shape_fn(shape, |(n, k)| self.entry(&slf, &fields, rows[n], k));
        let (power, spread) = (entries.map(|e| e.0), entries.map(|e| e.1));
        Ok(Some(LeftOut::with_noise(power, spread, &self.noise_db)))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_sites("sensors", &self.kriging.sensors);
        archive.put_matrix("psd", &self.psd);
        archive.put_matrix("psd_variance", &self.psd_variance);
        archive.put_vector("noise_db", &self.noise_db);
        archive.put_number("widening", self.widening);
        archive.put_whole("neighbours", self.kriging.neighbours);
        for (r, field) in self.kriging.emitters.iter().enumerate() {
            save_field(archive, &r.to_string(), field);
        }
    }
}
