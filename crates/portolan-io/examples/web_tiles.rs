//! Tiles for a web map: 256 x 256 pixels each, in Web Mercator, as every map library asks for them
//! (z/x/y.png).
//!
//! `cargo run --release --example web_tiles -- OUTPUT_FOLDER`

use std::f64::consts::PI;
use std::fs::{File, create_dir_all};
use std::path::{Path, PathBuf};

use portolan::estimate::{Kriging, Method};
use portolan::ndarray::Array2;
use portolan::{Context, Crs, Model, Progress, Readings, Scale, Site, Values};
use portolan_io::gis::earth::{Degrees, Projection};
use portolan_io::picture::ColourMap;

/// Pixels along a side.
const SIDE: usize = 256;
/// Levels between which colours run, in dBm.
const ENDS: (f64, f64) = (-95.0, -45.0);

/// Where a pixel of the world lies at a zoom, in tiles from its north-west corner.
fn degrees(zoom: u32, x: f64, y: f64) -> Degrees {
    let world = f64::from(1u32 << zoom);
    let lat = (PI * (1.0 - 2.0 * y / world)).sinh().atan().to_degrees();
    Degrees { lat, lon: 360.0 * x / world - 180.0 }
}

/// The tile that holds a place.
fn tile_of(zoom: u32, at: Degrees) -> (u32, u32) {
    let world = f64::from(1u32 << zoom);
    let north = at.lat.to_radians().tan().asinh();
    ((world * (at.lon + 180.0) / 360.0) as u32, (world * (1.0 - north / PI) / 2.0) as u32)
}

/// Colours of one tile; where the model is unsure by more than 8 dB it is transparent.
fn pixels(
    model: &Model,
    zoom: u32,
    (x, y): (u32, u32),
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let projection = Projection::new(model.crs().ok_or("the model knows no CRS")?)?;
    let part = |i: usize| (i as f64 + 0.5) / SIDE as f64;
    let places = (0..SIDE * SIDE).map(|i| {
        let (down, right) = (i / SIDE, i % SIDE);
        projection.forward(degrees(zoom, f64::from(x) + part(right), f64::from(y) + part(down)))
    });
    let places: Vec<Site> = places.collect::<Result<_, _>>()?;
    let found = model.predict_bands(&places, &[0], &Progress::silent())?;
    let spread = found.spread_db.ok_or("the model states no spread")?;
    let colour = |(power, spread): (&f64, &f64)| {
        let level = 10.0 * power.log10();
        let [r, g, b] = ColourMap::Power.at(((level - ENDS.0) / (ENDS.1 - ENDS.0)).clamp(0.0, 1.0));
        [r, g, b, if *spread < 8.0 { 200 } else { 0 }]
    };
    Ok(found.power.iter().zip(&spread).flat_map(colour).collect())
}

fn write_tile(path: &Path, pixels: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    create_dir_all(path.parent().ok_or("a tile lies in a folder")?)?;
    let mut encoder = png::Encoder::new(File::create(path)?, SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(())
}

fn tiles(folder: &Path) -> Result<usize, Box<dyn std::error::Error>> {
    // A survey of 80 places in UTM zone 32 (EPSG:32632), metres east and north.
    let corner = Site::new(691_000.0, 5_335_000.0);
    let sites: Vec<Site> = (0..80)
        .map(|i| {
            let (east, north) = (f64::from(i * 37 % 100), f64::from(i * 61 % 100));
            Site::new(corner.x_m + 8.0 * east, corner.y_m + 8.0 * north)
        })
        .collect();
    let power = Array2::from_shape_fn((80, 1), |(i, _)| {
        let away = (sites[i].x_m - corner.x_m - 300.0).hypot(sites[i].y_m - corner.y_m - 450.0);
        10f64.powf((-30.0 - 22.0 * away.max(10.0).log10()) / 10.0)
    });
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?
        .with_crs(Some("EPSG:32632".parse::<Crs>()?));
    let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;

    let projection = Projection::new(model.crs().ok_or("the readings have a CRS")?)?;
    let region = model.region();
    let mut written = 0;
    for zoom in [14, 15] {
        let (west, south) = tile_of(zoom, projection.inverse(region.low)?);
        let (east, north) = tile_of(zoom, projection.inverse(region.high)?);
        for x in west..=east {
            for y in north..=south {
                let path = folder.join(format!("{zoom}/{x}/{y}.png"));
                write_tile(&path, &pixels(&model, zoom, (x, y))?)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("tiles"), PathBuf::from);
    println!("{} tiles in {}", tiles(&folder)?, folder.display());
    Ok(())
}

#[test]
fn it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let written = tiles(folder.path()).unwrap();
    assert!((2..40).contains(&written), "{written}");
    // The tile in the middle of the survey shows something.
    let middle = Projection::new("EPSG:32632".parse().unwrap()).unwrap();
    let middle = middle.inverse(Site::new(691_400.0, 5_335_400.0)).unwrap();
    let (x, y) = tile_of(15, middle);
    let file = File::open(folder.path().join(format!("15/{x}/{y}.png"))).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
    let mut pixels = vec![0; SIDE * SIDE * 4];
    reader.next_frame(&mut pixels).unwrap();
    assert!(pixels.chunks(4).filter(|p| p[3] > 0).count() > 1000);
}
