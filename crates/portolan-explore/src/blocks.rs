//! Lattices that have been asked for, kept within a budget of bytes. All bands of a place are drawn
//! at once: what costs is to find and weigh the sensors around it, and that is the same for all of
//! them. A new band is therefore a copy out of memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portolan::{EstimateError, Progress, Region, Site};
use tokio::sync::{OnceCell, Semaphore};

use crate::answer::Refusal;
use crate::surface::{Surface, decibels};
use crate::tile::{Block, Tile, packed};

/// Bands of one block: surveys with hundreds are drawn in parts.
pub const BANDS: usize = 64;
/// Bytes that are kept.
const BUDGET: usize = 384 << 20;
/// Requests that may wait for a block to be drawn.
const MOST_WAITING: usize = 600;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    item: u32,
    tile: Tile,
    part: usize,
}

#[derive(Default)]
struct Slot {
    block: OnceCell<Arc<Block>>,
    used: AtomicU64,
}

/// All blocks, and who may draw.
pub struct Blocks {
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    clock: AtomicU64,
    drawing: Semaphore,
    waiting: AtomicUsize,
    /// Blocks drawn so far.
    pub drawn: AtomicU64,
}

/// Counts a request that waits, for as long as it does.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stops a drawing that nobody waits for any more.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Blocks {
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            slots: Mutex::default(),
            clock: AtomicU64::new(0),
            drawing: Semaphore::new(cores.max(2)),
            waiting: AtomicUsize::new(0),
            drawn: AtomicU64::new(0),
        }
    }

    fn slot(&self, key: Key) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(key).or_default().clone();
        slot.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// The block that holds a band, where it is drawn already.
    pub fn ready(&self, item: u32, tile: Tile, band: usize) -> Option<Arc<Block>> {
        let key = Key { item, tile, part: band / BANDS };
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(&key)?;
        slot.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot.block.get().cloned()
    }

    /// The block that holds a band, drawn where it is not there; several who ask at once wait for
    /// one drawing.
    pub async fn get(
        &self,
        item: u32,
        surface: &Arc<Surface>,
        tile: Tile,
        band: usize,
    ) -> Result<Arc<Block>, Refusal> {
        let key = Key { item, tile, part: band / BANDS };
        let slot = self.slot(key);
        if let Some(block) = slot.block.get() {
            return Ok(block.clone());
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Refusal::busy("too many tiles are being drawn"));
        }
        let _waits = Waits(&self.waiting);
        let block =
            slot.block.get_or_try_init(|| self.draw(surface.clone(), tile, key.part)).await?;
        self.trim(key);
        Ok(block.clone())
    }

    async fn draw(
        &self,
        surface: Arc<Surface>,
        tile: Tile,
        part: usize,
    ) -> Result<Arc<Block>, Refusal> {
        let stop = Arc::new(AtomicBool::new(false));
        let abandon = Abandon(stop.clone());
        let turn = self.drawing.acquire().await.map_err(|_| Refusal::busy("the server ends"))?;
        let work = tokio::task::spawn_blocking(move || {
            let go_on = |_: f64| !stop.load(Ordering::Relaxed);
            drawn(&surface, tile, part, &Progress::new(&go_on))
        });
        let block = work.await.map_err(|_| Refusal::broken("drawing a tile failed"))??;
        drop((turn, abandon));
        self.drawn.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(block))
    }

    /// Lets go of what was not used for longest, until the rest is within the budget.
    fn trim(&self, kept: Key) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |slot: &Slot| slot.block.get().map_or(0, |block| block.bytes());
        let mut total: usize = slots.values().map(|slot| bytes(slot)).sum();
        if total <= BUDGET {
            return;
        }
        let mut ages: Vec<(u64, Key)> = slots
            .iter()
            .filter(|(key, slot)| **key != kept && slot.block.get().is_some())
            .map(|(key, slot)| (slot.used.load(Ordering::Relaxed), *key))
            .collect();
        ages.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in ages {
            if total <= BUDGET {
                return;
            }
            total -= slots.remove(&key).map_or(0, |slot| bytes(&slot));
        }
    }

    /// Lets go of an item's blocks.
    pub fn forget(&self, item: u32) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|key, _| key.item != item);
    }
}

/// Asks for the lattice of a tile, in a part of the bands.
pub fn drawn(
    surface: &Surface,
    tile: Tile,
    part: usize,
    progress: &Progress<'_>,
) -> Result<Block, EstimateError> {
    let area: Region = surface.area()?;
    let first = part * BANDS;
    let bands: Vec<usize> = (first..surface.bands().min(first + BANDS)).collect();
    let places = tile.sites(&area);
    let asked: Vec<Site> = places.iter().flatten().copied().collect();
    let found = surface.ask(&asked, &bands, progress)?;
    let scale = surface.scale();
    let size = places.len();
    let spread_to = |values: &ndarray::Array2<f64>, of: &(dyn Fn(f64) -> i16 + Sync)| {
        let mut out = vec![crate::tile::UNKNOWN; size * bands.len()];
        let mut row = 0;
        for (place, site) in places.iter().enumerate() {
            if site.is_some() {
                for (k, value) in values.row(row).iter().enumerate() {
                    out[k * size + place] = of(*value);
                }
                row += 1;
            }
        }
        out
    };
    Ok(Block {
        first,
        bands: bands.len(),
        size,
        power: spread_to(&found.power, &|x| packed(decibels(scale, x))),
        spread: found.spread_db.as_ref().map(|spread| spread_to(spread, &packed)),
    })
}
