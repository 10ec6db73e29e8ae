//! Round tick values and their labels.

/// Ticks of an axis: values that are whole multiples of 1, 2 or 5 times a power of ten.
#[derive(Clone, Debug, PartialEq)]
pub struct Ticks {
    pub values: Vec<f64>,
    pub labels: Vec<String>,
}

impl Ticks {
    /// At most `most` ticks between two finite limits; none where there is no range.
    pub fn between(low: f64, high: f64, most: usize) -> Self {
        let range = high - low;
        // Beyond fifteen digits multiples of a step can no longer be told apart.
        let usable = range.is_finite() && range > low.abs().max(high.abs()) * 1e-12 && most > 0;
        if !usable {
            return Self { values: Vec::new(), labels: Vec::new() };
        }
        let smallest = (range / most as f64).log10().floor() as i32;
        for exponent in smallest..smallest + 4 {
            for mantissa in [1.0, 2.0, 5.0] {
                let values = multiples(low, high, mantissa, exponent);
                if values.len() <= most {
                    let labels = values.iter().map(|&v| label(v, exponent)).collect();
                    return Self { values, labels };
                }
            }
        }
        Self { values: Vec::new(), labels: Vec::new() }
    }

    /// As many ticks as fit `pixels` when labels of `room(label)` pixels may not touch.
    pub fn fitting(low: f64, high: f64, pixels: i64, room: impl Fn(&str) -> i64) -> Self {
        for most in (1..=7).rev() {
            let ticks = Self::between(low, high, most);
            let widest = ticks.labels.iter().map(|l| room(l)).max().unwrap_or(0);
            let step = ticks.values.windows(2).map(|w| w[1] - w[0]).next();
            let apart = step.map_or(f64::INFINITY, |s| s / (high - low) * pixels as f64);
            if !ticks.values.is_empty() && apart >= widest as f64 {
                return ticks;
            }
        }
        Self { values: Vec::new(), labels: Vec::new() }
    }
}

fn multiples(low: f64, high: f64, mantissa: f64, exponent: i32) -> Vec<f64> {
    let step = mantissa * 10f64.powi(exponent);
    // A limit that is round but for its last bits still gets its tick.
    let slack = 1e-9;
    let first = (low / step - slack).ceil();
    let last = (high / step + slack).floor();
    (0..=(last - first).max(-1.0) as i64)
        .filter(|_| last >= first)
        .take(64)
        .map(|i| {
            let count = first + i as f64;
            // Dividing by a whole power of ten keeps 0.3 from becoming 0.30000000000000004.
            if exponent < 0 { count * mantissa / 10f64.powi(-exponent) } else { count * step }
        })
        .collect()
}

fn label(value: f64, exponent: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if exponent < -4 || value.abs() >= 1e6 {
        let digits = (value.abs().log10().floor() as i32 - exponent).clamp(0, 15) as usize;
        return format!("{value:.digits$e}");
    }
    let decimals = (-exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_the_ones_a_person_would_choose() {
        assert_eq!(Ticks::between(-5.0, 635.0, 5).values, [0.0, 200.0, 400.0, 600.0]);
        assert_eq!(Ticks::between(-93.2, -41.7, 6).labels, ["-90", "-80", "-70", "-60", "-50"]);
        assert_eq!(Ticks::between(0.0, 1.0, 6).labels, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(Ticks::between(0.0, 3e-7, 3).labels, ["0", "2e-7"]);
        assert_eq!(Ticks::between(2412e6, 2472e6, 3).labels.len(), 3);
    }

    #[test]
    fn no_range_means_no_ticks() {
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(Ticks::between(low, high, 5).values.is_empty());
        }
        assert!(Ticks::between(-f64::MAX, f64::MAX, 5).values.is_empty());
    }

    proptest! {
        #[test]
        fn ticks_are_round_few_and_inside(
            low in -1e6f64..1e6, exponent in -6f64..7.0, most in 1usize..9,
        ) {
            let high = low + 10f64.powf(exponent);
            let ticks = Ticks::between(low, high, most);
            prop_assert!(ticks.values.len() <= most);
            let slack = (high - low) * 1e-6;
            for pair in ticks.values.windows(2) {
                let step = pair[1] - pair[0];
                let mantissa = step / 10f64.powf(step.log10().floor());
                let round = [1.0, 2.0, 5.0, 10.0].iter().any(|m| (mantissa / m - 1.0).abs() < 1e-3);
                prop_assert!(round, "{:?}", ticks);
            }
            for (value, label) in ticks.values.iter().zip(&ticks.labels) {
                prop_assert!(*value >= low - slack && *value <= high + slack);
                let read: f64 = label.parse().unwrap();
                prop_assert!((read - value).abs() <= slack, "{label} for {value}");
            }
        }
    }
}
