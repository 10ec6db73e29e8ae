//! From values to colours: a continuous scale, or steps at chosen levels.

use crate::picture::colour::ColourMap;
use crate::picture::colour::Rgb;

/// How values are coloured.
#[derive(Clone, Debug, PartialEq)]
pub enum Shades {
    /// Evenly between two limits; beyond them the colours of the ends.
    Even { colours: ColourMap, limits: (f64, f64) },
    /// One colour below the first level, one between each two, one from the last on.
    Stepped { levels: Vec<f64>, colours: Vec<Rgb> },
}

impl Shades {
    /// Powers between two limits.
    pub fn power(limits: (f64, f64)) -> Self {
        Shades::Even { colours: ColourMap::Power, limits }
    }

    /// Steps of a colour map at levels in rising order.
    pub fn stepped(levels: &[f64], map: ColourMap) -> Self {
        let steps = levels.len().max(1) as f64;
        let colours = (0..=levels.len()).map(|step| map.at(step as f64 / steps)).collect();
        Shades::Stepped { levels: levels.to_vec(), colours }
    }

    pub fn of(&self, value: f64) -> Rgb {
        match self {
            Shades::Even { colours, limits } => colours.of(value, *limits),
            Shades::Stepped { levels, colours } => {
                colours[levels.iter().filter(|level| value >= **level).count()]
            }
        }
    }

    /// Both ends of the colour bar.
    pub fn limits(&self) -> (f64, f64) {
        match self {
            Shades::Even { limits, .. } => *limits,
            // A single level has no length of its own.
            Shades::Stepped { levels, .. } => match levels[..] {
                [] => (0.0, 1.0),
                [only] => (only - 1.0, only + 1.0),
                [first, .., last] => (first, last),
            },
        }
    }

    /// Whether values lie below and above the ends, so that the bar's colours cannot tell them.
    pub fn clips<'a>(&self, values: impl Iterator<Item = &'a f64> + Clone) -> (bool, bool) {
        let (low, high) = self.limits();
        let slack = 1e-9 * (high - low).abs();
        match self {
            Shades::Even { .. } => (
                values.clone().any(|v| *v < low - slack),
                values.clone().any(|v| *v > high + slack),
            ),
            Shades::Stepped { levels, .. } if levels.len() > 1 => {
                (values.clone().any(|v| *v < low), values.clone().any(|v| *v >= high))
            }
            Shades::Stepped { .. } => (false, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_begin_at_their_levels() {
        let shades = Shades::stepped(&[-90.0, -80.0, -70.0], ColourMap::Power);
        assert_eq!(shades.of(-90.1), ColourMap::Power.at(0.0));
        assert_eq!(shades.of(-90.0), shades.of(-80.1));
        assert_ne!(shades.of(-80.0), shades.of(-80.1));
        assert_eq!(shades.of(-70.0), ColourMap::Power.at(1.0));
        assert_eq!(shades.clips([-85.0, -75.0].iter()), (false, false));
        assert_eq!(shades.clips([-95.0, -70.0, f64::NAN].iter()), (true, true));
    }
}
