//! Squared norms of flat slices, as penalties beside a misfit.

/// Adds the gradient of weight * |values|^2 and returns that penalty.
pub fn add_penalty(weight: f64, values: &[f32], gradient: &mut [f32]) -> f64 {
    let twice = (2.0 * weight) as f32;
    // Eight sums, so that none need wait for another.
    let mut sums = [0.0f64; 8];
    for (values, gradient) in values.chunks(8).zip(gradient.chunks_mut(8)) {
        for ((value, gradient), sum) in values.iter().zip(gradient).zip(&mut sums) {
            *sum += f64::from(value * value);
            *gradient += twice * value;
        }
    }
    weight * sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_added_to_what_is_there() {
        let mut gradient = [1.0, 0.0];
        assert_eq!(add_penalty(0.5, &[3.0, -4.0], &mut gradient), 12.5);
        assert_eq!(gradient, [4.0, -4.0]);
    }
}
