//! Where a GeoTIFF lies on Earth, in its own tags (OGC 19-008r4): a pixel's size, a corner, and keys
//! of the coordinate system. Without a system there are no keys: the raster counts in metres of its
//! own.

use super::earth::{Method, System};
use super::parts::MapAbout;
use super::tiff::Values;
use crate::error::Check;

const PIXEL_SCALE: u16 = 33550;
const TIE_POINT: u16 = 33922;
const KEYS: u16 = 34735;
const KEY_DOUBLES: u16 = 34736;
const KEY_TEXTS: u16 = 34737;

/// Says "defined here" where a code of the register is expected.
const USER_DEFINED: u16 = 32767;

/// The tags of a map's place.
pub(crate) fn geo_tags(about: &MapAbout) -> Check<Vec<(u16, Values)>> {
    let cell = about.grid.cell_m();
    let (west, north) = (about.x_m(0) - cell / 2.0, about.y_m(0) + cell / 2.0);
    let mut tags = vec![
        (PIXEL_SCALE, Values::Double(vec![cell, cell, 0.0])),
        (TIE_POINT, Values::Double(vec![0.0, 0.0, 0.0, west, north, 0.0])),
    ];
    if let Some(crs) = about.frame.crs {
        tags.extend(keys(&System::of(crs)?));
    }
    Ok(tags)
}

/// Keys in the order of their numbers, with the texts and doubles that some refer to.
struct Keys {
    directory: Vec<u16>,
    doubles: Vec<f64>,
    texts: String,
}

impl Keys {
    fn short(&mut self, key: u16, value: u16) {
        self.directory.extend([key, 0, 1, value]);
    }

    fn double(&mut self, key: u16, value: f64) {
        self.directory.extend([key, KEY_DOUBLES, 1, self.doubles.len() as u16]);
        self.doubles.push(value);
    }

    fn text(&mut self, key: u16, text: &str) {
        let (at, length) = (self.texts.len() as u16, text.len() as u16 + 1);
        self.directory.extend([key, KEY_TEXTS, length, at]);
        self.texts += text;
        self.texts.push('|');
    }
}

fn keys(system: &System) -> Vec<(u16, Values)> {
    let mut keys = Keys { directory: Vec::new(), doubles: Vec::new(), texts: String::new() };
    // Projected, a pixel is an area.
    keys.short(1024, 1);
    keys.short(1025, 1);
    keys.text(1026, &system.name);
    match (system.epsg, system.method) {
        (None, Method::TransverseMercator { lat_0, lon_0, scale, east_m, north_m }) => {
            // WGS 84 in degrees, then the projection in metres.
            keys.short(2048, 4326);
            keys.short(2054, 9102);
            keys.short(3072, USER_DEFINED);
            keys.text(3073, &system.name);
            keys.short(3074, USER_DEFINED);
            keys.short(3075, 1);
            keys.short(3076, 9001);
            keys.double(3080, lon_0);
            keys.double(3081, lat_0);
            keys.double(3082, east_m);
            keys.double(3083, north_m);
            keys.double(3092, scale);
        }
        (code, _) => {
            keys.short(3072, code.map_or(USER_DEFINED, |code| code as u16));
            keys.short(3076, 9001);
        }
    }
    let Keys { directory, doubles, texts } = keys;
    let mut values = vec![1, 1, 0, (directory.len() / 4) as u16];
    values.extend(directory);
    let mut tags = vec![(KEYS, Values::Short(values)), (KEY_TEXTS, Values::Ascii(texts))];
    if !doubles.is_empty() {
        tags.push((KEY_DOUBLES, Values::Double(doubles)));
    }
    tags
}

#[cfg(test)]
mod tests {
    use portolan::Crs;

    use super::*;

    #[test]
    fn keys_are_sorted_and_counted() {
        for crs in [Crs::Epsg(32632), Crs::Local { lat_deg: -3.5, lon_deg: 120.25 }] {
            let tags = keys(&System::of(crs).unwrap());
            let (_, Values::Short(values)) = &tags[0] else { panic!("{tags:?}") };
            assert_eq!(values.len(), 4 + 4 * usize::from(values[3]));
            let numbers: Vec<u16> = values[4..].iter().step_by(4).copied().collect();
            assert!(numbers.is_sorted(), "{numbers:?}");
        }
    }
}
