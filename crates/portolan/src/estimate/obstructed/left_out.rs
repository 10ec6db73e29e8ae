//! Readings as the others predict them. Up to [`WHOLE`] sites a band looks at together, every site is
//! left out of one factorisation; of more, some are predicted from their nearest.

use std::collections::HashSet;

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::model::{Member, NEAREST, Obstructed, WEIGHED};
use crate::error::EstimateError;
use crate::estimate::bands::Group;
use crate::estimate::mixture::Moments;
use crate::gaussian_process::{Neighbourhood, Neighbours, along_curve};
use crate::linalg::product;
use crate::link::DB_PER_LN;
use crate::model::LeftOut;
use crate::site::{PlaceBits, Site};

/// Sites of a band that are left out one by one, where it has more than look at each other together.
const MOST_LEFT_OUT: usize = 300;
/// Rows that may stand at the place that is left out.
const TWINS: usize = 8;

impl Obstructed {
    /// Mean and variance of the field at every row of a group as the other rows predict it; empty at rows
    /// that are not looked at.
    pub(super) fn left_out_under(
        &self,
        members: &[&Member],
        g: usize,
    ) -> Result<Array2<Moments>, EstimateError> {
        let group = &self.data.groups[g];
        let n = group.sites.len();
        let mut found = Array2::from_elem((n, group.bands.len()), Moments::default());
        if !Self::is_whole(group) {
            for (row, own) in self.left_out_near(members, g)? {
                found.row_mut(row).iter_mut().zip(own).for_each(|(all, own)| *all = own);
            }
            return Ok(found);
        }
        for member in members {
            let solved = self.solved(member, g)?;
            let Some(cholesky) = &solved.cholesky else { continue };
            let inverse = cholesky.inverse_diagonal();
            for (k, candidates) in solved.bands.iter().enumerate() {
                for candidate in candidates {
                    let trend = &candidate.trend;
                    let covariance = &candidate.coefficients.covariance;
                    let open = product(trend.as_ref(), covariance.as_ref());
                    for i in 0..n {
                        let taken: f64 =
                            (0..trend.ncols()).map(|c| open[(i, c)] * trend[(i, c)]).sum();
                        let precision = (inverse[i] - taken).max(1e-12 * inverse[i]);
                        let noise = group.share[i] * member.law.nugget + group.stated[i];
                        found[[i, k]].add(
                            member.weight * candidate.weight,
                            group.values[[i, k]] - candidate.pull[i] / precision,
                            (1.0 / precision - noise).max(0.0),
                        );
                    }
                }
            }
        }
        Ok(found)
    }

    /// Some rows of a group, each as its nearest predict it.
    fn left_out_near(
        &self,
        members: &[&Member],
        g: usize,
    ) -> Result<Vec<(usize, Vec<Moments>)>, EstimateError> {
        let group = &self.data.groups[g];
        let mut used: Vec<HashSet<usize>> = vec![HashSet::new(); group.bands.len()];
        for member in members {
            for (used, candidates) in used.iter_mut().zip(&self.solved(member, g)?.bands) {
                used.extend(candidates.iter().map(|candidate| candidate.source));
            }
        }
        // Every sensor from every place of a transmitter, whichever neighbourhood looks at it.
        let known: Vec<Vec<Option<Mat<f64>>>> = used
            .par_iter()
            .zip(&group.bands)
            .map(|(used, &band)| {
                let one = |s: usize| used.contains(&s).then(|| self.design(band, s, &group.sites));
                (0..self.sources[band].len()).map(one).collect()
            })
            .collect();
        let index = Neighbours::new(&group.sites);
        let all: Vec<usize> = (0..group.bands.len()).collect();
        let order = along_curve(&group.sites);
        let some: Vec<usize> =
            order.iter().copied().step_by(order.len().div_ceil(MOST_LEFT_OUT)).collect();
        some.into_par_iter()
            .map(|row| {
                let site = group.sites[row];
                let mut near = Vec::new();
                index.nearest(&site, NEAREST + TWINS, &mut near);
                let others = near.iter().map(|(_, sensor)| *sensor);
                let others = others.filter(|&other| group.sites[other].bits() != site.bits());
                let mut sensors: Vec<usize> = others.take(NEAREST).collect();
                sensors.sort_unstable();
                let cut = Neighbourhood { sensors, places: vec![row] };
                Ok((row, self.near(members, g, &cut, &[site], &all, Some(&known))?))
            })
            .collect()
    }

    /// Error at sensors left out one by one under a law, in dB.
    pub(super) fn left_out_error(&self, member: &Member) -> Result<Option<f64>, EstimateError> {
        let (mut sum, mut count) = (0.0, 0usize);
        for g in 0..self.data.groups.len() {
            let found = self.left_out_under(&[member], g)?;
            for (found, value) in found.iter().zip(&self.data.groups[g].values) {
                if !found.is_empty() {
                    sum += (found.mean - value).powi(2);
                    count += 1;
                }
            }
        }
        Ok((count > 0).then(|| DB_PER_LN * (sum / count as f64).sqrt()))
    }

    /// All sensors, each as the others predict it.
    pub(super) fn all_left_out(&self, sensors: &[Site]) -> Result<LeftOut, EstimateError> {
        let members: Vec<&Member> = self.members.iter().collect();
        let groups: Vec<Array2<Moments>> = (0..self.data.groups.len())
            .map(|g| self.left_out_under(&members, g))
            .collect::<Result<_, _>>()?;
        let of = |value: &dyn Fn(&Moments) -> f64| {
            let known = |m: &Moments| if m.is_empty() { f64::NAN } else { value(m) };
            let each: Vec<Array2<f64>> = groups.iter().map(|g| g.map(known)).collect();
            self.data.at_rows(sensors, &each)
        };
        let power = of(&|m| self.data.power(m.mean));
        let spread = of(&|m| DB_PER_LN * m.variance().sqrt());
        Ok(LeftOut::with_noise(power, spread, &self.noise()))
    }

    /// The same model without what some places read. Bands that nothing else read are left unknown.
    pub(super) fn without(&self, away: &HashSet<PlaceBits>) -> Self {
        let rest = |group: &Group| {
            let kept: Vec<usize> = (0..group.sites.len())
                .filter(|&i| !away.contains(&group.sites[i].bits()))
                .collect();
            (!kept.is_empty()).then(|| group.at_sensors(&kept))
        };
        let data = self.data.with_groups(self.data.groups.iter().filter_map(rest).collect());
        let members = self.members.iter().map(|m| {
            Member::new(m.weight, m.law, m.columns.clone(), m.before.clone(), data.groups.len())
        });
        let members = members.collect();
        Self {
            data,
            members,
            together: WEIGHED,
            obstacles: self.obstacles.clone(),
            sources: self.sources.clone(),
            ..*self
        }
    }
}
