//! The link between power and the scale in which maps are compared and fitted: h(x) = ln(x + a).

/// Decibels per unit of natural logarithm of power: 10 log10 x = DB_PER_LN ln x.
pub const DB_PER_LN: f64 = 10.0 / std::f64::consts::LN_10;

/// h(x) = ln(x + a). With a = 0 it is the logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    offset: f64,
}

impl Link {
    /// The plain logarithm.
    pub const LOG: Link = Link { offset: 0.0 };

    /// `offset` is the a of ln(x + a), 0 or more.
    pub fn new(offset: f64) -> Self {
        debug_assert!(offset >= 0.0);
        Self { offset }
    }

    /// The a of ln(x + a).
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

    /// The same link, or one with an offset above the noise where noise was cut at zero.
    pub(crate) fn above_noise(self, powers: impl Iterator<Item = f64> + Clone) -> Self {
        Self { offset: self.offset.max(noise_floor(powers).unwrap_or(0.0)) }
    }
}

/// Where noise has pushed a share of the values down to exactly zero, as many positive values are
/// noise as well; their median is the floor below which nothing can be told.
pub(crate) fn noise_floor(powers: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let zeros = powers.clone().filter(|x| *x == 0.0).count();
    if zeros == 0 {
        return None;
    }
    let mut positive: Vec<f64> = powers.filter(|x| *x > 0.0 && x.is_finite()).collect();
    if zeros * 50 <= positive.len() || positive.is_empty() {
        return None;
    }
    let median = (zeros / 2).min(positive.len() - 1);
    Some(*positive.select_nth_unstable_by(median, f64::total_cmp).1)
}

/// An offset so small that it flattens no reading: a tenth of the least positive one, at least
/// 1e-12 of the greatest. For methods that must take the logarithm of a model that may be zero.
pub(crate) fn quiet_offset(powers: impl IntoIterator<Item = f64>) -> f64 {
    let positive = powers.into_iter().filter(|x| *x > 0.0 && x.is_finite());
    let (least, peak) =
        positive.fold((f64::INFINITY, 0.0f64), |(least, peak), x| (least.min(x), peak.max(x)));
    if peak == 0.0 {
        return f64::MIN_POSITIVE;
    }
    (0.1 * least).max(1e-12 * peak).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_undoes_apply() {
        for link in [Link::new(1e-6), Link::LOG] {
            for power in [0.0, 1e-9, 1e-6, 1e-3, 1.0, 1e5] {
                let back = link.inverse(link.apply(power));
                assert!((back - power).abs() <= 1e-12 * power.max(1e-3), "{power} {back}");
            }
        }
        assert_eq!(Link::new(1e-6).inverse(-50.0), 0.0);
    }

    #[test]
    fn a_noise_floor_is_found_from_the_zeros() {
        let mut values = vec![0.0; 50];
        values.extend((1..=50).map(|i| 1e-3 * f64::from(i) / 50.0));
        values.extend([0.5; 50]);
        let offset = Link::new(1e-6).above_noise(values.into_iter()).offset();
        assert!((3e-4..7e-4).contains(&offset), "{offset}");
        assert_eq!(noise_floor([0.0, 1.0, 2.0].into_iter().chain([3.0; 200])), None);
    }

    #[test]
    fn a_quiet_offset_follows_the_readings() {
        let dbm = [-95.0, -80.0, -62.0, -46.0].map(|p: f64| 10f64.powf(p / 10.0));
        let offset = quiet_offset(dbm);
        assert!((offset / 10f64.powf(-10.5) - 1.0).abs() < 1e-12);
        assert!((quiet_offset(dbm.map(|x| 1e7 * x)) / offset / 1e7 - 1.0).abs() < 1e-12);
    }
}
