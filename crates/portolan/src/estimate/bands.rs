//! What the interpolators share: the domain they work in, and bands grouped by their gaps.

use ndarray::Array2;

use super::field::alone::Silence;
use super::{OptionSpec, Options};
use crate::error::InputError;
use crate::link::{DB_PER_LN, Link};
use crate::model::{Archive, damaged};
use crate::readings::Readings;
use crate::site::Site;

/// The option that [`Domain::log_from_options`] reads.
pub(super) const OFFSET: OptionSpec = OptionSpec {
    name: "offset",
    default: "from the unit: none for measured power, 1e-6 for the paper's maps",
    takes: "the a of ln(x + a), in the readings' unit",
};

/// Options of every interpolator.
pub(super) const DOMAIN_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "domain",
        default: "log (ours: power spans decades)",
        takes: "log | linear",
    },
    OptionSpec {
        name: "offset",
        default: "none; above the noise where some readings are zero",
        takes: "the a of ln(x + a), in the readings' unit",
    },
];

/// The domain in which values are interpolated.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Domain {
    /// ln x, or ln(x + a) above the noise where some readings are zero.
    #[default]
    Log,
    /// ln(x + a) with this a.
    LogOffset(f64),
    /// Power itself.
    Linear,
}

impl Domain {
    pub(super) fn from_options(options: &Options) -> Result<Self, InputError> {
        let log = options.choice("domain", &[("log", true), ("linear", false)])?.unwrap_or(true);
        match Self::log_from_options(options)? {
            Some(_) if !log => Err(options.wrong("offset", "it belongs to domain=log")),
            Some(offset) => Ok(Domain::LogOffset(offset)),
            None if log => Ok(Domain::Log),
            None => Ok(Domain::Linear),
        }
    }

    /// The offset of methods that always work in ln(x + a), where it is given.
    pub(super) fn log_from_options(options: &Options) -> Result<Option<f64>, InputError> {
        options.number("offset", f64::MIN_POSITIVE..f64::INFINITY)
    }

    /// The link for these readings; None in linear power.
    fn link(self, readings: &Readings) -> Option<Link> {
        match self {
            Domain::Log => Some(readings.link()),
            Domain::LogOffset(offset) => Some(Link::new(offset)),
            Domain::Linear => None,
        }
    }
}

/// Bands that miss the same sensors and have the same noise, with the readings they have.
pub(super) struct Group {
    pub bands: Vec<usize>,
    pub sites: Vec<Site>,
    /// Sensors x bands of the group, in the working domain, no gaps.
    pub values: Array2<f64>,
    /// One over how often each sensor was read; 0 where it heard nothing.
    pub share: Vec<f64>,
    /// Stated noise variance of each sensor in the log domain.
    pub stated: Vec<f64>,
}

/// Readings in the working domain.
pub(super) struct BandData {
    pub link: Option<Link>,
    pub groups: Vec<Group>,
    bands: usize,
}

impl BandData {
    pub fn new(readings: &Readings, domain: Domain) -> Self {
        Self::with_silence(readings, domain, None)
    }

    /// What was not heard is at the floor, or what it says of itself.
    pub fn with_silence(readings: &Readings, domain: Domain, silence: Option<&Silence>) -> Self {
        let link = domain.link(readings);
        let power = match silence {
            Some(_) => readings.power(),
            None => readings.power_or_floor(),
        };
        let mut values = power.mapv(|x| link.map_or(x, |link| link.apply(x)));
        let mut share = readings.repeats().map(|repeats| repeats.mapv(|n| 1.0 / n.max(1.0)));
        let noise = readings.noise_db().filter(|_| link.is_some());
        let mut stated = noise.map(|sd| sd.mapv(|sd| (sd / DB_PER_LN).powi(2)));
        if let Some(silence) = silence {
            let shape = values.dim();
            let share = share.get_or_insert_with(|| Array2::ones(shape));
            let stated = stated.get_or_insert_with(|| Array2::zeros(shape));
            let told = silence.values.indexed_iter().filter(|(_, value)| !value.is_nan());
            for (at, value) in told {
                (values[at], share[at], stated[at]) = (*value, 0.0, silence.noise[at]);
            }
        }
        Self::grouped(link, readings.sites(), &values, share.as_ref(), stated.as_ref())
    }

    fn grouped(
        link: Option<Link>,
        sites: &[Site],
        values: &Array2<f64>,
        share: Option<&Array2<f64>>,
        stated: Option<&Array2<f64>>,
    ) -> Self {
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        let mut slots = std::collections::HashMap::new();
        for (band, column) in values.columns().into_iter().enumerate() {
            let present: Vec<usize> =
                column.indexed_iter().filter(|(_, v)| !v.is_nan()).map(|(s, _)| s).collect();
            let bits = |of: Option<&Array2<f64>>| -> Vec<u64> {
                of.map_or(Vec::new(), |m| present.iter().map(|&s| m[[s, band]].to_bits()).collect())
            };
            let key = (present.clone(), bits(share), bits(stated));
            let slot = *slots.entry(key).or_insert_with(|| {
                groups.push((present, Vec::new()));
                groups.len() - 1
            });
            groups[slot].1.push(band);
        }
        let column = |of: Option<&Array2<f64>>, sensors: &[usize], band: usize, usual: f64| {
            let at = |&s: &usize| of.map_or(usual, |m| m[[s, band]]);
            sensors.iter().map(at).collect::<Vec<f64>>()
        };
        let groups = groups
            .into_iter()
            .map(|(sensors, bands)| Group {
                sites: sensors.iter().map(|&s| sites[s]).collect(),
                values: Array2::from_shape_fn((sensors.len(), bands.len()), |(i, k)| {
                    values[[sensors[i], bands[k]]]
                }),
                share: column(share, &sensors, bands[0], 1.0),
                stated: column(stated, &sensors, bands[0], 0.0),
                bands,
            })
            .collect();
        Self { link, groups, bands: values.ncols() }
    }

    /// The group and the place in it of every band that is asked for.
    pub fn asked(&self, bands: &[usize]) -> Vec<Vec<(usize, usize)>> {
        let mut asked = vec![Vec::new(); self.groups.len()];
        for (out, band) in bands.iter().enumerate() {
            for (g, group) in self.groups.iter().enumerate() {
                if let Some(k) = group.bands.iter().position(|b| b == band) {
                    asked[g].push((k, out));
                }
            }
        }
        asked
    }

    /// Values of every group (sensors of the group x its bands) as power at the readings' sensors.
    pub fn scatter(&self, sensors: &[Site], values: &[Array2<f64>]) -> Array2<f64> {
        let number: std::collections::HashMap<[u64; 2], usize> =
            sensors.iter().enumerate().map(|(s, site)| (site.bits(), s)).collect();
        let mut power = Array2::from_elem((sensors.len(), self.bands), f64::NAN);
        for (group, values) in self.groups.iter().zip(values) {
            for (i, site) in group.sites.iter().enumerate() {
                let Some(&sensor) = number.get(&site.bits()) else { continue };
                for (k, &band) in group.bands.iter().enumerate() {
                    power[[sensor, band]] = self.power(values[[i, k]]);
                }
            }
        }
        power
    }

    /// Variance of all values.
    pub fn variance(&self) -> f64 {
        let values = || self.groups.iter().flat_map(|g| g.values.iter());
        let count = values().count().max(1) as f64;
        let mean = values().sum::<f64>() / count;
        values().map(|v| (v - mean).powi(2)).sum::<f64>() / count
    }

    /// A value of the working domain as power.
    pub fn power(&self, value: f64) -> f64 {
        self.link.map_or(value.max(0.0), |link| link.inverse(value))
    }

    pub fn save(&self, archive: &mut Archive) {
        archive.put_number("link", self.link.map_or(f64::NAN, |link| link.offset()));
        archive.put_whole("groups", [self.groups.len()]);
        for (g, group) in self.groups.iter().enumerate() {
            archive.put_whole(&format!("bands_{g}"), group.bands.iter().copied());
            archive.put_sites(&format!("sites_{g}"), &group.sites);
            archive.put_matrix(&format!("values_{g}"), &group.values);
            archive.put_vector(&format!("share_{g}"), &group.share);
            archive.put_vector(&format!("stated_{g}"), &group.stated);
        }
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, InputError> {
        let offset = archive.number("link")?;
        if offset < 0.0 || offset.is_infinite() {
            return Err(damaged("link", "is negative"));
        }
        let link = (!offset.is_nan()).then(|| Link::new(offset));
        let count = archive.count("groups")?;
        // Before anything of that size is made: a damaged file may claim any number of bands.
        let mut held = 0usize;
        for g in 0..count.min(bands) {
            held += archive.whole(&format!("bands_{g}"))?.len();
        }
        if held != bands {
            return Err(damaged("groups", "does not hold every band"));
        }
        let mut seen = vec![false; bands];
        let mut groups = Vec::new();
        for g in 0..count.min(bands) {
            let group = Group {
                bands: archive.whole(&format!("bands_{g}"))?,
                sites: archive.sites(&format!("sites_{g}"))?,
                values: archive.matrix(&format!("values_{g}"))?,
                share: archive.finite(&format!("share_{g}"))?,
                stated: archive.finite(&format!("stated_{g}"))?,
            };
            let sensors = group.sites.len();
            let fits = sensors > 0
                && group.values.dim() == (sensors, group.bands.len())
                && group.values.iter().all(|v| v.is_finite())
                && group.share.len() == sensors
                && group.stated.len() == sensors
                && group.share.iter().chain(&group.stated).all(|v| *v >= 0.0);
            let fresh =
                group.bands.iter().all(|&b| b < bands && !std::mem::replace(&mut seen[b], true));
            if !fits || !fresh {
                return Err(damaged(&format!("values_{g}"), "does not fit the others"));
            }
            groups.push(group);
        }
        if !seen.iter().all(|s| *s) {
            return Err(damaged("groups", "does not hold every band"));
        }
        Ok(Self { link, groups, bands })
    }
}
