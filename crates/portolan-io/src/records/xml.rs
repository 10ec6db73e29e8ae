//! What the readers of XML share: events with their place in the file, attributes, text.

use quick_xml::events::{BytesStart, Event};

use crate::error::{Check, Problem, quoted};

/// Events of a document, at most so many elements inside each other.
pub(super) struct Events<'a> {
    reader: quick_xml::Reader<&'a [u8]>,
    kind: &'static str,
}

impl<'a> Events<'a> {
    pub fn of(text: &'a str, kind: &'static str) -> Self {
        let mut reader = quick_xml::Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        // A tag that is closed by another name is none of these formats' business.
        reader.config_mut().check_end_names = false;
        Self { reader, kind }
    }

    /// The next event; None at the end.
    pub fn next(&mut self) -> Check<Option<Event<'a>>> {
        let at = self.reader.buffer_position();
        match self.reader.read_event() {
            Ok(Event::Eof) => Ok(None),
            Ok(event) => Ok(Some(event)),
            Err(error) => Err(Problem::new(format!(
                "byte {at}: not XML as in {} ({})",
                self.kind,
                quoted(&error.to_string())
            ))),
        }
    }
}

/// The text of bytes in UTF-8, or in Latin-1, which old programs write.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_string(),
        Err(_) => bytes.iter().map(|b| char::from(*b)).collect(),
    }
}

/// The value of an attribute, empty where it is not given.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> String {
    attributes(element).find(|(known, _)| known == name).map(|(_, text)| text).unwrap_or_default()
}

/// The attributes of an element, by their names without a prefix. Damaged ones are left out.
pub(super) fn attributes(element: &BytesStart<'_>) -> impl Iterator<Item = (String, String)> {
    element.attributes().filter_map(Result::ok).map(|attribute| {
        let name = attribute.key.local_name().as_ref().to_string();
        let text = match quick_xml::escape::unescape(&attribute.value) {
            Ok(text) => text.into_owned(),
            Err(_) => attribute.value.to_string(),
        };
        (name, text)
    })
}

/// Adds the text of an event to what was read so far.
pub(super) fn gather_text(event: &Event<'_>, text: &mut String) {
    match event {
        Event::Text(piece) => text.push_str(piece),
        Event::CData(piece) => text.push_str(piece),
        Event::GeneralRef(name) => {
            let known = match &**name {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                _ => name.resolve_char_ref().ok().flatten(),
            };
            text.extend(known);
        }
        _ => {}
    }
}
