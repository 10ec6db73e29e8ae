//! What there is, and what it says about places and sensors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ndarray::Array2;
use portolan::estimate::{self, Capability};
use portolan::{Crs, Progress, Readings, Scale, Site};
use portolan_io::export::asked_height;
use portolan_io::gis::earth::Projection;
use portolan_io::json::{emitter_json, method_json, model_report};
use portolan_io::picture::ColourMap;
use serde_json::{Value, json};

use super::{Id, Shared, State, band_of, item_of, rounded};
use crate::answer::{Answered, Refusal, bytes_answer, json_answer};
use crate::library::{Content, Item, Library, Source};
use crate::query::Query;
use crate::surface::{Surface, decibels};

/// Sensors near a place that are listed.
const NEAR: usize = 5;
/// Colours of a palette.
const COLOURS: usize = 256;

/// The server, everything that it holds, and its jobs.
pub async fn state(shared: State) -> Answered {
    let items: Vec<Value> = shared.library.all().iter().map(|item| brief(&shared, item)).collect();
    let jobs: Vec<Value> = shared.jobs.all().iter().map(|job| super::work::job_json(job)).collect();
    let skipped: Vec<Value> =
        shared.skipped.iter().map(|(file, why)| json!({ "file": file, "why": why })).collect();
    Ok(json_answer(&json!({
        "program": "portolan",
        "version": env!("CARGO_PKG_VERSION"),
        "instance": shared.instance,
        "items": items,
        "jobs": jobs,
        "skipped": skipped,
        "failures": shared.failures.load(Ordering::Relaxed),
        "tiles_drawn": shared.blocks.drawn.load(Ordering::Relaxed),
    })))
}

pub async fn methods() -> Answered {
    let usable = estimate::methods().into_iter().filter(|method| !method.has(Capability::Truth));
    Ok(json_answer(&Value::Array(usable.map(method_json).collect())))
}

/// The colours of pictures, so that page and files look alike.
pub async fn palettes() -> Answered {
    let palette = |map: ColourMap| -> Vec<[u8; 3]> {
        (0..COLOURS).map(|i| map.at(i as f64 / (COLOURS - 1) as f64)).collect()
    };
    Ok(json_answer(&json!({
        "viridis": palette(ColourMap::Power),
        "cividis": palette(ColourMap::Cividis),
        "magma": palette(ColourMap::Spread),
        "error": palette(ColourMap::Error),
    })))
}

fn kind(item: &Item) -> &'static str {
    match &item.content {
        Content::Readings(_) => "readings",
        Content::Surface(surface) => match surface.as_ref() {
            Surface::Model(_) => "model",
            Surface::Map(_) => "map",
        },
    }
}

/// The origin of an item.
fn source(item: &Item) -> Value {
    match &item.source {
        Source::File { name, words } => json!({ "file": name, "words": words }),
        Source::Demo => json!({ "demo": true }),
        Source::Given => json!({ "given": true }),
        Source::Fit(call) => json!({ "fit": {
            "readings": call.readings, "method": call.method, "settings": call.settings,
            "emitters": call.emitters, "seed": call.seed,
        }}),
    }
}

fn brief(shared: &Shared, item: &Arc<Item>) -> Value {
    let (bands, sensors) = match &item.content {
        Content::Readings(readings) => (readings.bands(), Some(readings.sensors())),
        Content::Surface(surface) => match surface.as_ref() {
            Surface::Model(model) => (model.bands(), Some(model.sites().len())),
            Surface::Map(map) => (map.bands(), None),
        },
    };
    json!({
        "id": item.id, "name": item.name, "kind": kind(item), "bands": bands, "sensors": sensors,
        "readings": shared.library.readings_of(item).map(|readings| readings.id),
        "source": source(item),
    })
}

/// Everything about an item but its tiles.
pub async fn item(shared: State, Id(id): Id) -> Answered {
    let item = item_of(&shared, id)?;
    let found = shared.question(move |shared| described(shared, &item)).await?;
    Ok(json_answer(&found))
}

fn described(shared: &Shared, item: &Arc<Item>) -> Result<Value, Refusal> {
    let area = item.area()?;
    let overview = item.overview()?;
    let readings = shared.library.readings_of(item);
    let readings = readings.as_ref().and_then(|item| item.readings());
    let (labels, bands, scale, crs) = match &item.content {
        Content::Readings(r) => (r.labels(), r.bands(), r.scale(), r.crs()),
        Content::Surface(s) => (s.labels(), s.bands(), s.scale(), s.crs()),
    };
    let mut object = brief(shared, item);
    object["area"] = json!([area.low.x_m, area.low.y_m, area.high.x_m, area.high.y_m]);
    object["labels"] = json!((0..bands).map(|band| labels.label(band)).collect::<Vec<_>>());
    object["freq_hz"] = json!(labels.freq_hz());
    object["unit"] = json!(scale.decibels());
    object["relative"] = json!(matches!(scale, Scale::Relative { .. }));
    object["crs"] = json!(crs.map(|crs| crs.to_string()));
    object["strip"] = Value::Array(overview.strip.iter().map(|s| rounded(*s)).collect());
    object["limits"] = Value::Array(overview.limits.iter().map(|l| rounded([l.0, l.1])).collect());
    object["limits_all"] = rounded([overview.all.0, overview.all.1]);
    object["limits_spread"] = rounded([overview.spread.0, overview.spread.1]);
    object["best"] = json!(overview.best);
    object["notes"] = json!(item.notes);
    object["times"] = json!(readings.is_some_and(|readings| readings.time_s().is_some()));
    if let Content::Surface(surface) = &item.content {
        let grid = surface.grid()?;
        let emitters = surface.emitters();
        object["spread"] = json!(surface.gives_spread());
        object["grid"] = json!({
            "rows": grid.rows(), "cols": grid.cols(), "cell_m": grid.cell_m(),
            "origin_m": [grid.origin().x_m, grid.origin().y_m],
        });
        object["emitters"] =
            Value::Array(emitters.iter().map(|e| emitter_json(e, labels, area, None)).collect());
        if let Surface::Model(model) = surface.as_ref() {
            object["report"] = model_report(model, &model.report().method);
        }
    }
    Ok(object)
}

pub async fn close(shared: State, Id(id): Id) -> Answered {
    Ok(json_answer(&json!({ "closed": shared.close(id)? })))
}

/// Decibels of the powers of one place.
fn levels_of(powers: &Array2<f64>, place: usize, scale: Scale) -> impl Iterator<Item = f64> {
    powers.row(place).to_vec().into_iter().map(move |x| decibels(scale, x))
}

fn degrees(crs: Option<Crs>, at: Site) -> Option<[f64; 2]> {
    let found = Projection::new(crs?).ok()?.inverse(at).ok()?;
    Some([found.lat, found.lon])
}

/// What a surface says about one place, and the sensors near it.
pub async fn at(shared: State, Id(id): Id, query: Query) -> Answered {
    let (Some(x), Some(y)) = (query.number("x")?, query.number("y")?) else {
        return Err(Refusal::input("say the place with x and y in metres"));
    };
    let item = item_of(&shared, id)?;
    let (at, z_m) = (Site::new(x, y), query.number("z")?);
    let found = shared.question(move |shared| told_at(&shared.library, &item, at, z_m)).await?;
    Ok(json_answer(&found))
}

/// The sensors nearest to a place, and how far they are.
fn near(readings: &Readings, at: Site) -> Vec<(f64, usize)> {
    let mut near: Vec<(f64, usize)> =
        readings.sites().iter().enumerate().map(|(n, s)| (s.distance_m(at), n)).collect();
    let count = NEAR.min(near.len());
    near.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0));
    near.truncate(count);
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    near
}

/// At a height, or at that of the map.
fn told_at(
    library: &Library,
    item: &Arc<Item>,
    at: Site,
    z_m: Option<f64>,
) -> Result<Value, Refusal> {
    let readings = library.readings_of(item);
    let readings = readings.as_ref().and_then(|item| item.readings());
    let (height_m, model) = match &item.content {
        Content::Readings(readings) => (readings.height_m(), None),
        Content::Surface(surface) => (surface.height_m(), surface.model()),
    };
    if let (Some(z_m), Some(model)) = (z_m, model) {
        asked_height(model, z_m)?;
    }
    let at = at.at_height(z_m.unwrap_or(height_m));
    let mut object = json!({ "x_m": at.x_m, "y_m": at.y_m });
    let heights = |site: Site, object: &mut Value| {
        if readings.is_some_and(|readings| readings.has_heights()) {
            object["z_m"] = json!(site.z_m);
        }
    };
    heights(at, &mut object);
    let near = readings.map(|readings| near(readings, at)).unwrap_or_default();
    // What the map says at the sensors is asked with the place: a residual belongs to its sensor.
    let mut there = vec![Value::Null; near.len()];
    let crs = match &item.content {
        Content::Readings(readings) => readings.crs(),
        Content::Surface(surface) => {
            let bands: Vec<usize> = (0..surface.bands()).collect();
            let sensors = near.iter().filter_map(|(_, n)| readings.map(|r| r.sites()[*n]));
            let places: Vec<Site> = std::iter::once(at).chain(sensors).collect();
            let found = surface.ask(&places, &bands, &Progress::silent())?;
            let spread = |values: &Option<Array2<f64>>| {
                values.as_ref().map(|values| rounded(values.row(0).to_vec()))
            };
            let scale = surface.scale();
            object["level"] = rounded(levels_of(&found.power, 0, scale));
            object["spread"] = json!(spread(&found.spread_db));
            object["reading_spread"] = json!(spread(&found.reading_spread_db));
            object["chance_heard"] = json!(spread(&found.chance_heard));
            object["heard"] =
                json!(found.heard.as_ref().map(|heard| rounded(levels_of(heard, 0, scale))));
            for (i, told) in there.iter_mut().enumerate() {
                *told = rounded(levels_of(&found.power, i + 1, scale));
            }
            surface.crs()
        }
    };
    object["lat_lon"] = json!(degrees(crs, at));
    if let Some(readings) = readings {
        let power = readings.power().to_owned();
        let listed = near.into_iter().zip(there).map(|((distance, n), there)| {
            let site = readings.sites()[n];
            let mut sensor = json!({
                "sensor": n, "distance_m": distance, "x_m": site.x_m, "y_m": site.y_m,
                "level": rounded(levels_of(&power, n, readings.scale())), "map": there,
            });
            heights(site, &mut sensor);
            sensor
        });
        object["near"] = Value::Array(listed.collect());
    }
    Ok(object)
}

/// The readings of an item, and its sensors' places.
fn sensors(shared: &Shared, item: &Arc<Item>) -> (Option<Arc<portolan::Readings>>, Vec<Site>) {
    let readings = shared.library.readings_of(item).and_then(|item| item.readings().cloned());
    let sites = match (&readings, &item.content) {
        (Some(readings), _) => readings.sites().to_vec(),
        (None, Content::Surface(surface)) => match surface.as_ref() {
            Surface::Model(model) => model.sites().to_vec(),
            Surface::Map(_) => Vec::new(),
        },
        (None, Content::Readings(_)) => Vec::new(),
    };
    (readings, sites)
}

/// Where the sensors stood, and when.
pub async fn places(shared: State, Id(id): Id) -> Answered {
    let item = item_of(&shared, id)?;
    let found = shared
        .question(move |shared| {
            let (readings, sites) = sensors(shared, &item);
            Ok(json!({
                "x_m": rounded(sites.iter().map(|site| site.x_m)),
                "y_m": rounded(sites.iter().map(|site| site.y_m)),
                "time_s": readings.as_ref().and_then(|readings| readings.time_s()),
            }))
        })
        .await?;
    Ok(json_answer(&found))
}

/// What the sensors read in a band: single-precision dB, one after the other; NaN where nothing.
pub async fn levels(shared: State, Id(id): Id, query: Query) -> Answered {
    let item = item_of(&shared, id)?;
    let bytes = shared
        .question(move |shared| {
            let (readings, _) = sensors(shared, &item);
            let Some(readings) = readings else { return Ok(Vec::new()) };
            let band = band_of(&query, readings.bands())?;
            let (scale, power) = (readings.scale(), readings.power());
            let level = |x: &f64| decibels(scale, *x) as f32;
            Ok(power.column(band).iter().flat_map(|x| level(x).to_le_bytes()).collect())
        })
        .await?;
    Ok(bytes_answer("application/octet-stream", bytes))
}

/// What one sensor read, what the map says there, and what the others say about it.
pub async fn sensor(shared: State, Id(id): Id, query: Query) -> Answered {
    let item = item_of(&shared, id)?;
    let n: usize = query.needed("n")?;
    let found = shared.question(move |shared| told_sensor(shared, &item, n)).await?;
    Ok(json_answer(&found))
}

fn told_sensor(shared: &Shared, item: &Arc<Item>, n: usize) -> Result<Value, Refusal> {
    let (readings, sites) = sensors(shared, item);
    let site = *sites.get(n).ok_or_else(|| Refusal::missing(format!("there is no sensor {n}")))?;
    let mut object = json!({ "sensor": n, "x_m": site.x_m, "y_m": site.y_m });
    let one = |power: &Array2<f64>, scale: Scale| rounded(levels_of(power, n, scale));
    if let Some(readings) = &readings {
        object["read"] = one(&readings.power(), readings.scale());
        object["time_s"] = json!(readings.time_s().map(|times| times[n]));
    }
    if let Content::Surface(surface) = &item.content {
        let bands: Vec<usize> = (0..surface.bands()).collect();
        let found = surface.ask(&[site], &bands, &Progress::silent())?;
        object["level"] = rounded(levels_of(&found.power, 0, surface.scale()));
        object["spread"] = json!(found.spread_db.map(|s| rounded(s.row(0).to_vec())));
        if let Some(others) = item.held_out()? {
            object["held_out"] = one(others, surface.scale());
        }
    }
    Ok(object)
}
