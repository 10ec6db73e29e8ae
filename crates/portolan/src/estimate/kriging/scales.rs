//! How much every band varies and how noisy it is. Bands share a law; each has a scale of its own,
//! drawn towards the others' as far as bands are alike, and noise of its own where places were read
//! repeatedly.

use ndarray::{Array2, ArrayView1};

use crate::error::EstimateError;
use crate::gaussian_process::Scatter;
use crate::model::{Archive, damaged};

/// What is known of a band's scale by its own readings.
pub(in crate::estimate) struct Own {
    /// Its sill, and the sill that its noise goes by: a field that varies more in one place than in
    /// another must not make its receivers better. None where it has too few readings.
    pub sill: Option<(f64, f64)>,
    /// Readings less what was estimated from them.
    pub freedom: f64,
}

/// Fewer bands than this do not show how much bands differ; how many readings the pooled sill then
/// counts for.
const LEAST_BANDS: usize = 4;
const USUAL_COUNT: f64 = 4.0;
/// The least and the most that it counts for.
const COUNTS: (f64, f64) = (1.0, 1e3);
/// Variance of the logarithm of a sill that is estimated from one degree of freedom.
const OF_ONE: f64 = 2.5;
/// Prior weight of the law's noise for a band, in readings.
const LAW_COUNT: f64 = 10.0;

/// For how many readings of a band the pooled sill counts: the more, the more alike bands are.
fn pooled_count(own: &[Own]) -> f64 {
    let known: Vec<(f64, f64)> = own
        .iter()
        .filter(|o| o.freedom >= 3.0)
        .filter_map(|o| Some((o.sill.filter(|s| s.0 > 0.0)?.0.ln(), OF_ONE / o.freedom)))
        .collect();
    if known.len() < LEAST_BANDS {
        return USUAL_COUNT;
    }
    let count = known.len() as f64;
    let mean = known.iter().map(|(log, _)| log).sum::<f64>() / count;
    let total = known.iter().map(|(log, _)| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let sampled = known.iter().map(|(_, variance)| variance).sum::<f64>() / count;
    (2.0 / (total - sampled).max(1e-9)).clamp(COUNTS.0, COUNTS.1)
}

/// The sill of every band as predictions see it, and the one that its noise goes by. That they are
/// themselves estimated makes a normal distribution Student's, which is wider.
pub(in crate::estimate) fn band_sills(own: &[Own], pooled: f64) -> Vec<(f64, f64)> {
    let count = pooled_count(own);
    let all: f64 = own.iter().map(|o| o.freedom).sum();
    own.iter()
        .map(|o| {
            let freedom = o.sill.map_or(0.0, |_| o.freedom);
            let known = freedom + count.min(all);
            let wider = (known / (known - 2.0).max(0.5 * known)).max(1.0) * law_unknown(all)
                / (freedom + count);
            let (sill, of_noise) = o.sill.unwrap_or((0.0, 0.0));
            let drawn = |own: f64| (freedom * own + count * pooled) * wider;
            (drawn(sill), drawn(of_noise))
        })
        .collect()
}

/// The factor on all variances for what the laws that are averaged over leave out, given the number of
/// readings in all bands: 10 % with 30 readings, 1 % with 500. Chosen by `study calibration`.
fn law_unknown(readings: f64) -> f64 {
    1.0 + 6.0 / (readings + 30.0)
}

/// Noise variance of a reading in every band of a group, from what the law says of each and from the
/// repeats.
pub(in crate::estimate) fn band_noise(scatter: &Scatter, law: &[f64]) -> Vec<f64> {
    if scatter.freedom == 0.0 {
        return law.to_vec();
    }
    let both = law.iter().zip(&scatter.squares);
    both.map(|(law, squares)| {
        let own = (squares - scatter.freedom * scatter.stated).max(0.0);
        (own + LAW_COUNT * law) / (scatter.freedom + LAW_COUNT)
    })
    .collect()
}

impl Own {
    /// Of bands that share their readings' places.
    pub fn of(sills: Option<Vec<(f64, f64)>>, freedom: f64, bands: usize) -> Vec<Own> {
        let sill = |k: usize| sills.as_ref().map(|s| s[k]);
        (0..bands).map(|k| Own { sill: sill(k), freedom: freedom.max(0.0) }).collect()
    }
}

/// What the bands' own readings say under every law.
pub(in crate::estimate) struct Scales {
    /// Laws x bands.
    pub sills: Array2<f64>,
    pub noise: Array2<f64>,
    /// Mean and variance of the bands' levels under each law.
    pub levels: Vec<Option<(f64, f64)>>,
}

impl Scales {
    pub fn save(&self, archive: &mut Archive) {
        archive.put_matrix("sills", &self.sills);
        archive.put_matrix("noise", &self.noise);
        let level = |l: usize| self.levels[l].map_or([f64::NAN; 2], |(mean, v)| [mean, v]);
        let levels = Array2::from_shape_fn((self.levels.len(), 2), |(l, j)| level(l)[j]);
        archive.put_matrix("law_levels", &levels);
    }

    pub fn load(archive: &Archive, laws: usize, bands: usize) -> Result<Self, EstimateError> {
        let (sills, noise) = (archive.matrix("sills")?, archive.matrix("noise")?);
        let levels = archive.matrix("law_levels")?;
        let wrong = || Err(damaged("sills", "does not fit the others").into());
        if [sills.dim(), noise.dim(), levels.dim()] != [(laws, bands), (laws, bands), (laws, 2)] {
            return wrong();
        }
        let scale = |v: &f64| v.is_finite() && *v >= 0.0;
        let level = |row: ArrayView1<'_, f64>| {
            row.iter().all(|v| v.is_nan())
                || (row[0].is_finite() && row[1].is_finite() && row[1] > 0.0)
        };
        if !sills.iter().chain(&noise).all(scale) || !levels.rows().into_iter().all(level) {
            return wrong();
        }
        let level = |row: ArrayView1<'_, f64>| (!row[0].is_nan()).then(|| (row[0], row[1]));
        let levels = levels.rows().into_iter().map(level).collect();
        Ok(Self { sills, noise, levels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(sills: &[f64], freedom: f64) -> Vec<Own> {
        sills.iter().map(|s| Own { sill: Some((*s, *s)), freedom }).collect()
    }

    #[test]
    fn bands_that_are_alike_share_a_sill_and_others_keep_theirs() {
        let alike = band_sills(&bands(&[0.9, 1.1, 1.0, 1.05, 0.95], 20.0), 1.0);
        assert!(alike.iter().all(|s| (s.0 / law_unknown(100.0) - 1.0).abs() < 0.05), "{alike:?}");
        let apart = band_sills(&bands(&[0.1, 10.0, 1.0, 3.0, 0.3], 200.0), 3.0);
        assert!(apart[0].0 < 0.13 && apart[1].0 > 9.5, "{apart:?}");
        // Few readings: wider than the estimate.
        assert!(band_sills(&bands(&[1.0], 6.0), 1.0)[0].0 > 1.2);
        let nothing = [Own { sill: None, freedom: 0.0 }];
        assert!(band_sills(&nothing, 2.0)[0].1 >= 2.0);
    }

    #[test]
    fn repeats_decide_how_noisy_a_band_is() {
        let scatter = Scatter { squares: vec![100.0, 900.0], freedom: 100.0, stated: 0.0 };
        let noise = band_noise(&scatter, &[1.0, 1.0]);
        assert!((noise[0] - 1.0).abs() < 0.01 && noise[1] > 8.0, "{noise:?}");
        assert_eq!(band_noise(&Scatter::default(), &[1.0]), [1.0]);
    }
}
