//! What the interpolators share: the domain they work in, and bands grouped by their gaps.

use std::collections::HashMap;

use ndarray::{Array2, s};

use super::field::independent::Silence;
use super::visits::Places;
use super::{OptionSpec, Options};
use crate::error::InputError;
use crate::gaussian_process::Scatter;
use crate::link::{DB_PER_LN, Link};
use crate::model::{Archive, damaged};
use crate::readings::Readings;
use crate::site::{PlaceBits, Site};

/// The option that [`Domain::log_from_options`] reads.
pub const OFFSET: OptionSpec = OptionSpec {
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
    pub fn log_from_options(options: &Options) -> Result<Option<f64>, InputError> {
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
    /// How far repeated readings of one place scatter about their mean, which stands in `values`.
    pub scatter: Scatter,
}

/// Entries in the working domain, readings x bands; NaN = gap.
pub(super) struct Rows {
    pub values: Array2<f64>,
    /// One over how often each entry was read; 1 where None.
    pub share: Option<Array2<f64>>,
    /// Stated noise variance; 0 where None.
    pub stated: Option<Array2<f64>>,
}

impl Rows {
    fn of(readings: &Readings, power: Array2<f64>, link: Option<Link>) -> Self {
        let noise = readings.noise_db().filter(|_| link.is_some());
        Self {
            values: power.mapv(|x| link.map_or(x, |link| link.apply(x))),
            share: readings.repeats().map(|repeats| repeats.mapv(|n| 1.0 / n.max(1.0))),
            stated: noise.map(|sd| sd.mapv(|sd| (sd / DB_PER_LN).powi(2))),
        }
    }

    /// Entries that were heard. None of them may be a power that the working domain has no value for.
    pub fn heard(readings: &Readings, link: Option<Link>) -> Result<Self, InputError> {
        let rows = Self::of(readings, readings.power(), link);
        match rows.values.iter().any(|value| value.is_infinite()) {
            true => Err(InputError::Request(
                "a power of zero has no level in dB: fit all readings again".into(),
            )),
            false => Ok(rows),
        }
    }
}

/// Readings in the working domain.
pub(super) struct BandData {
    pub link: Option<Link>,
    pub groups: Vec<Group>,
    bands: usize,
}

impl Group {
    /// Some of its sensors.
    pub fn at_sensors(&self, kept: &[usize]) -> Self {
        Self {
            bands: self.bands.clone(),
            sites: kept.iter().map(|&i| self.sites[i]).collect(),
            values: self.values.select(ndarray::Axis(0), kept),
            share: kept.iter().map(|&i| self.share[i]).collect(),
            stated: kept.iter().map(|&i| self.stated[i]).collect(),
            scatter: self.scatter.clone(),
        }
    }
}

impl BandData {
    /// The same bands with other readings.
    pub fn with_groups(&self, groups: Vec<Group>) -> Self {
        Self { groups, ..*self }
    }

    pub fn new(readings: &Readings, domain: Domain) -> Self {
        Self::with_silence(readings, domain, None)
    }

    /// Unheard entries take the floor, or the pseudo-reading that stands for their silence.
    pub fn with_silence(readings: &Readings, domain: Domain, silence: Option<&Silence>) -> Self {
        let link = domain.link(readings);
        let mut places = Self::places(readings, link, silence.is_some());
        if let Some(silence) = silence {
            places.add_silence(&silence.values, &silence.noise);
        }
        Self { link, groups: places.groups(), bands: readings.bands() }
    }

    /// Readings by place in the working domain: with `apart` every row is a place of its own and
    /// unheard entries are gaps, else visits are joined and unheard entries take the floor.
    pub fn places(readings: &Readings, link: Option<Link>, apart: bool) -> Places {
        let power = if apart { readings.power() } else { readings.power_or_floor() };
        let Rows { values, share, stated } = Rows::of(readings, power, link);
        match apart {
            true => Places::apart(readings.sites(), values, share, stated),
            false => Places::joined(readings.sites(), values, share, stated),
        }
    }

    /// These and further readings of the same bands; visits to one place are joined, or with `apart`
    /// stay apart. What places scattered has told its part: the law is known.
    pub fn with(&self, readings: &Readings, apart: bool) -> Result<Self, InputError> {
        let new = Rows::heard(readings, self.link)?;
        let mut sites: Vec<Site> = Vec::new();
        // A place has as many rows as a band has entries there.
        let mut rows: HashMap<(PlaceBits, usize), usize> = HashMap::new();
        let mut entries: Vec<(usize, usize, usize, usize)> = Vec::new();
        for (g, group) in self.groups.iter().enumerate() {
            let mut seen: HashMap<PlaceBits, usize> = HashMap::new();
            for (i, site) in group.sites.iter().enumerate() {
                let visit = seen.entry(site.bits()).or_default();
                let row = *rows.entry((site.bits(), *visit)).or_insert_with(|| {
                    sites.push(*site);
                    sites.len() - 1
                });
                *visit += 1;
                entries.extend((0..group.bands.len()).map(|k| (g, i, k, row)));
            }
        }
        let own = sites.len();
        sites.extend(readings.sites());
        let mut values = Array2::from_elem((sites.len(), self.bands), f64::NAN);
        let mut share = Array2::ones(values.dim());
        let mut stated = Array2::zeros(values.dim());
        for (g, i, k, row) in entries {
            let group = &self.groups[g];
            let at = [row, group.bands[k]];
            values[at] = group.values[[i, k]];
            (share[at], stated[at]) = (group.share[i], group.stated[i]);
        }
        values.slice_mut(s![own.., ..]).assign(&new.values);
        if let Some(new) = &new.share {
            share.slice_mut(s![own.., ..]).assign(new);
        }
        if let Some(new) = &new.stated {
            stated.slice_mut(s![own.., ..]).assign(new);
        }
        let places = match apart {
            true => Places::apart(&sites, values, Some(share), Some(stated)),
            false => Places::joined(&sites, values, Some(share), Some(stated)),
        };
        let groups = places.groups().into_iter();
        let groups = groups.map(|group| Group { scatter: Scatter::default(), ..group });
        Ok(Self { link: self.link, groups: groups.collect(), bands: self.bands })
    }

    /// Other readings of the same bands in place of these; the law is known.
    pub fn instead(&self, readings: &Readings) -> Result<Self, InputError> {
        let Rows { values, share, stated } = Rows::heard(readings, self.link)?;
        let places = Places::joined(readings.sites(), values, share, stated);
        let groups = places.groups().into_iter();
        let groups = groups.map(|group| Group { scatter: Scatter::default(), ..group });
        Ok(Self { link: self.link, groups: groups.collect(), bands: self.bands })
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

    /// Values of every group (sensors of the group x its bands) at all rows of the readings that stand
    /// there; NaN elsewhere.
    pub fn at_rows(&self, rows: &[Site], values: &[Array2<f64>]) -> Array2<f64> {
        let mut number: HashMap<PlaceBits, Vec<usize>> = HashMap::new();
        for (row, site) in rows.iter().enumerate() {
            number.entry(site.bits()).or_default().push(row);
        }
        let mut found = Array2::from_elem((rows.len(), self.bands), f64::NAN);
        for (group, values) in self.groups.iter().zip(values) {
            for (i, site) in group.sites.iter().enumerate() {
                for &row in number.get(&site.bits()).into_iter().flatten() {
                    for (k, &band) in group.bands.iter().enumerate() {
                        found[[row, band]] = values[[i, k]];
                    }
                }
            }
        }
        found
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
            let Scatter { squares, freedom, stated } = &group.scatter;
            if *freedom > 0.0 {
                archive.put_vector(&format!("scatter_{g}"), squares);
                archive.put_vector(&format!("scattered_{g}"), &[*freedom, *stated]);
            }
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
                scatter: load_scatter(archive, g)?,
            };
            let sensors = group.sites.len();
            let fits = sensors > 0
                && group.values.dim() == (sensors, group.bands.len())
                && group.values.iter().all(|v| v.is_finite())
                && group.share.len() == sensors
                && group.stated.len() == sensors
                && group.scatter.fits(group.bands.len())
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

/// Older models, and those of places that were read once, have no scatter.
fn load_scatter(archive: &Archive, group: usize) -> Result<Scatter, InputError> {
    let name = format!("scatter_{group}");
    if !archive.has(&name) {
        return Ok(Scatter::default());
    }
    match archive.finite(&format!("scattered_{group}"))?[..] {
        [freedom, stated] => Ok(Scatter { squares: archive.finite(&name)?, freedom, stated }),
        _ => Err(damaged(&name, "is not of two numbers")),
    }
}
