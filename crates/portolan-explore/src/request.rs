//! What file of an item is wished for, as a request says it.

use portolan::Site;
use portolan_io::export::GridRequest;
use portolan_io::gis::MaskRule;
use portolan_io::parse;
use portolan_io::picture::{ColourMap, Layer, Look};

use crate::answer::Refusal;
use crate::library::{Content, Item};
use crate::query::Query;
use crate::uploads::{Upload, Uploads};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Model,
    Readings,
    Emitters,
    Map,
    /// A picture of one band.
    Picture,
    /// All bands in small panels, by frequency.
    Spectrum,
    /// SLFs and PSDs of the emitters.
    Factors,
    /// How much of the area lies above a level.
    Coverage,
    /// What the model says about one place.
    Place,
    /// What the model says about an uploaded table of places.
    Places,
}

impl What {
    /// Endings of the files that it becomes.
    fn endings(self) -> &'static [&'static str] {
        match self {
            What::Model => &["npz"],
            What::Readings => &["npz", "csv", "mat", "geojson"],
            What::Emitters => &["geojson"],
            What::Map => {
                &["npz", "csv", "mat", "tif", "tiff", "nc", "zarr", "geojson", "kmz", "png"]
            }
            What::Picture | What::Spectrum | What::Factors => &["png", "svg", "pdf"],
            What::Coverage => &["json", "png", "svg", "pdf"],
            What::Place | What::Places => &["csv"],
        }
    }

    pub fn parse(text: &str) -> Result<Self, Refusal> {
        Ok(match text {
            "model" => What::Model,
            "readings" => What::Readings,
            "emitters" => What::Emitters,
            "map" => What::Map,
            "picture" => What::Picture,
            "spectrum" => What::Spectrum,
            "factors" => What::Factors,
            "coverage" => What::Coverage,
            "place" => What::Place,
            "places" => What::Places,
            _ => {
                return Err(Refusal::input(format!(
                    "what={text}: expected model, readings, emitters, map, picture, spectrum, \
                     factors, coverage, place or places"
                )));
            }
        })
    }
}

/// A request for a file of an item.
#[derive(Clone)]
pub struct ExportRequest {
    pub what: What,
    /// The ending of the file's name.
    pub ending: String,
    pub bands: Option<Vec<usize>>,
    pub band: usize,
    pub above: Option<f64>,
    pub grid: GridRequest,
    pub masks: Vec<String>,
    pub place: Option<Site>,
    /// A table of places.
    pub table: Option<Upload>,
    /// Whether a picture marks the sensors.
    pub sensors: bool,
    /// The palette of a picture.
    pub colours: Option<&'static str>,
    /// Ends of a picture's colours in dB, or in per cent.
    pub range: Option<(f64, f64)>,
    /// Whether a picture shows the spread.
    pub spread: bool,
    /// Steps of a picture's colours.
    pub levels: Vec<f64>,
    /// Lines of equal value in a picture.
    pub contours: Vec<f64>,
    /// Heading of a picture.
    pub title: Option<String>,
}

/// Palettes that a picture can have, by the command's names.
const PALETTES: [(&str, ColourMap); 3] =
    [("viridis", ColourMap::Power), ("cividis", ColourMap::Cividis), ("magma", ColourMap::Spread)];

fn palette(text: &str) -> Result<&'static str, Refusal> {
    let found = PALETTES.iter().map(|(name, _)| *name).find(|name| *name == text);
    found.ok_or_else(|| {
        Refusal::input(format!("colours={text}: expected viridis, cividis or magma"))
    })
}

/// Letters of a heading.
const LONGEST_TITLE: usize = 200;

fn title(text: &str) -> Result<String, Refusal> {
    if text.chars().count() > LONGEST_TITLE || text.chars().any(char::is_control) {
        let expected = format!("title: expected one line of at most {LONGEST_TITLE} letters");
        return Err(Refusal::input(expected));
    }
    Ok(text.to_string())
}

impl ExportRequest {
    /// How a picture looks.
    pub fn look(&self) -> Look {
        let known = self.colours.and_then(|name| PALETTES.iter().find(|(own, _)| *own == name));
        Look {
            layer: Layer::of(self.above, self.spread),
            colours: known.map_or(ColourMap::Power, |(_, map)| *map),
            range: self.range,
            levels: self.levels.clone(),
            contours: self.contours.clone(),
            ..Look::default()
        }
    }
}

/// Refuses what the command cannot draw together.
fn check_look(request: &ExportRequest) -> Result<(), Refusal> {
    let both = |a: &str, b: &str| {
        Err(Refusal::input(format!("{a} and {b}: expected one of them, not both")))
    };
    match request {
        ExportRequest { spread: true, above: Some(_), .. } => both("spread", "above"),
        ExportRequest { range: Some(_), levels, .. } if !levels.is_empty() => {
            both("range", "levels")
        }
        _ => Ok(()),
    }
}

impl ExportRequest {
    pub fn parse(query: &Query, item: &Item, uploads: &Uploads) -> Result<Self, Refusal> {
        let what = What::parse(query.text("what").unwrap_or("map"))?;
        let usual = match what {
            What::Emitters => "geojson",
            What::Picture | What::Spectrum | What::Factors => "png",
            What::Coverage => "json",
            What::Place | What::Places => "csv",
            _ => "npz",
        };
        let ending = query.text("format").unwrap_or(usual).to_ascii_lowercase();
        if !what.endings().contains(&ending.as_str()) {
            let known = what.endings().join(", ");
            return Err(Refusal::input(format!("format={ending}: expected {known}")));
        }
        let count = match &item.content {
            Content::Surface(surface) => surface.bands(),
            Content::Readings(readings) => readings.bands(),
        };
        let band = |text: &str| {
            let found = text.trim().parse::<usize>().ok().filter(|band| *band < count);
            found.ok_or_else(|| {
                Refusal::input(format!("band {text}: expected a number from 0 to {}", count - 1))
            })
        };
        let bands = query
            .text("bands")
            .map(|list| list.split(',').map(band).collect::<Result<Vec<_>, _>>())
            .transpose()?;
        let grid = GridRequest {
            grid: query.told("grid", parse::grid)?,
            cell_m: query.number("cell-m")?,
            origin: query.told("origin", parse::pair)?,
            region: query.told("region", parse::region)?,
            z_m: query.number("z")?,
        };
        let masks: Vec<String> = query
            .text("mask")
            .map(|list| list.split(';').map(str::to_string).collect())
            .unwrap_or_default();
        for mask in &masks {
            // A polygon is a file of this machine, and those are not read through the page.
            let rule: MaskRule =
                mask.parse().map_err(|e| Refusal::input(format!("mask={mask}: {e}")))?;
            if matches!(rule, MaskRule::Inside(_)) {
                return Err(Refusal::input(format!(
                    "mask={mask}: expected spread=DB, distance=METRES or hull"
                )));
            }
        }
        let place = match (query.number("x")?, query.number("y")?) {
            (Some(x), Some(y)) => Some(Site::new(x, y)),
            _ => None,
        };
        let table = query.whole("upload")?.map(|id| uploads.get(id)).transpose()?;
        let request = Self {
            what,
            ending,
            bands,
            band: band(query.text("band").unwrap_or("0"))?,
            above: query.number("above")?,
            grid,
            masks,
            place,
            table,
            sensors: query.text("sensors") == Some("true"),
            colours: query.text("colours").map(palette).transpose()?,
            range: query.told("range", parse::range)?,
            spread: query.flag("spread", false)?,
            levels: query.told("levels", parse::levels)?.unwrap_or_default(),
            contours: query.told("contours", parse::levels)?.unwrap_or_default(),
            title: query.text("title").map(title).transpose()?,
        };
        check_look(&request)?;
        Ok(request)
    }
}
