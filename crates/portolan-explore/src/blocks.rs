//! Blocks of places that have been asked for, kept within a budget of bytes, and who draws them.
//! All bands of a place are drawn at once: what costs is to find and weigh the sensors around it,
//! and that is the same for all of them. A new band is therefore a copy out of memory. Who asks
//! gets what there is and need not wait: what is missing is drawn meanwhile, that which was asked
//! for last first.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portolan::coverage::chance_above;
use portolan::{EstimateError, Progress, Region, Site};
use tokio::sync::Notify;

use crate::answer::Refusal;
use crate::lattice::{Block, BlockAddress, Found, Gathered, Levels, SIZE};
use crate::surface::{Surface, decibels};
use crate::tile::{Layer, Tile, UNKNOWN, packed, unpacked};

/// Bands of one block: surveys with hundreds are drawn in parts.
const BANDS: usize = 64;
/// Bytes that are kept.
const BUDGET: usize = 384 << 20;
/// Blocks that wait to be drawn; more are forgotten, those asked for longest ago first.
const MOST_WANTED: usize = 600;
/// Beyond so many, places that many views are picked from get every third turn.
const CROWD: usize = 64;
/// What nobody has asked for during this time is not drawn.
const FORGOTTEN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    item: u32,
    part: usize,
    address: BlockAddress,
    /// With the spread, which may cost most.
    spread: bool,
}

struct Kept {
    found: Result<Arc<Block>, Refusal>,
    used: u64,
}

struct Wanted {
    surface: Arc<Surface>,
    levels: Levels,
    /// Millionths of a second since the beginning; 0 where it is not wanted any more.
    asked: Arc<AtomicU64>,
    drawing: bool,
    /// Whether tiles are made of it, not only drafts.
    needed: bool,
}

#[derive(Default)]
struct State {
    kept: HashMap<Key, Kept>,
    bytes: usize,
    clock: u64,
    wanted: HashMap<Key, Wanted>,
    workers: usize,
    /// Blocks that were begun.
    begun: usize,
}

/// All blocks, and who draws them.
pub struct Blocks {
    state: Mutex<State>,
    begun: Instant,
    workers: usize,
    /// Told whenever a block is there.
    pub changed: Notify,
    /// Blocks drawn so far.
    pub drawn: AtomicU64,
}

/// A view of an item: what a tile shows of it.
pub struct View<'a> {
    pub item: u32,
    pub surface: &'a Arc<Surface>,
    pub tile: Tile,
    pub band: usize,
    pub layer: Layer,
}

/// The blocks of a view that are there.
pub struct Seen {
    /// Of every part of the bands that it looks at.
    parts: Vec<Found>,
    area: Region,
    /// Whether these are all places of the tile: otherwise it is a draft.
    pub full: bool,
    /// Whether there is anything to show.
    pub any: bool,
}

impl View<'_> {
    /// Parts of the bands that the layer looks at.
    fn parts(&self) -> std::ops::Range<usize> {
        match self.layer {
            Layer::Best => 0..self.surface.bands().div_ceil(BANDS),
            _ => self.band / BANDS..self.band / BANDS + 1,
        }
    }

    /// Whether the spread is drawn: where the layer shows it, or it costs nothing.
    fn spread(&self) -> bool {
        let shown = matches!(self.layer, Layer::Spread | Layer::Above(_));
        self.surface.gives_spread() && (shown || !self.surface.power_costs_less())
    }

    /// The values, row by row.
    pub fn values(&self, seen: &Seen) -> Vec<i16> {
        let empty = Gathered::new(&self.tile, &seen.area);
        let band = self.band;
        let power = || empty.clone().of(&seen.parts[0], |block| Some(block.power(band)));
        let spread = || empty.clone().of(&seen.parts[0], |block| block.spread(band));
        match self.layer {
            Layer::Power => power(),
            Layer::Spread => spread(),
            Layer::Above(threshold) => {
                let (mut power, spread) = (power(), spread());
                let sure = !self.surface.gives_spread();
                for (level, spread) in power.iter_mut().zip(spread) {
                    let spread = if sure { 0.0 } else { unpacked(spread) };
                    *level = packed(100.0 * chance_above(unpacked(*level), spread, threshold));
                }
                power
            }
            Layer::Best => {
                let mut best = vec![(UNKNOWN, UNKNOWN); self.tile.places().pow(2)];
                for band in 0..self.surface.bands() {
                    let found = &seen.parts[band / BANDS];
                    let power = empty.clone().of(found, |block| Some(block.power(band)));
                    for (best, power) in best.iter_mut().zip(power) {
                        if power > best.1 {
                            *best = (band as i16, power);
                        }
                    }
                }
                best.into_iter().map(|(band, _)| band).collect()
            }
        }
    }
}

impl Blocks {
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            state: Mutex::default(),
            begun: Instant::now(),
            workers: cores.clamp(2, 8),
            changed: Notify::new(),
            drawn: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        1 + self.begun.elapsed().as_micros() as u64
    }

    /// What there is of a view; what is missing begins to be drawn.
    pub fn look(self: &Arc<Self>, view: &View<'_>) -> Result<Seen, Refusal> {
        let area = view.surface.area()?;
        let levels = Levels::of(&area);
        let needed = levels.needed(&view.tile, &area);
        let (mut parts, mut full, mut any) = (Vec::new(), true, true);
        let now = self.now();
        let state = &mut *self.state();
        for part in view.parts() {
            let mut found = Found::new();
            let spread = view.spread();
            let key = |address: BlockAddress| Key { item: view.item, part, address, spread };
            let want = |state: &mut State, address: BlockAddress, needed: bool| {
                state.want(key(address), view.surface, levels, now).needed |= needed;
            };
            for &address in &needed {
                match state.found(key(address))? {
                    Some(block) => found.push((address, block)),
                    None => want(state, address, true),
                }
            }
            let complete = found.len() == needed.len();
            full &= complete;
            if !complete {
                any &= levels.first < levels.full(&view.tile);
                for address in levels.for_draft(&view.tile, &area) {
                    match state.found(key(address))? {
                        Some(block) => found.push((address, block)),
                        None if levels.serves_drafts(address.level) => {
                            any &= address.level != levels.first;
                            want(state, address, false);
                        }
                        None => {}
                    }
                }
            }
            parts.push(found);
        }
        self.hire(state);
        Ok(Seen { parts, area, full, any })
    }

    /// Begins to draw what the first drafts of an item are made of, before anybody asks.
    pub fn draw_ahead(self: &Arc<Self>, item: u32, surface: &Arc<Surface>) {
        let Ok(area) = surface.area() else { return };
        let levels = Levels::of(&area);
        let state = &mut *self.state();
        for address in levels.ahead(&area) {
            // The first of all layers: few places cost little.
            let all = !surface.power_costs_less() || address.level == levels.first;
            let spread = surface.gives_spread() && all;
            let key = Key { item, part: 0, address, spread };
            state.want(key, surface, levels, self.now());
        }
        self.hire(state);
    }

    /// Begins as many workers as there is work for.
    fn hire(self: &Arc<Self>, state: &mut State) {
        let waiting = state.wanted.values().filter(|wanted| !wanted.drawing).count();
        for _ in 0..self.workers.saturating_sub(state.workers).min(waiting) {
            state.workers += 1;
            let blocks = self.clone();
            tokio::task::spawn_blocking(move || blocks.work());
        }
    }

    /// Draws what is wanted until nothing is.
    fn work(&self) {
        loop {
            let now = self.now();
            let Some((key, surface, levels, asked)) = self.state().next(now) else { return };
            let go_on = |_: f64| {
                let asked = asked.load(Ordering::Relaxed);
                asked > 0 && self.now() < asked + FORGOTTEN.as_micros() as u64
            };
            let progress = Progress::new(&go_on);
            let margin = levels.margin(key.address.level);
            let draw = || drawn(&surface, key, margin, &progress);
            let found = match catch_unwind(AssertUnwindSafe(draw)) {
                Ok(Ok(block)) => Some(Ok(Arc::new(block))),
                Ok(Err(EstimateError::Cancelled)) => None,
                Ok(Err(error)) => Some(Err(Refusal::from(error))),
                Err(_) => Some(Err(Refusal::broken("drawing a tile failed"))),
            };
            let mut state = self.state();
            // An item that was closed meanwhile is not wanted any more.
            let wanted = state.wanted.remove(&key).is_some();
            if let Some(found) = found.filter(|_| wanted) {
                state.keep(key, found);
                self.drawn.fetch_add(1, Ordering::Relaxed);
            }
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// Lets go of an item's blocks.
    pub fn forget(&self, item: u32) {
        self.leave(|key| key.item == item);
    }

    /// Lets go of everything: the server ends.
    pub fn end(&self) {
        self.leave(|_| true);
    }

    fn leave(&self, gone: impl Fn(&Key) -> bool) {
        let mut state = self.state();
        state.wanted.retain(|key, wanted| {
            if gone(key) {
                wanted.asked.store(0, Ordering::Relaxed);
            }
            !gone(key)
        });
        state.kept.retain(|key, _| !gone(key));
        state.bytes = state.kept.values().map(Kept::bytes).sum();
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        self.found.as_ref().map_or(0, |block| block.bytes())
    }
}

impl State {
    /// A block that holds at least what is asked for.
    fn found(&mut self, key: Key) -> Result<Option<Arc<Block>>, Refusal> {
        let more = Key { spread: true, ..key };
        let key = if self.kept.contains_key(&more) { more } else { key };
        let Some(kept) = self.kept.get_mut(&key) else { return Ok(None) };
        self.clock += 1;
        kept.used = self.clock;
        kept.found.clone().map(Some)
    }

    fn want(&mut self, key: Key, surface: &Arc<Surface>, levels: Levels, now: u64) -> &mut Wanted {
        if self.wanted.len() > MOST_WANTED {
            let waiting = self.wanted.iter().filter(|(_, wanted)| !wanted.drawing);
            let oldest = waiting.min_by_key(|(_, wanted)| wanted.asked.load(Ordering::Relaxed));
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.wanted.remove(&key);
            }
        }
        let more = Key { spread: true, ..key };
        let key = if self.wanted.contains_key(&more) { more } else { key };
        let new = || Wanted {
            surface: surface.clone(),
            levels,
            asked: Arc::default(),
            drawing: false,
            needed: false,
        };
        let wanted = self.wanted.entry(key).or_insert_with(new);
        wanted.asked.store(now, Ordering::Relaxed);
        wanted
    }

    /// What to draw next; None where the worker may go. What all drafts are made of comes first,
    /// then what tiles are made of, that which was asked for last before the others.
    fn next(&mut self, now: u64) -> Option<(Key, Arc<Surface>, Levels, Arc<AtomicU64>)> {
        let fresh = |wanted: &Wanted| {
            let asked = wanted.asked.load(Ordering::Relaxed);
            wanted.drawing || now < asked + FORGOTTEN.as_micros() as u64
        };
        self.wanted.retain(|_, wanted| fresh(wanted));
        let base_next = self.begun.is_multiple_of(3) && self.wanted.len() > CROWD;
        let rank = |(key, wanted): &(&Key, &mut Wanted)| {
            let (level, levels) = (key.address.level, wanted.levels);
            let rank = match level {
                _ if level == levels.first => 4,
                _ if level == levels.second => 3,
                _ if level == levels.base && base_next => 2,
                _ => i32::from(wanted.needed),
            };
            (rank, wanted.asked.load(Ordering::Relaxed))
        };
        let waiting = self.wanted.iter_mut().filter(|(_, wanted)| !wanted.drawing);
        let Some((key, wanted)) = waiting.max_by_key(rank) else {
            self.workers -= 1;
            return None;
        };
        wanted.drawing = true;
        self.begun += 1;
        Some((*key, wanted.surface.clone(), wanted.levels, wanted.asked.clone()))
    }

    /// Keeps a block, and lets go of what was not used for longest until the rest is within the
    /// budget.
    fn keep(&mut self, key: Key, found: Result<Arc<Block>, Refusal>) {
        self.clock += 1;
        let kept = Kept { found, used: self.clock };
        self.bytes += kept.bytes();
        self.kept.insert(key, kept);
        if key.spread {
            // The same without it is not needed any more.
            let less = self.kept.remove(&Key { spread: false, ..key });
            self.bytes -= less.map_or(0, |kept| kept.bytes());
        }
        while self.bytes > BUDGET && self.kept.len() > 1 {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key);
            let gone = oldest.and_then(|key| self.kept.remove(&key));
            self.bytes -= gone.map_or(0, |kept| kept.bytes());
        }
    }
}

/// Asks for the places of a block, in a part of the bands.
fn drawn(
    surface: &Surface,
    key: Key,
    margin: f64,
    progress: &Progress<'_>,
) -> Result<Block, EstimateError> {
    let area: Region = surface.area()?;
    let first = key.part * BANDS;
    let bands: Vec<usize> = (first..surface.bands().min(first + BANDS)).collect();
    let places = key.address.sites(&area, margin);
    let height = surface.height_m();
    let asked: Vec<Site> = places.iter().flatten().map(|site| site.at_height(height)).collect();
    let (power, spread) = if key.spread {
        let found = surface.ask(&asked, &bands, progress)?;
        (found.power, found.spread_db)
    } else {
        (surface.power(&asked, &bands, progress)?, None)
    };
    let scale = surface.scale();
    let spread_to = |values: &ndarray::Array2<f64>, of: &dyn Fn(f64) -> i16| {
        let mut out = vec![UNKNOWN; SIZE * bands.len()];
        let there = places.iter().enumerate().filter(|(_, site)| site.is_some());
        for ((place, _), row) in there.zip(values.rows()) {
            for (k, value) in row.iter().enumerate() {
                out[k * SIZE + place] = of(*value);
            }
        }
        out
    };
    Ok(Block {
        first,
        power: spread_to(&power, &|x| packed(decibels(scale, x))),
        spread: spread.as_ref().map(|spread| spread_to(spread, &packed)),
    })
}
