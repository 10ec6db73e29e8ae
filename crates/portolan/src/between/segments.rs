//! Segments in the plane in a grid of buckets: which of many does a straight line cross? The line
//! walks from bucket to bucket (Amanatides and Woo 1987).

/// Buckets along the longer side at most.
const MOST_BUCKETS: f64 = 1024.0;

/// Segments, each as x and y of its two ends.
#[derive(Debug)]
pub(super) struct Segments {
    ends: Vec<[f64; 4]>,
    low: [f64; 2],
    side: f64,
    count: [usize; 2],
    /// Where the segments of every bucket begin in `order`, and one more.
    starts: Vec<u32>,
    order: Vec<u32>,
}

impl Segments {
    pub fn new(ends: Vec<[f64; 4]>) -> Self {
        let both = |axis: usize| ends.iter().flat_map(move |e| [e[axis], e[axis + 2]]);
        let low = [0, 1].map(|axis| both(axis).fold(f64::INFINITY, f64::min));
        let high = [0, 1].map(|axis| both(axis).fold(f64::NEG_INFINITY, f64::max));
        let length = [0, 1].map(|axis| (high[axis] - low[axis]).max(0.0));
        let longest = length[0].max(length[1]).max(f64::MIN_POSITIVE);
        let across = (2.0 * (ends.len() as f64).sqrt()).clamp(1.0, MOST_BUCKETS);
        let side = longest / across;
        let count = length.map(|l| (l / side).floor() as usize + 1);
        let mut segments = Self { ends, low, side, count, starts: Vec::new(), order: Vec::new() };
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (number, [ax, ay, bx, by]) in segments.ends.iter().enumerate() {
            segments.walk([*ax, *ay], [*bx, *by], |bucket| {
                pairs.push((bucket as u32, number as u32));
            });
        }
        pairs.sort_unstable();
        let buckets = count[0] * count[1];
        segments.starts = vec![0; buckets + 1];
        for (bucket, _) in &pairs {
            segments.starts[*bucket as usize + 1] += 1;
        }
        for bucket in 0..buckets {
            segments.starts[bucket + 1] += segments.starts[bucket];
        }
        segments.order = pairs.into_iter().map(|(_, number)| number).collect();
        segments
    }

    /// Every segment that the line from one place to another crosses, once, with the share of the
    /// way at which it does.
    pub fn crossings(&self, from: [f64; 2], to: [f64; 2], mut crossed: impl FnMut(usize, f64)) {
        let mut found: Vec<(u32, f64)> = Vec::new();
        self.walk(from, to, |bucket| {
            let own = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
            for &number in &self.order[own] {
                if let Some(share) = crossing(from, to, self.ends[number as usize]) {
                    found.push((number, share));
                }
            }
        });
        // A segment lies in several buckets.
        found.sort_unstable_by_key(|(number, _)| *number);
        found.dedup_by_key(|(number, _)| *number);
        for (number, share) in found {
            crossed(number as usize, share);
        }
    }

    /// The buckets along a line, and those beside its ends and corners: rounding misses none.
    fn walk(&self, from: [f64; 2], to: [f64; 2], mut visit: impl FnMut(usize)) {
        let at = |place: [f64; 2], axis: usize| (place[axis] - self.low[axis]) / self.side;
        // Only the part within the buckets counts.
        let (mut first, mut last) = (0.0f64, 1.0f64);
        for axis in 0..2 {
            let (start, end) = (at(from, axis), at(to, axis));
            let (least, most) = (-0.5, self.count[axis] as f64 + 0.5);
            let step = end - start;
            if step == 0.0 {
                if start < least || start > most {
                    return;
                }
                continue;
            }
            let (a, b) = ((least - start) / step, (most - start) / step);
            first = first.max(a.min(b));
            last = last.min(a.max(b));
        }
        if first > last {
            return;
        }
        let along =
            |share: f64, axis: usize| at(from, axis) + share * (at(to, axis) - at(from, axis));
        // Column by column of the axis along which the line is longer.
        let long = usize::from(
            (along(last, 0) - along(first, 0)).abs() < (along(last, 1) - along(first, 1)).abs(),
        );
        let short = 1 - long;
        let (mut a, mut b) = ([along(first, 0), along(first, 1)], [along(last, 0), along(last, 1)]);
        if a[long] > b[long] {
            std::mem::swap(&mut a, &mut b);
        }
        let slope = match b[long] - a[long] {
            0.0 => 0.0,
            length => (b[short] - a[short]) / length,
        };
        let bound = |x: f64, axis: usize| x.clamp(0.0, (self.count[axis] - 1) as f64) as usize;
        for column in bound(a[long] - 1e-9, long)..=bound(b[long] + 1e-9, long) {
            let edge = |x: f64| a[short] + slope * (x.clamp(a[long], b[long]) - a[long]);
            let (p, q) = (edge(column as f64 - 1e-9), edge(column as f64 + 1.0 + 1e-9));
            let (low, high) = (p.min(q) - 1e-9, p.max(q) + 1e-9);
            for row in bound(low, short)..=bound(high, short) {
                let (x, y) = if long == 0 { (column, row) } else { (row, column) };
                visit(x * self.count[1] + y);
            }
        }
    }
}

/// Places nearer to a segment than this share of the way are on it, and the line does not cross it.
const ON_IT: f64 = 1e-9;

/// The share of the way at which a line crosses a segment. Each end lies on one side of the line or on
/// the other, the line itself among the latter. A chain of segments that leads from one side to the other
/// is therefore crossed exactly once more one way than back, also where two of them meet on the line, and
/// whichever way each of them is drawn.
fn crossing(from: [f64; 2], to: [f64; 2], [ax, ay, bx, by]: [f64; 4]) -> Option<f64> {
    // The same sides from either end of the line.
    let turned = (to[0], to[1]) < (from[0], from[1]);
    let (start, end) = if turned { (to, from) } else { (from, to) };
    let (dx, dy) = (end[0] - start[0], end[1] - start[1]);
    let side = |x: f64, y: f64| dx * (y - start[1]) - dy * (x - start[0]);
    // The same rounding whichever end is drawn first.
    let swapped = (bx, by) < (ax, ay);
    let (a, b) = if swapped { ([bx, by], [ax, ay]) } else { ([ax, ay], [bx, by]) };
    let (first, last) = (side(a[0], a[1]), side(b[0], b[1]));
    if (first >= 0.0) == (last >= 0.0) {
        return None;
    }
    let along = first / (first - last);
    let (x, y) = (a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1]));
    let share = ((x - start[0]) * dx + (y - start[1]) * dy) / (dx * dx + dy * dy);
    let share = if turned { 1.0 - share } else { share };
    (share > ON_IT && share < 1.0 - ON_IT).then_some(share)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::simulate::stream;

    #[test]
    fn the_buckets_miss_no_crossing() {
        let mut rng = stream(5, 70);
        for round in 0..40 {
            let scale = 10f64.powi(round % 5 - 1);
            let count = 1 + (round as usize * 17) % 300;
            let mut place = || [0, 1].map(|_| 1e4 + scale * (rng.random::<f64>() - 0.3));
            let ends: Vec<[f64; 4]> = (0..count)
                .map(|i| {
                    let ([ax, ay], [bx, by]) = (place(), place());
                    match i % 5 {
                        // Upright walls, as plans have them.
                        0 => [ax, ay, ax, by],
                        1 => [ax, ay, bx, ay],
                        _ => [ax, ay, bx, by],
                    }
                })
                .collect();
            let segments = Segments::new(ends.clone());
            for _ in 0..50 {
                let ([ax, ay], [bx, by]) = (place(), place());
                // Beyond the plan, and along its axes too.
                let far = [1e4 + 3.0 * (bx - 1e4), by];
                for to in [[bx, by], far, [ax, by], [bx, ay], [ax, ay]] {
                    let mut found = Vec::new();
                    segments.crossings([ax, ay], to, |number, _| found.push(number));
                    let all = (0..count).filter(|&n| crossing([ax, ay], to, ends[n]).is_some());
                    assert_eq!(found, all.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_corner_is_crossed_once() {
        let segments = Segments::new(vec![[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 2.0, 0.0]]);
        let mut found = 0;
        segments.crossings([1.0, -1.0], [1.0, 1.0], |_, share| {
            assert_eq!(share, 0.5);
            found += 1;
        });
        assert_eq!(found, 1);
    }

    fn count(walls: &[[f64; 4]], from: [f64; 2], to: [f64; 2]) -> usize {
        let mut found = 0;
        Segments::new(walls.to_vec()).crossings(from, to, |_, _| found += 1);
        found
    }

    #[test]
    fn a_corner_is_crossed_once_whichever_way_its_walls_are_drawn() {
        let (left, right) = ([0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 2.0, 0.5]);
        let turned = |[ax, ay, bx, by]: [f64; 4]| [bx, by, ax, ay];
        for walls in [
            [left, right],
            [turned(left), right],
            [left, turned(right)],
            [turned(left), turned(right)],
        ] {
            assert_eq!(count(&walls, [1.0, -1.0], [1.0, 1.0]), 1);
            assert_eq!(count(&walls, [1.0, 1.0], [1.0, -1.0]), 1);
        }
        // A device on a wall has it neither before nor behind it.
        assert_eq!(count(&[left], [0.5, 0.0], [0.5, 1.0]), 0);
    }

    proptest::proptest! {
        #[test]
        fn turning_or_splitting_a_wall_changes_no_count(
            ends in proptest::collection::vec((0..9i32, 0..9i32, 0..9i32, 0..9i32), 1..12),
            (fx, fy, tx, ty) in (0..9i32, 0..9i32, 0..9i32, 0..9i32),
            at in 0.01f64..0.99,
        ) {
            // Corners of a lattice: lines meet corners often.
            let walls: Vec<[f64; 4]> = ends
                .iter()
                .map(|&(ax, ay, bx, by)| [ax, ay, bx, by].map(f64::from))
                .filter(|[ax, ay, bx, by]| (ax, ay) != (bx, by))
                .collect();
            proptest::prop_assume!(!walls.is_empty());
            // Devices stand off the lattice: whether one is on a wall is another question.
            let off = |v: i32| f64::from(v) + 0.137;
            let lines = [
                ([off(fx), off(fy)], [off(tx), off(ty)]),
                ([off(fx), off(fx)], [off(tx), off(tx)]),
                ([f64::from(fx), -1.3], [f64::from(fx), 10.4]),
            ];
            for (from, to) in lines {
                let whole = count(&walls, from, to);
                let turned: Vec<[f64; 4]> = walls.iter().map(|[ax, ay, bx, by]| [*bx, *by, *ax, *ay]).collect();
                proptest::prop_assert_eq!(count(&turned, from, to), whole);
                proptest::prop_assert_eq!(count(&walls, to, from), whole);
                let split: Vec<[f64; 4]> = walls
                    .iter()
                    .flat_map(|&[ax, ay, bx, by]| {
                        let (x, y) = (ax + at * (bx - ax), ay + at * (by - ay));
                        [[ax, ay, x, y], [bx, by, x, y]]
                    })
                    .collect();
                proptest::prop_assert_eq!(count(&split, from, to), whole);
            }
        }
    }
}
