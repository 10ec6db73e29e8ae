//! Tiles, one by one or all of a view that are ready.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::response::Response;

use super::{Id, Shared, State, band_of, item_of};
use crate::answer::{Answered, Refusal, bytes_answer};
use crate::blocks::{Seen, View};
use crate::query::Query;
use crate::tile::{Layer, STEPS, Tile, ZOOMS};

/// How long a tile is waited for before a draft is given.
const PATIENCE: Duration = Duration::from_millis(50);
/// How often who waits longer asks again, so that the server knows that somebody does.
const AGAIN: Duration = Duration::from_secs(1);
/// Tiles of one answer.
const MOST_TILES: i64 = 256;
/// The farthest tile that is named.
const FARTHEST: i64 = 1 << 40;

fn layer_of(query: &Query) -> Result<Layer, Refusal> {
    match query.text("layer").unwrap_or("power") {
        "power" => Ok(Layer::Power),
        "spread" => Ok(Layer::Spread),
        "best" => Ok(Layer::Best),
        "above" => query
            .number("level")?
            .map(Layer::Above)
            .ok_or_else(|| Refusal::input("layer=above needs a level in dB: level=-70")),
        other => {
            let message = format!("layer={other}: expected power, spread, above or best");
            Err(Refusal::input(message))
        }
    }
}

fn step_of(query: &Query) -> Result<usize, Refusal> {
    let step = query.whole("step")?.unwrap_or(2);
    if STEPS.contains(&step) {
        return Ok(step);
    }
    Err(Refusal::input(format!("step={step}: expected 1, 2, 4, 8 or 16 pixels")))
}

fn tile_at(z: i32, x: i64, y: i64, step: usize) -> Result<Tile, Refusal> {
    if ZOOMS.contains(&z) && x.abs() <= FARTHEST && y.abs() <= FARTHEST {
        return Ok(Tile { z, x, y, step });
    }
    Err(Refusal::missing(format!(
        "tile {z}/{x}/{y}: zooms go from {} to {}",
        ZOOMS.start(),
        ZOOMS.end()
    )))
}

/// The answer with a tile: a draft says so.
fn answer(values: Vec<i16>, full: bool) -> Response {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut response = bytes_answer("application/octet-stream", bytes);
    let detail = HeaderValue::from_static(if full { "full" } else { "draft" });
    response.headers_mut().insert("portolan-detail", detail);
    response
}

/// Waits until a view is there in full, or there is a draft of it and no time left.
async fn waited(
    shared: &Shared,
    view: &View<'_>,
    patience: Option<Duration>,
) -> Result<Seen, Refusal> {
    let begun = Instant::now();
    let mut waits = None;
    loop {
        let changed = shared.blocks.changed.notified();
        let mut changed = pin!(changed);
        changed.as_mut().enable();
        let seen = shared.blocks.look(view)?;
        let left = patience.map(|patience| patience.saturating_sub(begun.elapsed()));
        if seen.full || (seen.any && left == Some(Duration::ZERO)) {
            return Ok(seen);
        }
        if waits.is_none() {
            let turn = shared.waiting.try_acquire();
            waits = Some(turn.map_err(|_| Refusal::busy("too many tiles are being drawn"))?);
        }
        let most = left.filter(|_| seen.any).unwrap_or(AGAIN);
        let _ = tokio::time::timeout(most, changed).await;
    }
}

pub async fn one(
    shared: State,
    Id(id): Id,
    Path(path): Path<HashMap<String, String>>,
    query: Query,
) -> Answered {
    let number = |name: &str| path.get(name).and_then(|text| text.parse::<i64>().ok());
    let (Some(z), Some(x), Some(y)) = (number("z"), number("x"), number("y")) else {
        return Err(Refusal::missing("a tile is named by three whole numbers"));
    };
    let tile = tile_at(i32::try_from(z).unwrap_or(i32::MAX), x, y, step_of(&query)?)?;
    let item = item_of(&shared, id)?;
    let surface = item.surface()?;
    let (band, layer) = (band_of(&query, surface.bands())?, layer_of(&query)?);
    let patience = if query.flag("wait", false)? { None } else { Some(PATIENCE) };
    if !tile.touches(&surface.area()?) {
        return Err(Refusal::missing("the tile lies outside of the map"));
    }
    let view = View { item: id, surface, tile, band, layer };
    let seen = waited(&shared, &view, patience).await?;
    Ok(answer(view.values(&seen), seen.full))
}

/// A byte for every tile of a rectangle (0 nothing yet, 1 here, 2 outside of the map, 3 a draft), y
/// from the top and x from the left, then the tiles that are here, one after the other.
pub async fn many(shared: State, Id(id): Id, query: Query) -> Answered {
    let item = item_of(&shared, id)?;
    let surface = item.surface()?.clone();
    let (band, layer, step) =
        (band_of(&query, surface.bands())?, layer_of(&query)?, step_of(&query)?);
    let drafts = query.flag("drafts", true)?;
    let z: i32 = query.needed("z")?;
    let [x0, x1, y0, y1]: [i64; 4] =
        [query.needed("x0")?, query.needed("x1")?, query.needed("y0")?, query.needed("y1")?];
    let (low, high) = (tile_at(z, x0, y0, step)?, tile_at(z, x1, y1, step)?);
    if x1 < x0 || y1 < y0 || (x1 - x0 + 1).saturating_mul(y1 - y0 + 1) > MOST_TILES {
        return Err(Refusal::input(format!(
            "expected x0 <= x1, y0 <= y1 and at most {MOST_TILES} tiles"
        )));
    }
    let area = surface.area()?;
    let view = |x: i64, y: i64| View {
        item: id,
        surface: &surface,
        tile: Tile { z, x, y, step },
        band,
        layer,
    };
    let mut views: Vec<View<'_>> = (low.y..=high.y)
        .flat_map(|y| (low.x..=high.x).map(move |x| (x, y)))
        .map(|(x, y)| view(x, y))
        .filter(|view| view.tile.touches(&area))
        .collect();
    // What is asked for last is drawn first: the middle of the rectangle.
    let away = |v: &View<'_>| (2 * v.tile.x - x0 - x1).abs().max((2 * v.tile.y - y0 - y1).abs());
    views.sort_by_key(|view| Reverse(away(view)));
    if let Some(middle) = views.last().filter(|_| drafts) {
        waited(&shared, middle, Some(Duration::ZERO)).await?;
    }
    let mut seen = HashMap::new();
    for view in &views {
        seen.insert((view.tile.x, view.tile.y), shared.blocks.look(view)?);
    }
    let surface = surface.clone();
    let bytes = shared
        .question(move |_| {
            let size = 2 * low.places() * low.places();
            let (mut flags, mut values) = (Vec::new(), Vec::with_capacity(seen.len() * size));
            for y in (low.y..=high.y).rev() {
                for x in low.x..=high.x {
                    let Some(seen) = seen.get(&(x, y)) else {
                        flags.push(2);
                        continue;
                    };
                    let shown = seen.full || (seen.any && drafts);
                    flags.push(if seen.full { 1 } else { 3 * u8::from(shown) });
                    if shown {
                        let tile = Tile { z, x, y, step };
                        let view = View { item: id, surface: &surface, tile, band, layer };
                        values.extend(view.values(seen).iter().flat_map(|v| v.to_le_bytes()));
                    }
                }
            }
            // Numbers of two bytes begin at an even place.
            if flags.len() % 2 == 1 {
                flags.push(0);
            }
            flags.append(&mut values);
            Ok(flags)
        })
        .await?;
    Ok(bytes_answer("application/octet-stream", bytes))
}
