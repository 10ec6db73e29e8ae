//! A figure of a map taken apart: where each emitter is heard, and at which frequencies.

use ndarray::{ArrayView1, Axis};
use portolan::{Factors, Occupancy, RadioMap};

use super::PictureError;
use super::field::{decibels, robust_limits};
use super::maps::emitter;
use super::scene::{Scene, Typeface};
use super::sheet::{Chart, Curve, MapPanel, Occupied, Shades, Sheet};

const MOST_EMITTERS: usize = 8;
const MOST_COLUMNS: usize = 4;
const WIDEST_DB: f64 = 80.0;

/// The SLF of every emitter (at most eight) in dB and the PSDs as curves; with the truth, its row
/// stands above and its curves are dashed.
///
/// An SLF and its PSD are known only up to a factor between them, and emitters only up to their
/// order. Here a PSD has peak 1 and the SLF carries the power in the strongest band; emitters are
/// matched by likeness of their PSDs, and those without a counterpart come last. Places, their
/// 90 % ellipses and exponents are shown where the map knows them; bars mark occupied bands.
pub fn factors_figure(map: &RadioMap, truth: Option<&RadioMap>) -> Result<Scene, PictureError> {
    let grid = map.grid();
    let factors = map.factors().ok_or(PictureError::NoFactors("the map"))?;
    if let Some(truth) = truth {
        let shape = |map: &RadioMap| vec![map.grid().rows(), map.grid().cols(), map.bands()];
        let (found, expected) = (shape(truth), shape(map));
        if found != expected {
            let what = "the truth (rows, columns, bands)".to_owned();
            return Err(PictureError::Shape { what, found, expected, like: "the map" });
        }
    }
    let true_factors = truth
        .map(|truth| truth.factors().ok_or(PictureError::NoFactors("the truth")))
        .transpose()?;
    let freq_hz = map.freq_hz().or_else(|| truth.and_then(RadioMap::freq_hz));
    let (true_order, order) = match true_factors {
        Some(truth) => match_emitters(truth, factors),
        None => (Vec::new(), (0..factors.psd.nrows()).collect()),
    };
    let name = if truth.is_some() { "estimate" } else { "" };
    let estimated = Side::new(map, factors, &order, name);
    let true_side =
        truth.zip(true_factors).map(|(map, factors)| Side::new(map, factors, &true_order, "truth"));
    let shown = estimated.shown.max(true_side.as_ref().map_or(0, |s| s.shown));
    let wide = grid.rows() > 3 * grid.cols();
    let columns = if wide { 1 } else { shown.div_ceil(shown.div_ceil(MOST_COLUMNS)) };
    let shades = Shades::power(true_side.as_ref().unwrap_or(&estimated).limits());
    let mut panels = Vec::new();
    for start in (0..shown).step_by(columns) {
        for side in true_side.iter().chain([&estimated]) {
            panels.extend(side.panels(start, columns, &shades));
        }
    }
    let note = "where each emitter is heard, as the power in its strongest band";
    let (heading, typeface) = (heading(factors, true_factors), Typeface::new());
    let sheet = Sheet::new(heading, note, grid, panels, &typeface);
    let mut scene = Sheet { crs: map.crs(), columns: Some(columns), ..sheet }.draw();
    let mut curves = estimated.curves(freq_hz, false);
    curves.extend(true_side.iter().flat_map(|s| s.curves(freq_hz, true)));
    let chart = Chart {
        title: "power spectral densities\nbars: bands within 20 dB of the peak".to_owned(),
        x_name: frequency_axis(freq_hz).0.to_owned(),
        y_name: "PSD / peak".to_owned(),
        curves,
        bars: estimated.bars(freq_hz),
        y_limits: Some((0.0, 1.05)),
    };
    chart.draw_below(&mut scene, &typeface);
    Ok(scene)
}

/// The emitters of one set of factors in the order they are drawn.
struct Side<'a> {
    map: &'a RadioMap,
    factors: &'a Factors,
    order: &'a [usize],
    name: &'static str,
    shown: usize,
}

impl<'a> Side<'a> {
    fn new(
        map: &'a RadioMap,
        factors: &'a Factors,
        order: &'a [usize],
        name: &'static str,
    ) -> Self {
        Self { map, factors, order, name, shown: order.len().min(MOST_EMITTERS) }
    }

    fn slf_db(&self, place: usize) -> ndarray::Array2<f64> {
        let emitter = self.order[place];
        let slf = self.factors.slf.index_axis(Axis(0), emitter);
        decibels(&(&slf * peak(self.factors.psd.row(emitter))), 0.0)
    }

    fn limits(&self) -> (f64, f64) {
        let fields: Vec<_> = (0..self.shown).map(|place| self.slf_db(place)).collect();
        robust_limits(&fields.iter().collect::<Vec<_>>(), WIDEST_DB)
    }

    /// A row of emitters.
    fn panels(&self, start: usize, count: usize, shades: &Shades) -> Vec<MapPanel> {
        let places = start..self.shown.min(start + count);
        let panel = |place: usize| {
            let number = place + 1;
            let index = self.order[place];
            let exponent = self.map.exponents().get(index).map(|e| match e.se.is_nan() {
                true => format!("exponent {:.2}", e.value),
                false => format!("exponent {:.2} ± {:.2}", e.value, e.se),
            });
            let said = [(!self.name.is_empty()).then(|| self.name.to_owned()), exponent];
            let said = said.into_iter().flatten().collect::<Vec<_>>().join(", ");
            let title = format!("emitter {number}\n{said}");
            let known = index < self.map.emitters().len();
            MapPanel {
                bar: Some(format!("power [{}]", self.map.scale().decibels())),
                emitters: known.then(|| emitter(self.map, index)).into_iter().collect(),
                starts_row: place == start,
                ..MapPanel::new(title.trim_end(), self.slf_db(place), shades.clone())
            }
        };
        places.map(panel).collect()
    }

    /// Occupied bands, each as wide as the distance to the next.
    fn bars(&self, freq_hz: Option<&[f64]>) -> Vec<Occupied> {
        let (_, unit) = frequency_axis(freq_hz);
        let bands = self.factors.psd.ncols();
        let x = |band: usize| freq_hz.map_or(band as f64, |f| f[band] / unit);
        let half = if bands > 1 { 0.5 * (x(1) - x(0)).abs() } else { 0.5 };
        let bar = |place: usize| {
            let ranges = Occupancy::of(self.factors.psd.row(self.order[place])).ranges;
            let ranges = ranges.iter().map(|&[a, b]| (x(a) - half, x(b) + half)).collect();
            Occupied { ranges, colour: place }
        };
        (0..self.shown).map(bar).collect()
    }

    fn curves(&self, freq_hz: Option<&[f64]>, dashed: bool) -> Vec<Curve> {
        let (_, unit) = frequency_axis(freq_hz);
        let curve = |place: usize| {
            let psd = self.factors.psd.row(self.order[place]);
            let top = peak(psd);
            let top = if top > 0.0 { top } else { 1.0 };
            let x = |band: usize| freq_hz.map_or(band as f64, |f| f[band] / unit);
            let points = psd.iter().enumerate().map(|(band, p)| (x(band), p / top)).collect();
            let name = format!("{} {}", place + 1, self.name);
            let name = if self.name.is_empty() { format!("emitter {name}") } else { name };
            Curve { name: name.trim_end().to_owned(), points, colour: place, dashed }
        };
        (0..self.shown).map(curve).collect()
    }
}

fn heading(factors: &Factors, truth: Option<&Factors>) -> String {
    let count = factors.psd.nrows().max(truth.map_or(0, |t| t.psd.nrows()));
    let plural = if count == 1 { "" } else { "s" };
    if count > MOST_EMITTERS {
        return format!("The first {MOST_EMITTERS} of {count} emitters");
    }
    format!("{count} emitter{plural}")
}

fn frequency_axis(freq_hz: Option<&[f64]>) -> (&'static str, f64) {
    match freq_hz.and_then(|f| f.iter().copied().reduce(f64::max)) {
        None => ("band", 1.0),
        Some(most) if most >= 1e10 => ("frequency [GHz]", 1e9),
        Some(most) if most >= 1e6 => ("frequency [MHz]", 1e6),
        Some(_) => ("frequency [kHz]", 1e3),
    }
}

fn peak(psd: ArrayView1<'_, f64>) -> f64 {
    psd.iter().copied().filter(|p| p.is_finite()).fold(0.0, f64::max)
}

/// Both sides in an order that puts like emitters in the same place: the most alike pair is matched
/// first, then the most alike of the rest; emitters without a counterpart come last.
fn match_emitters(truth: &Factors, factors: &Factors) -> (Vec<usize>, Vec<usize>) {
    let mut pairs = Vec::new();
    for (t, true_psd) in truth.psd.outer_iter().enumerate() {
        for (e, psd) in factors.psd.outer_iter().enumerate() {
            let norm = (psd.dot(&psd) * true_psd.dot(&true_psd)).sqrt();
            pairs.push((psd.dot(&true_psd) / norm.max(f64::MIN_POSITIVE), t, e));
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut partner = vec![None; truth.psd.nrows()];
    let mut taken = vec![false; factors.psd.nrows()];
    for (_, t, e) in pairs {
        if partner[t].is_none() && !taken[e] {
            partner[t] = Some(e);
            taken[e] = true;
        }
    }
    let matched = (0..partner.len()).filter(|&t| partner[t].is_some());
    let alone = (0..partner.len()).filter(|&t| partner[t].is_none());
    let rest = (0..taken.len()).filter(|&e| !taken[e]);
    (matched.chain(alone).collect(), partner.iter().copied().flatten().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array3, array};
    use portolan::{Grid, Scale};

    #[test]
    fn estimated_emitters_follow_the_true_order() {
        let slf = |count| Array3::<f64>::ones((count, 2, 2));
        let truth = Factors { slf: slf(2), psd: array![[1.0, 0.0, 0.1], [0.0, 1.0, 0.0]] };
        let psd = array![[0.1, 0.1, 0.1], [0.0, 7.0, 0.1], [3.0, 0.1, 0.0]];
        let estimate = Factors { slf: slf(3), psd };
        assert_eq!(match_emitters(&truth, &estimate), (vec![0, 1], vec![2, 1, 0]));
        // The estimate's 0 has no counterpart: it must not push the others out of place.
        assert_eq!(match_emitters(&estimate, &truth), (vec![1, 2, 0], vec![1, 0]));
    }

    #[test]
    fn factors_that_do_not_belong_together_are_refused() {
        let map = |cols: usize, psd| {
            let grid = Grid::new(2, cols, 1.0).unwrap();
            let factors = Factors { slf: Array3::ones((1, 2, cols)), psd };
            RadioMap::factored(grid, factors, Scale::paper()).unwrap()
        };
        let good = map(2, array![[1.0, 2.0]]);
        assert!(factors_figure(&good, Some(&good)).is_ok());
        let error = factors_figure(&good, Some(&map(3, array![[1.0, 2.0]]))).unwrap_err();
        assert!(error.to_string().contains("is 2 x 3 x 2, expected 2 x 2 x 2"), "{error}");
        assert!(factors_figure(&good, Some(&map(2, array![[1.0]]))).is_err());
        let dense = RadioMap::dense(good.grid(), good.to_dense().into_owned(), Scale::paper());
        let dense = dense.unwrap();
        for (map, truth) in [(&dense, None), (&good, Some(&dense))] {
            let error = factors_figure(map, truth).unwrap_err().to_string();
            assert!(error.contains("no factors"), "{error}");
        }
    }
}
