//! `.gpsxml` of Kismet before 2018: an element `gps-point` per frame, its attributes the fields. The
//! points of the receiver's own track have a name for an address.

use quick_xml::events::Event;

use super::xml::{Events, attributes, text_of};
use super::{Input, Records};
use crate::error::{Check, Problem};

/// The address of a point of the track.
const TRACK: &str = "GP:SD:TR:AC:KL:OG";

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    let bytes = input.bytes()?;
    let text = text_of(&bytes);
    let mut events = Events::of(&text, "Kismet's gpsxml");
    let mut records = Records::new("point", bytes.len());
    while let Some(event) = events.next()? {
        let Event::Start(element) = event else { continue };
        if element.local_name().as_ref() != "gps-point" {
            continue;
        }
        let fields: Vec<(String, String)> = attributes(&element).collect();
        if fields.iter().any(|(name, text)| name == "bssid" && text == TRACK) {
            continue;
        }
        records.begin();
        for (name, text) in fields {
            let name = match name.as_str() {
                "time-sec" => "time",
                // The receiver's own, not the transmitter's.
                "source" | "dest" | "time-usec" => continue,
                other => other,
            };
            records.put(name, text)?;
        }
    }
    if records.count() == 0 {
        return Err(Problem::new("holds a track but no frame with a position"));
    }
    Ok(records)
}
