//! GeoJSON (RFC 7946): areas of a map at or above levels, sensors with what they read, emitters with
//! how well their places are known. Without a coordinate system the coordinates are metres, which a
//! member beside the features says.

use std::io::{self, Write};
use std::path::Path;

use portolan::{Crs, Model, Readings, Site};
use serde_json::{Map, Value, json};

use super::blocks::each_band;
use super::contour::{Image, Ring};
use super::earth::Projection;
use super::parts::{MapAbout, MapParts};
use crate::error::{Check, Problem, Result};
use crate::output::write_file;

/// Corners of an ellipse.
const CORNERS: usize = 72;

/// About so many levels where none are asked for.
const LEVELS: f64 = 6.0;

/// Places as GeoJSON has them.
pub(crate) struct Places {
    projection: Option<Projection>,
    /// Longitudes stay within half a turn of this one, across the date line too.
    middle: f64,
}

impl Places {
    /// Around a place in metres.
    pub fn around(crs: Option<Crs>, site: Site) -> Check<Self> {
        let Some(crs) = crs else { return Ok(Self { projection: None, middle: 0.0 }) };
        let projection = Projection::of(crs)?;
        let middle = projection.inverse(site).map_err(Problem::new)?.lon;
        Ok(Self { projection: Some(projection), middle })
    }

    /// Longitude and latitude to a tenth of a millimetre, or metres.
    pub fn of(&self, site: Site) -> Check<[f64; 2]> {
        let Some(projection) = &self.projection else { return Ok([site.x_m, site.y_m]) };
        let at = projection.inverse(site).map_err(Problem::new)?;
        let turns = ((at.lon - self.middle) / 360.0).round();
        Ok([at.lon - 360.0 * turns, at.lat].map(|degrees| (degrees * 1e9).round() / 1e9))
    }

    pub fn ring(&self, sites: impl Iterator<Item = Site>) -> Check<Vec<[f64; 2]>> {
        let mut ring = sites.map(|site| self.of(site)).collect::<Check<Vec<_>>>()?;
        ring.dedup();
        if ring.len() > 1 && ring.first() == ring.last() {
            ring.pop();
        }
        ring.extend(ring.first().copied());
        Ok(ring)
    }
}

pub(crate) fn point(places: &Places, site: Site) -> Check<Value> {
    Ok(json!({ "type": "Point", "coordinates": places.of(site)? }))
}

pub(crate) fn feature(geometry: &Value, properties: &Value) -> Value {
    json!({ "type": "Feature", "geometry": geometry, "properties": properties })
}

pub(crate) fn write_features(
    path: &Path,
    crs: Option<Crs>,
    features: &[Value],
    force: bool,
) -> Result<()> {
    write_file(path, force, |out| {
        out.write_all(b"{\"type\":\"FeatureCollection\",")?;
        if crs.is_none() {
            out.write_all(b"\"coordinates_in\":\"metres\",")?;
        }
        out.write_all(b"\"features\":[")?;
        for (n, feature) in features.iter().enumerate() {
            out.write_all(if n > 0 { b",\n" } else { b"\n" })?;
            serde_json::to_writer(&mut *out, feature).map_err(io::Error::other)?;
        }
        out.write_all(b"\n]}\n")
    })
}

/// Writes the areas of a map at or above levels: a MultiPolygon for every band and level. Without
/// levels, a few round ones of each band.
pub(super) fn write_contours<P: MapParts>(
    path: &Path,
    parts: &mut P,
    levels: &[f64],
    force: bool,
) -> std::result::Result<(), P::Error> {
    let about = parts.about().clone();
    let in_target = |problem: Problem| problem.in_target(path);
    let places = Places::around(about.frame.crs, about.grid.origin()).map_err(in_target)?;
    let mut features = Vec::new();
    each_band(path, parts, |band, pixels| {
        let image = Image { pixels, width: about.grid.rows() };
        let levels = if levels.is_empty() { round_levels(pixels) } else { levels.to_vec() };
        for level in levels {
            features.push(area(&about, &places, band, level, &image).map_err(in_target)?);
        }
        Ok(())
    })?;
    Ok(write_features(path, about.frame.crs, &features, force)?)
}

fn area(
    about: &MapAbout,
    places: &Places,
    band: usize,
    level: f64,
    image: &Image<'_>,
) -> Check<Value> {
    let mut polygons = Vec::new();
    let mut cells = 0.0;
    for polygon in image.above(level) {
        cells += polygon.area();
        let ring = |ring: &Ring| places.ring(ring.iter().map(|at| about.grid.site_at(*at)));
        let mut rings = vec![ring(&polygon.outline)?];
        for hole in &polygon.holes {
            rings.push(ring(hole)?);
        }
        // A hole, or an area, of less than a tenth of a millimetre is none.
        rings.retain(|ring| ring.len() >= 4);
        if !rings.is_empty() {
            polygons.push(rings);
        }
    }
    let properties = json!({
        "band": about.frame.labels.label(band),
        "freq_hz": about.frame.labels.freq_hz().map(|all| all[band]),
        "level": level,
        "unit": about.unit(),
        "area_m2": cells * about.grid.cell_m().powi(2),
    });
    Ok(feature(&json!({ "type": "MultiPolygon", "coordinates": polygons }), &properties))
}

/// Round numbers between the least and the greatest value.
fn round_levels(pixels: &[f32]) -> Vec<f64> {
    let known = pixels.iter().copied().filter(|v| v.is_finite()).map(f64::from);
    let (low, high) =
        known.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low > high {
        return Vec::new();
    }
    if high - low < 1e-6 {
        return vec![low.floor()];
    }
    let rough = (high - low) / LEVELS;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|n| n * power >= rough).unwrap_or(10.0);
    let (first, last) = ((low / step).floor() as i64 + 1, (high / step).floor() as i64);
    // Through a decimal, so that 0.1 + 0.2 is 0.3.
    (first..=last).map(|n| (n as f64 * step * 1e9).round() / 1e9).collect()
}

/// Writes sensors as points with what they read, in dBm or dB, and how often.
pub fn write_sensors(path: &Path, readings: &Readings, force: bool) -> Result<()> {
    let features = sensors(readings).map_err(|problem| problem.in_target(path))?;
    write_features(path, readings.crs(), &features, force)
}

fn sensors(readings: &Readings) -> Check<Vec<Value>> {
    let Some(first) = readings.sites().first() else { return Ok(Vec::new()) };
    let places = Places::around(readings.crs(), *first)?;
    let power = readings.power();
    let unit = readings.scale().decibels();
    let known = |value: f64| Some(value).filter(|v| v.is_finite());
    let mut features = Vec::new();
    for (sensor, site) in readings.sites().iter().enumerate() {
        let mut properties = Map::new();
        properties.insert("sensor".into(), json!(sensor));
        properties.insert("x_m".into(), json!(site.x_m));
        properties.insert("y_m".into(), json!(site.y_m));
        let mut put = |name: String, value: Value| {
            properties.insert(name, value);
        };
        if let Some(times) = readings.time_s() {
            put("time_s".into(), json!(known(times[sensor])));
        }
        for band in 0..readings.bands() {
            let label = readings.labels().label(band);
            let level = known(10.0 * power[[sensor, band]].log10());
            put(format!("{}_{label}", unit.to_lowercase()), json!(level));
            if let Some(silent) = readings.not_heard() {
                put(format!("not_heard_{label}"), json!(silent.entries[[sensor, band]]));
            }
            if let Some(counts) = readings.repeats() {
                put(format!("count_{label}"), json!(known(counts[[sensor, band]])));
            }
            if let Some(noise) = readings.noise_db() {
                put(format!("noise_db_{label}"), json!(known(noise[[sensor, band]])));
            }
        }
        features.push(feature(&point(&places, *site)?, &Value::Object(properties)));
    }
    Ok(features)
}

/// Writes the emitters of a model as points, with the ellipses of one and two standard errors.
pub fn write_emitters(path: &Path, model: &Model, force: bool) -> Result<()> {
    let features = emitters(model).map_err(|problem| problem.in_target(path))?;
    write_features(path, model.crs(), &features, force)
}

fn emitters(model: &Model) -> Check<Vec<Value>> {
    let Some(first) = model.emitters().first() else {
        return Err(Problem::new(
            "the model tells no emitters apart: fit with --method field, unn or dgm",
        ));
    };
    let places = Places::around(model.crs(), first.at)?;
    let known = |value: f64| Some(value).filter(|v| v.is_finite());
    let mut features = Vec::new();
    for (n, emitter) in model.emitters().iter().enumerate() {
        let (number, at) = (n + 1, emitter.at);
        let properties = json!({
            "emitter": number, "kind": "place", "x_m": at.x_m, "y_m": at.y_m,
            "x_se_m": emitter.at_se_m.and_then(|se| known(se[0])),
            "y_se_m": emitter.at_se_m.and_then(|se| known(se[1])),
            "exponent": emitter.exponent.and_then(|e| known(e.value)),
            "exponent_se": emitter.exponent.and_then(|e| known(e.se)),
            "power_share": known(emitter.power_share),
        });
        features.push(feature(&point(&places, at)?, &properties));
        let Some([x_se, y_se]) = emitter.at_se_m.filter(|se| se.iter().all(|s| s.is_finite()))
        else {
            continue;
        };
        for sigma in [1.0, 2.0] {
            let corner = |n: usize| {
                let (sin, cos) = (std::f64::consts::TAU * n as f64 / CORNERS as f64).sin_cos();
                Site::new(at.x_m + sigma * x_se * cos, at.y_m + sigma * y_se * sin)
            };
            // An ellipse as wide as the Earth has no place on it.
            let Ok(ring) = places.ring((0..CORNERS).map(corner)) else { continue };
            if ring.len() >= 4 {
                let geometry = json!({ "type": "Polygon", "coordinates": [ring] });
                let properties = json!({ "emitter": number, "kind": "ellipse", "sigma": sigma });
                features.push(feature(&geometry, &properties));
            }
        }
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_round_and_inside_the_range() {
        assert_eq!(round_levels(&[-93.0, -41.5]), [-90.0, -80.0, -70.0, -60.0, -50.0]);
        assert_eq!(round_levels(&[0.05, 0.31]), [0.1, 0.15, 0.2, 0.25, 0.3]);
        assert_eq!(round_levels(&[-70.5, -70.5]), [-71.0]);
        assert!(round_levels(&[f32::NAN]).is_empty());
    }

    #[test]
    fn longitudes_do_not_jump_at_the_date_line() {
        let crs = Some(Crs::Epsg(32760));
        let east = Site::new(820_000.0, 8_100_000.0);
        let places = Places::around(crs, east).unwrap();
        let far = places.of(Site::new(830_000.0, 8_100_000.0)).unwrap();
        let near = places.of(Site::new(810_000.0, 8_100_000.0)).unwrap();
        assert!(far[0] > near[0] && far[0] - near[0] < 0.3, "{near:?} {far:?}");
    }
}
