//! From degrees to metres and back: UTM, polar stereographic, a few national systems, and a plane
//! of one's own.

use portolan::{Crs, Site};
use proj4rs::Proj;
use proj4rs::transform::transform;

use crate::error::{Check, Problem};

/// A place on Earth in degrees of WGS 84.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Degrees {
    /// Latitude, north positive.
    pub lat: f64,
    /// Longitude, east positive.
    pub lon: f64,
}

/// Degrees of longitude from the middle of a transverse Mercator beyond which it is no longer used.
const WIDEST: f64 = 12.0;

/// The least latitude of the northern polar system, and the greatest of the southern.
const POLAR: (f64, f64) = (84.0, -80.0);

/// An ellipsoid with its names in well-known text.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Datum {
    name: &'static str,
    datum: &'static str,
    spheroid: &'static str,
    epsg: u32,
    inverse_flattening: &'static str,
    proj: &'static str,
}

const WGS84: Datum = Datum {
    name: "WGS 84",
    datum: "WGS_1984",
    spheroid: "WGS 84",
    epsg: 4326,
    inverse_flattening: "298.257223563",
    proj: "+datum=WGS84",
};
const GRS80: Datum = Datum {
    name: "ETRS89",
    datum: "European_Terrestrial_Reference_System_1989",
    spheroid: "GRS 1980",
    epsg: 4258,
    inverse_flattening: "298.257222101",
    proj: "+ellps=GRS80 +towgs84=0,0,0",
};
const NAD83: Datum =
    Datum { name: "NAD83", datum: "North_American_Datum_1983", epsg: 4269, ..GRS80 };
const RGF93: Datum =
    Datum { name: "RGF93 v1", datum: "Reseau_Geodesique_Francais_1993_v1", epsg: 4171, ..GRS80 };
const GDA94: Datum =
    Datum { name: "GDA94", datum: "Geocentric_Datum_of_Australia_1994", epsg: 4283, ..GRS80 };
const GDA2020: Datum =
    Datum { name: "GDA2020", datum: "Geocentric_Datum_of_Australia_2020", epsg: 7844, ..GRS80 };

/// How the globe becomes a plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Method {
    TransverseMercator { lat_0: f64, lon_0: f64, scale: f64, east_m: f64, north_m: f64 },
    PolarStereographic { north: bool },
    WebMercator,
    AzimuthalEqualArea { lat_0: f64, lon_0: f64, east_m: f64, north_m: f64 },
    ConformalConic { lat_0: f64, lon_0: f64, lat_1: f64, lat_2: f64, east_m: f64, north_m: f64 },
}

/// A coordinate system, spelled out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct System {
    pub name: String,
    pub epsg: Option<u32>,
    pub method: Method,
    datum: Datum,
}

impl System {
    pub fn of(crs: Crs) -> Check<Self> {
        let code = match crs {
            Crs::Epsg(code) => code,
            Crs::Local { lat_deg, lon_deg } => {
                let method = Method::TransverseMercator {
                    lat_0: lat_deg,
                    lon_0: lon_deg,
                    scale: 1.0,
                    east_m: 0.0,
                    north_m: 0.0,
                };
                let name = format!("local plane at {lat_deg}, {lon_deg}");
                return Ok(Self { name, epsg: None, method, datum: WGS84 });
            }
            _ => return Err(Problem::new(format!("{crs}: an unknown kind of system"))),
        };
        let (datum, name, method) = system(code).ok_or_else(|| {
            Problem::new(match code {
                4326 | 4258 | 4269 | 4979 => format!(
                    "EPSG:{code} counts in degrees, expected a system in metres: leave --crs out \
                     for the UTM zone of the data"
                ),
                _ => format!(
                    "EPSG:{code} is not known here, expected UTM (326nn, 327nn, 258nn, 269nn, \
                     283nn, 78nn), 32661, 32761, 3857, 3035, 2154 or local:LAT,LON"
                ),
            })
        })?;
        Ok(Self { name, epsg: Some(code), method, datum })
    }

    /// As PROJ reads it.
    fn proj(&self) -> String {
        let datum = self.datum.proj;
        let text = match self.method {
            Method::TransverseMercator { lat_0, lon_0, scale, east_m, north_m } => format!(
                "+proj=tmerc +lat_0={lat_0} +lon_0={lon_0} +k={scale} +x_0={east_m} +y_0={north_m} \
                 {datum}"
            ),
            Method::PolarStereographic { north } => format!(
                "+proj=stere +lat_0={} +lon_0=0 +k=0.994 +x_0=2000000 +y_0=2000000 {datum}",
                if north { 90 } else { -90 }
            ),
            Method::WebMercator => "+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 \
                                    +y_0=0 +k=1 +nadgrids=@null"
                .to_string(),
            Method::AzimuthalEqualArea { lat_0, lon_0, east_m, north_m } => format!(
                "+proj=laea +lat_0={lat_0} +lon_0={lon_0} +x_0={east_m} +y_0={north_m} {datum}"
            ),
            Method::ConformalConic { lat_0, lon_0, lat_1, lat_2, east_m, north_m } => format!(
                "+proj=lcc +lat_0={lat_0} +lon_0={lon_0} +lat_1={lat_1} +lat_2={lat_2} \
                 +x_0={east_m} +y_0={north_m} {datum}"
            ),
        };
        format!("{text} +units=m +no_defs")
    }

    /// Of the ellipsoid; `None` for a sphere.
    pub fn inverse_flattening(&self) -> Option<f64> {
        match self.method {
            Method::WebMercator => None,
            _ => self.datum.inverse_flattening.parse().ok(),
        }
    }

    /// As well-known text of the first kind.
    pub fn wkt(&self) -> String {
        let Datum { name, datum, spheroid, epsg, inverse_flattening, .. } = self.datum;
        let geographic = format!(
            "GEOGCS[\"{name}\",DATUM[\"{datum}\",SPHEROID[\"{spheroid}\",6378137,\
             {inverse_flattening}]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],\
             UNIT[\"degree\",0.0174532925199433,AUTHORITY[\"EPSG\",\"9122\"]],\
             AUTHORITY[\"EPSG\",\"{epsg}\"]]"
        );
        let (projection, parameters): (&str, Vec<(&str, f64)>) = match self.method {
            Method::TransverseMercator { lat_0, lon_0, scale, east_m, north_m } => (
                "Transverse_Mercator",
                vec![
                    ("latitude_of_origin", lat_0),
                    ("central_meridian", lon_0),
                    ("scale_factor", scale),
                    ("false_easting", east_m),
                    ("false_northing", north_m),
                ],
            ),
            Method::PolarStereographic { north } => (
                "Polar_Stereographic",
                vec![
                    ("latitude_of_origin", if north { 90.0 } else { -90.0 }),
                    ("central_meridian", 0.0),
                    ("scale_factor", 0.994),
                    ("false_easting", 2e6),
                    ("false_northing", 2e6),
                ],
            ),
            Method::WebMercator => (
                "Mercator_1SP",
                vec![
                    ("central_meridian", 0.0),
                    ("scale_factor", 1.0),
                    ("false_easting", 0.0),
                    ("false_northing", 0.0),
                ],
            ),
            Method::AzimuthalEqualArea { lat_0, lon_0, east_m, north_m } => (
                "Lambert_Azimuthal_Equal_Area",
                vec![
                    ("latitude_of_center", lat_0),
                    ("longitude_of_center", lon_0),
                    ("false_easting", east_m),
                    ("false_northing", north_m),
                ],
            ),
            Method::ConformalConic { lat_0, lon_0, lat_1, lat_2, east_m, north_m } => (
                "Lambert_Conformal_Conic_2SP",
                vec![
                    ("latitude_of_origin", lat_0),
                    ("central_meridian", lon_0),
                    ("standard_parallel_1", lat_1),
                    ("standard_parallel_2", lat_2),
                    ("false_easting", east_m),
                    ("false_northing", north_m),
                ],
            ),
        };
        let parameters: String = parameters
            .iter()
            .map(|(name, value)| format!("PARAMETER[\"{name}\",{value}],"))
            .collect();
        let extension = match self.method {
            Method::WebMercator => format!(",EXTENSION[\"PROJ4\",\"{} +wktext\"]", self.proj()),
            _ => String::new(),
        };
        let authority =
            self.epsg.map(|code| format!(",AUTHORITY[\"EPSG\",\"{code}\"]")).unwrap_or_default();
        format!(
            "PROJCS[\"{}\",{geographic},PROJECTION[\"{projection}\"],{parameters}\
             UNIT[\"metre\",1,AUTHORITY[\"EPSG\",\"9001\"]],AXIS[\"Easting\",EAST],\
             AXIS[\"Northing\",NORTH]{extension}{authority}]",
            self.name
        )
    }
}

/// The systems of the EPSG's register that are known here.
fn system(code: u32) -> Option<(Datum, String, Method)> {
    let utm = |datum: Datum, zone: u32, north: bool, called: &str| {
        let method = Method::TransverseMercator {
            lat_0: 0.0,
            lon_0: f64::from(zone) * 6.0 - 183.0,
            scale: 0.9996,
            east_m: 500_000.0,
            north_m: if north { 0.0 } else { 10_000_000.0 },
        };
        Some((datum, format!("{} / {called} {zone}", datum.name), method))
    };
    let hemisphere = |found: Option<(Datum, String, Method)>, letter: &str| {
        found.map(|(datum, name, method)| (datum, format!("{name}{letter}"), method))
    };
    match code {
        32601..=32660 => hemisphere(utm(WGS84, code - 32600, true, "UTM zone"), "N"),
        32701..=32760 => hemisphere(utm(WGS84, code - 32700, false, "UTM zone"), "S"),
        25828..=25838 => hemisphere(utm(GRS80, code - 25800, true, "UTM zone"), "N"),
        26901..=26923 => hemisphere(utm(NAD83, code - 26900, true, "UTM zone"), "N"),
        28348..=28358 => utm(GDA94, code - 28300, false, "MGA zone"),
        7846..=7859 => utm(GDA2020, code - 7800, false, "MGA zone"),
        32661 | 32761 => {
            let north = code == 32661;
            let name = format!("WGS 84 / UPS {} (N,E)", if north { "North" } else { "South" });
            Some((WGS84, name, Method::PolarStereographic { north }))
        }
        3857 => Some((WGS84, "WGS 84 / Pseudo-Mercator".into(), Method::WebMercator)),
        3035 => {
            let method = Method::AzimuthalEqualArea {
                lat_0: 52.0,
                lon_0: 10.0,
                east_m: 4_321_000.0,
                north_m: 3_210_000.0,
            };
            Some((GRS80, "ETRS89-extended / LAEA Europe".into(), method))
        }
        2154 => {
            let method = Method::ConformalConic {
                lat_0: 46.5,
                lon_0: 3.0,
                lat_1: 49.0,
                lat_2: 44.0,
                east_m: 700_000.0,
                north_m: 6_600_000.0,
            };
            Some((RGF93, "RGF93 v1 / Lambert-93".into(), method))
        }
        _ => None,
    }
}

/// A system as well-known text, where it is known here.
pub fn well_known_text(crs: Crs) -> Option<String> {
    System::of(crs).ok().map(|system| system.wkt())
}

/// Turns degrees into the metres of a system, and back.
pub struct Projection {
    system: System,
    plane: Proj,
    globe: Proj,
}

impl Projection {
    /// Fails where the system is not known here.
    pub fn new(crs: Crs) -> std::result::Result<Self, String> {
        Self::of(crs).map_err(|problem| problem.to_string())
    }

    pub(crate) fn of(crs: Crs) -> Check<Self> {
        let system = System::of(crs)?;
        let made = |text: &str| {
            Proj::from_proj_string(text).map_err(|error| Problem::new(format!("{crs}: {error}")))
        };
        // A sphere of its own has no datum: its degrees are taken as they are.
        let globe = match system.method {
            Method::WebMercator => "+proj=longlat +a=6378137 +b=6378137 +no_defs",
            _ => "+proj=longlat +datum=WGS84 +no_defs",
        };
        Ok(Self { plane: made(&system.proj())?, globe: made(globe)?, system })
    }

    /// Metres of a place on Earth; says why where the system does not reach it.
    pub fn forward(&self, at: Degrees) -> std::result::Result<Site, String> {
        let Degrees { lat, lon } = at;
        if !(lat.abs() <= 90.0 && lon.abs() <= 360.0) {
            return Err(format!("latitude {lat}, longitude {lon} is not on Earth"));
        }
        let name = &self.system.name;
        let off = match self.system.method {
            Method::TransverseMercator { lon_0, .. } => wrapped(lon - lon_0).abs() > WIDEST,
            Method::PolarStereographic { north } => (lat > 0.0) != north || lat.abs() < 60.0,
            Method::WebMercator => lat.abs() > 85.06,
            Method::AzimuthalEqualArea { lat_0, lon_0, .. } => {
                (lat - lat_0).abs() > 40.0 || wrapped(lon - lon_0).abs() > 60.0
            }
            Method::ConformalConic { lat_0, lon_0, .. } => {
                (lat - lat_0).abs() > 20.0 || wrapped(lon - lon_0).abs() > 30.0
            }
        };
        if off {
            return Err(format!("latitude {lat}, longitude {lon} is too far from {name}"));
        }
        let mut point = (wrapped(lon).to_radians(), lat.to_radians(), 0.0);
        match transform(&self.globe, &self.plane, &mut point) {
            Ok(()) if point.0.is_finite() && point.1.is_finite() => Ok(Site::new(point.0, point.1)),
            _ => Err(format!("latitude {lat}, longitude {lon} has no place in {name}")),
        }
    }

    /// Degrees of a place in metres.
    pub fn inverse(&self, at: Site) -> std::result::Result<Degrees, String> {
        let mut point = (at.x_m, at.y_m, 0.0);
        match transform(&self.plane, &self.globe, &mut point) {
            Ok(()) if point.0.is_finite() && point.1.is_finite() => {
                Ok(Degrees { lat: point.1.to_degrees(), lon: wrapped(point.0.to_degrees()) })
            }
            _ => {
                let (Site { x_m, y_m, .. }, name) = (at, &self.system.name);
                Err(format!("x {x_m}, y {y_m} is not on Earth in {name}"))
            }
        }
    }
}

/// The same meridian between -180 and 180 degrees.
fn wrapped(lon: f64) -> f64 {
    if (-180.0..=180.0).contains(&lon) {
        lon
    } else {
        lon - 360.0 * ((lon + 180.0) / 360.0).floor()
    }
}

/// The UTM zone around some places, the polar system near a pole.
pub fn crs_around(places: &[Degrees]) -> Crs {
    let count = places.len().max(1) as f64;
    let lat = places.iter().map(|p| p.lat).sum::<f64>() / count;
    if lat >= POLAR.0 {
        return Crs::Epsg(32661);
    }
    if lat < POLAR.1 {
        return Crs::Epsg(32761);
    }
    // Across the date line degrees have no mean, directions do.
    let (sin, cos) = places
        .iter()
        .map(|p| p.lon.to_radians().sin_cos())
        .fold((0.0, 0.0), |(s, c), (sin, cos)| (s + sin, c + cos));
    let lon = f64::atan2(sin, cos).to_degrees();
    let zone = match (lat, lon) {
        // Southern Norway and Svalbard have zones of their own width.
        (56.0..64.0, 3.0..12.0) => 32,
        (72.0..84.0, 0.0..9.0) => 31,
        (72.0..84.0, 9.0..21.0) => 33,
        (72.0..84.0, 21.0..33.0) => 35,
        (72.0..84.0, 33.0..42.0) => 37,
        _ => (((lon + 180.0) / 6.0).floor() as u32).min(59) + 1,
    };
    Crs::Epsg(if lat < 0.0 { 32700 } else { 32600 } + zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_over_the_whole_world() {
        for lat in (-90..=90).step_by(3) {
            for lon in (-180..=180).step_by(5) {
                let at = Degrees { lat: f64::from(lat), lon: f64::from(lon) + 0.123 };
                let crs = crs_around(&[at]);
                let projection = Projection::of(crs).unwrap();
                let back = projection.inverse(projection.forward(at).unwrap()).unwrap();
                let apart = wrapped(back.lon - at.lon).abs() * at.lat.to_radians().cos();
                assert!((back.lat - at.lat).abs() < 1e-9 && apart < 1e-9, "{at:?} {crs} {back:?}");
            }
        }
    }

    #[test]
    fn zones_and_the_date_line() {
        let crs = |lat: f64, lon: f64| crs_around(&[Degrees { lat, lon }]);
        assert_eq!(crs(49.5, 8.5), Crs::Epsg(32632));
        assert_eq!(crs(60.0, 4.0), Crs::Epsg(32632));
        assert_eq!(crs(78.0, 15.0), Crs::Epsg(32633));
        assert_eq!(crs(-33.9, 151.2), Crs::Epsg(32756));
        assert_eq!((crs(84.0, 3.0), crs(-80.1, 3.0)), (Crs::Epsg(32661), Crs::Epsg(32761)));
        assert_eq!((crs(0.0, 180.0), crs(0.0, -180.0)), (Crs::Epsg(32660), Crs::Epsg(32601)));
        let fiji = [Degrees { lat: -17.0, lon: 179.9 }, Degrees { lat: -17.0, lon: -179.9 }];
        let projection = Projection::of(crs_around(&fiji)).unwrap();
        let [a, b] = fiji.map(|at| projection.forward(at).unwrap());
        assert!((a.distance_m(b) - 21_300.0).abs() < 100.0, "{}", a.distance_m(b));
    }

    #[test]
    fn what_is_not_reached_is_said() {
        let utm = Projection::of(Crs::Epsg(32632)).unwrap();
        assert!(utm.forward(Degrees { lat: 10.0, lon: 80.0 }).unwrap_err().contains("too far"));
        assert!(utm.forward(Degrees { lat: 100.0, lon: 9.0 }).unwrap_err().contains("on Earth"));
        assert!(Projection::of(Crs::Epsg(4326)).is_err() && Projection::of(Crs::Epsg(1)).is_err());
    }
}
