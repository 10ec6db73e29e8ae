//! The placemarks with points of KML (OGC 12-007r2), plain or in a KMZ archive, as records: the
//! place, the name, the fields of `ExtendedData`, the moment of `TimeStamp`, and every line
//! `key: value` of the description, as G-NetTrack writes them.

use quick_xml::events::Event;

use super::archive::Archive;
use super::xml::{Events, attribute, gather_text, text_of};
use super::{Input, Records};
use crate::error::{Check, Problem, quoted};
use crate::table::is_position;

/// Letters of the longest key of a description.
const LONGEST_KEY: usize = 40;

pub(super) fn read_kml(input: &mut Input<'_>) -> Check<Records> {
    placemarks(&input.bytes()?)
}

pub(super) fn read_kmz(input: &mut Input<'_>) -> Check<Records> {
    let mut archive = Archive::open(input)?;
    let name = archive.find(|name| name == "doc.kml").or_else(|| archive.find(is_kml));
    let bytes = name.map(|name| archive.file(&name)).transpose()?.flatten();
    placemarks(&bytes.ok_or_else(|| Problem::new("an archive without a .kml file in it"))?)
}

fn is_kml(name: &str) -> bool {
    name.ends_with(".kml")
}

#[derive(Default)]
struct Placemark {
    point: Option<[f64; 2]>,
    fields: Vec<(String, String)>,
}

fn placemarks(bytes: &[u8]) -> Check<Records> {
    let text = text_of(bytes);
    let mut events = Events::of(&text, "KML");
    let mut records = Records::new("placemark", bytes.len());
    let mut path: Vec<String> = Vec::new();
    let (mut mark, mut number, mut others) = (Placemark::default(), 0usize, 0usize);
    let (mut said, mut name) = (String::new(), String::new());
    while let Some(event) = events.next()? {
        gather_text(&event, &mut said);
        match event {
            Event::Start(element) => {
                let own = element.local_name().as_ref().to_string();
                match own.as_str() {
                    "Placemark" => {
                        mark = Placemark::default();
                        number += 1;
                    }
                    "Data" | "SimpleData" => name = attribute(&element, "name"),
                    _ => {}
                }
                said.clear();
                path.push(own);
            }
            Event::End(_) => {
                let Some(own) = path.pop() else { continue };
                let inside = path.last().map_or("", String::as_str);
                let text = said.trim();
                match (inside, own.as_str()) {
                    ("Point", "coordinates") => mark.point = Some(point(text, number)?),
                    ("Placemark", "name") => mark.fields.push(("name".into(), text.to_string())),
                    ("Placemark", "description") => describe(text, &mut mark.fields),
                    ("TimeStamp", "when") => mark.fields.push(("time".into(), text.to_string())),
                    ("Data", "value") | (_, "SimpleData") => {
                        mark.fields.push((name.clone(), text.to_string()));
                    }
                    (_, "Placemark") => {
                        let done = std::mem::take(&mut mark);
                        others += usize::from(done.point.is_none());
                        add(done, &mut records)?;
                    }
                    _ => {}
                }
                said.clear();
            }
            _ => {}
        }
    }
    if others > 0 {
        records.notes.push(format!("{others} placemark(s) are not points: left out"));
    }
    if records.count() == 0 {
        return Err(Problem::new("holds no placemarks with points"));
    }
    Ok(records)
}

fn add(mark: Placemark, records: &mut Records) -> Check<()> {
    let Some([lon, lat]) = mark.point else { return Ok(()) };
    records.begin();
    records.put("lon", lon.to_string())?;
    records.put("lat", lat.to_string())?;
    // Where a placemark is, its point says.
    for (name, text) in mark.fields.into_iter().filter(|(name, _)| !is_position(name)) {
        records.put(&name, text)?;
    }
    Ok(())
}

/// `lon,lat` or `lon,lat,height`.
fn point(text: &str, number: usize) -> Check<[f64; 2]> {
    let mut parts = text.split(',').map(|part| part.trim().parse::<f64>());
    match (parts.next(), parts.next()) {
        (Some(Ok(lon)), Some(Ok(lat))) if lon.is_finite() && lat.is_finite() => Ok([lon, lat]),
        _ => Err(Problem::new(format!(
            "placemark {number}: coordinates {}, expected longitude,latitude",
            quoted(text)
        ))),
    }
}

/// The lines `key: value` or `key = value` of a description, of HTML too.
fn describe(text: &str, fields: &mut Vec<(String, String)>) {
    for line in plain(text).lines() {
        let Some((key, value)) = line.split_once([':', '=']) else { continue };
        let (key, value) = (key.trim(), value.trim().trim_end_matches(':').trim());
        let named = key.starts_with(char::is_alphabetic) && key.chars().count() <= LONGEST_KEY;
        if named && !value.is_empty() {
            fields.push((key.to_string(), value.to_string()));
        }
    }
}

/// The text of HTML: a line for each row, paragraph or break, a colon behind each cell.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        plain.push_str(before);
        let Some((tag, after)) = tag.split_once('>') else { break };
        let tag = tag.trim_end_matches('/').trim().to_ascii_lowercase();
        match tag.split_whitespace().next().unwrap_or_default() {
            "br" | "/p" | "/tr" | "/li" | "/div" => plain.push('\n'),
            "/td" | "/th" => plain.push(':'),
            _ => {}
        }
        rest = after;
    }
    plain.push_str(rest);
    plain.replace("&nbsp;", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(marks: &str) -> String {
        let text = format!("<?xml version=\"1.0\"?><kml><Document>{marks}</Document></kml>");
        let table = placemarks(text.as_bytes()).unwrap().table().unwrap();
        String::from_utf8(table).unwrap().replace('"', "")
    }

    #[test]
    fn descriptions_and_extended_data_are_fields() {
        let mark = "<Placemark><name>a</name><description><![CDATA[LEVEL: -90<br/>CELLID: 7<br>\
                    12:30 noon]]></description><TimeStamp><when>2024-05-01T12:00:00Z</when>\
                    </TimeStamp><Point><coordinates> 8.5,49.5,0 </coordinates></Point></Placemark>";
        let expected = "lon,lat,name,LEVEL,CELLID,time\n8.5,49.5,a,-90,7,2024-05-01T12:00:00Z\n";
        assert_eq!(lines(mark), expected);
        let data = "<Placemark><ExtendedData><Data name='rssi'><value>-60</value></Data><SchemaData>\
                    <SimpleData name='note'>x &amp; y</SimpleData></SchemaData></ExtendedData><Point>\
                    <coordinates>8,49</coordinates></Point></Placemark>";
        assert_eq!(lines(data), "lon,lat,rssi,note\n8,49,-60,x & y\n");
        let rows = "<Placemark><description>&lt;tr&gt;&lt;td&gt;RSRP&lt;/td&gt;&lt;td&gt;-90&lt;/td&gt;\
                    &lt;/tr&gt;</description><Point><coordinates>8,49</coordinates></Point></Placemark>";
        assert_eq!(lines(rows), "lon,lat,RSRP\n8,49,-90\n");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mark = "<Placemark><Point><coordinates>8</coordinates></Point></Placemark>";
        for (text, why) in
            [(mark, "placemark 1: coordinates '8'"), ("<kml/>", "no placemarks"), ("<a", "not XML")]
        {
            let said = placemarks(text.as_bytes()).err().unwrap().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
