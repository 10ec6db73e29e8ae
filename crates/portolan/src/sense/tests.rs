//! Laws of sensing.

use super::*;

fn map() -> RadioMap {
    let grid = Grid::new(20, 30, 1.0).unwrap();
    simulate(&Scenario { bands: 16, ..Scenario::new(grid) }).unwrap()
}

fn cells(layout: SensorLayout) -> Vec<Cell> {
    sense(&map(), &Sensing::exact(layout, 1)).unwrap().cells(map().grid()).unwrap()
}

#[test]
fn layouts_place_what_they_promise() {
    assert_eq!(cells(SensorLayout::Fraction(0.1)).len(), 60);
    assert_eq!(cells(SensorLayout::Count(7)).len(), 7);
    assert_eq!(cells(SensorLayout::Lattice(10)).len(), 6);
    let path = SensorLayout::Path {
        waypoints: vec![Cell::new(0, 0), Cell::new(0, 10), Cell::new(5, 10)],
        every: 1,
    };
    let driven = cells(path);
    assert_eq!(driven.len(), 16);
    assert_eq!(driven[10], Cell::new(0, 10));
    assert_eq!(driven[15], Cell::new(5, 10));
}

#[test]
fn exact_readings_are_the_map() {
    let map = map();
    let readings = sense(&map, &Sensing::exact(SensorLayout::Count(50), 3)).unwrap();
    let dense = map.to_dense();
    let cells = readings.cells(map.grid()).unwrap();
    for (cell, row) in cells.iter().zip(readings.power().outer_iter()) {
        for (k, v) in row.iter().enumerate() {
            assert_eq!(*v, dense[[cell.row, cell.col, k]]);
        }
    }
}

#[test]
fn noise_has_the_snr_asked_for() {
    let map = map();
    let exact = sense(&map, &Sensing::exact(SensorLayout::Fraction(1.0), 3)).unwrap().power();
    let sensing = Sensing { snr_db: Some(40.0), ..Sensing::exact(SensorLayout::Fraction(1.0), 3) };
    let noisy = sense(&map, &sensing).unwrap().power();
    // Clamping at zero would bias weak entries; strong ones show the noise as it is.
    let sigma = (exact.mapv(|v| v * v).mean().unwrap() / 1e4).sqrt();
    let strong: Vec<f64> = exact
        .iter()
        .zip(&noisy)
        .filter(|(e, _)| **e > 5.0 * sigma)
        .map(|(e, n)| ((n - e) / sigma).powi(2))
        .collect();
    let variance = strong.iter().sum::<f64>() / strong.len() as f64;
    assert!(strong.len() > 1000 && (variance - 1.0).abs() < 0.1, "{variance}");
    assert!(noisy.iter().all(|v| *v >= 0.0));
}

#[test]
fn gaps_are_as_many_as_asked_for() {
    let sensing = Sensing { gaps: 0.3, ..Sensing::exact(SensorLayout::Fraction(1.0), 3) };
    let readings = sense(&map(), &sensing).unwrap();
    let share = readings.gaps() as f64 / (600.0 * 16.0);
    assert!((share - 0.3).abs() < 0.02, "{share}");
    assert!(sense(&map(), &Sensing { gaps: 1.0, ..sensing }).is_err());
}

#[test]
fn sensors_cover_neighbouring_bands() {
    let sensing = Sensing { cover: 0.5, ..Sensing::exact(SensorLayout::Count(50), 3) };
    let power = sense(&map(), &sensing).unwrap().power();
    let mut firsts = std::collections::BTreeSet::new();
    for row in power.outer_iter() {
        let first = row.iter().position(|v| !v.is_nan()).unwrap();
        let there: Vec<bool> = row.iter().map(|v| !v.is_nan()).collect();
        assert!((0..16).all(|k| there[k] == (first..first + 8).contains(&k)), "{there:?}");
        firsts.insert(first);
    }
    assert!(firsts.len() > 5, "{firsts:?}");
    for cover in [0.0, 1.1, f64::NAN] {
        assert!(sense(&map(), &Sensing { cover, ..sensing.clone() }).is_err(), "{cover}");
    }
}

#[test]
fn noise_free_levels_are_the_bins_of_the_power() {
    let map = map();
    for bits in 1..=8 {
        let quantising = Some(Quantising { bits, edges: None, sigma: 0.0 });
        let layout = SensorLayout::Count(40);
        let readings =
            sense(&map, &Sensing { quantising, ..Sensing::exact(layout.clone(), 3) }).unwrap();
        let power = sense(&map, &Sensing::exact(layout, 3)).unwrap().power();
        let Values::Levels { levels, quantiser } = readings.values() else { panic!() };
        for (level, power) in levels.iter().zip(&power) {
            assert_eq!(*level, quantiser.level(quantiser.link().apply(*power)));
        }
        assert!(levels.iter().any(|l| *l != levels[[0, 0]]));
    }
}

#[test]
fn a_cell_given_twice_is_read_twice() {
    let cells = vec![Cell::new(3, 4), Cell::new(7, 1), Cell::new(3, 4)];
    let exact = Sensing::exact(SensorLayout::Cells(cells), 0);
    let noisy = Sensing { snr_db: Some(10.0), ..exact.clone() };
    let (exact, noisy) = (sense(&map(), &exact).unwrap(), sense(&map(), &noisy).unwrap());
    assert_eq!((exact.sensors(), exact.places()), (3, 2));
    assert_eq!(exact.power().row(0), exact.power().row(2));
    assert_ne!(noisy.power().row(0), noisy.power().row(2));
}

#[test]
fn wrong_requests_are_refused() {
    let refused = |layout| sense(&map(), &Sensing::exact(layout, 0)).is_err();
    assert!(refused(SensorLayout::Fraction(0.0)));
    assert!(refused(SensorLayout::Fraction(f64::NAN)));
    assert!(refused(SensorLayout::Count(1)));
    assert!(refused(SensorLayout::Count(601)));
    assert!(refused(SensorLayout::Lattice(0)));
    assert!(refused(SensorLayout::Cells(vec![Cell::new(0, 0), Cell::new(20, 0)])));
    assert!(refused(SensorLayout::Path { waypoints: vec![Cell::new(0, 0)], every: 1 }));
    let quantising = Some(Quantising { bits: 3, edges: Some(vec![0.0]), sigma: 1.0 });
    let sensing = Sensing { quantising, ..Sensing::exact(SensorLayout::Count(5), 0) };
    assert!(sense(&map(), &sensing).is_err());
}
