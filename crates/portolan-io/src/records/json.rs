//! JSON (RFC 8259) as records: an array of objects, an object with such an array, or one object per
//! line (JSON lines). Nested objects become names with dots. Every element of a list of objects in a
//! record (the networks of a scan) becomes a record with the fields around it.

use serde_json::{Map, Value};

use super::{Input, Records};
use crate::error::{Check, Problem, quoted};

type Fields = Vec<(String, String)>;

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    let bytes = input.bytes()?;
    table(&bytes, input.options.strict)
}

fn table(bytes: &[u8], strict: bool) -> Check<Records> {
    let (values, cut) = values(bytes, strict)?;
    let mut records = Records::new("record", bytes.len());
    if cut {
        records.notes.push("the last record is cut off: left out".into());
    }
    let mut passed = 0;
    match &values[..] {
        [Value::Object(object)] if columns(object, &mut records)? => {}
        _ => {
            for (number, value) in values.iter().enumerate() {
                let elements = match value {
                    Value::Array(elements) => &elements[..],
                    other => std::slice::from_ref(other),
                };
                for (element, value) in elements.iter().enumerate() {
                    let Value::Object(object) = value else {
                        return Err(Problem::new(format!(
                            "record {}: {}, expected an object with names and values",
                            number + element + 1,
                            quoted(&value.to_string())
                        )));
                    };
                    passed += expand(object, "", &Vec::new(), &mut records)?;
                }
            }
        }
    }
    if passed > 0 {
        records.notes.push(format!("{passed} list(s) of plain values are not used"));
    }
    Ok(records)
}

/// All values of the text, and whether it ends in the middle of the last one.
pub(super) fn values(bytes: &[u8], strict: bool) -> Check<(Vec<Value>, bool)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        match value {
            Ok(value) => values.push(value),
            Err(error) if error.is_eof() && !values.is_empty() && !strict => {
                return Ok((values, true));
            }
            Err(error) => return Err(Problem::new(format!("not JSON: {error}"))),
        }
    }
    Ok((values, false))
}

/// Adds the records of an object; returns how many of its lists were passed over.
pub(super) fn expand(
    object: &Map<String, Value>,
    prefix: &str,
    around: &Fields,
    records: &mut Records,
) -> Check<usize> {
    let mut fields = around.clone();
    let (mut lists, mut passed) = (Vec::new(), 0);
    flatten(object, prefix, &mut fields, &mut lists, &mut passed);
    if lists.is_empty() && !fields.is_empty() {
        records.begin();
        for (name, text) in &fields {
            records.put(name, text.as_str())?;
        }
    }
    for (name, list) in lists {
        for element in list.iter().filter_map(Value::as_object) {
            passed += expand(element, &name, &fields, records)?;
        }
    }
    Ok(passed)
}

/// The fields of an object, those of nested ones behind a dot, and the lists of objects.
pub(super) fn flatten<'a>(
    object: &'a Map<String, Value>,
    prefix: &str,
    fields: &mut Fields,
    lists: &mut Vec<(String, &'a Vec<Value>)>,
    passed: &mut usize,
) {
    for (name, value) in object {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(inner) => flatten(inner, &name, fields, lists, passed),
            Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_object) => {
                lists.push((name, list));
            }
            Value::Array(list) => *passed += usize::from(!list.is_empty()),
            plain => fields.push((name, text(plain))),
        }
    }
}

/// A plain value as a field.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Reads an object of columns, `{"lat": [..], "lon": [..]}`; false where it is none.
fn columns(object: &Map<String, Value>, records: &mut Records) -> Check<bool> {
    let lists: Vec<(&String, &Vec<Value>)> =
        object.iter().filter_map(|(name, value)| Some((name, value.as_array()?))).collect();
    let plain = |list: &Vec<Value>| list.iter().all(|v| !v.is_object() && !v.is_array());
    let length = lists.first().map_or(0, |(_, list)| list.len());
    if lists.len() < 2 || length == 0 || lists.iter().any(|(_, l)| l.len() != length || !plain(l)) {
        return Ok(false);
    }
    for row in 0..length {
        records.begin();
        for (name, list) in &lists {
            records.put(name, text(&list[row]))?;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let table = table(text.as_bytes(), false).unwrap().table().unwrap();
        let text = String::from_utf8(table).unwrap().replace('"', "");
        text.lines().map(String::from).collect()
    }

    #[test]
    fn shapes_of_json() {
        let expected = ["lat,lon,rssi", "1,2,-60", "3,4,-61"];
        for text in [
            r#"[{"lat":1,"lon":2,"rssi":-60},{"lat":3,"lon":4,"rssi":-61}]"#,
            "{\"lat\":1,\"lon\":2,\"rssi\":-60}\n{\"lat\":3,\"lon\":4,\"rssi\":-61}\n{\"lat",
            r#"{"data":[{"at":{"lat":1,"lon":2},"rssi":-60},{"at":{"lat":3,"lon":4},"rssi":-61}]}"#,
            r#"{"lat":[1,3],"lon":[2,4],"rssi":[-60,-61]}"#,
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
        let scans = r#"[{"lat":1,"lon":2,"seen":[{"bssid":"a","rssi":-60},{"bssid":"b","rssi":-61}]},
                        {"lat":3,"lon":4,"seen":[]}]"#;
        assert_eq!(lines(scans), ["lat,lon,bssid,rssi", "1,2,a,-60", "1,2,b,-61", "3,4,,"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("[1,2]", "record 1: '1', expected an object"),
            ("{", "not JSON"),
            ("[]", "holds no records"),
            ("{\"a\":1}\n{\"a\" 2}\n", "line 2"),
        ] {
            let said = table(text.as_bytes(), false).and_then(|mut r| r.table()).unwrap_err();
            assert!(said.to_string().contains(why), "{text}: {said}");
        }
    }
}
