//! Places and moments: what readings are taken at and predictions are made for.

use std::collections::HashSet;

use crate::error::InputError;
use crate::model::{Archive, damaged};
use crate::site::{Region, Site, usual_height_m};

/// Places, each with the moment of a reading or a prediction where that is known. A place may be
/// listed any number of times.
///
/// ```
/// use portolan::{Points, Site};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25), Site::new(0.0, 0.0)];
/// let points = Points::from(sites).with_time_s(Some(vec![0.0, 61.5, f64::NAN]))?;
/// assert_eq!((points.len(), points.places(), points.time_span()), (3, 2, Some((0.0, 61.5))));
/// assert_eq!(points.select(&[1]).time_s(), Some(&[61.5][..]));
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Points {
    sites: Vec<Site>,
    time_s: Option<Vec<f64>>,
}

impl From<Vec<Site>> for Points {
    fn from(sites: Vec<Site>) -> Self {
        Self { sites, time_s: None }
    }
}

impl From<&[Site]> for Points {
    fn from(sites: &[Site]) -> Self {
        sites.to_vec().into()
    }
}

impl Points {
    /// With a moment for each place, in seconds of one clock; NaN where it is unknown.
    pub fn with_time_s(self, time_s: Option<Vec<f64>>) -> Result<Self, InputError> {
        if let Some(time) = &time_s {
            if time.len() != self.len() {
                let (found, expected) = (vec![time.len()], vec![self.len()]);
                return Err(InputError::Shape { what: "time_s", found, expected });
            }
            if let Some(sensor) = time.iter().position(|t| t.is_infinite()) {
                let (value, expected) = (time[sensor], "finite, or NaN where unknown");
                return Err(InputError::Entry { what: "time", sensor, band: 0, value, expected });
            }
        }
        Ok(Self { time_s, ..self })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The places, one for each point.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The moments in seconds, where any are known; NaN for points without one.
    pub fn time_s(&self) -> Option<&[f64]> {
        self.time_s.as_deref()
    }

    /// Number of different places.
    pub fn places(&self) -> usize {
        self.sites.iter().map(|site| site.bits()).collect::<HashSet<_>>().len()
    }

    /// The first and the last moment.
    pub fn time_span(&self) -> Option<(f64, f64)> {
        let known = self.time_s.iter().flatten().filter(|t| !t.is_nan());
        known.fold(None, |span, &t| {
            let (from, to) = span.unwrap_or((t, t));
            Some((f64::min(from, t), f64::max(to, t)))
        })
    }

    /// The height of half of the points or more, in metres.
    pub fn height_m(&self) -> f64 {
        usual_height_m(&self.sites)
    }

    /// Whether they are at more than one height.
    pub fn has_heights(&self) -> bool {
        self.sites.iter().any(|site| site.z_m != self.sites[0].z_m)
    }

    /// The smallest rectangle around them; None without any.
    pub fn region(&self) -> Option<Region> {
        Region::around(&self.sites)
    }

    /// Some of the points, by number.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            sites: rows.iter().map(|&row| self.sites[row]).collect(),
            time_s: self.time_s.as_ref().map(|t| rows.iter().map(|&row| t[row]).collect()),
        }
    }

    /// These and others behind them.
    pub fn followed_by(&self, others: &Points) -> Self {
        let times =
            |points: &Points| points.time_s.clone().unwrap_or_else(|| vec![f64::NAN; points.len()]);
        let timed = self.time_s.is_some() || others.time_s.is_some();
        Self {
            sites: [&self.sites[..], &others.sites].concat(),
            time_s: timed.then(|| [times(self), times(others)].concat()),
        }
    }

    /// The same moments at other places.
    pub(crate) fn moved(&self, place: impl Fn(Site) -> Site) -> Self {
        let sites = self.sites.iter().map(|site| place(*site)).collect();
        Self { sites, time_s: self.time_s.clone() }
    }

    /// The places without their moments.
    pub(crate) fn untimed(&self) -> Self {
        self.sites.clone().into()
    }

    pub(crate) fn save(&self, archive: &mut Archive) {
        archive.put_sites("sites", &self.sites);
        if let Some(time_s) = &self.time_s {
            archive.put_vector("time_s", time_s);
        }
    }

    pub(crate) fn load(archive: &Archive) -> Result<Self, InputError> {
        let time_s = archive.has("time_s").then(|| archive.vector("time_s")).transpose()?;
        let points = Points::from(archive.sites("sites")?).with_time_s(time_s);
        points.map_err(|_| damaged("time_s", "is not a moment for every reading"))
    }
}
