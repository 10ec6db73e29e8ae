//! Where emitters may stand: regions that hold a share of the probability, in JSON and GeoJSON.

use std::path::Path;

use portolan::model::ModelEmitter;
use portolan::{Crs, Model, Site};
use serde_json::{Value, json};

use crate::error::{Check, Problem, Result};
use crate::gis::contour::{Image, Polygon};
use crate::gis::earth::Projection;
use crate::gis::geojson::{Places, feature, point, write_features};

/// Shares of the probability that regions are drawn for.
const SHARES: [f64; 2] = [0.5, 0.9];
/// Cells along each side of the image that a region is drawn on.
const SIDE: usize = 120;
/// How far a place is smeared, over the distance to its nearest neighbour.
const SMEAR: f64 = 0.7;
/// What a region leaves out at most when its edges are sought.
const OUTSIDE: f64 = 1e-3;

/// A region that holds an emitter with some probability.
pub struct Region {
    /// The probability.
    pub share: f64,
    /// Its size.
    pub area_m2: f64,
    /// Rings of every polygon: the outline, then its holes; in metres.
    pub polygons: Vec<Vec<Vec<[f64; 2]>>>,
}

/// The smallest regions that hold an emitter with a probability of 50 and 90 %; none where its place
/// was given, or its method gives no probabilities.
pub fn regions(emitter: &ModelEmitter) -> Vec<Region> {
    let places = &emitter.places;
    let Some(smears) = smears(places) else { return Vec::new() };
    let mut kept = places.len();
    let mut rest = OUTSIDE;
    // Places are sorted: the last are the least likely.
    while kept > 1 && places[kept - 1].0 < rest {
        rest -= places[kept - 1].0;
        kept -= 1;
    }
    let range = |of: fn(&Site) -> f64| {
        let each = places[..kept].iter().zip(&smears).map(|((_, at), s)| (of(at), 3.0 * s));
        each.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, s)| {
            (low.min(x - s), high.max(x + s))
        })
    };
    let ((left, right), (bottom, top)) = (range(|at| at.x_m), range(|at| at.y_m));
    let (dx, dy) = ((right - left) / SIDE as f64, (top - bottom) / SIDE as f64);
    let centre = |column: usize, line: usize| {
        [left + (column as f64 + 0.5) * dx, top - (line as f64 + 0.5) * dy]
    };
    let mut density = vec![0.0f64; SIDE * SIDE];
    for ((weight, at), smear) in places.iter().zip(&smears) {
        // A place that is narrower than a cell fills it.
        let (sx, sy) = (smear.max(0.5 * dx), smear.max(0.5 * dy));
        for (n, value) in density.iter_mut().enumerate() {
            let [x, y] = centre(n % SIDE, n / SIDE);
            let off = ((x - at.x_m) / sx).powi(2) + ((y - at.y_m) / sy).powi(2);
            if off < 50.0 {
                *value += weight / (sx * sy) * (-0.5 * off).exp();
            }
        }
    }
    let total: f64 = density.iter().sum();
    let mut sorted = density.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let pixels: Vec<f32> = density.iter().map(|d| (d / sorted[0]) as f32).collect();
    let image = Image { pixels: &pixels, width: SIDE };
    let region = |share: f64| {
        let mut held = 0.0;
        let level = sorted.iter().find(|d| {
            held += **d / total;
            held >= share
        });
        let level = level.copied().unwrap_or(0.0) / sorted[0];
        let polygons = image.above(level);
        let area: f64 = polygons.iter().map(Polygon::area).sum();
        // Cells count from the centre of the first column and the last line.
        let metres = |ring: &Vec<[f64; 2]>| -> Vec<[f64; 2]> {
            let place = |[x, y]: &[f64; 2]| [left + (x + 0.5) * dx, bottom + (y + 0.5) * dy];
            ring.iter().map(place).collect()
        };
        let rings = |polygon: &Polygon| {
            std::iter::once(&polygon.outline).chain(&polygon.holes).map(metres).collect()
        };
        Region { share, area_m2: area * dx * dy, polygons: polygons.iter().map(rings).collect() }
    };
    SHARES.map(region).into_iter().collect()
}

/// Half the distance from every place to its nearest neighbour; None without any.
fn smears(places: &[(f64, Site)]) -> Option<Vec<f64>> {
    let nearest = |i: usize| {
        let others = places.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, (_, at))| at.distance_m(places[i].1)).fold(f64::INFINITY, f64::min)
    };
    let each: Vec<f64> = (0..places.len()).map(|i| SMEAR * nearest(i)).collect();
    (!each.is_empty() && each.iter().all(|s| s.is_finite() && *s > 0.0)).then_some(each)
}

/// The emitters of a model with their regions, as `portolan locate --json` prints them.
pub fn located_json(model: &Model) -> Vec<Value> {
    let known = |value: f64| Some(value).filter(|v| v.is_finite());
    let projection = model.crs().and_then(|crs| Projection::new(crs).ok());
    let one = |emitter: &ModelEmitter| {
        let at = emitter.at;
        let degrees = projection.as_ref().and_then(|p| p.inverse(at).ok());
        let regions: Vec<Value> = regions(emitter)
            .into_iter()
            .map(|r| json!({ "share": r.share, "area_m2": r.area_m2, "polygons": r.polygons }))
            .collect();
        json!({
            "band": emitter.band().map(|band| model.labels().label(band)),
            "x_m": at.x_m, "y_m": at.y_m, "z_m": at.z_m,
            "lat": degrees.map(|d| d.lat), "lon": degrees.map(|d| d.lon),
            "x_se_m": emitter.at_se_m.and_then(|se| known(se[0])),
            "y_se_m": emitter.at_se_m.and_then(|se| known(se[1])),
            "exponent": emitter.exponent.and_then(|e| known(e.value)),
            "exponent_se": emitter.exponent.and_then(|e| known(e.se)),
            "power_share": known(emitter.power_share),
            "regions": regions,
        })
    };
    model.emitters().iter().map(one).collect()
}

/// Writes emitters as points, and their regions as polygons (GeoJSON).
pub fn write_regions(path: &Path, model: &Model, force: bool) -> Result<()> {
    let features = features(model).map_err(|problem| problem.in_target(path))?;
    let crs: Option<Crs> = model.crs();
    write_features(path, crs, &features, force)
}

fn features(model: &Model) -> Check<Vec<Value>> {
    let Some(first) = model.emitters().first() else {
        return Err(Problem::new("no transmitter was found"));
    };
    let places = Places::around(model.crs(), first.at)?;
    let mut features = Vec::new();
    for (n, (emitter, about)) in model.emitters().iter().zip(located_json(model)).enumerate() {
        let mut properties = about;
        if let Some(own) = properties.as_object_mut() {
            own.remove("regions");
            own.insert("emitter".into(), json!(n + 1));
            own.insert("kind".into(), json!("place"));
        }
        let band = properties["band"].clone();
        features.push(feature(&point(&places, emitter.at)?, &properties));
        for region in regions(emitter) {
            let mut polygons = Vec::new();
            for rings in region.polygons {
                let closed = rings
                    .into_iter()
                    .map(|ring| places.ring(ring.into_iter().map(|[x, y]| Site::new(x, y))));
                polygons.push(closed.collect::<Check<Vec<_>>>()?);
            }
            let geometry = json!({ "type": "MultiPolygon", "coordinates": polygons });
            let properties = json!({
                "emitter": n + 1, "band": band, "kind": "region", "share": region.share,
                "area_m2": region.area_m2,
            });
            features.push(feature(&geometry, &properties));
        }
    }
    Ok(features)
}
