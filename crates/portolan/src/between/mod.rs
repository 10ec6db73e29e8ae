//! What stands between a transmitter and a place beside the distance: walls, floors, and what other
//! crates add. Every number of it is a hypothesis: a fit says how many decibels it takes, or drops it.

mod floors;
mod segments;
mod walls;

use std::fmt;
use std::sync::{Arc, RwLock};

use ndarray::Array2;

pub use floors::Floors;
pub use walls::{Wall, Walls};

use crate::error::InputError;
use crate::model::{Archive, damaged};
use crate::site::Site;

/// Numbers between a transmitter and a place, each of which may take power: walls crossed, floors,
/// metres through a wood.
///
/// ```
/// use ndarray::Array2;
/// use portolan::between::{Between, LossColumn};
/// use portolan::model::Archive;
/// use portolan::Site;
///
/// /// A hedge along x = 10 m.
/// #[derive(Debug)]
/// struct Hedge;
///
/// impl Between for Hedge {
///     fn kind(&self) -> &'static str {
///         "hedge"
///     }
///
///     fn columns(&self) -> Vec<LossColumn> {
///         vec![LossColumn::new("hedge", 5.0)]
///     }
///
///     fn between(&self, transmitter: Site, at: &[Site]) -> Array2<f64> {
///         let behind = |site: &Site| (site.x_m > 10.0) != (transmitter.x_m > 10.0);
///         Array2::from_shape_fn((at.len(), 1), |(i, _)| f64::from(behind(&at[i])))
///     }
///
///     fn save(&self, _archive: &mut Archive) {}
/// }
///
/// let crossed = Hedge.between(Site::new(0.0, 0.0), &[Site::new(5.0, 5.0), Site::new(15.0, 5.0)]);
/// assert_eq!((crossed[[0, 0]], crossed[[1, 0]]), (0.0, 1.0));
/// ```
pub trait Between: Send + Sync + fmt::Debug {
    /// The name under which it is written; [`register`] says how it is read.
    fn kind(&self) -> &'static str;

    /// What each number is.
    fn columns(&self) -> Vec<LossColumn>;

    /// The numbers between a transmitter and places, places x columns.
    fn between(&self, transmitter: Site, at: &[Site]) -> Array2<f64>;

    /// Metres from floor to floor, where it knows: transmitters are then sought one floor above and below
    /// a survey of one floor.
    fn floor_height_m(&self) -> Option<f64> {
        None
    }

    /// Writes what it takes to say the same of any other place.
    fn save(&self, archive: &mut Archive);
}

/// One number between a transmitter and a place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LossColumn {
    /// Its name in reports.
    pub name: String,
    /// Columns of one class are first tried as their sum.
    pub class: String,
    /// Decibels that a unit of it may take before any reading: the standard deviation about zero.
    pub loss_sd_db: f64,
}

impl LossColumn {
    /// A column of a class of its own.
    pub fn new(name: &str, loss_sd_db: f64) -> Self {
        Self { name: name.into(), class: name.into(), loss_sd_db }
    }

    /// The same column in a class with others.
    pub fn in_class(self, class: &str) -> Self {
        Self { class: class.into(), ..self }
    }
}

/// A function that reads what [`Between::save`] wrote.
pub type LoadBetween = fn(&Archive) -> Result<Arc<dyn Between>, InputError>;

const OWN: [(&str, LoadBetween); 2] = [
    (walls::KIND, |archive| Ok(Arc::new(Walls::load(archive)?))),
    (floors::KIND, |archive| Ok(Arc::new(Floors::load(archive)?))),
];

/// Kinds of other crates.
static OTHERS: RwLock<Vec<(&'static str, LoadBetween)>> = RwLock::new(Vec::new());

/// Says how models with an obstacle of another crate are read. Its kind must be new.
pub fn register(kind: &'static str, load: LoadBetween) -> Result<(), InputError> {
    let mut others = OTHERS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if OWN.iter().chain(others.iter()).any(|(known, _)| *known == kind) {
        return Err(InputError::Request(format!("the kind of obstacle '{kind}' is taken")));
    }
    others.push((kind, load));
    Ok(())
}

/// Writes some obstacles.
pub(crate) fn save_all(obstacles: &[Arc<dyn Between>], archive: &mut Archive) {
    archive.put_text("obstacles", obstacles.iter().map(|own| own.kind().to_string()));
    for (i, obstacle) in obstacles.iter().enumerate() {
        let mut own = Archive::default();
        obstacle.save(&mut own);
        archive.put_all(&format!("obstacle_{i}_"), &own);
    }
}

/// Obstacles, as [`save_all`] wrote them.
pub(crate) fn load_all(archive: &Archive) -> Result<Vec<Arc<dyn Between>>, InputError> {
    let others = OTHERS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let one = |(i, kind): (usize, &String)| {
        let known = OWN.iter().chain(others.iter()).find(|(known, _)| known == kind);
        let Some((_, load)) = known else {
            let message = format!("holds '{kind}', which this program does not know");
            return Err(damaged("obstacles", &message));
        };
        load(&archive.inside(&format!("obstacle_{i}_")))
    };
    archive.text("obstacles")?.iter().enumerate().map(one).collect()
}
