//! Colour maps: value to colour, with lightness that grows evenly so that equal steps look equal.
//!
//! `Power` and `Spread` pass through nine colours of the public-domain maps viridis and magma
//! (Smith and van der Walt, 2015), `Cividis` through ten of cividis (Nunez, Anderton and Renslow,
//! 2018); `Error` through the eleven of ColorBrewer's RdBu, reversed.

pub type Rgb = [u8; 3];

pub const WHITE: Rgb = [255; 3];
/// Text, frames and ticks: softer than black on a projector.
pub const INK: Rgb = [38, 38, 42];
/// Text of second rank.
pub const QUIET: Rgb = [96, 96, 104];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourMap {
    /// Dark violet to yellow.
    Power,
    /// Blue, white at zero, red.
    Error,
    /// Black to pale yellow.
    Spread,
    /// Dark blue to yellow, the same to readers who do not see red or green.
    Cividis,
}

const POWER: [Rgb; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

const ERROR: [Rgb; 11] = [
    [5, 48, 97],
    [33, 102, 172],
    [67, 147, 195],
    [146, 197, 222],
    [209, 229, 240],
    [247, 247, 247],
    [253, 219, 199],
    [244, 165, 130],
    [214, 96, 77],
    [178, 24, 43],
    [103, 0, 31],
];

const SPREAD: [Rgb; 9] = [
    [0, 0, 4],
    [29, 17, 71],
    [81, 18, 124],
    [131, 38, 129],
    [183, 55, 121],
    [231, 82, 99],
    [251, 136, 97],
    [254, 194, 135],
    [252, 253, 191],
];

const CIVIDIS: [Rgb; 10] = [
    [0, 34, 78],
    [18, 53, 112],
    [59, 73, 108],
    [87, 93, 109],
    [112, 113, 115],
    [138, 134, 120],
    [165, 156, 116],
    [195, 179, 105],
    [225, 204, 85],
    [254, 232, 56],
];

/// Curves of a chart (Okabe and Ito, 2008: told apart by colour-blind readers too), with a grey in
/// place of the yellow that is lost on white.
pub const CURVES: [Rgb; 8] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [30, 30, 30],
    [130, 130, 130],
];

impl ColourMap {
    /// The colour at a fraction of the range; beyond it, the colour of the nearer end.
    pub fn at(self, fraction: f64) -> Rgb {
        let anchors: &[Rgb] = match self {
            ColourMap::Power => &POWER,
            ColourMap::Error => &ERROR,
            ColourMap::Spread => &SPREAD,
            ColourMap::Cividis => &CIVIDIS,
        };
        let place = fraction.clamp(0.0, 1.0) * (anchors.len() - 1) as f64;
        let low = (place as usize).min(anchors.len() - 2);
        let t = place - low as f64;
        let mix = |c: usize| {
            let (a, b) = (f64::from(anchors[low][c]), f64::from(anchors[low + 1][c]));
            (a + t * (b - a)).round() as u8
        };
        [mix(0), mix(1), mix(2)]
    }

    /// The colour of a value between limits.
    pub fn of(self, value: f64, limits: (f64, f64)) -> Rgb {
        let (low, high) = limits;
        let fraction = (value - low) / (high - low);
        // Limits that coincide leave no scale: draw the middle.
        self.at(if fraction.is_nan() { 0.5 } else { fraction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE lightness of an sRGB colour.
    fn lightness(colour: Rgb) -> f64 {
        let linear = colour.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        if y > 0.008856 { 116.0 * y.cbrt() - 16.0 } else { 903.3 * y }
    }

    #[test]
    fn lightness_grows_along_the_sequential_maps() {
        for map in [ColourMap::Power, ColourMap::Spread, ColourMap::Cividis] {
            let l: Vec<f64> = (0..=100).map(|i| lightness(map.at(f64::from(i) / 100.0))).collect();
            for (i, pair) in l.windows(2).enumerate() {
                let step = pair[1] - pair[0];
                // An even map would take (l[100] - l[0]) / 100 each; rounding to bytes costs some.
                assert!(step > 0.0 && step < 3.0, "{map:?} at {i}: {pair:?}");
            }
        }
    }

    #[test]
    fn the_error_map_is_lightest_at_zero_and_fades_to_both_sides() {
        let l: Vec<f64> =
            (0..=100).map(|i| lightness(ColourMap::Error.at(f64::from(i) / 100.0))).collect();
        assert!((0..50).all(|i| l[i] < l[i + 1]) && (50..100).all(|i| l[i] > l[i + 1]));
        let [r, g, b] = ColourMap::Error.at(0.5);
        assert!(r == g && g == b && r > 240);
    }

    #[test]
    fn values_beyond_the_limits_take_the_end_colours() {
        let of = |v| ColourMap::Power.of(v, (-90.0, -30.0));
        assert_eq!(of(f64::NEG_INFINITY), POWER[0]);
        assert_eq!(of(f64::INFINITY), POWER[8]);
        assert_eq!(of(-60.0), POWER[4]);
        assert_eq!(ColourMap::Power.of(1.0, (1.0, 1.0)), POWER[4]);
    }
}
