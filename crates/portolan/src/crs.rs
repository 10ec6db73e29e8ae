//! Where on Earth the metres of a survey are counted. The library carries it and never computes
//! with it: a place is metres along x and y, whatever the globe does.

use std::fmt;
use std::str::FromStr;

use crate::error::InputError;

/// A coordinate reference system in metres, x to the east and y to the north.
///
/// ```
/// use portolan::Crs;
/// let utm: Crs = "EPSG:32632".parse()?;
/// assert_eq!(utm, Crs::Epsg(32632));
/// // A plane of its own, true to scale around one place on Earth.
/// let plane: Crs = "local:49.4875,8.466".parse()?;
/// assert_eq!(plane.to_string(), "local:49.4875,8.466");
/// assert!("local:95,8".parse::<Crs>().is_err());
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Crs {
    /// A system of the EPSG's register.
    Epsg(u32),
    /// The plane of a transverse Mercator projection of WGS 84 with scale 1 at this place, which is
    /// its origin.
    Local {
        /// Latitude of the origin in degrees.
        lat_deg: f64,
        /// Longitude of the origin in degrees.
        lon_deg: f64,
    },
}

impl fmt::Display for Crs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crs::Epsg(code) => write!(f, "EPSG:{code}"),
            Crs::Local { lat_deg, lon_deg } => write!(f, "local:{lat_deg},{lon_deg}"),
        }
    }
}

impl FromStr for Crs {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let wrong = || {
            InputError::Request(format!(
                "a coordinate system of '{text}': expected EPSG:n, such as EPSG:32632, or \
                 local:LAT,LON"
            ))
        };
        let (kind, rest) = text.trim().split_once(':').ok_or_else(wrong)?;
        match kind.to_ascii_lowercase().as_str() {
            "epsg" => rest.trim().parse().map(Crs::Epsg).map_err(|_| wrong()),
            "local" => {
                let (lat, lon) = rest.split_once(',').ok_or_else(wrong)?;
                match (lat.trim().parse::<f64>(), lon.trim().parse::<f64>()) {
                    (Ok(lat_deg), Ok(lon_deg))
                        if lat_deg.abs() <= 90.0 && lon_deg.abs() <= 360.0 =>
                    {
                        Ok(Crs::Local { lat_deg, lon_deg })
                    }
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }
}
