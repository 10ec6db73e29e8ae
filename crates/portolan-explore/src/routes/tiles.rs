//! Tiles, one by one or all of a view that are ready.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::Path;

use super::{Id, State, band_of, item_of};
use crate::answer::{Answered, Refusal, bytes_answer};
use crate::blocks::BANDS;
use crate::query::Query;
use crate::surface::Surface;
use crate::tile::{Block, Layer, STEPS, Tile, UNKNOWN, ZOOMS};

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

/// The first band of every part that a layer looks at.
fn parts(surface: &Surface, layer: Layer, band: usize) -> Vec<usize> {
    match layer {
        Layer::Best => (0..surface.bands()).step_by(BANDS).collect(),
        _ => vec![band],
    }
}

/// Appends what a layer says of blocks; of several the strongest band of all.
fn write(blocks: &[Arc<Block>], band: usize, layer: Layer, out: &mut Vec<u8>) {
    if let [block] = blocks {
        return block.write(band, layer, out);
    }
    let mut best = vec![(UNKNOWN, UNKNOWN); blocks.first().map_or(0, |block| block.size)];
    for block in blocks {
        for (best, found) in best.iter_mut().zip(block.best()) {
            if found.1 > best.1 {
                *best = found;
            }
        }
    }
    best.into_iter().for_each(|(band, _)| out.extend_from_slice(&band.to_le_bytes()));
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
    if !tile.touches(&surface.area()?) {
        return Err(Refusal::missing("the tile lies outside of the map"));
    }
    let mut blocks = Vec::new();
    for first in parts(surface, layer, band) {
        blocks.push(shared.blocks.get(id, surface, tile, first).await?);
    }
    let mut out = Vec::with_capacity(2 * tile.places() * tile.places());
    write(&blocks, band, layer, &mut out);
    Ok(bytes_answer("application/octet-stream", out))
}

/// A byte for every tile of a rectangle (0 not drawn yet, 1 here, 2 outside of the map), y from the
/// top and x from the left, then the tiles that are here, one after the other.
pub async fn many(shared: State, Id(id): Id, query: Query) -> Answered {
    let item = item_of(&shared, id)?;
    let surface = item.surface()?.clone();
    let (band, layer, step) =
        (band_of(&query, surface.bands())?, layer_of(&query)?, step_of(&query)?);
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
    let bytes = shared
        .question(move |shared| {
            let size = 2 * low.places() * low.places();
            let count = ((x1 - x0 + 1) * (y1 - y0 + 1)) as usize;
            let (mut flags, mut values) = (Vec::new(), Vec::with_capacity(count * size));
            for y in (low.y..=high.y).rev() {
                for x in low.x..=high.x {
                    let tile = Tile { z, x, y, step };
                    if !tile.touches(&area) {
                        flags.push(2);
                        continue;
                    }
                    let ready = |first: usize| shared.blocks.ready(id, tile, first);
                    let blocks: Option<Vec<_>> =
                        parts(&surface, layer, band).into_iter().map(ready).collect();
                    flags.push(u8::from(blocks.is_some()));
                    if let Some(blocks) = blocks {
                        write(&blocks, band, layer, &mut values);
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
