//! Unmixing of quantised readings. A level says between which powers a reading lies, so a model
//! inside the bin is right as it is: in every round the readings follow the model as far as their
//! bins allow (majorisation of the distance to a box; Hunter and Lange 2004). Decoding to the
//! middle of the bin would add errors that look like further emitters.

use ndarray::Array2;

use super::count::{Count, MOST, held_out};
use super::weighted::Bounds;
use super::{UnmixOptions, Unmixed, check, finish, unmix_noisy};
use crate::error::{EstimateError, InputError};
use crate::quantiser::{MISSING_LEVEL, Quantiser};

/// A model this near to the bins, as a share of the median bin, is as good as inside: fits that are
/// not quite finished would ask for more emitters forever.
const NEAR_A_BIN: f64 = 0.04;

/// Splits levels (sensors x bands, 255 = gap) into `emitters` emitters. The residual is the root
/// mean square distance of ln(model + a) from the bins. The quantiser's offset is the floor.
pub fn unmix_levels(
    levels: &Array2<u8>,
    quantiser: &Quantiser,
    emitters: usize,
    options: &UnmixOptions,
    seed: u64,
) -> Result<Unmixed, EstimateError> {
    let (power, bounds) = decode(levels, quantiser)?;
    check(&power, emitters, options)?;
    let peak = power.iter().copied().filter(|x| !x.is_nan()).fold(0.0, f64::max);
    let scaled: Vec<f64> = power.iter().map(|x| x / peak).collect();
    let scale = |values: Vec<f64>| values.into_iter().map(|x| x / peak).collect();
    let bounds = Bounds { low: scale(bounds.low), high: scale(bounds.high) };
    let floor = options.floor.unwrap_or(quantiser.offset()) / peak;
    let (bands, more) = (levels.ncols(), UnmixOptions { polish_rounds: 60, ..*options });
    finish(unmix_noisy(&scaled, Some(bounds), bands, emitters, floor, &more, seed), peak, true)
}

/// As [`count`](super::count()), from levels (255 = gap).
pub fn count_levels(
    levels: &Array2<u8>,
    quantiser: &Quantiser,
    seed: u64,
) -> Result<Count, EstimateError> {
    let (power, bounds) = decode(levels, quantiser)?;
    check(&power, 1, &UnmixOptions::default())?;
    let (sensors, bands) = levels.dim();
    let power: Vec<f64> = power.into_iter().collect();
    let most = MOST.min(sensors).min(bands);
    let mut widths: Vec<f64> = quantiser.edges().windows(2).map(|pair| pair[1] - pair[0]).collect();
    widths.sort_by(f64::total_cmp);
    let slack = NEAR_A_BIN * widths.get(widths.len() / 2).copied().unwrap_or(1.0);
    Ok(held_out(&power, Some(&bounds), bands, most, quantiser.link(), slack, seed))
}

fn decode(levels: &Array2<u8>, quantiser: &Quantiser) -> Result<(Array2<f64>, Bounds), InputError> {
    let edges = quantiser.edges();
    for ((sensor, band), &level) in levels.indexed_iter() {
        if level != MISSING_LEVEL && usize::from(level) > edges.len() {
            let edges = edges.len();
            return Err(InputError::Level { level, sensor, band, edges });
        }
    }
    let missing = |level: u8| level == MISSING_LEVEL;
    let power =
        levels.mapv(|level| if missing(level) { f64::NAN } else { quantiser.decode(level) });
    Ok((power, level_bounds(levels, quantiser)))
}

/// The bins of levels, as powers. A gap is in any bin.
pub(crate) fn level_bounds(levels: &Array2<u8>, quantiser: &Quantiser) -> Bounds {
    let (edges, link) = (quantiser.edges(), quantiser.link());
    let missing = |level: u8| level == MISSING_LEVEL;
    let low = |&level: &u8| match usize::from(level) {
        0 => 0.0,
        _ if missing(level) => 0.0,
        l => link.inverse(edges[l - 1]),
    };
    let high = |&level: &u8| match edges.get(usize::from(level)) {
        Some(&edge) if !missing(level) => link.inverse(edge),
        _ => f64::INFINITY,
    };
    Bounds { low: levels.iter().map(low).collect(), high: levels.iter().map(high).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::simulate;
    use super::*;

    #[test]
    fn levels_without_noise_are_met() {
        let truth = simulate(80, 2, 32, 1);
        let logs: Vec<f64> = truth.power.iter().map(|x| (x + 1e-6).ln()).collect();
        let quantiser = Quantiser::from_quantiles(logs, 4, 0.0, 1e-6).unwrap();
        let mut levels = truth.power.mapv(|x| quantiser.level((x + 1e-6).ln()));
        levels[[3, 4]] = MISSING_LEVEL;
        let options = UnmixOptions::default();
        let found = unmix_levels(&levels, &quantiser, 2, &options, 0).unwrap();
        assert!(found.residual < 0.03, "{}", found.residual);
        levels[[0, 0]] = 16;
        let error = unmix_levels(&levels, &quantiser, 2, &options, 0).unwrap_err();
        assert!(matches!(error, EstimateError::Input(InputError::Level { level: 16, .. })));
    }
}
