//! KMZ (OGC 12-007r2): a folder per band with the map as an overlay on the globe and a legend on the
//! screen, and the emitters as placemarks. The images are warped to latitude and longitude: every
//! pixel takes the cell in which it lies.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use portolan::{Crs, Site};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

use super::blocks::each_band;
use super::earth::{Degrees, Projection};
use super::geotiff::escaped;
use super::paint::{colour, legend, limits, meaning, write_png};
use super::parts::{MapAbout, MapParts};
use crate::error::{Check, Problem};
use crate::output::write_file;

/// Pixels of the longer side of an overlay at most, for few bands and for many.
const LONGEST: (usize, usize) = (2048, 1024);

/// More bands than this are many.
const MANY: usize = 8;

/// Places along each edge of the map at which its bounds are looked up.
const ALONG: usize = 64;

/// Writes a map as KMZ.
pub(super) fn write_kmz<P: MapParts>(
    path: &Path,
    parts: &mut P,
    force: bool,
) -> Result<(), P::Error> {
    let about = parts.about().clone();
    let in_target = |problem: Problem| problem.in_target(path);
    let warp = Warp::of(&about).map_err(in_target)?;
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut folders = String::new();
    each_band(path, parts, |band, pixels| {
        let label = about.frame.labels.label(band);
        let ends = limits(pixels);
        let text = meaning(&label, ends, about.unit());
        let mut image = Vec::new();
        write_png(&mut image, (warp.width, warp.height), &text, |line, bytes| {
            let cells = &warp.cells[line * warp.width..(line + 1) * warp.width];
            let level = |cell: &u32| pixels.get(*cell as usize).copied().unwrap_or(f32::NAN);
            bytes.extend(cells.iter().flat_map(|cell| colour(level(cell), ends)));
        })
        .map_err(|error| in_target(Problem::new(error.to_string())))?;
        folder(&mut folders, band, &label, &text, &warp);
        files.push((format!("band{band}.png"), image));
        files.push((format!("legend{band}.png"), legend(&label, ends, about.unit())));
        Ok(())
    })?;
    let text = document(&about, &warp, &folders);
    files.insert(0, ("doc.kml".to_string(), text.into_bytes()));
    Ok(write_file(path, force, |out| {
        let mut archive = ZipWriter::new(out);
        for (name, bytes) in &files {
            let packed = match name.ends_with(".kml") {
                true => CompressionMethod::Deflated,
                false => CompressionMethod::Stored,
            };
            let options = SimpleFileOptions::default()
                .compression_method(packed)
                .last_modified_time(DateTime::default())
                .system(System::Unix)
                .unix_permissions(0o644);
            archive.start_file(name.as_str(), options).map_err(io::Error::other)?;
            archive.write_all(bytes)?;
        }
        archive.finish().map_err(io::Error::other)?.flush()
    })?)
}

/// Refuses a map that lies nowhere on Earth.
pub(super) fn check_place(crs: Option<Crs>) -> Check<()> {
    crs.map(|_| ()).ok_or_else(unplaced)
}

fn unplaced() -> Problem {
    Problem::new("where on Earth the map lies is not known, which KMZ needs: say it with --crs")
}

/// Which cell lies under each pixel of an image in latitude and longitude.
struct Warp {
    projection: Projection,
    middle: f64,
    north: f64,
    south: f64,
    east: f64,
    west: f64,
    width: usize,
    height: usize,
    /// Positions in the image with north up; beyond it where there is no cell.
    cells: Vec<u32>,
}

impl Warp {
    fn of(about: &MapAbout) -> Check<Self> {
        let crs = about.frame.crs.ok_or_else(unplaced)?;
        let (rows, cols) = (about.grid.rows(), about.grid.cols());
        if rows.saturating_mul(cols) >= u32::MAX as usize {
            return Err(Problem::new(format!("{rows} x {cols} cells are too many for KMZ")));
        }
        let projection = Projection::of(crs)?;
        let degrees = |site: Site| projection.inverse(site).map_err(Problem::new);
        let centre = about.grid.site_at([(rows - 1) as f64 / 2.0, (cols - 1) as f64 / 2.0]);
        let middle = degrees(centre)?.lon;
        let (mut south, mut north, mut west, mut east) =
            (f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY);
        for n in 0..=ALONG {
            let along = |cells: usize| cells as f64 * n as f64 / ALONG as f64 - 0.5;
            let (x, y) = (along(rows), along(cols));
            for at in [[x, -0.5], [x, cols as f64 - 0.5], [-0.5, y], [rows as f64 - 0.5, y]] {
                let Degrees { lat, lon } = degrees(about.grid.site_at(at))?;
                let lon = lon - 360.0 * ((lon - middle) / 360.0).round();
                (south, north) = (south.min(lat), north.max(lat));
                (west, east) = (west.min(lon), east.max(lon));
            }
        }
        if !(east - west < 90.0 && north < 89.9 && south > -89.9) {
            return Err(Problem::new(
                "the map reaches around a pole or half the Earth: choose .tif",
            ));
        }
        let longest = if about.bands > MANY { LONGEST.1 } else { LONGEST.0 };
        let wide_m = (east - west) * ((north + south) / 2.0).to_radians().cos();
        let cells_long = rows.max(cols) as f64;
        // About two pixels to a cell, so that warped cells keep their shape.
        let long = (2.0 * cells_long).clamp(64.0, longest as f64);
        let scale = long / wide_m.max(north - south);
        let side = |degrees: f64| ((degrees * scale).round() as usize).clamp(1, longest);
        let (width, height) = (side(wide_m), side(north - south));
        let mut warp =
            Self { projection, middle, north, south, east, west, width, height, cells: Vec::new() };
        warp.cells = warp.look_up(about);
        Ok(warp)
    }

    fn look_up(&self, about: &MapAbout) -> Vec<u32> {
        let (rows, cols) = (about.grid.rows(), about.grid.cols());
        let mut cells = Vec::with_capacity(self.width * self.height);
        for line in 0..self.height {
            let down = (line as f64 + 0.5) / self.height as f64;
            let lat = self.north - down * (self.north - self.south);
            for column in 0..self.width {
                let across = (column as f64 + 0.5) / self.width as f64;
                let lon = self.west + across * (self.east - self.west);
                let cell = self.projection.forward(Degrees { lat, lon }).ok().and_then(|site| {
                    let [row, col] = about.grid.position(site).map(|at| (at + 0.5).floor());
                    let inside = row >= 0.0 && col >= 0.0 && row < rows as f64 && col < cols as f64;
                    inside.then(|| (cols - 1 - col as usize) * rows + row as usize)
                });
                cells.push(cell.map_or(u32::MAX, |cell| cell as u32));
            }
        }
        cells
    }
}

fn folder(out: &mut String, band: usize, label: &str, text: &str, warp: &Warp) {
    let (label, text) = (escaped(label), escaped(text));
    let shown = u8::from(band == 0);
    let Warp { north, south, east, west, .. } = warp;
    let _ = write!(
        out,
        "<Folder><name>{label}</name><visibility>{shown}</visibility>\n\
         <GroundOverlay><name>{label}</name><visibility>{shown}</visibility>\
         <description>{text}</description><color>c0ffffff</color>\
         <Icon><href>band{band}.png</href></Icon>\
         <LatLonBox><north>{north}</north><south>{south}</south><east>{east}</east>\
         <west>{west}</west></LatLonBox></GroundOverlay>\n\
         <ScreenOverlay><name>{label}, legend</name><visibility>{shown}</visibility>\
         <Icon><href>legend{band}.png</href></Icon>\
         <overlayXY x=\"0\" y=\"1\" xunits=\"fraction\" yunits=\"fraction\"/>\
         <screenXY x=\"0.02\" y=\"0.98\" xunits=\"fraction\" yunits=\"fraction\"/>\
         <size x=\"0\" y=\"0\" xunits=\"pixels\" yunits=\"pixels\"/></ScreenOverlay></Folder>\n"
    );
}

fn document(about: &MapAbout, warp: &Warp, folders: &str) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <kml xmlns=\"http://www.opengis.net/kml/2.2\"><Document><name>Radio map</name>\n\
         <Style id=\"one\"><ListStyle><listItemType>radioFolder</listItemType></ListStyle></Style>\n\
         <Folder><name>Bands</name><styleUrl>#one</styleUrl>\n",
    );
    text += folders;
    text += "</Folder>\n";
    if !about.emitters.is_empty() {
        text += "<Folder><name>Emitters</name>\n";
        for (n, site) in about.emitters.iter().enumerate() {
            // An emitter may be placed where the projection does not reach.
            let Ok(Degrees { lat, lon }) = warp.projection.inverse(*site) else { continue };
            let lon = lon - 360.0 * ((lon - warp.middle) / 360.0).round();
            let _ = writeln!(
                text,
                "<Placemark><name>emitter {}</name><Point><coordinates>{lon:.9},{lat:.9}\
                 </coordinates></Point></Placemark>",
                n + 1
            );
        }
        text += "</Folder>\n";
    }
    text += "</Document></kml>\n";
    text
}
