//! Successive projection: picks the columns of a matrix that span its cone (Araujo et al. 2001;
//! Gillis and Vavasis 2014). Each pick is the column farthest from the span of those before.

/// What successive projection found in a matrix of `count` vectors.
pub(super) struct Vertices {
    pub picks: Vec<usize>,
    /// Orthonormal basis of the picked vectors, one after another.
    pub basis: Vec<Vec<f64>>,
    /// Largest norm left outside the basis: after no pick, after one, and so on.
    pub left: Vec<f64>,
}

/// Picks up to `most` of `count` vectors of length `length`; `entry(i, v)` is entry i of vector v.
/// Stops early where nothing but rounding is left.
pub(super) fn pick(
    count: usize,
    length: usize,
    most: usize,
    entry: impl Fn(usize, usize) -> f64,
) -> Vertices {
    let mut rest: Vec<f64> = (0..count)
        .flat_map(|v| (0..length).map(move |i| (i, v)))
        .map(|(i, v)| entry(i, v))
        .collect();
    let mut found = Vertices { picks: Vec::new(), basis: Vec::new(), left: Vec::new() };
    let mut largest = 0.0f64;
    loop {
        let (mut at, mut norm) = (0, -1.0);
        for (v, vector) in rest.chunks_exact(length).enumerate() {
            let square: f64 = vector.iter().map(|x| x * x).sum();
            if square > norm {
                (at, norm) = (v, square);
            }
        }
        let norm = norm.max(0.0).sqrt();
        largest = largest.max(norm);
        found.left.push(norm);
        if found.picks.len() == most.min(count) || norm <= 1e-14 * largest {
            return found;
        }
        let mut axis: Vec<f64> = rest[at * length..(at + 1) * length].to_vec();
        // A second pass against the basis: the first leaves rounding of the size of the vector.
        for other in &found.basis {
            let dot: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
            axis.iter_mut().zip(other).for_each(|(a, b)| *a -= dot * b);
        }
        let norm = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
        axis.iter_mut().for_each(|a| *a /= norm);
        for vector in rest.chunks_exact_mut(length) {
            let dot: f64 = axis.iter().zip(&*vector).map(|(a, b)| a * b).sum();
            vector.iter_mut().zip(&axis).for_each(|(x, a)| *x -= dot * a);
        }
        found.picks.push(at);
        found.basis.push(axis);
    }
}
