//! Where a receiver was and when: GPX, or a table with times and places.

use std::path::Path;

use portolan::{Crs, Site};
use quick_xml::events::Event;

use super::clock::{Clock, time_of};
use crate::error::{Check, Problem, Result, quoted};
use crate::gis::earth::Degrees;
use crate::source::contents;
use crate::table::columns::{Position, position, time};
use crate::table::lines::Lines;
use crate::table::positions::{degrees, place, project};

/// Fixes in order of time, in metres.
pub(crate) struct Track {
    fixes: Vec<(f64, Site)>,
    pub crs: Option<Crs>,
    /// Seconds between two fixes beyond which the way between them is not known.
    gap_s: f64,
}

impl Track {
    pub fn open(path: &Path, asked: Option<Crs>, gap_s: f64) -> Result<Self> {
        let in_file = |problem: Problem| problem.in_file(path);
        let bytes = contents(path)?;
        Self::parse(&bytes, asked, gap_s).map_err(in_file)
    }

    fn parse(bytes: &[u8], asked: Option<Crs>, gap_s: f64) -> Check<Self> {
        if gap_s.is_nan() || gap_s <= 0.0 {
            return Err(Problem::new(format!("--track-gap {gap_s}: expected seconds above 0")));
        }
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let (times, mut sites, on_earth) = match text.trim_ascii_start().first() {
            Some(b'<') => {
                let (times, sites) = gpx(text)?;
                (times, sites, true)
            }
            _ => table(text)?,
        };
        if sites.len() < 2 {
            let found = sites.len();
            return Err(Problem::new(format!(
                "{found} fix(es) with a time, expected a track of at least two"
            )));
        }
        let crs = match on_earth {
            true => Some(project(&mut sites, asked)?),
            false => asked,
        };
        let mut fixes: Vec<(f64, Site)> = times.into_iter().zip(sites).collect();
        fixes.sort_by(|a, b| a.0.total_cmp(&b.0));
        fixes.dedup_by_key(|fix| fix.0);
        Ok(Self { fixes, crs, gap_s })
    }

    /// Where the receiver was; None before, after and in the gaps of the track.
    pub fn at(&self, time_s: f64) -> Option<Site> {
        let next = self.fixes.partition_point(|fix| fix.0 < time_s);
        let &(t1, b) = self.fixes.get(next)?;
        if t1 == time_s {
            return Some(b);
        }
        let &(t0, a) = self.fixes.get(next.checked_sub(1)?)?;
        if t1 - t0 > self.gap_s {
            return None;
        }
        let share = (time_s - t0) / (t1 - t0);
        Some(Site::new(a.x_m + share * (b.x_m - a.x_m), a.y_m + share * (b.y_m - a.y_m)))
    }

    /// First and last time.
    pub fn span(&self) -> (f64, f64) {
        (self.fixes[0].0, self.fixes[self.fixes.len() - 1].0)
    }
}

type Fixes = (Vec<f64>, Vec<Site>);

/// The points of a GPX file that have a time; places are longitude and latitude.
fn gpx(bytes: &[u8]) -> Check<Fixes> {
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::new("expected text in UTF-8"))?;
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut times, mut sites) = (Vec::new(), Vec::new());
    let (mut point, mut in_time, mut time) = (None, false, String::new());
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event().map_err(|error| {
            Problem::new(format!("byte {at}: not XML as in GPX ({})", quoted(&error.to_string())))
        })?;
        match event {
            Event::Start(element) => match element.local_name().as_ref() {
                "trkpt" | "rtept" | "wpt" => point = Some(gpx_point(&element, at)?),
                "time" => (in_time, time) = (point.is_some(), String::new()),
                _ => {}
            },
            Event::Text(piece) if in_time => {
                time += &piece;
            }
            Event::End(element) => match element.local_name().as_ref() {
                "time" if in_time => {
                    in_time = false;
                    let seconds = Clock::UTC.seconds(&time, None).ok_or_else(|| {
                        Problem::new(format!("byte {at}: {} is no time of GPX", quoted(&time)))
                    })?;
                    if let Some(Degrees { lat, lon }) = point {
                        times.push(seconds);
                        sites.push(Site::new(lon, lat));
                    }
                }
                "trkpt" | "rtept" | "wpt" => point = None,
                _ => {}
            },
            Event::Eof => return Ok((times, sites)),
            _ => {}
        }
    }
}

fn gpx_point(element: &quick_xml::events::BytesStart<'_>, at: u64) -> Check<Degrees> {
    let number = |name: &str, most: f64| {
        let found = element.attributes().filter_map(std::result::Result::ok);
        let mut found = found.filter(|a| a.key.local_name().as_ref() == name);
        let text = found.next().map(|a| a.value.into_owned()).unwrap_or_default();
        let value = text.trim().parse::<f64>().ok();
        value.filter(|v| v.abs() <= most).ok_or_else(|| {
            Problem::new(format!("byte {at}: {name} of {}, expected degrees", quoted(&text)))
        })
    };
    Ok(Degrees { lat: number("lat", 90.0)?, lon: number("lon", 360.0)? })
}

/// Times and places of a table, and whether the places are longitude and latitude.
fn table(bytes: &[u8]) -> Check<(Vec<f64>, Vec<Site>, bool)> {
    let mut lines = Lines::open(bytes)?;
    let header = lines.next()?.ok_or_else(|| Problem::new("is empty, expected a track"))?;
    let fields = header.fields();
    let position = position(&fields)?;
    let Some(time) = time(&fields) else {
        let seen: Vec<String> = fields.iter().take(8).map(|name| quoted(name)).collect();
        return Err(Problem::new(format!(
            "line 1: no column of times; columns seen: {}; wanted: time, and lat,lon or x_m,y_m",
            seen.join(", ")
        )));
    };
    lines.columns = fields.len();
    let (mut times, mut sites) = (Vec::new(), Vec::new());
    let on_earth = matches!(position, Position::Degrees(..));
    while let Some(line) = lines.next()? {
        let at = time_of(&line, time, &Clock::UTC)?;
        let site = match position {
            Position::Degrees(lat, lon) => {
                degrees(&line, lat, lon)?.map(|d| Site::new(d.lon, d.lat))
            }
            Position::Metres(x, y, _) | Position::Both([_, _, x, y], _) => {
                Some(Site::new(place(&line, x)?, place(&line, y)?))
            }
            Position::Cell(..) => {
                return Err(Problem::new("line 1: a track has lat,lon or x_m,y_m, not cells"));
            }
        };
        if let Some(site) = site.filter(|_| !at.is_nan()) {
            times.push(at);
            sites.push(site);
        }
    }
    Ok((times, sites, on_earth))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPX: &str = r#"<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1">
        <metadata><time>2020-01-01T00:00:00Z</time></metadata><trk><trkseg>
        <trkpt lat="49.5" lon="8.5"><ele>100</ele><time>2024-05-01T12:00:00Z</time></trkpt>
        <trkpt lat="49.501" lon="8.5"><time>2024-05-01T12:00:10Z</time></trkpt>
        <trkpt lat="49.502" lon="8.5"/><trkpt lat="49.6" lon="8.5"><time>2024-05-01T13:00:00Z</time>
        </trkpt></trkseg></trk></gpx>"#;

    #[test]
    fn places_between_fixes_and_none_in_gaps() {
        let track = Track::parse(GPX.as_bytes(), None, 30.0).unwrap();
        assert_eq!((track.fixes.len(), track.crs), (3, Some(Crs::Epsg(32632))));
        let noon = 1_714_564_800.0;
        let [a, b] = [0.0, 10.0].map(|t| track.at(noon + t).unwrap());
        let middle = track.at(noon + 5.0).unwrap();
        assert!((middle.distance_m(a) - middle.distance_m(b)).abs() < 1e-6);
        assert!((a.distance_m(b) - 111.2).abs() < 0.2, "{}", a.distance_m(b));
        assert_eq!((track.at(noon - 1.0), track.at(noon + 20.0)), (None, None));
        let long = Track::parse(GPX.as_bytes(), None, 7200.0).unwrap();
        assert!(long.at(noon + 20.0).is_some() && long.at(noon + 3601.0).is_none());
    }

    #[test]
    fn tables_are_tracks_too() {
        let text = "time,x_m,y_m\n2024-05-01T12:00:00Z,0,0\n2024-05-01T12:00:10Z,10,20\n";
        let track = Track::parse(text.as_bytes(), None, 30.0).unwrap();
        assert_eq!(track.at(1_714_564_805.0), Some(Site::new(5.0, 10.0)));
        let marked = format!("\u{feff}{text}");
        assert!(Track::parse(marked.as_bytes(), None, 30.0).is_ok());
        for wrong in
            ["", "time,x_m\n1,2\n", "x_m,y_m\n1,2\n", "time,x_m,y_m\n1,2,3\n", "<gpx>", "<a"]
        {
            assert!(Track::parse(wrong.as_bytes(), None, 30.0).is_err(), "{wrong}");
        }
    }
}
