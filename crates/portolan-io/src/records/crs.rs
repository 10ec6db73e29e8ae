//! The coordinate system that a file names: a name as in GeoJSON (`urn:ogc:def:crs:EPSG::32632`), or
//! well-known text as in a `.prj` file (OGC 01-009, and ESRI's names of UTM zones).

use portolan::Crs;

use crate::error::{Check, Problem, quoted};
use crate::gis::earth::Projection;

/// What the coordinates of a file are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OwnCrs {
    /// Longitude and latitude.
    Degrees,
    /// Metres of a system.
    Metres(Crs),
}

/// Systems that count in degrees and lie within a metre or two of WGS 84.
const DEGREES: [u32; 9] = [4326, 4258, 4269, 4979, 4937, 4171, 4283, 7844, 4617];

impl OwnCrs {
    /// The system of an EPSG code.
    pub fn of_code(code: u32) -> Check<Self> {
        if DEGREES.contains(&code) {
            return Ok(OwnCrs::Degrees);
        }
        let crs = Crs::Epsg(code);
        Projection::of(crs)?;
        Ok(OwnCrs::Metres(crs))
    }

    /// The system of a name such as `EPSG:32632`, `urn:ogc:def:crs:EPSG::32632`, `.../EPSG/0/32632`
    /// or `CRS84`.
    pub fn of_name(name: &str) -> Check<Self> {
        let upper = name.to_ascii_uppercase();
        if upper.contains("CRS84") || upper == "WGS84" || upper == "WGS 84" {
            return Ok(OwnCrs::Degrees);
        }
        let code = upper.rsplit([':', '/']).next().and_then(|code| code.trim().parse().ok());
        match code.filter(|_| upper.contains("EPSG")) {
            Some(code) => Self::of_code(code),
            None => Err(unknown(name)),
        }
    }

    /// The system of well-known text.
    pub fn of_text(text: &str) -> Check<Self> {
        let text = text.trim().trim_start_matches('\u{feff}');
        let upper = text.to_ascii_uppercase();
        let name = upper.split('"').nth(1).unwrap_or_default().replace('_', " ");
        let geographic = ["GEOGCS", "GEOGCRS", "GEODCRS", "GEODETICCRS", "GEOGRAPHICCRS"];
        if geographic.iter().any(|word| upper.starts_with(word)) {
            let near = ["WGS 84", "WGS 1984", "GCS WGS 1984", "ETRS89", "GCS ETRS 1989", "NAD83"];
            let near = near.iter().any(|known| name == *known)
                || ["NORTH AMERICAN 1983", "GDA"].iter().any(|known| name.contains(known));
            return if near { Ok(OwnCrs::Degrees) } else { Err(unknown(&name)) };
        }
        if let Some(crs) = utm(&name) {
            return Ok(OwnCrs::Metres(crs));
        }
        // The code of the whole stands last.
        let mut last = ["AUTHORITY[\"EPSG\",", "ID[\"EPSG\","].iter().filter_map(|mark| {
            let at = upper.rfind(mark)?;
            let rest = &upper[at + mark.len()..];
            let digits = rest.trim_start_matches('"');
            let end = digits.find(|c: char| !c.is_ascii_digit())?;
            // Behind it only brackets close the text.
            let closes = digits[end..].chars().all(|c| matches!(c, '"' | ']' | ' ' | '\n' | '\r'));
            digits[..end].parse().ok().filter(|_| closes)
        });
        match last.next_back() {
            Some(code) => Self::of_code(code),
            None => Err(unknown(&name)),
        }
    }
}

/// `WGS 84 / UTM zone 32N`, `WGS 1984 UTM Zone 32N` and the same of ETRS89 and NAD83.
fn utm(name: &str) -> Option<Crs> {
    let zone = name.split("UTM ZONE ").nth(1)?;
    let (digits, south) = match zone.strip_suffix('N') {
        Some(digits) => (digits, false),
        None => (zone.strip_suffix('S')?, true),
    };
    let zone: u32 = digits.parse().ok().filter(|zone| (1..=60).contains(zone))?;
    let base = match name {
        _ if name.starts_with("WGS 84") || name.starts_with("WGS 1984") => {
            if south {
                32700
            } else {
                32600
            }
        }
        _ if name.starts_with("ETRS89") || name.starts_with("ETRS 1989") => 25800,
        _ if name.starts_with("NAD83") || name.starts_with("NAD 1983") => 26900,
        _ => return None,
    };
    let crs = Crs::Epsg(base + zone);
    Projection::of(crs).is_ok().then_some(crs)
}

fn unknown(name: &str) -> Problem {
    Problem::new(format!(
        "its coordinate system {} is not known here: save it in WGS 84 or a UTM zone, or as a table \
         with x_m and y_m and give --crs",
        quoted(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_systems() {
        let metres = OwnCrs::Metres(Crs::Epsg(32632));
        for name in ["EPSG:32632", "urn:ogc:def:crs:EPSG::32632", "http://a/def/crs/EPSG/0/32632"] {
            assert_eq!(OwnCrs::of_name(name), Ok(metres), "{name}");
        }
        for name in ["urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326"] {
            assert_eq!(OwnCrs::of_name(name), Ok(OwnCrs::Degrees), "{name}");
        }
        assert!(OwnCrs::of_name("EPSG:31467").is_err());
        assert!(OwnCrs::of_name("here").unwrap_err().to_string().contains("'here'"));
    }

    #[test]
    fn well_known_text_of_systems() {
        let esri = "PROJCS[\"WGS_1984_UTM_Zone_32N\",GEOGCS[\"GCS_WGS_1984\"]]";
        assert_eq!(OwnCrs::of_text(esri), Ok(OwnCrs::Metres(Crs::Epsg(32632))));
        let ours = crate::gis::earth::well_known_text(Crs::Epsg(3035)).unwrap();
        assert_eq!(OwnCrs::of_text(&ours), Ok(OwnCrs::Metres(Crs::Epsg(3035))));
        assert_eq!(OwnCrs::of_text("GEOGCS[\"GCS_WGS_1984\",DATUM[]]"), Ok(OwnCrs::Degrees));
        for wrong in ["", "PROJCS[\"DHDN / 3-degree zone 3\"]", "PROJCS[\"UTM ZONE 99N\"]"] {
            assert!(OwnCrs::of_text(wrong).is_err(), "{wrong}");
        }
    }
}
