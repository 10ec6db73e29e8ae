//! Several fits of one set of readings, averaged in ln power. Each begins elsewhere and leaves out
//! some of the sensors; where members disagree the map is less sure, and the sensors that each has not
//! seen say by how much (Lakshminarayanan, Pritzel and Blundell 2017; out-of-bag errors, Breiman 1996).

use ndarray::{Array2, Array3, Axis};

use super::model::DecodedSlfs;
use crate::error::EstimateError;
use crate::grid::Grid;
use crate::likelihood::Probit;
use crate::link::DB_PER_LN;
use crate::map::{Factors, RadioMap};
use crate::model::{
    Archive, Drawing, DrawnGrid, FactoredDrawing, Prediction, Predictor, Room, damaged,
};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::scale::Scale;
use crate::site::Site;

pub(in crate::estimate) const KIND: &str = "unn_members";

/// More members than this are not read from a file.
const MOST: usize = 1000;
/// Entries that judge a law at most.
const MOST_JUDGED: usize = 6000;
/// What is known of the multiple before any reading: its median, and how far its logarithm strays.
/// Coarse levels say little more.
const USUAL_MULTIPLE: (f64, f64) = (1.9, 0.25);
/// What is tried for the spread: parts that are the same everywhere, in ln power, multiples of the
/// members' deviation, and noise of readings at the offset.
const CONSTANTS: [f64; 10] = [0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0];
const MULTIPLES: [f64; 12] = [0.5, 1.0, 1.3, 1.6, 1.9, 2.2, 2.6, 3.1, 3.7, 4.5, 6.0, 8.0];
const NOISES: [f64; 7] = [0.0, 0.3, 0.6, 1.0, 1.5, 2.2, 3.0];

/// Where noise hides a power, no sensor says how far below the noise it is: standard deviation in ln
/// power of what is missed beyond the members' deviation.
const HIDDEN: f64 = 0.75;

/// Variance of ln power at a place: constant^2 + (multiple deviation)^2 + (HIDDEN (1 - share))^2, where
/// share is that of the power in itself and the offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SpreadLaw {
    pub constant: f64,
    pub multiple: f64,
    /// The a of ln(x + a): what noise hides.
    pub offset: f64,
}

impl SpreadLaw {
    /// Before any evidence.
    pub fn unknown(offset: f64) -> Self {
        Self { constant: 0.1, multiple: 2.0, offset }
    }

    fn variance(self, deviation: f64) -> f64 {
        self.constant * self.constant + (self.multiple * deviation).powi(2)
    }

    fn spread_db(self, deviation: f64, power: f64) -> f64 {
        let hidden = self.offset / (power + self.offset).max(f64::MIN_POSITIVE);
        DB_PER_LN * self.variance(deviation).sqrt().hypot(HIDDEN * hidden)
    }
}

/// The members' maps, and their mean.
pub(in crate::estimate) struct Members {
    grid: Grid,
    floor: f64,
    decoded: Vec<DecodedSlfs>,
    maps: Vec<RadioMap>,
    mean: RadioMap,
    law: SpreadLaw,
}

impl Members {
    pub fn new(
        grid: Grid,
        floor: f64,
        decoded: Vec<DecodedSlfs>,
        law: SpreadLaw,
    ) -> Result<Self, EstimateError> {
        let drawn = |one: &DecodedSlfs| match one.draw(grid)? {
            DrawnGrid::Factored(factors) => Ok(factors),
            DrawnGrid::Dense(_) => unreachable!("a decoder draws factors"),
        };
        let mut factors: Vec<Factors> =
            decoded.iter().map(drawn).collect::<Result<_, EstimateError>>()?;
        let (first, others) = factors.split_first_mut().expect("an ensemble has members");
        others.iter_mut().for_each(|other| align(other, &first.psd));
        let mean = geometric_mean(&factors);
        let diverged = |_| EstimateError::Numerical("the fit diverged".into());
        let map = |factors| RadioMap::factored(grid, factors, Scale::Absolute).map_err(diverged);
        let mean = map(mean)?;
        let maps = factors.into_iter().map(map).collect::<Result<_, _>>()?;
        Ok(Self { grid, floor, decoded, maps, mean, law })
    }

    pub fn with_law(self, law: SpreadLaw) -> Self {
        Self { law, ..self }
    }

    pub fn factors(&self) -> &Factors {
        self.mean.factors().expect("the mean is made of factors")
    }

    pub fn load(archive: &Archive, bands: usize, room: Room) -> Result<Self, EstimateError> {
        let members = archive.count("members")?;
        if members == 0 || members > MOST {
            return Err(damaged("members", "is no number of members").into());
        }
        let decoded = DecodedSlfs::load_all(archive, bands, members)?;
        let grid = room.grid(decoded[0].bytes_per_cell() * members as u64)?;
        let law = archive.finite("spread")?;
        let &[constant, multiple, offset] = &law[..] else {
            return Err(damaged("spread", "is not three numbers").into());
        };
        let law = SpreadLaw { constant, multiple, offset };
        Self::new(grid, archive.number("floor")?, decoded, law)
    }

    /// Power of the mean, and deviation of the members in ln power, at a place.
    fn at(&self, site: Site, bands: &[usize], power: &mut [f64], deviation: &mut [f64]) {
        let each = || bands.iter().copied();
        let mut one = vec![0.0; bands.len()];
        let (mut sum, mut squares) = (vec![0.0; bands.len()], vec![0.0; bands.len()]);
        for map in &self.maps {
            map.powers_at(site, self.floor, each(), &mut one);
            for ((x, sum), square) in one.iter().zip(&mut sum).zip(&mut squares) {
                let log = x.max(self.floor).ln();
                *sum += log;
                *square += log * log;
            }
        }
        self.mean.powers_at(site, self.floor, each(), power);
        let count = self.maps.len() as f64;
        for ((out, sum), square) in deviation.iter_mut().zip(sum).zip(squares) {
            let variance = (square - sum * sum / count) / (count - 1.0).max(1.0);
            *out = variance.max(0.0).sqrt();
        }
    }

    /// How the members' deviation becomes a spread: the likeliest law of what each member predicts at
    /// the sensors that it has not seen (`left_out`, one list for each member). What a single member
    /// misses beyond the mean of all is taken off again. None where no reading was left out.
    pub fn calibrated(&self, readings: &Readings, left_out: &[Vec<usize>]) -> Option<SpreadLaw> {
        let bands: Vec<usize> = (0..readings.bands()).collect();
        let offset = self.law.offset;
        let (mut all, mut own) = (vec![0.0; bands.len()], vec![0.0; bands.len()]);
        let mut deviation = vec![0.0; bands.len()];
        let mut missed = Vec::new();
        for (map, sensors) in self.maps.iter().zip(left_out) {
            for &sensor in sensors {
                let site = readings.sites()[sensor];
                self.at(site, &bands, &mut all, &mut deviation);
                map.powers_at(site, self.floor, bands.iter().copied(), &mut own);
                for (&band, (&power, &deviation)) in bands.iter().zip(own.iter().zip(&deviation)) {
                    missed.push((sensor, band, power, deviation));
                }
            }
        }
        let power = readings.power();
        missed.retain(|(sensor, band, ..)| !power[[*sensor, *band]].is_nan());
        if missed.is_empty() {
            return None;
        }
        // What a sensor misses in many bands comes from few emitters.
        let independent = self.factors().psd.nrows().min(bands.len()) as f64 / bands.len() as f64;
        let stride = 1 + missed.len() / MOST_JUDGED;
        let weight = independent * stride as f64;
        let law = match readings.values() {
            Values::Levels { levels, quantiser } => {
                let probit = Probit::new(quantiser);
                likeliest(offset, &[0.0], weight, |law, _| {
                    let of = |&(sensor, band, power, deviation): &(usize, usize, f64, f64)| {
                        let level = levels[[sensor, band]];
                        let share = power / (power + offset);
                        let spread = share * law.variance(deviation).sqrt();
                        -probit.log_probability_of(level, (power + offset).ln(), spread)
                    };
                    missed.iter().step_by(stride).map(of).sum()
                })
            }
            Values::Power(read) => {
                let seen: Vec<(f64, f64, f64)> = missed
                    .iter()
                    .map(|&(sensor, band, power, deviation)| {
                        let whole = power + offset;
                        let error = ((read[[sensor, band]] + offset) / whole).ln();
                        (error, power / whole, deviation)
                    })
                    .collect();
                let variance = |law: SpreadLaw, noise: f64, share: f64, deviation: f64| {
                    share * share * law.variance(deviation) + (noise * (1.0 - share)).powi(2)
                };
                likeliest(offset, &NOISES, weight, |law, noise| {
                    let of = |&(error, share, deviation): &(f64, f64, f64)| {
                        let v = variance(law, noise, share, deviation) + 1e-6;
                        0.5 * (v.ln() + error * error / v)
                    };
                    seen.iter().step_by(stride).map(of).sum()
                })
            }
        };
        let more = 1.0 - 1.0 / self.maps.len() as f64;
        let multiple = (law.multiple * law.multiple - more).max(0.25 * law.multiple * law.multiple);
        Some(SpreadLaw { multiple: multiple.sqrt(), ..law })
    }
}

/// The likeliest law, whatever the noise of readings; a loss counts `weight` of itself.
fn likeliest(
    offset: f64,
    noises: &[f64],
    weight: f64,
    loss: impl Fn(SpreadLaw, f64) -> f64,
) -> SpreadLaw {
    let mut best = (f64::INFINITY, SpreadLaw::unknown(offset));
    for constant in CONSTANTS {
        for multiple in MULTIPLES {
            let off = (multiple / USUAL_MULTIPLE.0).ln() / USUAL_MULTIPLE.1;
            for &noise in noises {
                let law = SpreadLaw { constant, multiple, offset };
                let value = weight * loss(law, noise) + 0.5 * off * off;
                if value < best.0 {
                    best = (value, law);
                }
            }
        }
    }
    best.1
}

/// Puts emitters into the order in which their PSDs are most like others.
fn align(factors: &mut Factors, psd: &Array2<f64>) {
    let unit = |psd: &Array2<f64>| {
        let norms = psd.map_axis(Axis(1), |c| c.dot(&c).sqrt().max(f64::MIN_POSITIVE));
        psd / &norms.insert_axis(Axis(1))
    };
    let mut alike = unit(psd).dot(&unit(&factors.psd).t());
    let emitters = psd.nrows();
    let mut order = vec![0; emitters];
    for _ in 0..emitters {
        let best = alike.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1));
        let Some(((r, q), _)) = best else { break };
        order[r] = q;
        alike.row_mut(r).fill(f64::NEG_INFINITY);
        alike.column_mut(q).fill(f64::NEG_INFINITY);
    }
    factors.slf = factors.slf.select(Axis(0), &order);
    factors.psd = factors.psd.select(Axis(0), &order);
}

/// SLFs and PSDs averaged in their logarithms, PSDs of unit norm first.
fn geometric_mean(members: &[Factors]) -> Factors {
    let count = members.len() as f64;
    let mut slf = Array3::<f64>::zeros(members[0].slf.raw_dim());
    let mut psd = Array2::<f64>::zeros(members[0].psd.raw_dim());
    for Factors { slf: s, psd: c } in members {
        for (r, spectrum) in c.outer_iter().enumerate() {
            let norm = spectrum.dot(&spectrum).sqrt().max(f64::MIN_POSITIVE);
            psd.row_mut(r).zip_mut_with(&spectrum, |out, x| *out += x / norm / count);
            let mut field = slf.index_axis_mut(Axis(0), r);
            field.zip_mut_with(&s.index_axis(Axis(0), r), |out, x| {
                *out += (x * norm).max(f64::MIN_POSITIVE).ln() / count;
            });
        }
    }
    Factors { slf: slf.mapv_into(f64::exp), psd }
}

impl Predictor for Members {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn sees_heights(&self) -> bool {
        false
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let mut power = Array2::zeros((at.len(), bands.len()));
        let mut spread = Array2::zeros((at.len(), bands.len()));
        for (i, site) in at.iter().enumerate() {
            if i % 4096 == 0 {
                progress.report(i, at.len())?;
            }
            let (mut x, mut s) = (power.row_mut(i), spread.row_mut(i));
            let (x, s) = (x.as_slice_mut(), s.as_slice_mut());
            self.at(*site, bands, x.expect("rows"), s.expect("rows"));
        }
        spread.zip_mut_with(&power, |s, power| *s = self.law.spread_db(*s, *power));
        Ok(Prediction { spread_db: Some(spread), ..Prediction::of_power(power) })
    }

    fn power(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        let mut power = Array2::zeros((at.len(), bands.len()));
        for (i, (site, mut row)) in at.iter().zip(power.rows_mut()).enumerate() {
            if i % 4096 == 0 {
                progress.report(i, at.len())?;
            }
            let row = row.as_slice_mut().expect("rows are contiguous");
            self.mean.powers_at(*site, self.floor, bands.iter().copied(), row);
        }
        Ok(power)
    }

    fn power_costs_less(&self) -> bool {
        true
    }

    fn factors(
        &self,
        grid: Grid,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Option<FactoredDrawing>, EstimateError> {
        if !self.is_factored_on(grid) {
            return Ok(None);
        }
        let Factors { slf, psd } = self.factors();
        let factors = Factors { slf: slf.clone(), psd: psd.select(Axis(1), bands) };
        let spread = self.predict(&grid.sites(), bands, progress)?.spread_db;
        let shape = (grid.rows(), grid.cols(), bands.len());
        let spread_db = spread.and_then(|s| s.into_shape_with_order(shape).ok());
        Ok(Some(FactoredDrawing { factors, spread_db }))
    }

    fn is_factored_on(&self, grid: Grid) -> bool {
        grid.coincides(&self.grid)
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("floor", self.floor);
        archive.put_whole("members", [self.decoded.len()]);
        archive.put_vector("spread", &[self.law.constant, self.law.multiple, self.law.offset]);
        DecodedSlfs::save_all(&self.decoded, archive);
    }
}
