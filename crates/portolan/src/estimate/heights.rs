//! Readings at several heights. A metre of height does not count like one along the ground: floors
//! attenuate, and a field over a city changes faster upwards. Heights are multiplied by the factor
//! under which a covariance of one range explains the readings best (geometric anisotropy; Chilès
//! and Delfiner, Geostatistics, 2012, section 2.5.2), and the method sees places in that space.

use std::collections::BTreeSet;
use std::sync::Arc;

use ndarray::Array2;

use super::Saved;
use super::bands::{BandData, Domain};
use super::kriging::MOST_GROUPS;
use super::times::in_time;
use super::{Change, Context, Kriging, Transmitter};
use crate::error::EstimateError;
use crate::gaussian_process::{Sample, clustered, misfit};
use crate::grid::Grid;
use crate::model::{
    Archive, FactoredDrawing, LeftOut, Model, ModelEmitter, Prediction, Predictor, damaged,
};
use crate::points::Points;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

pub(super) const KIND: &str = "heights";

/// Factors that are tried: the logarithm's step, and how many on either side of its usual value.
const STEP: f64 = 0.8;
const STEPS: i32 = 6;
/// The factor before any reading: metres of height change a field faster than metres of ground; and the
/// standard deviation of its logarithm.
const USUAL: f64 = 3.0;
const WIDTH: f64 = 2.0;
/// Sensors that the factor is judged by.
const JUDGED: usize = 320;

/// Fits readings of one height as they are, and others in the space in which heights count like
/// distances along the ground.
pub(super) fn in_space(
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
    fit: impl FnOnce(&Readings, &Context<'_>, &Progress<'_>) -> Result<Model, EstimateError>,
) -> Result<Model, EstimateError> {
    readings.check_enough()?;
    if !readings.has_heights() || readings.is_lifted() {
        return in_time(readings, context, progress, fit);
    }
    let factor = vertical_factor(readings, &progress.part(0.0..0.2))?;
    let lift = |t: &Transmitter| Transmitter { at: lifted(t.at, factor), ..*t };
    let transmitters: Vec<Transmitter> = context.transmitters.iter().map(lift).collect();
    let grid = context.grid.map(|grid| grid.at_height(factor * grid.z_m()));
    let space = Context { transmitters: &transmitters, grid, ..*context };
    let model = in_time(&readings.lifted(factor), &space, &progress.part(0.2..1.0), fit)?;
    let lift = |inner| Arc::new(Lifted { factor, inner }) as Arc<dyn Predictor>;
    let mut model = model.lowered(readings, lift);
    model.report_mut().add_fitted(&[("height_factor", factor)]);
    Ok(model)
}

fn lifted(site: Site, factor: f64) -> Site {
    site.at_height(factor * site.z_m)
}

/// By how much heights are multiplied.
fn vertical_factor(readings: &Readings, progress: &Progress<'_>) -> Result<f64, EstimateError> {
    let data = BandData::new(readings, Domain::Log);
    let method = Kriging::default();
    let prior = method.prior(data.link.is_some(), || data.variance());
    let mut groups: Vec<_> = data.groups.iter().filter(|g| g.sites.len() > 3).collect();
    groups.sort_by_key(|g| std::cmp::Reverse(g.values.len()));
    // The same readings under every factor, and all heights among them.
    let samples: Vec<Sample> = groups
        .into_iter()
        .take(MOST_GROUPS)
        .map(|group| group.sample().part(&spread(&group.sites)))
        .collect();
    if samples.is_empty() {
        return Ok(USUAL);
    }
    let judge = |log: f64| -> Result<f64, EstimateError> {
        let factor = USUAL * log.exp();
        let mut space = samples.clone();
        for site in space.iter_mut().flat_map(|sample| &mut sample.sites) {
            *site = lifted(*site, factor);
        }
        let (family, trend) = (method.covariance, method.trend);
        Ok(misfit(&space, family, trend, prior, progress)? + (log / WIDTH).powi(2))
    };
    let mut found = Vec::new();
    for step in -STEPS..=STEPS {
        progress.report((step + STEPS) as usize, (2 * STEPS + 1) as usize)?;
        let log = STEP * f64::from(step);
        found.push((log, judge(log)?));
    }
    let least = (0..found.len()).min_by(|&a, &b| found[a].1.total_cmp(&found[b].1)).unwrap_or(0);
    let log = match found.get(least.wrapping_sub(1)..least + 2) {
        // The vertex of the parabola through the best three.
        Some(&[(_, below), (log, value), (_, above)]) => {
            let curve = below - 2.0 * value + above;
            let shift = if curve > 0.0 { 0.5 * STEP * (below - above) / curve } else { 0.0 };
            log + if shift.is_finite() { shift.clamp(-STEP, STEP) } else { 0.0 }
        }
        _ => found[least].0,
    };
    Ok(USUAL * log.exp())
}

/// Sensors that the factor is judged by: as many of every height, in clusters, so that distances within
/// a height and between heights are both among them.
fn spread(sites: &[Site]) -> Vec<usize> {
    if sites.len() <= JUDGED {
        return (0..sites.len()).collect();
    }
    clustered(sites, JUDGED).into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// A model of lifted readings that is asked in metres.
pub(super) struct Lifted {
    factor: f64,
    inner: Arc<dyn Predictor>,
}

impl Lifted {
    pub fn load(saved: &Saved<'_>) -> Result<Self, EstimateError> {
        let archive = saved.archive;
        let (factor, kind) = (archive.number("factor")?, archive.word("kind")?);
        if !(factor.is_finite() && factor > 0.0) || kind == KIND {
            return Err(damaged("factor", "is not one of heights").into());
        }
        Ok(Self { factor, inner: saved.of(&archive.inside("inner_")).load(kind)?.into() })
    }

    fn lift(&self, at: &[Site]) -> Vec<Site> {
        at.iter().map(|site| lifted(*site, self.factor)).collect()
    }
}

impl Predictor for Lifted {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.inner.predict(&self.lift(at), bands, progress)
    }

    fn predict_points(
        &self,
        at: &Points,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let there = at.moved(|site| lifted(site, self.factor));
        self.inner.predict_points(&there, bands, progress)
    }

    fn power(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        self.inner.power(&self.lift(at), bands, progress)
    }

    fn power_costs_less(&self) -> bool {
        self.inner.power_costs_less()
    }

    fn factors(
        &self,
        grid: Grid,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Option<FactoredDrawing>, EstimateError> {
        self.inner.factors(grid.at_height(self.factor * grid.z_m()), bands, progress)
    }

    fn is_factored_on(&self, grid: Grid) -> bool {
        self.inner.is_factored_on(grid.at_height(self.factor * grid.z_m()))
    }

    fn sees_heights(&self) -> bool {
        self.inner.sees_heights()
    }

    fn at_time(&self, time_s: f64) -> Option<Box<dyn Predictor>> {
        let inner = self.inner.at_time(time_s)?.into();
        Some(Box::new(Self { factor: self.factor, inner }))
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        self.inner.noise_db()
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        self.inner.leave_one_out(&self.lift(sensors))
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        self.inner.predict_without(&self.lift(left_out))
    }

    fn update(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        let inner = self.inner.update(&readings.lifted(self.factor))?.map(Arc::from);
        Ok(inner.map(|inner| Box::new(Self { factor: self.factor, inner }) as Box<dyn Predictor>))
    }

    fn emitters(&self) -> Option<Vec<ModelEmitter>> {
        let mut found = self.inner.emitters()?;
        let lower = |site: Site| site.at_height(site.z_m / self.factor);
        for emitter in &mut found {
            emitter.at = lower(emitter.at);
            emitter.places.iter_mut().for_each(|(_, at)| *at = lower(*at));
        }
        Some(found)
    }

    fn changes(
        &self,
        readings: &Readings,
        rate: f64,
        progress: &Progress<'_>,
    ) -> Result<Option<Vec<Change>>, EstimateError> {
        self.inner.changes(&readings.lifted(self.factor), rate, progress)
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_vector("factor", &[self.factor]);
        archive.put_text("kind", [self.inner.kind().to_string()]);
        let mut own = Archive::default();
        self.inner.save(&mut own);
        archive.put_all("inner_", &own);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::estimate::{Auto, Field, Method};
    use crate::gaussian_process::Correlation;
    use crate::linalg::Cholesky;
    use crate::readings::Values;
    use crate::scale::Scale;
    use crate::simulate::stream;

    /// A process whose range is `factor` times shorter upwards: 3 bands, and noise of 1 dB.
    fn survey(seed: u64, sensors: usize, floors: &[f64], factor: f64) -> (Vec<Site>, Array2<f64>) {
        let mut rng = stream(seed, 50);
        let sites: Vec<Site> = (0..sensors)
            .map(|i| {
                let x = 100.0 * rng.random::<f64>();
                Site::new(x, 60.0 * rng.random::<f64>()).at_height(floors[i % floors.len()])
            })
            .collect();
        let space: Vec<Site> = sites.iter().map(|s| lifted(*s, factor)).collect();
        let covariance = Correlation::exponential(40.0).matrix(&space);
        let lower = Cholesky::new(covariance.as_ref()).unwrap();
        let mut normal = || StandardNormal.sample(&mut rng);
        let mut dbm = Array2::zeros((sensors, 3));
        for band in 0..3 {
            let mut column = faer::Mat::from_fn(sensors, 1, |_, _| normal());
            lower.times(column.as_mut());
            for i in 0..sensors {
                dbm[[i, band]] = -70.0 + 7.0 * column[(i, 0)] + normal();
            }
        }
        (sites, dbm)
    }

    fn readings(sites: &[Site], dbm: &Array2<f64>) -> Readings {
        let power = dbm.mapv(|v| 10f64.powf(0.1 * v));
        Readings::new(sites.to_vec(), Values::Power(power), Scale::Absolute).unwrap()
    }

    fn fit(method: &dyn Method, readings: &Readings) -> Model {
        method.fit(readings, &Context::default(), &Progress::silent()).unwrap()
    }

    fn rmse(model: &Model, at: &[Site], dbm: &Array2<f64>) -> f64 {
        let found = model.predict(at, &Progress::silent()).unwrap().power;
        let square = found.iter().zip(dbm).map(|(p, d)| (10.0 * p.log10() - d).powi(2));
        (square.sum::<f64>() / dbm.len() as f64).sqrt()
    }

    #[test]
    fn the_factor_of_heights_is_found_and_better_than_none() {
        let floors = [0.0, 3.0, 6.0, 9.0];
        for factor in [0.5, 8.0] {
            let (sites, dbm) = survey(1, 400, &floors, factor);
            let (train, test) = (&sites[..240], &sites[240..]);
            let part = |rows: std::ops::Range<usize>| dbm.slice(ndarray::s![rows, ..]).to_owned();
            let model = fit(&Kriging::default(), &readings(train, &part(0..240)));
            let found = model.report().fitted("height_factor").unwrap();
            assert!((0.4..2.5).contains(&(found / factor)), "{factor}: {found}");
            let flat = |sites: &[Site]| sites.iter().map(|s| s.at_height(0.0)).collect::<Vec<_>>();
            let without = fit(&Kriging::default(), &readings(&flat(train), &part(0..240)));
            let held = part(240..400);
            let (with, without) = (rmse(&model, test, &held), rmse(&without, &flat(test), &held));
            assert!(with < 1.02 * without, "{factor}: {with} {without}");
            if factor > 1.0 {
                assert!(with < 0.85 * without, "{with} {without}");
            }
        }
    }

    #[test]
    fn models_with_heights_are_read_back_and_draw_the_height_asked_for() {
        let (sites, dbm) = survey(2, 60, &[2.0, 5.0], 6.0);
        for method in [&Kriging::default() as &dyn Method, &Field::default(), &Auto::default()] {
            let model = fit(method, &readings(&sites, &dbm));
            let again = Model::from_archive(&model.to_archive()).unwrap();
            let at = [Site::new(30.0, 20.0).at_height(2.0), Site::new(30.0, 20.0).at_height(5.0)];
            let [a, b] = [&model, &again].map(|m| m.predict(&at, &Progress::silent()).unwrap());
            assert_eq!(a, b);
            assert!(a.power[[0, 0]] != a.power[[1, 0]]);
            let grid = Grid::new(4, 4, 10.0).unwrap().at_height(5.0);
            let map = model.map(grid, &Progress::silent()).unwrap();
            let cell = crate::grid::Cell::new(3, 2);
            let there = model.predict(&[grid.site(cell)], &Progress::silent()).unwrap();
            let off = map.band(0)[[3, 2]] / there.power[[0, 0]];
            assert!((off - 1.0).abs() < 1e-9, "{off}");
            assert_eq!(model.grid_or_default().unwrap().z_m(), model.height_m());
        }
    }

    #[test]
    fn a_survey_at_one_height_is_that_of_the_ground() {
        let (sites, dbm) = survey(3, 40, &[0.0], 1.0);
        let raised: Vec<Site> = sites.iter().map(|s| s.at_height(1400.0)).collect();
        for method in [&Kriging::default() as &dyn Method, &Field::default(), &Auto::default()] {
            let [low, high] = [&sites, &raised].map(|s| fit(method, &readings(s, &dbm)));
            assert_eq!(high.report().fitted("height_factor"), None);
            let at = Site::new(40.0, 40.0);
            let low = low.predict(&[at], &Progress::silent()).unwrap();
            let high = high.predict(&[at.at_height(1400.0)], &Progress::silent()).unwrap();
            let off = (low.power[[0, 0]] / high.power[[0, 0]]).ln().abs();
            assert!(off < 1e-9, "{off}");
        }
    }

    #[test]
    fn methods_that_ignore_heights_say_so() {
        let (sites, dbm) = survey(4, 30, &[0.0, 4.0], 6.0);
        let noted = |name: &str| {
            let method = crate::estimate::build(name, []).unwrap();
            let model = fit(&*method, &readings(&sites, &dbm));
            model.report().notes.iter().any(|note| note.contains("heights of 0 to 4 m"))
        };
        assert!(noted("linear"));
        for name in ["nearest", "idw", "kriging", "field", "auto"] {
            assert!(!noted(name), "{name}");
        }
    }
}
