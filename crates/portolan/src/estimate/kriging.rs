//! Kriging: the best linear unbiased prediction under a covariance fitted to the readings, with
//! its standard deviation. Ordinary by default, universal with a polynomial trend.

mod model;
mod scales;

use super::bands::{BandData, DOMAIN_OPTIONS, Domain, Group};
use super::field::independent::silence;
use super::heights::in_space;
use super::interpolated::local_note;
use super::thin_plate::MOST_TOGETHER;
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{
    Family, Fixed, NOISE_PRIOR, NuggetRole, Prior, Sample, Trend, WeightedCovariance, fit,
};
use crate::link::DB_PER_LN;
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::Readings;
pub(super) use model::{KrigedBands, Recipe, together};
pub(super) use scales::{Own, band_noise, band_sills};

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "covariance",
        default: "exponential (what shadowing follows)",
        takes: "exponential | gaussian | spherical | matern32 | matern52",
    },
    OptionSpec { name: "decorrelation", default: "fitted", takes: "metres" },
    OptionSpec { name: "sill", default: "fitted", takes: "dB^2 (power^2 in domain=linear)" },
    OptionSpec { name: "nugget", default: "fitted", takes: "dB^2 (power^2 in domain=linear)" },
    OptionSpec {
        name: "trend",
        default: "constant (ordinary kriging)",
        takes: "constant | linear | quadratic",
    },
    OptionSpec {
        name: "exact",
        default: "false (the nugget is noise and is smoothed away)",
        takes: "true | false: reproduce the readings at the sensors, as PyKrige does",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 2000 sensors, then 128",
        takes: "number of nearest sensors used for a place",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, DOMAIN_OPTIONS];
pub(super) const KIND: &str = "kriging";

/// Groups of bands that the likelihood looks at; the largest say enough.
pub(super) const MOST_GROUPS: usize = 4;
/// The standard deviation of maps before any reading, in dB.
const USUAL_DB: f64 = 8.0;
/// Ordinary or universal kriging of every band, hyperparameters pooled over bands.
///
/// ```
/// use portolan::estimate::{Family, Kriging, Method};
/// # use ndarray::Array2;
/// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// # let sites: Vec<Site> = (0..30).map(|i| Site::new(f64::from(i * 7 % 30), f64::from(i))).collect();
/// # let power = Array2::from_shape_fn((30, 1), |(i, _)| 1e-7 * (1.2 + (0.2 * i as f64).sin()));
/// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let method = Kriging { covariance: Family::Matern32, ..Kriging::default() };
/// let model = method.fit(&readings, &Context::default(), &Progress::silent())?;
/// // The spread grows with the distance from the sensors.
/// let at = [readings.sites()[3], Site::new(300.0, 300.0)];
/// let spread = model.predict(&at, &Progress::silent())?.spread_db.unwrap();
/// assert!(spread[[0, 0]] < spread[[1, 0]]);
/// assert!(model.report().fitted("decorrelation_m").unwrap() > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Kriging {
    /// The domain in which readings are kriged.
    pub domain: Domain,
    /// The shape of the covariance.
    pub covariance: Family,
    /// What the process varies about.
    pub trend: Trend,
    /// What the nugget is.
    pub nugget_role: NuggetRole,
    /// Number of nearest sensors used for a place; by default all up to 2000, then 128.
    pub neighbours: Option<usize>,
    /// What is not fitted; sill and nugget in dB^2 (power^2 in linear power).
    pub fixed: Fixed,
}

pub(super) fn from_options(options: &Options) -> Result<Kriging, InputError> {
    let exact = options.choice("exact", &[("true", true), ("false", false)])?.unwrap_or(false);
    let positive = f64::MIN_POSITIVE..f64::INFINITY;
    Ok(Kriging {
        domain: Domain::from_options(options)?,
        covariance: options.choice("covariance", &Family::NAMED)?.unwrap_or_default(),
        trend: options.choice("trend", &Trend::NAMED)?.unwrap_or_default(),
        nugget_role: if exact { NuggetRole::Field } else { NuggetRole::Noise },
        neighbours: options.count("neighbours", 2..=MOST_TOGETHER)?,
        fixed: Fixed {
            decorrelation_m: options.number("decorrelation", positive.clone())?,
            sill: options.number("sill", positive)?,
            nugget: options.number("nugget", 0.0..f64::INFINITY)?,
        },
    })
}

/// This method in the register.
pub(super) const ENTRY: Entry = Entry::new(
    "kriging",
    "ordinary or universal kriging, hyperparameters fitted, with a spread",
    build,
)
.with_revision(3)
.with_capabilities(&[Capability::Spread, Capability::Heights, Capability::Times])
.with_options(OPTIONS)
.with_kinds(&[(KIND, |saved| Ok(Box::new(KrigedBands::load(saved.archive, saved.bands)?)))]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(from_options(options)?))
}

impl Method for Kriging {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        in_space(readings, context, progress, |readings, _, progress| {
            self.fitted(readings, progress)
        })
    }
}

impl Kriging {
    fn fitted(&self, readings: &Readings, progress: &Progress<'_>) -> Result<Model, EstimateError> {
        // Silence is judged in plain logarithms; in other domains it stands at the floor.
        let silence = match self.domain {
            Domain::Log => silence(readings, &progress.part(0.0..0.5))?,
            _ => None,
        };
        let data = BandData::with_silence(readings, self.domain, silence.as_ref());
        let (unit, fixed) = self.in_domain(data.link.is_some());
        let prior = self.prior(data.link.is_some(), || data.variance());
        let free = self.covariance == Family::Exponential && self.fixed == Fixed::default();
        let laws = match &silence {
            Some(silence) if free => {
                vec![WeightedCovariance { weight: 1.0, covariance: silence.law.covariance() }]
            }
            _ => self.laws(&data.groups, fixed, prior, &progress.part(0.5..1.0))?,
        };
        let likeliest = laws[0].covariance;
        let law = silence.as_ref().map(|s| s.law);
        let recipe = Recipe {
            trend: self.trend,
            role: self.nugget_role,
            neighbours: self.neighbours,
            sill_fixed: fixed.sill.is_some() || silence.is_some(),
            levels: law.map(|law| (law.level, law.level_variance)),
            hearing: law.and_then(|law| law.hearing),
        };
        let log = data.link.is_some();
        let together = together(data.groups.iter().map(|g| g.sites.len()));
        let largest = data.groups.iter().map(|g| g.sites.len()).max().unwrap_or(0);
        let local = recipe.neighbours_of(largest, together);
        let fitted = KrigedBands::new(recipe, &laws, data)?;
        let mut model = Model::new(readings, fitted);
        if log {
            model = model.with_stated_noise(readings);
        }
        let report = model.report_mut();
        report.add_fitted(&[
            ("decorrelation_m", likeliest.decorrelation_m),
            ("sill", likeliest.sill * unit),
            ("nugget", likeliest.nugget * unit),
        ]);
        if let Some(hearing) = law.and_then(|law| law.hearing) {
            report.add_fitted(&hearing.fitted());
        }
        report.notes.extend(local.map(local_note));
        Ok(model)
    }

    /// What is fixed, and its unit, in the working domain: users speak of dB, the log domain is
    /// natural logarithms.
    pub(super) fn in_domain(&self, log: bool) -> (f64, Fixed) {
        let unit = if log { DB_PER_LN * DB_PER_LN } else { 1.0 };
        let fixed = Fixed {
            sill: self.fixed.sill.map(|s| s / unit),
            nugget: self.fixed.nugget.map(|n| n / unit),
            ..self.fixed
        };
        (unit, fixed)
    }

    /// What is assumed before any reading, in the working domain.
    pub(super) fn prior(&self, log: bool, variance: impl FnOnce() -> f64) -> Prior {
        if !log {
            return Prior { variance: variance(), noise: None };
        }
        let noise = (self.nugget_role == NuggetRole::Noise)
            .then(|| ((NOISE_PRIOR.0 / DB_PER_LN).ln(), NOISE_PRIOR.1));
        Prior { variance: (USUAL_DB / DB_PER_LN).powi(2), noise }
    }

    /// The covariances that all bands share.
    fn laws(
        &self,
        groups: &[Group],
        fixed: Fixed,
        prior: Prior,
        progress: &Progress<'_>,
    ) -> Result<Vec<WeightedCovariance>, EstimateError> {
        let mut largest: Vec<&Group> = groups.iter().collect();
        largest.sort_by_key(|g| std::cmp::Reverse(g.values.len()));
        let samples: Vec<Sample> = largest
            .into_iter()
            .take(MOST_GROUPS)
            .filter(|g| g.sites.len() > 1)
            .map(Group::sample)
            .collect();
        fit(&samples, self.covariance, self.trend, fixed, prior, progress)
    }
}

impl Group {
    /// As the likelihood sees it.
    pub(super) fn sample(&self) -> Sample {
        Sample {
            sites: self.sites.clone(),
            values: faer::Mat::from_fn(self.sites.len(), self.bands.len(), |i, k| {
                self.values[[i, k]]
            }),
            share: self.share.clone(),
            stated: self.stated.clone(),
            scatter: self.scatter.clone(),
        }
    }
}
