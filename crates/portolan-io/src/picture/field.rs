//! Fields on their way to pixels: decibels, limits and the size on paper.

use ndarray::Array2;

/// Fields larger than this are sampled when limits are sought.
const MOST_SAMPLES: usize = 1 << 20;

/// 10 log10(power + offset); NaN stays NaN, zero without an offset becomes minus infinity.
pub fn decibels(power: &Array2<f64>, offset: f64) -> Array2<f64> {
    power.mapv(|p| 10.0 * (p + offset).log10())
}

/// Values at two fractions of the sorted finite entries; `None` where there are none.
pub fn quantiles(fields: &[&Array2<f64>], fractions: [f64; 2]) -> Option<[f64; 2]> {
    let total: usize = fields.iter().map(|f| f.len()).sum();
    let stride = total.div_ceil(MOST_SAMPLES).max(1);
    let mut values: Vec<f64> = fields
        .iter()
        .flat_map(|f| f.iter().copied())
        .step_by(stride)
        .filter(|v| v.is_finite())
        .collect();
    if values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    Some(fractions.map(|f| values[((values.len() - 1) as f64 * f).round() as usize]))
}

/// Colour limits that a few extreme cells do not stretch: the 0.5 and 99.5 percentiles, at most
/// `widest` apart (a nearly silent cell is hundreds of decibels down and of no interest).
pub fn robust_limits(fields: &[&Array2<f64>], widest: f64) -> (f64, f64) {
    let [low, high] = quantiles(fields, [0.005, 0.995]).unwrap_or([0.0, 1.0]);
    let high = high.clamp(-1e100, 1e100);
    let low = low.clamp(high - widest, high);
    widen(low, high)
}

/// Limits symmetric about zero that hold 99 % of the entries.
pub fn symmetric_limits(field: &Array2<f64>) -> (f64, f64) {
    let size = field.mapv(f64::abs);
    let [_, most] = quantiles(&[&size], [0.0, 0.99]).unwrap_or([0.0, 1.0]);
    let most = if most > 1e-9 { most.min(1e100) } else { 1.0 };
    (-most, most)
}

/// Gives limits that nearly coincide some range.
pub fn widen(low: f64, high: f64) -> (f64, f64) {
    let least = low.abs().max(high.abs()).max(1.0) * 1e-6;
    if high - low >= least {
        return (low, high);
    }
    let half = low.abs().max(high.abs()).max(1.0) * 0.05;
    (low - half, high + half)
}

/// Width and height in pixels of a field on paper, about `target` on its longer side: whole pixels
/// per cell where the field is small enough, else an average of cells per pixel.
pub fn paper_size(rows: usize, cols: usize, target: usize) -> (usize, usize) {
    let (long, short) = (rows.max(cols), rows.min(cols));
    // A strip may be longer, lest its other side vanish.
    let target = if long > 3 * short { target * 3 / 2 } else { target };
    let most = target * 7 / 5;
    if long <= most {
        let wished = (target as f64 / long as f64).round().max(1.0) as usize;
        let scale = wished.min(most / long).max(1);
        return (cols * scale, rows * scale);
    }
    let length = target * 6 / 5;
    let shrink = |n: usize| ((n * length) as f64 / long as f64).round().max(1.0) as usize;
    (shrink(cols), shrink(rows))
}

/// The field at another size: every entry is the mean of the known cells that it covers, which is
/// the nearest cell when the field grows by a whole factor.
pub fn resize(field: &Array2<f64>, rows: usize, cols: usize) -> Array2<f64> {
    let span = |place: usize, places: usize, cells: usize| {
        let start = place * cells / places;
        start..((place + 1) * cells).div_ceil(places).max(start + 1)
    };
    Array2::from_shape_fn((rows, cols), |(i, j)| {
        let (mut sum, mut count) = (0.0, 0.0);
        for row in span(i, rows, field.nrows()) {
            for col in span(j, cols, field.ncols()) {
                let value = field[[row, col]];
                if !value.is_nan() {
                    sum += value;
                    count += 1.0;
                }
            }
        }
        // 0 / 0 is NaN: nothing known under this pixel.
        sum / count
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn sizes_keep_the_aspect_and_whole_pixels_per_cell() {
        assert_eq!(paper_size(64, 64, 360), (384, 384));
        assert_eq!(paper_size(14, 34, 420), (408, 168));
        let (width, height) = paper_size(1024, 1024, 500);
        assert!(width == height && width <= 700);
        assert_eq!(paper_size(8, 300, 420), (600, 16));
        let (width, height) = paper_size(1, 100_000, 420);
        assert!(width <= 900 && height == 1);
    }

    #[test]
    fn resizing_repeats_or_averages() {
        let field = array![[1.0, 2.0], [3.0, f64::NAN]];
        let large = resize(&field, 4, 6);
        assert_eq!((large[[0, 2]], large[[0, 3]], large[[3, 0]]), (1.0, 2.0, 3.0));
        assert!(large[[2, 3]].is_nan());
        assert_eq!(resize(&field, 1, 1)[[0, 0]], 2.0);
        let ramp = Array2::from_shape_fn((6, 9), |(i, j)| (i + j) as f64);
        assert_eq!(resize(&ramp, 2, 3)[[0, 0]], 2.0);
    }

    #[test]
    fn limits_are_robust_and_never_empty() {
        let mut field =
            Array2::from_shape_fn((100, 100), |(i, j)| -90.0 + (i * 100 + j) as f64 / 1e3);
        field[[0, 0]] = -4000.0;
        field[[5, 5]] = f64::NAN;
        field[[6, 6]] = f64::NEG_INFINITY;
        let (low, high) = robust_limits(&[&field], 100.0);
        assert!(low > -90.0 && low < -89.9 && high > -80.2 && high < -80.0);
        for flat in [0.0, -57.0, 1e300, -1e300, f64::NAN, f64::INFINITY] {
            let (low, high) = robust_limits(&[&Array2::from_elem((3, 3), flat)], 100.0);
            assert!(low < high && (high - low).is_finite(), "{flat}");
        }
        let (low, high) = symmetric_limits(&array![[-3.0, 1.0, f64::NAN]]);
        assert_eq!((low, high), (-3.0, 3.0));
    }
}
