//! The points of a GeoJSON file (RFC 7946; the member `crs` is that of the format of 2008) as
//! records: longitude and latitude or metres, and a field for every property. Features one per line
//! (RFC 8142) are read too.

use serde_json::Value;

use super::json::{flatten, values};
use super::{Input, OwnCrs, Records};
use crate::error::{Check, Problem};
use crate::table::is_position;

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    let bytes = input.bytes()?;
    points(&bytes, input.options.strict)
}

fn points(bytes: &[u8], strict: bool) -> Check<Records> {
    let (values, cut) = values(bytes, strict)?;
    let wrong = || Problem::new("expected a GeoJSON FeatureCollection of points");
    let mut features: Vec<&Value> = Vec::new();
    for value in &values {
        match (value.get("type").and_then(Value::as_str), value.get("features")) {
            (Some("FeatureCollection"), Some(Value::Array(own))) => features.extend(own),
            (Some("Feature"), _) => features.push(value),
            _ => return Err(wrong()),
        }
    }
    let first = values.first().ok_or_else(wrong)?;
    let own = own_crs(first)?;
    // A building's own metres, as this crate writes them.
    let metres = first.get("coordinates_in").and_then(Value::as_str) == Some("metres");
    let place = match own {
        Some(OwnCrs::Metres(_)) => ["x_m", "y_m"],
        _ if metres => ["x_m", "y_m"],
        _ => ["lon", "lat"],
    };
    let mut records = Records::new("feature", bytes.len());
    if let Some(OwnCrs::Metres(crs)) = own {
        records.crs = Some(crs);
    }
    if cut {
        records.notes.push("the last feature is cut off: left out".into());
    }
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
        records.begin();
        records.put(place[0], x.to_string())?;
        records.put(place[1], y.to_string())?;
        let (mut fields, mut lists) = (Vec::new(), Vec::new());
        if let Some(properties) = feature.get("properties").and_then(Value::as_object) {
            flatten(properties, "", &mut fields, &mut lists, &mut 0);
        }
        // Where a point is, its geometry says.
        for (name, text) in fields.into_iter().filter(|(name, _)| !is_position(name)) {
            records.put(&name, text)?;
        }
    }
    Ok(records)
}

/// The system that the member `crs` names.
fn own_crs(json: &Value) -> Check<Option<OwnCrs>> {
    let Some(crs) = json.get("crs").filter(|crs| !crs.is_null()) else { return Ok(None) };
    let properties = crs.get("properties");
    let name = properties.and_then(|p| p.get("name")).or(Some(crs)).and_then(Value::as_str);
    let code = properties.and_then(|p| p.get("code")).and_then(Value::as_u64);
    match (name, code) {
        (Some(name), _) => OwnCrs::of_name(name).map(Some),
        (None, Some(code)) => OwnCrs::of_code(u32::try_from(code).unwrap_or(0)).map(Some),
        _ => Err(Problem::new("its member crs names no coordinate system: expected EPSG:CODE")),
    }
}

#[cfg(test)]
mod tests {
    use portolan::Crs;

    use super::*;

    fn lines(text: &str) -> String {
        let table = points(text.as_bytes(), false).unwrap().table().unwrap();
        String::from_utf8(table).unwrap().replace('"', "")
    }

    #[test]
    fn properties_become_columns() {
        let text = r#"{"type":"FeatureCollection","features":[
            {"type":"Feature","geometry":{"type":"Point","coordinates":[8.5,49.5,100]},
             "properties":{"rssi":-70,"name":"a b"}},
            {"type":"Feature","geometry":{"type":"Point","coordinates":[8.6,49.4]},
             "properties":{"rssi":null,"extra":true}}]}"#;
        assert_eq!(lines(text), "lon,lat,name,rssi,extra\n8.5,49.5,a b,-70,\n8.6,49.4,,,true\n");
        let metres = text.replacen('{', r#"{"coordinates_in":"metres","#, 1);
        assert!(lines(&metres).starts_with("x_m,y_m,"));
        for wrong in ["{", "{}", r#"{"type":"FeatureCollection","features":[{}]}"#] {
            assert!(points(wrong.as_bytes(), false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_projected_system_is_honoured() {
        let text = r#"{"type":"FeatureCollection",
            "crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::32632"}},"features":[
            {"type":"Feature","geometry":{"type":"Point","coordinates":[463000,5481000]},
             "properties":{"rssi":-70}}]}"#;
        assert!(lines(text).starts_with("x_m,y_m,rssi"));
        assert_eq!(points(text.as_bytes(), false).unwrap().crs, Some(Crs::Epsg(32632)));
        let unknown = text.replace("32632", "31467");
        assert!(points(unknown.as_bytes(), false).is_err());
    }
}
