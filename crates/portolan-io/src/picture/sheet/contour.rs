//! Lines of equal value by marching squares (Lorensen and Cline's cubes in the plane).

use std::collections::{BTreeMap, BTreeSet};

use ndarray::ArrayView2;

/// An edge between two neighbouring cells: line, column, and whether it leads down.
type Edge = (usize, usize, bool);

/// Lines along which a field takes a value, as (line, column) between the centres of cells. Lines
/// end where nothing is known.
pub fn contours(field: &ArrayView2<'_, f64>, level: f64) -> Vec<Vec<[f64; 2]>> {
    let (lines, columns) = field.dim();
    let mut joined: BTreeMap<Edge, Vec<Edge>> = BTreeMap::new();
    for i in 0..lines.saturating_sub(1) {
        for j in 0..columns.saturating_sub(1) {
            for (a, b) in crossings(field, i, j, level) {
                joined.entry(a).or_default().push(b);
                joined.entry(b).or_default().push(a);
            }
        }
    }
    let point = |(i, j, down): Edge| {
        let here = field[[i, j]];
        let there = if down { field[[i + 1, j]] } else { field[[i, j + 1]] };
        let t = ((level - here) / (there - here)).clamp(0.0, 1.0);
        if down { [i as f64 + t, j as f64] } else { [i as f64, j as f64 + t] }
    };
    let mut left: BTreeSet<Edge> = joined.keys().copied().collect();
    let ends = joined.iter().filter(|(_, next)| next.len() == 1).map(|(edge, _)| *edge);
    let starts: Vec<Edge> = ends.chain(joined.keys().copied()).collect();
    let mut found = Vec::new();
    for start in starts {
        if !left.remove(&start) {
            continue;
        }
        let mut line = vec![point(start)];
        let mut at = start;
        while let Some(next) = joined[&at].iter().find(|edge| left.contains(edge)).copied() {
            left.remove(&next);
            line.push(point(next));
            at = next;
        }
        // A ring ends where it began.
        if line.len() > 2 && joined[&at].contains(&start) {
            line.push(line[0]);
        }
        if line.len() > 1 {
            found.push(line);
        }
    }
    found
}

/// The pieces of the line within the square of four cells whose first is (i, j).
fn crossings(field: &ArrayView2<'_, f64>, i: usize, j: usize, level: f64) -> Vec<(Edge, Edge)> {
    let corners = [field[[i, j]], field[[i, j + 1]], field[[i + 1, j + 1]], field[[i + 1, j]]];
    if corners.iter().any(|v| !v.is_finite()) {
        return Vec::new();
    }
    let above = corners.map(|v| v >= level);
    let edges: [Edge; 4] = [(i, j, false), (i, j + 1, true), (i + 1, j, false), (i, j, true)];
    let crossed: Vec<usize> = (0..4).filter(|&e| above[e] != above[(e + 1) % 4]).collect();
    match crossed[..] {
        [a, b] => vec![(edges[a], edges[b])],
        [..] if crossed.len() == 4 => {
            // A saddle: the middle decides which corners belong together.
            let middle = corners.iter().sum::<f64>() / 4.0 >= level;
            if middle == above[0] {
                vec![(edges[0], edges[1]), (edges[2], edges[3])]
            } else {
                vec![(edges[3], edges[0]), (edges[1], edges[2])]
            }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn a_hill_has_one_ring() {
        let hill = Array2::from_shape_fn((21, 21), |(i, j)| {
            -((i as f64 - 10.0).powi(2) + (j as f64 - 9.0).powi(2)).sqrt()
        });
        let rings = contours(&hill.view(), -5.0);
        assert_eq!(rings.len(), 1);
        assert_eq!(rings[0].first(), rings[0].last());
        for [i, j] in &rings[0] {
            assert!(((i - 10.0).hypot(j - 9.0) - 5.0).abs() < 0.1);
        }
        assert!(contours(&hill.view(), 1.0).is_empty());
    }

    #[test]
    fn lines_end_at_the_unknown_and_at_the_edge() {
        let mut slope = Array2::from_shape_fn((5, 9), |(_, j)| j as f64);
        let whole = contours(&slope.view(), 3.5);
        assert_eq!((whole.len(), whole[0].len()), (1, 5));
        slope[[2, 3]] = f64::NAN;
        assert_eq!(contours(&slope.view(), 3.5).len(), 2);
        slope.fill(f64::NAN);
        assert!(contours(&slope.view(), 3.5).is_empty());
        assert!(contours(&Array2::zeros((1, 1)).view(), 0.5).is_empty());
    }

    #[test]
    fn saddles_do_not_cross() {
        let saddle = ndarray::array![[1.0, 0.0], [0.0, 1.0]];
        let lines = contours(&saddle.view(), 0.5);
        assert_eq!(lines.len(), 2);
    }
}
