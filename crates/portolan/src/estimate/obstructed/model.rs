//! Bands under path loss with columns, ready to predict.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::design::{Source, design, merged};
use super::law::{Law, Normal, Says};
use crate::between::{Between, load_all, save_all};
use crate::error::{EstimateError, InputError};
use crate::estimate::bands::{BandData, Group};
use crate::estimate::interpolated::COARSE;
use crate::estimate::mixture::Moments;
use crate::gaussian_process::{Hearing, Neighbourhood, Neighbours, clustered};
use crate::linalg::{Cholesky, product};
use crate::link::DB_PER_LN;
use crate::model::{Archive, LeftOut, Prediction, Predictor, damaged};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{PlaceBits, Site};

pub(super) const KIND: &str = "obstructed";

/// Sites of a band that places look at together; of more, the nearest.
const WHOLE: usize = 256;
pub(super) const NEAREST: usize = 96;
/// Sites of a band that its coefficients are found from, and for weighing.
pub(super) const TOGETHER: usize = 1000;
pub(super) const WEIGHED: usize = 400;
/// Places that are predicted at once.
const BLOCK: usize = 256;
/// Places of a transmitter below this share are left out.
const LEAST_SHARE: f64 = 0.01;
/// How far the evidence of a transmitter's place is believed: readings are not quite what the law says.
const TEMPER: f64 = 0.3;
const MOST_MEMBERS: usize = 256;

/// Every band under several laws, each with its weight.
pub(in crate::estimate) struct Obstructed {
    pub(super) data: BandData,
    pub(super) obstacles: Vec<Arc<dyn Between>>,
    pub(super) reference_m: f64,
    /// Where the transmitter of each band may stand.
    pub(super) sources: Vec<Vec<Source>>,
    pub(super) members: Vec<Member>,
    pub(super) hearing: Option<Hearing>,
    /// Sites of a band that its coefficients are found from.
    pub(super) together: usize,
}

/// One law with some of the columns.
pub(super) struct Member {
    pub weight: f64,
    pub law: Law,
    /// Numbers of the obstacles that are added up to each column.
    pub columns: Vec<Vec<usize>>,
    /// The coefficients of every band before its own readings.
    pub before: Vec<Normal>,
    /// Per group of bands.
    solved: Vec<OnceLock<Solved>>,
}

impl Member {
    pub fn new(
        weight: f64,
        law: Law,
        columns: Vec<Vec<usize>>,
        before: Vec<Normal>,
        groups: usize,
    ) -> Self {
        let solved = (0..groups).map(|_| OnceLock::new()).collect();
        Self { weight, law, columns, before, solved }
    }
}

/// A group of bands under a law: each with the places where its transmitter may stand.
pub(super) struct Solved {
    pub cholesky: Option<Cholesky>,
    pub bands: Vec<Vec<Candidate>>,
}

/// A band with its transmitter at one place.
pub(super) struct Candidate {
    pub weight: f64,
    /// Number of the place among those of the band.
    pub source: usize,
    pub coefficients: Normal,
    /// K^-1 (y - H b), and K^-1 H.
    pub pull: Vec<f64>,
    pub trend: Mat<f64>,
}

/// A place of a transmitter by what a band read.
struct Placed {
    weight: f64,
    coefficients: Normal,
    /// L^-1 of the design and the values.
    half: Mat<f64>,
}

fn singular() -> EstimateError {
    EstimateError::Numerical("the covariance of path loss cannot be factorised".into())
}

/// Weights of sum 1, by their logarithms.
fn shares(logs: Vec<f64>) -> Vec<f64> {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    logs.into_iter().map(|log| (log - most).exp() / total).collect()
}

/// The band `k` of a group at some of its rows.
struct Rows<'a> {
    group: &'a Group,
    rows: &'a [usize],
    sites: Vec<Site>,
    cholesky: Cholesky,
}

impl<'a> Rows<'a> {
    fn new(group: &'a Group, rows: &'a [usize], law: &Law) -> Result<Self, EstimateError> {
        let sites: Vec<Site> = rows.iter().map(|&i| group.sites[i]).collect();
        let noise: Vec<(f64, f64)> =
            rows.iter().map(|&i| (group.share[i], group.stated[i])).collect();
        let cholesky = Cholesky::new(law.matrix(&sites, &noise).as_ref()).ok_or_else(singular)?;
        Ok(Self { group, rows, sites, cholesky })
    }

    /// L^-1 of a design and of a band's values.
    fn half(&self, design: &Mat<f64>, k: usize) -> Mat<f64> {
        let terms = design.ncols();
        let mut half = Mat::from_fn(self.rows.len(), terms + 1, |i, c| match c < terms {
            true => design[(i, c)],
            false => self.group.values[[self.rows[i], k]],
        });
        self.cholesky.half_solve(half.as_mut());
        half
    }

    fn says(half: &Mat<f64>) -> Says {
        let terms = half.ncols() - 1;
        let gram = product(half.transpose(), half.as_ref());
        Says {
            gram: gram.submatrix(0, 0, terms, terms).to_owned(),
            pull: gram.submatrix(0, terms, terms, 1).to_owned(),
        }
    }

    /// K^-1 (y - H b) and K^-1 H.
    fn solved(&self, mut half: Mat<f64>, mean: &Mat<f64>) -> (Vec<f64>, Mat<f64>) {
        self.cholesky.other_half_solve(half.as_mut());
        let terms = half.ncols() - 1;
        let trend = half.subcols(0, terms).to_owned();
        let explained = product(trend.as_ref(), mean.as_ref());
        let pull = (0..half.nrows()).map(|i| half[(i, terms)] - explained[(i, 0)]).collect();
        (pull, trend)
    }
}

impl Obstructed {
    pub(super) fn design(&self, band: usize, source: usize, at: &[Site]) -> Mat<f64> {
        design(&self.sources[band][source], &self.obstacles, at, self.reference_m)
    }

    /// What every band says of its coefficients where its transmitter stands at its first place.
    pub(super) fn says(
        &self,
        law: &Law,
        columns: &[Vec<usize>],
    ) -> Result<Vec<Says>, EstimateError> {
        let groups: Vec<Vec<(usize, Says)>> = self
            .data
            .groups
            .par_iter()
            .map(|group| {
                let rows = clustered(&group.sites, self.together);
                let some = Rows::new(group, &rows, law)?;
                let says = group.bands.iter().enumerate().map(|(k, &band)| {
                    let design = merged(&self.design(band, 0, &some.sites), columns);
                    (band, Rows::says(&some.half(&design, k)))
                });
                Ok(says.collect())
            })
            .collect::<Result<_, EstimateError>>()?;
        let mut all: Vec<(usize, Says)> = groups.into_iter().flatten().collect();
        all.sort_by_key(|(band, _)| *band);
        Ok(all.into_iter().map(|(_, says)| says).collect())
    }

    /// Weights of every place of each band's transmitter, by their evidence and prior.
    pub(super) fn placed(
        &self,
        member: &Member,
        progress: &Progress<'_>,
    ) -> Result<Vec<Vec<f64>>, EstimateError> {
        let mut logs: Vec<Vec<f64>> = self.sources.iter().map(|own| vec![0.0; own.len()]).collect();
        for group in &self.data.groups {
            for (band, source, log) in self.placed_by(member, group, progress)? {
                logs[band][source] = log;
            }
        }
        Ok(logs.into_iter().map(shares).collect())
    }

    /// The log evidence and prior of the places of a group's bands. What lies between a place and the
    /// sensors is the same for every band that may have its transmitter there.
    fn placed_by(
        &self,
        member: &Member,
        group: &Group,
        progress: &Progress<'_>,
    ) -> Result<Vec<(usize, usize, f64)>, EstimateError> {
        let mut number: HashMap<Vec<PlaceBits>, usize> = HashMap::new();
        let mut places: Vec<Vec<(usize, usize)>> = Vec::new();
        for (k, &band) in group.bands.iter().enumerate() {
            let sources = self.sources[band].iter().enumerate();
            for (s, source) in sources.filter(|_| self.sources[band].len() > 1) {
                let at = source.at.iter().map(|site| site.bits()).collect();
                let place = *number.entry(at).or_insert_with(|| {
                    places.push(Vec::new());
                    places.len() - 1
                });
                places[place].push((k, s));
            }
        }
        let rows = clustered(&group.sites, self.together);
        let some = Rows::new(group, &rows, &member.law)?;
        let mut values =
            Mat::from_fn(rows.len(), group.bands.len(), |i, k| group.values[[rows[i], k]]);
        some.cholesky.half_solve(values.as_mut());
        let found: Vec<Vec<(usize, usize, f64)>> = places
            .par_iter()
            .map(|bands| {
                progress.check()?;
                let (k, s) = bands[0];
                let mut half =
                    merged(&self.design(group.bands[k], s, &some.sites), &member.columns);
                some.cholesky.half_solve(half.as_mut());
                let gram = product(half.transpose(), half.as_ref());
                let pulls = product(half.transpose(), values.as_ref());
                let one = |&(k, s): &(usize, usize)| {
                    let band = group.bands[k];
                    let says = Says { gram: gram.clone(), pull: pulls.subcols(k, 1).to_owned() };
                    let (_, log) = member.before[band].after(&says).ok_or_else(singular)?;
                    Ok((band, s, self.sources[band][s].log_prior + TEMPER * log))
                };
                bands.iter().map(one).collect()
            })
            .collect::<Result<_, EstimateError>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Weights of a band's places, and what is known of its coefficients under each.
    fn weights(
        &self,
        member: &Member,
        rows: &Rows<'_>,
        (k, band): (usize, usize),
    ) -> Result<Vec<Placed>, EstimateError> {
        let sources = &self.sources[band];
        let mut logs = Vec::with_capacity(sources.len());
        let mut found = Vec::with_capacity(sources.len());
        for (s, source) in sources.iter().enumerate() {
            let design = merged(&self.design(band, s, &rows.sites), &member.columns);
            let half = rows.half(&design, k);
            let (after, log) =
                member.before[band].after(&Rows::says(&half)).ok_or_else(singular)?;
            logs.push(source.log_prior + TEMPER * log);
            found.push((after, half));
        }
        let each = shares(logs).into_iter().zip(found);
        let placed =
            each.map(|(weight, (coefficients, half))| Placed { weight, coefficients, half });
        Ok(placed.collect())
    }

    /// Whether places look at all sites of a group together.
    pub(super) fn is_whole(group: &Group) -> bool {
        group.sites.len() <= WHOLE
    }

    fn solve(&self, member: &Member, group: &Group) -> Result<Solved, EstimateError> {
        let whole = Self::is_whole(group);
        let rows = clustered(&group.sites, self.together);
        let some = Rows::new(group, &rows, &member.law)?;
        let bands = group
            .bands
            .par_iter()
            .enumerate()
            .map(|(k, &band)| {
                let placed = self.weights(member, &some, (k, band))?;
                let likely = |p: &Placed| p.weight > LEAST_SHARE;
                let kept: f64 = placed.iter().filter(|p| likely(p)).map(|p| p.weight).sum();
                let each = placed.into_iter().enumerate().filter(|(_, p)| likely(p));
                let candidates = each.map(|(source, Placed { weight, coefficients, half })| {
                    let (pull, trend) = match whole {
                        true => some.solved(half, &coefficients.mean),
                        false => (Vec::new(), Mat::zeros(0, 0)),
                    };
                    Candidate { weight: weight / kept, source, coefficients, pull, trend }
                });
                Ok(candidates.collect())
            })
            .collect::<Result<_, EstimateError>>()?;
        Ok(Solved { cholesky: whole.then_some(some.cholesky), bands })
    }

    pub(super) fn solved<'a>(
        &self,
        member: &'a Member,
        g: usize,
    ) -> Result<&'a Solved, EstimateError> {
        if let Some(solved) = member.solved[g].get() {
            return Ok(solved);
        }
        let solved = self.solve(member, &self.data.groups[g])?;
        Ok(member.solved[g].get_or_init(|| solved))
    }

    /// Solves every group under every law.
    pub(super) fn solve_all(&self, progress: &Progress<'_>) -> Result<(), EstimateError> {
        let all: Vec<(&Member, usize)> = self
            .members
            .iter()
            .flat_map(|member| (0..self.data.groups.len()).map(move |g| (member, g)))
            .collect();
        all.par_iter().try_for_each(|(member, g)| {
            progress.check()?;
            self.solved(member, *g).map(|_| ())
        })
    }

    /// Mean and variance at some places of some bands of a group under some laws, place by place. The
    /// designs of the group's sites may be known, for every band and place of its transmitter.
    pub(super) fn near(
        &self,
        members: &[&Member],
        g: usize,
        cut: &Neighbourhood,
        at: &[Site],
        asked: &[usize],
        known: Option<&[Vec<Option<Mat<f64>>>]>,
    ) -> Result<Vec<Moments>, EstimateError> {
        let group = &self.data.groups[g];
        let mut found = vec![Moments::default(); at.len() * asked.len()];
        // Every place of every band, whichever law thinks of it.
        let mut designs: Vec<Vec<Option<Mat<f64>>>> =
            asked.iter().map(|&k| vec![None; self.sources[group.bands[k]].len()]).collect();
        for member in members {
            let solved = self.solved(member, g)?;
            let local = match &solved.cholesky {
                Some(_) => None,
                None => Some(Rows::new(group, &cut.sensors, &member.law)?),
            };
            let (sites, cholesky) = match (&local, &solved.cholesky) {
                (Some(rows), _) => (&rows.sites, &rows.cholesky),
                (None, Some(cholesky)) => (&group.sites, cholesky),
                (None, None) => return Err(singular()),
            };
            let cross =
                Mat::from_fn(sites.len(), at.len(), |i, j| member.law.covariance(sites[i], at[j]));
            let mut half = cross.clone();
            cholesky.half_solve(half.as_mut());
            let left: Vec<f64> = (0..at.len())
                .map(|j| (member.law.sill - half.col(j).squared_norm_l2()).max(0.0))
                .collect();
            for (n, &k) in asked.iter().enumerate() {
                let band = group.bands[k];
                for candidate in &solved.bands[k] {
                    let place = designs[n][candidate.source]
                        .get_or_insert_with(|| self.design(band, candidate.source, at));
                    let trend = merged(place, &member.columns);
                    let own;
                    let (pull, solved_trend) = match &local {
                        None => (&candidate.pull, &candidate.trend),
                        Some(rows) => {
                            let all = known.and_then(|all| all[k][candidate.source].as_ref());
                            let design = match all {
                                Some(all) => Mat::from_fn(rows.rows.len(), all.ncols(), |i, c| {
                                    all[(rows.rows[i], c)]
                                }),
                                None => self.design(band, candidate.source, &rows.sites),
                            };
                            let half = rows.half(&merged(&design, &member.columns), k);
                            own = rows.solved(half, &candidate.coefficients.mean);
                            (&own.0, &own.1)
                        }
                    };
                    // h - H^T K^-1 k.
                    let lack = &trend - product(cross.transpose(), solved_trend.as_ref());
                    let Normal { mean, covariance } = &candidate.coefficients;
                    let level = product(trend.as_ref(), mean.as_ref());
                    let open = product(lack.as_ref(), covariance.as_ref());
                    for j in 0..at.len() {
                        let field: f64 =
                            pull.iter().zip(cross.col(j).iter()).map(|(a, b)| a * b).sum();
                        let more: f64 =
                            (0..lack.ncols()).map(|c| open[(j, c)] * lack[(j, c)]).sum();
                        found[j * asked.len() + n].add(
                            member.weight * candidate.weight,
                            level[(j, 0)] + field,
                            left[j] + more.max(0.0),
                        );
                    }
                }
            }
        }
        Ok(found)
    }

    fn moments(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<Moments>, EstimateError> {
        let mut found = Array2::from_elem((at.len(), bands.len()), Moments::default());
        let members: Vec<&Member> = self.members.iter().collect();
        for (g, asked) in self.data.asked(bands).into_iter().enumerate() {
            if asked.is_empty() {
                continue;
            }
            progress.report(g, self.data.groups.len())?;
            let sites = &self.data.groups[g].sites;
            let cuts = match Self::is_whole(&self.data.groups[g]) {
                true => {
                    vec![Neighbourhood { sensors: Vec::new(), places: (0..at.len()).collect() }]
                }
                false => Neighbours::new(sites).neighbourhoods(at, NEAREST, COARSE),
            };
            let cuts: Vec<Neighbourhood> =
                cuts.into_iter().flat_map(|cut| cut.split(BLOCK)).collect();
            let own: Vec<usize> = asked.iter().map(|(k, _)| *k).collect();
            let parts: Vec<Vec<Moments>> = cuts
                .par_iter()
                .map(|cut| {
                    progress.check()?;
                    let places: Vec<Site> = cut.places.iter().map(|&p| at[p]).collect();
                    self.near(&members, g, cut, &places, &own, None)
                })
                .collect::<Result<_, EstimateError>>()?;
            for (cut, part) in cuts.iter().zip(parts) {
                for (&place, row) in cut.places.iter().zip(part.chunks(own.len())) {
                    for ((_, out), moments) in asked.iter().zip(row) {
                        found[[place, *out]] = *moments;
                    }
                }
            }
        }
        Ok(found)
    }

    /// The noise variance of a reading.
    fn nugget(&self) -> f64 {
        self.members.iter().map(|m| m.weight * m.law.nugget).sum()
    }

    pub(super) fn noise(&self) -> Vec<f64> {
        vec![DB_PER_LN * self.nugget().sqrt(); self.sources.len()]
    }

    fn of_moments(&self, moments: &Array2<Moments>) -> LeftOut {
        let power = moments.map(|m| match m.is_empty() {
            true => f64::NAN,
            false => self.data.power(m.mean),
        });
        let spread = moments.map(|m| DB_PER_LN * m.variance().sqrt());
        LeftOut::with_noise(power, spread, &self.noise())
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let data = BandData::load(archive, bands)?;
        let obstacles = load_all(archive)?;
        let wide: usize = obstacles.iter().map(|own| own.columns().len()).sum();
        let sources = (0..bands).map(|b| Source::load_all(archive, b)).collect::<Result<_, _>>()?;
        let weights = archive.finite("weights")?;
        let laws = archive.matrix("laws")?;
        if weights.is_empty() || weights.len() != laws.nrows() || weights.len() > MOST_MEMBERS {
            return Err(damaged("laws", "does not fit the weights").into());
        }
        let mut members = Vec::new();
        for (m, (&weight, row)) in weights.iter().zip(laws.rows()).enumerate() {
            let law = Law::of_numbers(&row.to_vec()).filter(|_| weight >= 0.0);
            let law = law.ok_or_else(|| damaged("laws", "has parameters that are not positive"))?;
            // Column by column, the numbers that it adds up.
            let groups = archive.matrix(&format!("columns_{m}"))?;
            let columns: Vec<Vec<usize>> = groups
                .rows()
                .into_iter()
                .map(|row| (0..row.len()).filter(|&c| row[c] != 0.0).collect())
                .collect();
            let terms = 2 + columns.len();
            let before = archive.matrix(&format!("coefficients_{m}"))?;
            let fits = before.dim() == (bands, terms + terms * terms)
                && (groups.nrows() == 0 || groups.ncols() == wide)
                && before.iter().all(|v| v.is_finite());
            if !fits {
                return Err(damaged(&format!("coefficients_{m}"), "does not fit the others").into());
            }
            let of_band = |row: ndarray::ArrayView1<'_, f64>| Normal {
                mean: Mat::from_fn(terms, 1, |i, _| row[i]),
                covariance: Mat::from_fn(terms, terms, |i, j| row[terms + i * terms + j]),
            };
            let before = before.rows().into_iter().map(of_band).collect();
            members.push(Member::new(weight, law, columns, before, data.groups.len()));
        }
        let hearing = archive.pair("hearing")?;
        let hearing = hearing.map(|(floor, softness)| Hearing { floor, softness });
        let reference_m = archive.number("reference_m")?;
        if !(reference_m.is_finite() && reference_m > 0.0) {
            return Err(damaged("reference_m", "is not a distance").into());
        }
        let together = TOGETHER;
        Ok(Self { data, obstacles, reference_m, sources, members, hearing, together })
    }
}

fn not_updated() -> EstimateError {
    let why = "a model with obstacles (walls, floors) cannot be updated: fit all readings again";
    InputError::Request(why.into()).into()
}

impl Predictor for Obstructed {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let moments = self.moments(at, bands, progress)?;
        let power = moments.map(|m| self.data.power(m.mean));
        let spread = moments.map(|m| DB_PER_LN * m.variance().sqrt());
        let noise = vec![DB_PER_LN * self.nugget().sqrt(); bands.len()];
        Ok(Prediction::with_spread(power, spread, &noise).with_hearing(self.hearing.as_ref()))
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        Some(self.noise())
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        self.all_left_out(sensors).map(Some)
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let away: HashSet<PlaceBits> = left_out.iter().map(|site| site.bits()).collect();
        let rest = self.without(&away);
        let bands: Vec<usize> = (0..self.sources.len()).collect();
        let moments = rest.moments(left_out, &bands, &Progress::silent())?;
        Ok(Some(self.of_moments(&moments)))
    }

    fn update(&self, _readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        Err(not_updated())
    }

    fn relearn(&self, _readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        Err(not_updated())
    }

    fn save(&self, archive: &mut Archive) {
        self.data.save(archive);
        save_all(&self.obstacles, archive);
        archive.put_number("reference_m", self.reference_m);
        archive.put_pair("hearing", self.hearing.map(|h| (h.floor, h.softness)));
        for (band, sources) in self.sources.iter().enumerate() {
            Source::save_all(sources, band, archive);
        }
        let weights: Vec<f64> = self.members.iter().map(|m| m.weight).collect();
        archive.put_vector("weights", &weights);
        let wide: usize = self.obstacles.iter().map(|own| own.columns().len()).sum();
        let shape = (self.members.len(), super::law::VARIABLES);
        let laws = Array2::from_shape_fn(shape, |(m, i)| self.members[m].law.numbers()[i]);
        archive.put_matrix("laws", &laws);
        for (m, member) in self.members.iter().enumerate() {
            let columns = Array2::from_shape_fn((member.columns.len(), wide), |(i, c)| {
                f64::from(member.columns[i].contains(&c))
            });
            archive.put_matrix(&format!("columns_{m}"), &columns);
            let terms = 2 + member.columns.len();
            let shape = (member.before.len(), terms + terms * terms);
            let before = Array2::from_shape_fn(shape, |(band, i)| {
                let Normal { mean, covariance } = &member.before[band];
                match i.checked_sub(terms) {
                    None => mean[(i, 0)],
                    Some(i) => covariance[(i / terms, i % terms)],
                }
            });
            archive.put_matrix(&format!("coefficients_{m}"), &before);
        }
    }
}
