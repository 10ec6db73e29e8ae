//! What a transmitter at a place makes of other places: distance and what stands between.

use std::sync::Arc;

use faer::Mat;
use ndarray::Array2;

use crate::between::Between;
use crate::error::InputError;
use crate::link::DB_PER_LN;
use crate::model::{Archive, damaged};
use crate::site::Site;

/// A place where the transmitter of a band may stand; several where the band has as many, of which each
/// place hears the nearest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Source {
    pub at: Vec<Site>,
    pub log_prior: f64,
}

impl Source {
    pub fn one(at: Site, log_prior: f64) -> Self {
        Self { at: vec![at], log_prior }
    }

    pub fn save_all(sources: &[Self], band: usize, archive: &mut Archive) {
        let all: Vec<Site> = sources.iter().flat_map(|s| s.at.iter().copied()).collect();
        archive.put_sites(&format!("transmitters_{band}"), &all);
        archive
            .put_whole(&format!("transmitter_counts_{band}"), sources.iter().map(|s| s.at.len()));
        let priors: Vec<f64> = sources.iter().map(|s| s.log_prior).collect();
        archive.put_vector(&format!("transmitter_priors_{band}"), &priors);
    }

    pub fn load_all(archive: &Archive, band: usize) -> Result<Vec<Self>, InputError> {
        let name = format!("transmitters_{band}");
        let sites = archive.sites(&name)?;
        let counts = archive.whole(&format!("transmitter_counts_{band}"))?;
        let priors = archive.finite(&format!("transmitter_priors_{band}"))?;
        let total = counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
        if total != Some(sites.len())
            || counts.len() != priors.len()
            || counts.is_empty()
            || counts.contains(&0)
        {
            return Err(damaged(&name, "does not fit the counts"));
        }
        let mut rest = &sites[..];
        let one = |(&count, &log_prior): (&usize, &f64)| {
            let (own, others) = rest.split_at(count);
            rest = others;
            Self { at: own.to_vec(), log_prior }
        };
        Ok(counts.iter().zip(&priors).map(one).collect())
    }
}

/// Places x coefficients: 1, -ln d, and minus every number of the obstacles in decibels of ln power.
pub(super) fn design(
    source: &Source,
    obstacles: &[Arc<dyn Between>],
    at: &[Site],
    reference_m: f64,
) -> Mat<f64> {
    let nearest: Vec<usize> = at
        .iter()
        .map(|site| {
            let far = |mast: &usize| source.at[*mast].squared_m2(*site);
            (0..source.at.len()).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0)
        })
        .collect();
    let wide: usize = obstacles.iter().map(|own| own.columns().len()).sum();
    let mut design = Mat::zeros(at.len(), 2 + wide);
    for (mast, &place) in source.at.iter().enumerate() {
        let own: Vec<usize> = (0..at.len()).filter(|&i| nearest[i] == mast).collect();
        let sites: Vec<Site> = own.iter().map(|&i| at[i]).collect();
        for (&i, site) in own.iter().zip(&sites) {
            design[(i, 0)] = 1.0;
            design[(i, 1)] = -(site.distance_m(place) / reference_m).max(1.0).ln();
        }
        let mut first = 2;
        for obstacle in obstacles {
            let numbers: Array2<f64> = obstacle.between(place, &sites);
            for ((row, column), number) in numbers.indexed_iter() {
                design[(own[row], first + column)] = -number / DB_PER_LN;
            }
            first += numbers.ncols();
        }
    }
    design
}

/// The same with some of the numbers added up to columns.
pub(super) fn merged(design: &Mat<f64>, columns: &[Vec<usize>]) -> Mat<f64> {
    Mat::from_fn(design.nrows(), 2 + columns.len(), |i, c| match c.checked_sub(2) {
        None => design[(i, c)],
        Some(c) => columns[c].iter().map(|own| design[(i, 2 + own)]).sum(),
    })
}
