//! What can be drawn and asked: a fitted model, or a map that was read.

use ndarray::Array2;
use portolan::{
    BandLabels, Cell, Crs, EmitterFinding, EstimateError, Grid, InputError, Model, Progress,
    RadioMap, Region, Scale, Site,
};

/// A model, or a map.
pub enum Surface {
    /// Asked at the place itself.
    Model(Box<Model>),
    /// Read between cell centres bilinearly in dB.
    Map(Box<RadioMap>),
}

/// What a surface says about some places: places x bands, power linear.
pub struct Answer {
    pub power: Array2<f64>,
    pub spread_db: Option<Array2<f64>>,
    pub reading_spread_db: Option<Array2<f64>>,
    pub chance_heard: Option<Array2<f64>>,
    pub heard: Option<Array2<f64>>,
}

/// A power in decibels of its scale.
pub fn decibels(scale: Scale, power: f64) -> f64 {
    10.0 * (power + scale.link().offset()).log10()
}

impl Surface {
    pub fn grid(&self) -> Result<Grid, InputError> {
        match self {
            Surface::Model(model) => model.grid_or_default(),
            Surface::Map(map) => Ok(map.grid()),
        }
    }

    /// The area that is drawn: cells and all.
    pub fn area(&self) -> Result<Region, InputError> {
        Ok(self.grid()?.region())
    }

    pub fn bands(&self) -> usize {
        match self {
            Surface::Model(model) => model.bands(),
            Surface::Map(map) => map.bands(),
        }
    }

    pub fn labels(&self) -> &BandLabels {
        match self {
            Surface::Model(model) => model.labels(),
            Surface::Map(map) => map.labels(),
        }
    }

    pub fn scale(&self) -> Scale {
        match self {
            Surface::Model(model) => model.scale(),
            Surface::Map(map) => map.scale(),
        }
    }

    pub fn crs(&self) -> Option<Crs> {
        match self {
            Surface::Model(model) => model.crs(),
            Surface::Map(map) => map.crs(),
        }
    }

    /// The model, where it is one.
    pub fn model(&self) -> Option<&Model> {
        match self {
            Surface::Model(model) => Some(model),
            Surface::Map(_) => None,
        }
    }

    /// The height at which it is shown.
    pub fn height_m(&self) -> f64 {
        match self {
            Surface::Model(model) => model.height_m(),
            Surface::Map(map) => map.grid().origin().z_m,
        }
    }

    pub fn gives_spread(&self) -> bool {
        match self {
            Surface::Model(model) => model.gives_spread(),
            Surface::Map(map) => map.spread_db().is_some(),
        }
    }

    pub fn emitters(&self) -> Vec<EmitterFinding> {
        match self {
            Surface::Model(model) => model.emitters().iter().map(|e| e.finding()).collect(),
            Surface::Map(map) => map.findings(),
        }
    }

    /// Whether power alone costs less than with its spread.
    pub fn power_costs_less(&self) -> bool {
        match self {
            Surface::Model(model) => model.power_costs_less(),
            Surface::Map(_) => false,
        }
    }

    /// Power alone at places, places x bands.
    pub fn power(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        match self {
            Surface::Model(model) => model.power_bands(at, bands, progress),
            Surface::Map(map) => Ok(read_map(map, at, bands, progress)?.power),
        }
    }

    /// Power and spread at places.
    pub fn ask(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Answer, EstimateError> {
        match self {
            Surface::Model(model) => {
                let found = model.predict_bands(at, bands, progress)?;
                Ok(Answer {
                    power: found.power,
                    spread_db: found.spread_db,
                    reading_spread_db: found.reading_spread_db,
                    chance_heard: found.chance_heard,
                    heard: found.heard,
                })
            }
            Surface::Map(map) => read_map(map, at, bands, progress),
        }
    }
}

fn read_map(
    map: &RadioMap,
    at: &[Site],
    bands: &[usize],
    progress: &Progress<'_>,
) -> Result<Answer, EstimateError> {
    let mut spectrum = vec![0.0; map.bands()];
    let mut power = Array2::zeros((at.len(), bands.len()));
    let mut spread = map.spread_db().map(|_| Array2::<f64>::zeros((at.len(), bands.len())));
    // Where zero is a value, what is added to it in dB is its floor.
    let floor = match map.scale().link().offset() {
        0.0 => f64::MIN_POSITIVE,
        offset => 1e-3 * offset,
    };
    for (i, site) in at.iter().enumerate() {
        if i % 4096 == 0 {
            progress.report(i, at.len())?;
        }
        map.spectrum_at(*site, floor, &mut spectrum);
        for (j, &band) in bands.iter().enumerate() {
            power[[i, j]] = spectrum[band];
        }
        if let (Some(out), Some(cells)) = (&mut spread, map.spread_db()) {
            for (cell, weight) in between(map.grid(), *site) {
                for (j, &band) in bands.iter().enumerate() {
                    out[[i, j]] += weight * cells[[cell.row, cell.col, band]];
                }
            }
        }
    }
    let reading = spread.as_ref().zip(map.noise_db()).map(|(spread, noise)| {
        let noise: Vec<f64> = bands.iter().map(|&band| noise[band]).collect();
        Array2::from_shape_fn(spread.dim(), |(i, j)| spread[[i, j]].hypot(noise[j]))
    });
    Ok(Answer {
        power,
        spread_db: spread,
        reading_spread_db: reading,
        chance_heard: None,
        heard: None,
    })
}

/// The cells around a place and their weights; held at the edge of the grid.
fn between(grid: Grid, site: Site) -> impl Iterator<Item = (Cell, f64)> {
    let [row, col] = grid.position(site);
    let along = |x: f64, n: usize| {
        let x = x.clamp(0.0, (n - 1) as f64);
        let low = (x as usize).min(n.saturating_sub(2));
        (low, x - low as f64)
    };
    let (row, down) = along(row, grid.rows());
    let (col, right) = along(col, grid.cols());
    let corners = [
        (row, col, (1.0 - down) * (1.0 - right)),
        (row + 1, col, down * (1.0 - right)),
        (row, col + 1, (1.0 - down) * right),
        (row + 1, col + 1, down * right),
    ];
    corners.into_iter().filter(|(_, _, w)| *w > 0.0).map(|(r, c, w)| (Cell::new(r, c), w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array3;

    #[test]
    fn a_map_is_read_in_its_cells_and_between_them() {
        let grid = Grid::new(3, 2, 2.0).unwrap();
        let power =
            Array3::from_shape_fn((3, 2, 1), |(r, c, _)| 10f64.powi(-(r as i32) - c as i32));
        let spread = Array3::from_shape_fn((3, 2, 1), |(r, c, _)| (r + 2 * c) as f64);
        let map = RadioMap::dense(grid, power, Scale::Absolute).unwrap();
        let surface = Surface::Map(Box::new(map.with_spread_db(Some(spread)).unwrap()));
        let at =
            [Site::new(2.0, 2.0), Site::new(1.0, 0.0), Site::new(3.0, 1.0), Site::new(99.0, 99.0)];
        let found = surface.ask(&at, &[0], &Progress::silent()).unwrap();
        let db = |i: usize| 10.0 * found.power[[i, 0]].log10();
        let spread = found.spread_db.unwrap();
        for (i, (level, sd)) in
            [(-20.0, 3.0), (-5.0, 0.5), (-20.0, 2.5), (-30.0, 4.0)].iter().enumerate()
        {
            assert!((db(i) - level).abs() < 1e-9, "{i}: {}", db(i));
            assert!((spread[[i, 0]] - sd).abs() < 1e-12, "{i}");
        }
    }
}
