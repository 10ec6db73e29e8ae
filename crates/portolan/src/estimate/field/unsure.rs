//! Levels whose file does not say how much noise there was before the quantiser: the noise under which
//! every level is likeliest, predicted by all others.

use super::Field;
use super::fit::FieldFit;
use super::linearised::Reported;
use super::start::NOISE_SHARES;
use crate::error::EstimateError;
use crate::estimate::Context;
use crate::progress::Progress;
use crate::quantiser::Quantiser;
use crate::readings::{Readings, Values};

/// Sensors that judge, rounds of a fit, and numbers of emitters that are tried.
const SENSORS: usize = 160;
const ROUNDS: usize = 12;
const EMITTERS: [usize; 4] = [1, 2, 4, 8];
/// Sensors that the law of such a fit is fitted to.
const LAW_SENSORS: usize = 70;

/// The same readings with the noise before their quantiser estimated from the levels themselves, for
/// levels of unknown noise; readings of power are returned as they are. The levels must show it:
/// several bands that share emitters, or sensors that stand close.
///
/// ```
/// use portolan::estimate::with_likeliest_sigma;
/// use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
/// use portolan::simulate::{Scenario, simulate};
/// use portolan::{Grid, Values};
/// let map = simulate(&Scenario { bands: 16, emitters: 2, ..Scenario::new(Grid::new(24, 24, 1.0)?) })?;
/// let quantising = Some(Quantising { bits: 4, edges: None, sigma: 0.7 });
/// let sensing = Sensing { quantising, ..Sensing::exact(SensorLayout::Count(100), 0) };
/// let found = with_likeliest_sigma(sense(&map, &sensing)?)?;
/// let Values::Levels { quantiser, .. } = found.values() else { unreachable!() };
/// assert!((0.5..1.0).contains(&quantiser.sigma()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If nothing can be fitted to the levels.
pub fn with_likeliest_sigma(readings: Readings) -> Result<Readings, EstimateError> {
    let Values::Levels { levels, quantiser } = readings.values() else { return Ok(readings) };
    let part = judging(&readings)?;
    let targets = Reported::new(&part);
    let mut best: Option<(f64, f64)> = None;
    for emitters in EMITTERS.into_iter().filter(|e| *e <= part.bands().min(part.sensors())) {
        let (context, progress) = (Context::default(), Progress::silent());
        let fit = Field::default().begin(&part, &targets, emitters, &context, NOISE_SHARES[0])?;
        let mut fit = FieldFit { law_sensors: LAW_SENSORS, unsure: true, ..fit };
        fit.iterate(ROUNDS, &progress)?;
        let loss: f64 = fit.left_out()?.iter().sum();
        if best.is_some_and(|(least, _)| loss >= least) {
            break;
        }
        best = Some((loss, fit.soft.sigma));
    }
    let sigma = best.map_or(0.0, |(_, sigma)| sigma);
    let quantiser = Quantiser::new(quantiser.edges().to_vec(), sigma, quantiser.offset())?;
    let levels = levels.clone();
    Ok(readings.with_values(Values::Levels { levels, quantiser })?)
}

/// The readings of the sensors that judge, without bands that none of them read.
fn judging(readings: &Readings) -> Result<Readings, EstimateError> {
    let sensors = readings.sensors();
    let kept = SENSORS.min(sensors);
    let some: Vec<usize> = (0..kept).map(|i| i * sensors / kept).collect();
    let power = readings.power();
    let read = |band: &usize| some.iter().any(|&sensor| !power[[sensor, *band]].is_nan());
    let bands: Vec<usize> = (0..readings.bands()).filter(read).collect();
    Ok(readings.with_bands(&bands)?.subset(&some)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantiser::MISSING_LEVEL;
    use crate::scale::Scale;
    use crate::site::Site;

    /// A band that one sensor of many reads once made all of them judge.
    #[test]
    fn few_sensors_judge_even_where_they_miss_a_band() {
        let sites: Vec<Site> =
            (0..1000).map(|i| Site::new(f64::from(i % 40), f64::from(i / 40))).collect();
        let mut levels = ndarray::Array2::from_shape_fn((1000, 3), |(i, k)| ((i + k) % 8) as u8);
        levels.column_mut(1).fill(MISSING_LEVEL);
        levels[[3, 1]] = 2;
        let edges = (0..7).map(|e| -14.0 + f64::from(e)).collect();
        let quantiser = Quantiser::new(edges, 0.0, 1e-6).unwrap();
        let values = Values::Levels { levels, quantiser };
        let readings = Readings::new(sites, values, Scale::Absolute).unwrap();
        let part = judging(&readings).unwrap();
        assert_eq!((part.sensors(), part.bands()), (SENSORS, 2));
    }
}
