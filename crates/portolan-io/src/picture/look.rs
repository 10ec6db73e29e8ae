//! How maps are drawn: axes, colours, levels, lines, and what lies under them.

use ndarray::{Array2, Axis};
use portolan::RadioMap;
use portolan::coverage::chance_above;

use super::PictureError;
use super::colour::ColourMap;
use super::field::{decibels, robust_limits};
use super::maps::WIDEST_DB;
use super::scene::Typeface;
use super::sheet::{Axes, Shades, Underlay};

/// What of a band is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Layer {
    /// Its power in dB.
    #[default]
    Power,
    /// The chance in percent that it lies above this level, by level and spread.
    Above(f64),
    /// Its spread in dB.
    Spread,
}

impl Layer {
    /// The chance of being above a level, else the spread where it is asked for, else the power.
    pub fn of(above: Option<f64>, spread: bool) -> Self {
        match above {
            Some(level) => Layer::Above(level),
            None if spread => Layer::Spread,
            None => Layer::Power,
        }
    }
}

/// How maps are drawn.
#[derive(Debug)]
pub struct Look {
    pub axes: Axes,
    pub layer: Layer,
    pub colours: ColourMap,
    /// Ends of the colour scale instead of those of the data.
    pub range: Option<(f64, f64)>,
    /// Steps of colour at these levels, in rising order, instead of a continuous scale.
    pub levels: Vec<f64>,
    /// Lines of equal value.
    pub contours: Vec<f64>,
    pub under: Option<Underlay>,
    /// How much of what lies under it a map hides.
    pub opacity: f64,
    pub typeface: Typeface,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            axes: Axes::default(),
            layer: Layer::default(),
            colours: ColourMap::Power,
            range: None,
            levels: Vec::new(),
            contours: Vec::new(),
            under: None,
            opacity: 1.0,
            typeface: Typeface::new(),
        }
    }
}

impl Look {
    /// One band of a map as it is drawn.
    pub(super) fn field(
        &self,
        map: &RadioMap,
        band: usize,
        offset: f64,
    ) -> Result<Array2<f64>, PictureError> {
        let mut level = decibels(&map.band(band), offset);
        if self.layer == Layer::Power {
            return Ok(level);
        }
        let spread = map.spread_db().ok_or(PictureError::NoSpread("the map"))?;
        let spread = spread.index_axis(Axis(2), band);
        if let Layer::Above(threshold) = self.layer {
            level.zip_mut_with(&spread, |level, spread| {
                *level = 100.0 * chance_above(*level, *spread, threshold);
            });
            return Ok(level);
        }
        Ok(spread.to_owned())
    }

    /// The colours of some fields together.
    pub(super) fn shades(&self, fields: &[&Array2<f64>]) -> Shades {
        let colours = match (self.layer, self.colours) {
            (Layer::Spread, ColourMap::Power) => ColourMap::Spread,
            (_, colours) => colours,
        };
        if !self.levels.is_empty() {
            return Shades::stepped(&self.levels, colours);
        }
        let limits = self.range.unwrap_or_else(|| match self.layer {
            Layer::Power => robust_limits(fields, WIDEST_DB),
            Layer::Above(_) => (0.0, 100.0),
            Layer::Spread => spread_limits(fields),
        });
        Shades::Even { colours, limits }
    }

    /// The colours of spreads: another map than that of power.
    pub(super) fn spread_colours(&self) -> ColourMap {
        match self.colours {
            ColourMap::Spread => ColourMap::Power,
            _ => ColourMap::Spread,
        }
    }

    /// The name of the colour bar.
    pub(super) fn bar(&self, map: &RadioMap) -> String {
        let unit = map.scale().decibels();
        match self.layer {
            Layer::Power => format!("power [{unit}]"),
            Layer::Above(level) => {
                format!("chance of more than {} {unit} [%]", level.to_string().replace('-', "−"))
            }
            Layer::Spread => "std. dev. [dB]".to_owned(),
        }
    }

    /// The title of a panel.
    pub(super) fn title(&self, map: &RadioMap) -> String {
        let unit = map.scale().decibels();
        match self.layer {
            Layer::Power => "power".to_owned(),
            Layer::Above(level) => {
                format!("chance above {} {unit}", level.to_string().replace('-', "−"))
            }
            Layer::Spread => "spread".to_owned(),
        }
    }
}

/// Ends of the colours of spreads: from zero, so that dark always means certain.
pub(super) fn spread_limits(fields: &[&Array2<f64>]) -> (f64, f64) {
    (0.0, robust_limits(fields, WIDEST_DB).1.max(1e-3))
}
