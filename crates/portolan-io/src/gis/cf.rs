//! A coordinate system in the words of the CF conventions (1.11, appendix F).

use portolan::Crs;

use super::earth::{Method, System};
use crate::error::Check;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    Text(String),
    Numbers(Vec<f64>),
}

/// The attributes of a grid-mapping variable.
pub(crate) fn grid_mapping(crs: Crs) -> Check<Vec<(&'static str, Word)>> {
    let system = System::of(crs)?;
    let text = |text: &str| Word::Text(text.to_string());
    let one = |number: f64| Word::Numbers(vec![number]);
    let plane = |east_m: f64, north_m: f64| {
        [("false_easting", one(east_m)), ("false_northing", one(north_m))]
    };
    let (name, mut words, offsets) = match system.method {
        Method::TransverseMercator { lat_0, lon_0, scale, east_m, north_m } => (
            "transverse_mercator",
            vec![
                ("latitude_of_projection_origin", one(lat_0)),
                ("longitude_of_central_meridian", one(lon_0)),
                ("scale_factor_at_central_meridian", one(scale)),
            ],
            plane(east_m, north_m),
        ),
        Method::PolarStereographic { north } => (
            "polar_stereographic",
            vec![
                ("latitude_of_projection_origin", one(if north { 90.0 } else { -90.0 })),
                ("straight_vertical_longitude_from_pole", one(0.0)),
                ("scale_factor_at_projection_origin", one(0.994)),
            ],
            plane(2e6, 2e6),
        ),
        Method::WebMercator => (
            "mercator",
            vec![
                ("longitude_of_projection_origin", one(0.0)),
                ("scale_factor_at_projection_origin", one(1.0)),
            ],
            plane(0.0, 0.0),
        ),
        Method::AzimuthalEqualArea { lat_0, lon_0, east_m, north_m } => (
            "lambert_azimuthal_equal_area",
            vec![
                ("latitude_of_projection_origin", one(lat_0)),
                ("longitude_of_projection_origin", one(lon_0)),
            ],
            plane(east_m, north_m),
        ),
        Method::ConformalConic { lat_0, lon_0, lat_1, lat_2, east_m, north_m } => (
            "lambert_conformal_conic",
            vec![
                ("standard_parallel", Word::Numbers(vec![lat_1, lat_2])),
                ("latitude_of_projection_origin", one(lat_0)),
                ("longitude_of_central_meridian", one(lon_0)),
            ],
            plane(east_m, north_m),
        ),
    };
    words.insert(0, ("grid_mapping_name", text(name)));
    words.extend(offsets);
    match system.inverse_flattening() {
        Some(flattening) => {
            words.push(("semi_major_axis", one(6_378_137.0)));
            words.push(("inverse_flattening", one(flattening)));
        }
        None => words.push(("earth_radius", one(6_378_137.0))),
    }
    words.push(("longitude_of_prime_meridian", one(0.0)));
    let wkt = system.wkt();
    words.push(("crs_wkt", text(&wkt)));
    words.push(("spatial_ref", text(&wkt)));
    Ok(words)
}
