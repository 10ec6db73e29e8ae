//! The points of a GeoJSON file, as a table: longitude, latitude, and a column for every property.

use serde_json::Value;

use crate::error::{Check, Problem};
use crate::table::is_position;

/// Whether bytes are JSON, as far as the first of them tell.
pub(crate) fn is_geojson(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}

/// A table with a line for every point.
pub(crate) fn table_of_points(bytes: &[u8]) -> Check<Vec<u8>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let json: Value = serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(format!("not JSON: {error}")))?;
    let wrong = || Problem::new("expected a GeoJSON FeatureCollection of points");
    let features = match (json.get("type").and_then(Value::as_str), json.get("features")) {
        (Some("FeatureCollection"), Some(Value::Array(features))) => features,
        _ => return Err(wrong()),
    };
    // A building's own metres, as this crate writes them.
    let metres = json.get("coordinates_in").and_then(Value::as_str) == Some("metres");
    let taken = if metres { ["x_m", "y_m"] } else { ["lon", "lat"] };
    // Properties in order of their first appearance.
    let mut names: Vec<&str> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for feature in features {
        let properties = feature.get("properties").and_then(Value::as_object);
        for (name, value) in properties.into_iter().flatten() {
            let plain = !value.is_object() && !value.is_array();
            // Where a point is, its geometry says.
            if plain && !is_position(name) && seen.insert(name.as_str()) {
                names.push(name);
            }
        }
    }
    let failed = |error: csv::Error| Problem::new(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(taken.iter().chain(&names)).map_err(failed)?;
    for (number, feature) in features.iter().enumerate() {
        let geometry = feature.get("geometry").ok_or_else(wrong)?;
        let point = geometry.get("type").and_then(Value::as_str) == Some("Point");
        let coordinates = geometry.get("coordinates").and_then(Value::as_array);
        let (Some(x), Some(y)) = (
            coordinates.filter(|_| point).and_then(|c| c.first()?.as_f64()),
            coordinates.filter(|_| point).and_then(|c| c.get(1)?.as_f64()),
        ) else {
            let number = number + 1;
            return Err(Problem::new(format!("feature {number} is not a point with two numbers")));
        };
        let field = |name: &&str| match feature.get("properties").and_then(|p| p.get(*name)) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => String::new(),
        };
        let own = [x.to_string(), y.to_string()];
        writer.write_record(own.into_iter().chain(names.iter().map(field))).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| Problem::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_become_columns() {
        let text = r#"{"type":"FeatureCollection","features":[
            {"type":"Feature","geometry":{"type":"Point","coordinates":[8.5,49.5,100]},
             "properties":{"rssi":-70,"name":"a, b"}},
            {"type":"Feature","geometry":{"type":"Point","coordinates":[8.6,49.4]},
             "properties":{"rssi":null,"extra":true}}]}"#;
        let table = String::from_utf8(table_of_points(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(table, "lon,lat,name,rssi,extra\n8.5,49.5,\"a, b\",-70,\n8.6,49.4,,,true\n");
        let metres = text.replacen('{', r#"{"coordinates_in":"metres","#, 1);
        let table = String::from_utf8(table_of_points(metres.as_bytes()).unwrap()).unwrap();
        assert!(table.starts_with("x_m,y_m,"), "{table}");
        for wrong in ["{", "{}", r#"{"type":"FeatureCollection","features":[{}]}"#] {
            assert!(table_of_points(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
