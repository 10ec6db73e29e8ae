//! Quantised readings: level l means b_(l-1) < h(x) + n <= b_l with n ~ N(0, sigma^2) and
//! h(x) = ln(x + a); the outer bins are open (paper, supplement B).

use crate::error::InputError;
use crate::link::Link;

/// The level that stands for a missing entry in files and arrays.
pub const MISSING_LEVEL: u8 = 255;

/// The 3-bit edges that the paper's authors use, in ln(x + 1e-6), with sigma = 1.7.
pub const AUTHORS_EDGES: [f64; 7] = [-11.350, -10.472, -9.010, -8.931, -8.041, -7.611, -5.763];

/// Inner edges in ln(x + offset), ascending, and the noise added before quantising.
///
/// ```
/// use portolan::Quantiser;
/// let quantiser = Quantiser::new(vec![-9.0, -7.0], 0.0, 1e-6)?;
/// assert_eq!([-10.0, -8.0, -1.0].map(|value| quantiser.level(value)), [0, 1, 2]);
/// let middle = quantiser.decode(1);
/// assert!((quantiser.link().apply(middle) + 8.0).abs() < 1e-12);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiser {
    edges: Vec<f64>,
    sigma: f64,
    offset: f64,
}

impl Quantiser {
    /// From edges, the noise before quantising and the a of ln(x + a).
    ///
    /// # Errors
    /// Unless there are 1 to 254 finite, ascending edges, `sigma` is 0 or more and `offset` positive.
    pub fn new(edges: Vec<f64>, sigma: f64, offset: f64) -> Result<Self, InputError> {
        let error = |message: String| Err(InputError::Quantiser(message));
        if edges.is_empty() || edges.len() > 254 {
            return error(format!("{} edges: it takes 1 to 254", edges.len()));
        }
        if let Some(i) = edges.iter().position(|e| !e.is_finite()) {
            return error(format!("edge {i} is {}: edges must be finite", edges[i]));
        }
        if let Some(i) = edges.windows(2).position(|pair| pair[0] >= pair[1]) {
            return error(format!("edge {} is not above edge {i}: edges must ascend", i + 1));
        }
        if !(sigma.is_finite() && sigma >= 0.0) {
            return error(format!("sigma is {sigma}: it must be 0 or more"));
        }
        if !(offset.is_finite() && offset > 0.0) {
            return error(format!("offset a is {offset}: it must be positive"));
        }
        Ok(Self { edges, sigma, offset })
    }

    /// Levels for `bits` bits: 2^bits, but 255 for 8 bits, since 255 itself means missing.
    pub fn levels_for_bits(bits: u32) -> Result<usize, InputError> {
        match bits {
            1..=7 => Ok(1 << bits),
            8 => Ok(255),
            _ => Err(InputError::Quantiser(format!("{bits} bits: it takes 1 to 8"))),
        }
    }

    /// Edges at the equally spaced quantiles of `sample`, values of ln(x + offset).
    pub fn from_quantiles(
        mut sample: Vec<f64>,
        bits: u32,
        sigma: f64,
        offset: f64,
    ) -> Result<Self, InputError> {
        let levels = Self::levels_for_bits(bits)?;
        sample.retain(|v| v.is_finite());
        sample.sort_by(f64::total_cmp);
        if sample.len() < levels {
            return Err(InputError::Quantiser(format!(
                "{} values are too few to place {} edges",
                sample.len(),
                levels - 1
            )));
        }
        let mut edges: Vec<f64> = (1..levels).map(|l| sample[l * sample.len() / levels]).collect();
        // Equal quantiles (a floor that many values share) would make an empty bin.
        for i in 1..edges.len() {
            if edges[i] <= edges[i - 1] {
                edges[i] = edges[i - 1] + 1e-9 * edges[i - 1].abs().max(1.0);
            }
        }
        Self::new(edges, sigma, offset)
    }

    /// Inner edges in ln(x + offset), ascending.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Standard deviation of the noise before quantising, in ln units.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The a of h(x) = ln(x + a).
    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// The link that the edges live in.
    pub fn link(&self) -> Link {
        Link::new(self.offset)
    }

    /// The level of a value of ln(x + a), noise included.
    pub fn level(&self, value: f64) -> u8 {
        self.edges.partition_point(|&edge| edge < value) as u8
    }

    /// The power in the middle of a level's bin; an open bin is taken to reach as far beyond its
    /// edge as its neighbour is wide (one unit where there is no neighbour).
    pub fn decode(&self, level: u8) -> f64 {
        let (edges, level, last) = (&self.edges, usize::from(level), self.edges.len());
        let middle = if last == 1 {
            edges[0] + if level == 0 { -0.5 } else { 0.5 }
        } else if level == 0 {
            edges[0] - 0.5 * (edges[1] - edges[0])
        } else if level >= last {
            edges[last - 1] + 0.5 * (edges[last - 1] - edges[last - 2])
        } else {
            0.5 * (edges[level - 1] + edges[level])
        };
        self.link().inverse(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_open_below_and_closed_above() {
        let quantiser = Quantiser::new(vec![-2.0, 0.0, 1.0], 0.0, 1e-6).unwrap();
        let levels: Vec<u8> =
            [-9.0, -2.0, -1.9, 0.0, 0.5, 1.0, 1.1].map(|v| quantiser.level(v)).to_vec();
        assert_eq!(levels, [0, 0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn decoding_lands_in_the_bin() {
        for bits in 1..=8 {
            let sample: Vec<f64> = (0..5000).map(|i| -12.0 + f64::from(i) * 0.002).collect();
            let quantiser = Quantiser::from_quantiles(sample, bits, 0.0, 1e-6).unwrap();
            let levels = Quantiser::levels_for_bits(bits).unwrap();
            assert_eq!(quantiser.edges().len() + 1, levels);
            for level in 0..levels as u8 {
                let power = quantiser.decode(level);
                assert_eq!(quantiser.level(quantiser.link().apply(power)), level, "{bits} bits");
            }
        }
    }

    #[test]
    fn bad_quantisers_are_refused() {
        assert!(Quantiser::new(vec![], 1.0, 1e-6).is_err());
        assert!(Quantiser::new(vec![1.0, 1.0], 1.0, 1e-6).is_err());
        assert!(Quantiser::new(vec![1.0], -1.0, 1e-6).is_err());
        assert!(Quantiser::new(vec![1.0], 1.0, 0.0).is_err());
        assert!(Quantiser::levels_for_bits(9).is_err());
    }
}
