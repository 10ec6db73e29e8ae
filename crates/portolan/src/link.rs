//! The link between power and the scale in which maps are compared and fitted: h(x) = ln(x + a).

/// Decibels per unit of natural logarithm.
pub const DB_PER_NEPER: f64 = 10.0 / std::f64::consts::LN_10;

/// The offset that suits maps whose SLFs and PSDs have unit norm.
pub const UNIT_OFFSET: f64 = 1e-6;

/// h(x) = ln(x + a).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    offset: f64,
}

impl Link {
    /// `offset` is the a of ln(x + a); it must be positive.
    pub fn new(offset: f64) -> Self {
        debug_assert!(offset > 0.0);
        Self { offset }
    }

    /// Chooses the offset from some of the powers of a map that has `entries` cells times bands
    /// (NaN and zero allowed).
    ///
    /// - Simulated maps, whose SLFs and PSDs have unit norm, keep the paper's 1e-6. They are known
    ///   by their norm, at least 1 over the whole map (sensors that miss the surroundings of the
    ///   emitters may see a fiftieth of it).
    /// - Measured power must not be flattened by the offset: a tenth of the smallest positive
    ///   value, at least 1e-12 of the peak. Where the norm leaves it open, power is taken
    ///   as measured if 1e-6 would flatten more than two fifths of it and none of it is fainter
    ///   than a receiver can hear.
    /// - Where noise has pushed a share of the values down to exactly zero, as many positive values
    ///   are noise as well; their median is the floor below which nothing can be told.
    pub fn choose(powers: impl IntoIterator<Item = f64>, entries: usize) -> Self {
        let mut zeros = 0;
        let mut positive: Vec<f64> = powers
            .into_iter()
            .inspect(|&x| zeros += usize::from(x == 0.0))
            .filter(|x| *x > 0.0 && x.is_finite())
            .collect();
        if positive.is_empty() {
            return Self::new(UNIT_OFFSET);
        }
        positive.sort_by(f64::total_cmp);
        let count = positive.len() as f64;
        let (least, peak) = (positive[0], positive[positive.len() - 1]);
        let mean_square = positive.iter().map(|x| x * x).sum::<f64>() / (count + zeros as f64);
        let norm = (mean_square * entries as f64).sqrt();
        let low = positive.partition_point(|x| *x < UNIT_OFFSET) as f64 / count;
        let audible = low > 0.4 && least >= 1e-12;
        let measured = !(0.02..=1e3).contains(&norm) || (norm < 0.7 && audible);
        let quiet = if measured { (0.1 * least).max(1e-12 * peak) } else { UNIT_OFFSET };
        let floor = if zeros * 50 > positive.len() {
            positive[(zeros / 2).min(positive.len() - 1)]
        } else {
            0.0
        };
        Self::new(quiet.max(floor).max(f64::MIN_POSITIVE))
    }

    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// h(x).
    pub fn apply(&self, power: f64) -> f64 {
        (power + self.offset).ln()
    }

    /// The power behind a value of h; never negative.
    pub fn inverse(&self, value: f64) -> f64 {
        (value.exp() - self.offset).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::score::choose_link;
    use crate::sense::{Layout, Sensing, sense};
    use crate::simulate::{Scenario, simulate};

    #[test]
    fn inverse_undoes_apply() {
        let link = Link::new(1e-6);
        for power in [0.0, 1e-9, 1e-6, 1e-3, 1.0, 1e5] {
            let back = link.inverse(link.apply(power));
            assert!((back - power).abs() <= 1e-12 * power.max(1e-3), "{power} {back}");
        }
        assert_eq!(link.inverse(-50.0), 0.0);
    }

    #[test]
    fn simulated_maps_keep_the_papers_offset() {
        let grid = Grid::new(64, 64, 1.0).unwrap();
        for seed in 0..12 {
            let emitters = 1 + seed as usize % 6;
            let map = simulate(&Scenario { emitters, seed, ..Scenario::new(grid) }).unwrap();
            assert_eq!(choose_link(&map).offset(), 1e-6);
            for fraction in [0.1, 0.02, 0.01] {
                let sensing = Sensing::exact(Layout::Fraction(fraction), seed);
                let power = sense(&map, &sensing).unwrap().power();
                let link = Link::choose(power.iter().copied(), 64 * 64 * 64);
                assert_eq!(link.offset(), 1e-6, "seed {seed}, {fraction}");
            }
        }
    }

    #[test]
    fn measured_milliwatts_are_not_flattened() {
        for loudest in [-20.0, -46.0] {
            let dbm = [-95.0, -80.0, -62.0, -61.0, -50.0, loudest];
            let powers = dbm.map(|p: f64| 10f64.powf(p / 10.0));
            let offset = Link::choose(powers, 5000).offset();
            assert!(offset < 10f64.powf(-9.5), "{offset}");
        }
    }

    #[test]
    fn a_noise_floor_is_found_from_the_zeros() {
        let mut values = vec![0.0; 50];
        values.extend((1..=50).map(|i| 1e-3 * f64::from(i) / 50.0));
        values.extend([0.5; 50]);
        let offset = Link::choose(values, 150).offset();
        assert!((3e-4..7e-4).contains(&offset), "{offset}");
    }
}
