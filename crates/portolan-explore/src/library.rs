//! What the explorer holds: readings, models and maps, and the origin of each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ndarray::Array2;
use portolan::{EstimateError, Progress, Readings, Region, Site};
use portolan_io::picture::{WIDEST_DB, robust_limits};
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::surface::{Surface, decibels};

/// Items that are held at once.
pub const MOST_ITEMS: usize = 64;
/// Places along a side that an overview is asked at.
const OVERVIEW: usize = 28;

/// Options of a method.
pub type Settings = Vec<(String, String)>;

/// What was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct FitCall {
    /// The readings' id.
    pub readings: u32,
    pub method: String,
    pub settings: Settings,
    /// How many emitters it was told; None = auto.
    pub emitters: Option<usize>,
    pub seed: u64,
}

impl FitCall {
    /// The request that starts this fit.
    pub fn request(&self) -> Value {
        let settings: serde_json::Map<String, Value> =
            self.settings.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "kind": "fit", "readings": self.readings, "method": self.method, "settings": settings,
            "emitters": self.emitters, "seed": self.seed,
        })
    }
}

/// The origin of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A file, by the name that a command would use, and what was said about it.
    File { name: String, words: Vec<(String, String)> },
    /// The demonstration's readings.
    Demo,
    /// A fit in the page.
    Fit(FitCall),
    /// Handed over by the program that started the explorer.
    Given,
}

/// Readings, or something to look at.
pub enum Content {
    Readings(Arc<Readings>),
    Surface(Arc<Surface>),
}

/// One thing that is held.
pub struct Item {
    pub id: u32,
    pub name: String,
    pub source: Source,
    pub content: Content,
    /// Notes for the user.
    pub notes: Vec<String>,
    overview: OnceLock<Overview>,
    held_out: OnceLock<Option<Array2<f64>>>,
}

/// What an item's bands are like.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Least, middle and greatest level of every band in dB.
    pub strip: Vec<[f64; 3]>,
    /// Ends of the colour scale of every band, of all of them, and of the spread.
    pub limits: Vec<(f64, f64)>,
    pub all: (f64, f64),
    pub spread: (f64, f64),
    /// Bands that are the strongest somewhere, that of the most places first.
    pub best: Vec<usize>,
}

impl Item {
    pub fn surface(&self) -> Result<&Arc<Surface>, Refusal> {
        match &self.content {
            Content::Surface(surface) => Ok(surface),
            Content::Readings(_) => Err(Refusal::input(format!(
                "item {} holds readings: fit a method to them first",
                self.id
            ))),
        }
    }

    pub fn readings(&self) -> Option<&Arc<Readings>> {
        match &self.content {
            Content::Readings(readings) => Some(readings),
            Content::Surface(_) => None,
        }
    }

    /// The area that it covers.
    pub fn area(&self) -> Result<Region, Refusal> {
        Ok(match &self.content {
            Content::Readings(readings) => readings.grid_or_default()?.region(),
            Content::Surface(surface) => surface.area()?,
        })
    }

    /// Asked once, on a coarse lattice.
    pub fn overview(&self) -> Result<&Overview, Refusal> {
        if let Some(known) = self.overview.get() {
            return Ok(known);
        }
        let found = match &self.content {
            Content::Readings(readings) => {
                let scale = readings.scale();
                Overview::of(&readings.power().mapv(|x| decibels(scale, x)), None)
            }
            Content::Surface(surface) => {
                let (level, spread) = coarse(surface)?;
                Overview::of(&level, spread.as_ref())
            }
        };
        Ok(self.overview.get_or_init(|| found))
    }

    /// Power at every sensor as the others predict it, where the model can tell; found once.
    pub fn held_out(&self) -> Result<Option<&Array2<f64>>, Refusal> {
        if let Some(known) = self.held_out.get() {
            return Ok(known.as_ref());
        }
        let found = match &self.content {
            Content::Surface(surface) => match surface.as_ref() {
                Surface::Model(model) => model.leave_one_out()?,
                Surface::Map(_) => None,
            },
            Content::Readings(_) => None,
        };
        Ok(self.held_out.get_or_init(|| found).as_ref())
    }
}

/// Level and spread in dB on a coarse lattice over the area.
fn coarse(surface: &Surface) -> Result<(Array2<f64>, Option<Array2<f64>>), EstimateError> {
    let Region { low, high } = surface.area()?;
    let along =
        |from: f64, to: f64, i: usize| from + (to - from) * (i as f64 + 0.5) / OVERVIEW as f64;
    let sites: Vec<Site> = (0..OVERVIEW * OVERVIEW)
        .map(|i| {
            let (row, col) = (i / OVERVIEW, i % OVERVIEW);
            Site::new(along(low.x_m, high.x_m, row), along(low.y_m, high.y_m, col))
                .at_height(surface.height_m())
        })
        .collect();
    let bands: Vec<usize> = (0..surface.bands()).collect();
    let found = surface.ask(&sites, &bands, &Progress::silent())?;
    let scale = surface.scale();
    Ok((found.power.mapv(|x| decibels(scale, x)), found.spread_db))
}

impl Overview {
    fn of(level: &Array2<f64>, spread: Option<&Array2<f64>>) -> Self {
        let strip = level
            .columns()
            .into_iter()
            .map(|band| {
                let mut known: Vec<f64> = band.iter().copied().filter(|x| x.is_finite()).collect();
                known.sort_unstable_by(f64::total_cmp);
                match known[..] {
                    [] => [f64::NAN; 3],
                    [low, ..] => [low, known[known.len() / 2], known[known.len() - 1]],
                }
            })
            .collect();
        let one = |band: ndarray::ArrayView1<'_, f64>| {
            robust_limits(&[&band.to_owned().insert_axis(ndarray::Axis(1))], WIDEST_DB)
        };
        let most = spread.map_or(1.0, |spread| robust_limits(&[spread], f64::INFINITY).1.max(0.1));
        Self {
            strip,
            limits: level.columns().into_iter().map(one).collect(),
            all: robust_limits(&[level], WIDEST_DB),
            spread: (0.0, most),
            best: strongest(level),
        }
    }
}

/// Bands that are the strongest at some place, that of the most places first.
fn strongest(level: &Array2<f64>) -> Vec<usize> {
    let mut counts = vec![0; level.ncols()];
    for place in level.rows() {
        let known = place.iter().enumerate().filter(|(_, x)| x.is_finite());
        if let Some((band, _)) = known.max_by(|a, b| a.1.total_cmp(b.1)) {
            counts[band] += 1;
        }
    }
    let mut bands: Vec<usize> = (0..counts.len()).filter(|&band| counts[band] > 0).collect();
    bands.sort_by_key(|&band| std::cmp::Reverse(counts[band]));
    bands
}

/// All items.
#[derive(Default)]
pub struct Library {
    items: Mutex<Vec<Arc<Item>>>,
    last: AtomicU32,
}

impl Library {
    /// Takes an item in.
    pub fn add(
        &self,
        name: impl Into<String>,
        source: Source,
        content: Content,
        notes: Vec<String>,
    ) -> Result<Arc<Item>, Refusal> {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if items.len() >= MOST_ITEMS {
            return Err(Refusal::input(format!(
                "{MOST_ITEMS} items are held already: close one first"
            )));
        }
        let id = 1 + self.last.fetch_add(1, Ordering::Relaxed);
        let item = Arc::new(Item {
            id,
            name: name.into(),
            source,
            content,
            notes,
            overview: OnceLock::new(),
            held_out: OnceLock::new(),
        });
        items.push(item.clone());
        Ok(item)
    }

    pub fn all(&self) -> Vec<Arc<Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn get(&self, id: u32) -> Result<Arc<Item>, Refusal> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let found = items.iter().find(|item| item.id == id).cloned();
        found.ok_or_else(|| Refusal::missing(format!("there is no item {id}")))
    }

    /// Lets go of an item and of the fits to it; returns their numbers.
    pub fn remove(&self, id: u32) -> Result<Vec<u32>, Refusal> {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |item: &Item| matches!(&item.source, Source::Fit(call) if call.readings == id);
        if !items.iter().any(|item| item.id == id) {
            return Err(Refusal::missing(format!("there is no item {id}")));
        }
        let gone = |item: &Arc<Item>| item.id == id || of(item);
        let ids = items.iter().filter(|item| gone(item)).map(|item| item.id).collect();
        items.retain(|item| !gone(item));
        Ok(ids)
    }

    /// The readings that a model was fitted to: those of the fit, or held ones at the same places.
    pub fn readings_of(&self, item: &Item) -> Option<Arc<Item>> {
        if item.readings().is_some() {
            return self.get(item.id).ok();
        }
        if let Source::Fit(call) = &item.source {
            return self.get(call.readings).ok();
        }
        let Content::Surface(surface) = &item.content else { return None };
        let Surface::Model(model) = surface.as_ref() else { return None };
        let same = |other: &Arc<Item>| {
            other.readings().is_some_and(|readings| {
                readings.sites() == model.sites() && readings.bands() == model.bands()
            })
        };
        self.all().into_iter().find(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_bands_come_by_how_many_places_they_serve() {
        let none = f64::NAN;
        let level = ndarray::array![
            [-9.0, -2.0, -3.0, -9.0],
            [-9.0, -3.0, -1.0, none],
            [none, none, -5.0, none],
            [none, none, none, none],
        ];
        assert_eq!(strongest(&level), [2, 1]);
    }
}
