use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::simulate::stream;

/// Bands drawn from a law, some of their entries not heard.
fn drawn(bands: usize, count: usize, law: &PooledLaw) -> Vec<BandSample> {
    let mut rng = stream(5, 0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let correlation = Correlation::exponential(law.decorrelation_m);
    (0..bands)
        .map(|_| {
            let sites: Vec<Site> =
                (0..count).map(|_| Site::new(15.0 * normal(), 15.0 * normal())).collect();
            let matrix = correlation.matrix(&sites);
            let mut draws = Mat::from_fn(count, 1, |_, _| normal());
            Cholesky::new(matrix.as_ref()).unwrap().times(draws.as_mut());
            let level = law.level + law.level_variance.sqrt() * normal();
            let mut sample = BandSample::default();
            for (i, site) in sites.into_iter().enumerate() {
                let field = level + law.sill.sqrt() * draws[(i, 0)];
                let reading = field + law.nugget.sqrt() * normal();
                let heard = law.hearing.is_none_or(|h| reading - h.floor > h.softness * normal());
                if heard {
                    sample.sites.push(site);
                    sample.values.push(reading);
                } else {
                    sample.silent.push(site);
                }
            }
            sample.share = vec![1.0; sample.values.len()];
            sample.stated = vec![0.0; sample.values.len()];
            sample
        })
        .collect()
}

fn usual() -> PooledLaw {
    PooledLaw {
        decorrelation_m: 12.0,
        sill: 4.0,
        nugget: 1.0,
        level: -18.0,
        level_variance: 1.5,
        hearing: Some(Hearing { floor: -19.5, softness: 0.8 }),
    }
}

#[test]
fn the_gradient_is_that_of_the_evidence() {
    let law = usual();
    let mut x = [
        law.decorrelation_m.ln(),
        law.sill.ln(),
        law.nugget.ln(),
        law.level_variance.ln(),
        law.level,
        law.hearing.unwrap().floor,
        law.hearing.unwrap().softness.ln(),
    ];
    for sample in drawn(3, 24, &law) {
        assert!(sample.silent.len() > 2 && sample.values.len() > 2);
        let value = |x: &[f64]| {
            // Swept until nothing moves.
            let law = law_at(x, true);
            let mut pseudo = PseudoReadings::default();
            let mut found = 0.0;
            for _ in 0..6 {
                let next = evidence(&sample, &law, &pseudo).unwrap();
                (found, pseudo) = (next.0, next.2);
            }
            (found, evidence(&sample, &law, &pseudo).unwrap().1)
        };
        let gradient = value(&x).1;
        for i in 0..VARIABLES {
            let step = 1e-4;
            let own = x[i];
            x[i] = own + step;
            let up = value(&x).0;
            x[i] = own - step;
            let down = value(&x).0;
            x[i] = own;
            let slope = (up - down) / (2.0 * step);
            assert!(
                (slope - gradient[i]).abs() < 0.01 + 0.01 * slope.abs(),
                "{i}: {slope} {gradient:?}"
            );
        }
    }
}

#[test]
fn the_law_behind_silent_bands_is_found() {
    let law = usual();
    let found = pooled_law(&drawn(24, 60, &law), &Progress::silent()).unwrap().unwrap();
    let close = |got: f64, want: f64, off: f64| assert!((got - want).abs() < off, "{found:?}");
    close(found.decorrelation_m.ln(), law.decorrelation_m.ln(), 0.5);
    close(found.sill.ln(), law.sill.ln(), 0.4);
    close(found.nugget.ln(), law.nugget.ln(), 0.4);
    close(found.level, law.level, 0.8);
    close(found.hearing.unwrap().floor, law.hearing.unwrap().floor, 0.4);
}

#[test]
fn patches_hold_every_place_once() {
    let sites: Vec<Site> =
        (0..500).map(|i| Site::new(f64::from(i * 37 % 101), f64::from(i % 23))).collect();
    let cut = patches(&sites, 64);
    assert!(cut.iter().all(|p| p.len() <= 64 && !p.is_empty()));
    let mut all: Vec<usize> = cut.concat();
    all.sort_unstable();
    assert_eq!(all, (0..500).collect::<Vec<_>>());
}

#[test]
fn a_report_lies_above_the_field_where_hearing_is_rare() {
    let hearing = Hearing { floor: -20.0, softness: 1.0 };
    let (chance, report) = hearing.heard(-23.0, 1.5);
    assert!(chance < 0.1 && report > -22.5, "{chance} {report}");
    let (chance, report) = hearing.heard(-12.0, 1.5);
    assert!(chance > 0.99 && (report + 12.0).abs() < 0.01);
    // By summing over readings.
    let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
    for i in -4000..4000 {
        let y = -21.0 + 0.002 * f64::from(i);
        let weight = (-0.5 * (y + 21.0_f64).powi(2) / 1.5).exp()
            * upper_tail(-(y - hearing.floor) / hearing.softness).0.exp();
        (mass, mean, square) = (mass + weight, mean + weight * y, square + weight * y * y);
    }
    let (mean, deviation) = (mean / mass, (square / mass - (mean / mass).powi(2)).sqrt());
    assert!((hearing.heard(-21.0, 1.5).1 - mean).abs() < 1e-6);
    assert!((hearing.heard_deviation(-21.0, 1.5) - deviation).abs() < 1e-6);
}
