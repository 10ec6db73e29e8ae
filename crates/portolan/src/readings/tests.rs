use super::*;
use ndarray::array;

fn site(x: f64, y: f64) -> Site {
    Site::new(x, y)
}

fn power(values: Array2<f64>, sites: &[(f64, f64)]) -> Result<Readings, InputError> {
    let sites: Vec<Site> = sites.iter().map(|&(x, y)| site(x, y)).collect();
    Readings::new(sites, Values::Power(values), Scale::Absolute)
}

#[test]
fn every_wrong_input_has_its_own_error() {
    let ok = array![[1.0, 2.0], [3.0, f64::NAN]];
    let fine = power(ok.clone(), &[(0.0, 0.0), (3.0, 4.0)]).unwrap();
    let grid = Grid::new(4, 5, 1.0).unwrap();
    assert!(fine.clone().with_grid(Some(grid)).is_ok());
    let off = fine.with_grid(Some(Grid::new(3, 5, 1.0).unwrap()));
    assert!(matches!(off, Err(InputError::OffGrid { sensor: 1, .. })));
    let nowhere = power(ok.clone(), &[(0.0, 0.0), (f64::INFINITY, 0.0)]);
    assert!(matches!(nowhere, Err(InputError::Place { sensor: 1, .. })));
    assert!(matches!(power(ok, &[(0.0, 0.0)]), Err(InputError::Shape { .. })));
    let one = power(array![[1.0]], &[(0.0, 0.0)]);
    assert_eq!(one, Err(InputError::TooFewSensors { found: 1 }));
    let none = power(Array2::zeros((0, 3)), &[]);
    assert_eq!(none, Err(InputError::TooFewSensors { found: 0 }));
    let negative = power(array![[1.0], [-2.0]], &[(0.0, 0.0), (0.0, 1.0)]);
    assert!(negative.unwrap_err().to_string().contains("sensor 1, band 0"));
    let zero = power(array![[0.0], [0.0]], &[(0.0, 0.0), (0.0, 1.0)]);
    assert_eq!(zero, Err(InputError::AllZero));
    let empty = power(array![[1.0, f64::NAN], [1.0, f64::NAN]], &[(0.0, 0.0), (0.0, 1.0)]);
    assert_eq!(empty, Err(InputError::EmptyBand { band: 1 }));
}

#[test]
fn repeats_are_averaged_in_decibels_and_counted() {
    let sites = vec![site(1.5, 1.0), site(2.0, 2.0), site(1.5, 1.0)];
    let values = Values::Power(array![[1.0, f64::NAN], [5.0, 6.0], [100.0, 4.0]]);
    let rows = Readings::new(sites.clone(), values.clone(), Scale::Absolute).unwrap();
    assert_eq!((rows.sensors(), rows.places(), rows.power()[[2, 0]]), (3, 2, 100.0));
    let (absolute, averaged) = rows.joined_places().unwrap().unwrap();
    assert_eq!((averaged, absolute.sites()), (1, &sites[..2]));
    let power = absolute.power();
    assert!((power[[0, 0]] - 10.0).abs() < 1e-12);
    assert_eq!((power[[0, 1]], power[[1, 0]]), (4.0, 5.0));
    assert_eq!(absolute.repeats().unwrap(), &array![[2.0, 1.0], [1.0, 1.0]]);
    let relative = Readings::new(sites, values, Scale::paper()).unwrap();
    assert_eq!(relative.joined_places().unwrap().unwrap().0.power()[[0, 0]], 50.5);
}

#[test]
fn what_is_known_of_rows_is_joined_with_them() {
    let sites = vec![site(0.0, 1.0), site(2.0, 2.0), site(-0.0, 1.0), site(0.0, 1.0)];
    let gap = f64::NAN;
    let values = Values::Power(array![[1.0, gap], [5.0, gap], [4.0, gap], [gap, 3.0]]);
    let noise = array![[3.0, 1.0], [1.0, 1.0], [4.0, 1.0], [1.0, 2.0]];
    let silent = array![[false, true], [false, true], [false, false], [true, false]];
    let rows = Readings::new(sites, values, Scale::Absolute)
        .and_then(|r| r.with_repeats(Some(array![[2.0, 1.0], [1.0, 1.0], [3.0, 1.0], [1.0, 1.0]])))
        .and_then(|r| r.with_noise_db(Some(noise)))
        .and_then(|r| r.with_time_s(Some(vec![1.0, 9.0, 2.0, 6.0])))
        .and_then(|r| r.with_not_heard(silent, vec![0.5, 0.5]))
        .unwrap();
    let (joined, averaged) = rows.joined_places().unwrap().unwrap();
    assert_eq!((joined.sensors(), averaged), (2, 2));
    // 0 dB read twice and 6 dB read three times.
    assert!((joined.power()[[0, 0]] - 4f64.powf(0.6)).abs() < 1e-12);
    assert_eq!(joined.power()[[0, 1]], 3.0);
    assert_eq!(joined.repeats().unwrap(), &array![[5.0, 1.0], [1.0, 0.0]]);
    let noise = joined.noise_db().unwrap();
    assert!((noise[[0, 0]] - 6f64.hypot(12.0) / 5.0).abs() < 1e-12 && noise[[0, 1]] == 2.0);
    assert_eq!(joined.time_s().unwrap(), [3.0, 9.0]);
    // Heard once is heard.
    assert_eq!(joined.not_heard().unwrap().entries, array![[false, false], [false, true]]);
}

#[test]
fn one_place_is_no_map() {
    let rows = power(array![[1.0], [2.0], [3.0]], &[(1.5, 1.0); 3]).unwrap();
    assert_eq!(rows.joined_places(), Err(InputError::TooFewSensors { found: 1 }));
    assert_eq!((rows.region().width_m(), rows.places()), (0.0, 1));
    let grid = rows.grid_or_default().unwrap();
    assert!(grid.cell_at(rows.sites()[0]).is_some() && rows.on_grid(grid).is_err());
}

#[test]
fn a_power_of_zero_is_not_heard_unless_the_scale_has_zero() {
    let values = Values::Power(array![[1.0, 2.0], [0.0, 3.0], [4.0, f64::NAN]]);
    let sites = vec![site(0.0, 0.0), site(1.0, 0.0), site(2.0, 0.0)];
    let absolute = Readings::new(sites.clone(), values.clone(), Scale::Absolute).unwrap();
    let silent = absolute.not_heard().unwrap();
    assert!(silent.entries[[1, 0]] && silent.entries.iter().filter(|e| **e).count() == 1);
    assert_eq!((silent.floor[0], absolute.gaps()), (1.0, 1));
    assert_eq!(absolute.power_or_floor()[[1, 0]], 1.0);
    assert_eq!(absolute.link(), Link::LOG);
    let part = absolute.subset(&[0, 1]).unwrap();
    assert!(part.not_heard().unwrap().entries[[1, 0]]);
    let relative = Readings::new(sites, values, Scale::paper()).unwrap();
    assert!(relative.not_heard().is_none() && relative.link().offset() >= 1e-6);
}

#[test]
fn a_floor_above_what_was_heard_is_refused() {
    let values =
        Array2::from_shape_fn((40, 1), |(i, _)| if i == 0 { f64::NAN } else { 1.0 + i as f64 });
    let sites: Vec<Site> = (0..40).map(|i| site(i as f64, 0.0)).collect();
    let readings = Readings::new(sites, Values::Power(values), Scale::Absolute).unwrap();
    let mut entries = Array2::from_elem((40, 1), false);
    entries[[0, 0]] = true;
    assert!(readings.clone().with_not_heard(entries.clone(), vec![2.5]).is_ok());
    let high = readings.clone().with_not_heard(entries.clone(), vec![6.5]).unwrap_err();
    assert!(matches!(high, InputError::Floor { above: 5, heard: 39, .. }), "{high}");
    entries[[3, 0]] = true;
    assert!(readings.with_not_heard(entries, vec![2.5]).is_err());
}

#[test]
fn a_grid_sees_sensors_at_its_cells() {
    let values = array![[1.0], [100.0], [7.0]];
    let readings = power(values, &[(0.2, 0.1), (-0.3, 0.4), (1.9, 0.0)]).unwrap();
    let grid = Grid::new(3, 1, 1.0).unwrap();
    let seen = readings.on_grid(grid).unwrap();
    assert_eq!(seen.sites(), [site(0.0, 0.0), site(2.0, 0.0)]);
    assert!((seen.power()[[0, 0]] - 10.0).abs() < 1e-12);
    assert_eq!(seen.cells(grid).unwrap(), [Cell::new(0, 0), Cell::new(2, 0)]);
}

#[test]
fn the_default_grid_holds_every_sensor() {
    let at = |sites: &[(f64, f64)]| {
        let ones = Array2::from_elem((sites.len(), 1), 1.0);
        power(ones, sites).unwrap().grid_or_default().unwrap()
    };
    let floor = at(&[(0.0, 0.0), (33.0, 13.0)]);
    assert_eq!((floor.rows(), floor.cols(), floor.cell_m()), (34, 14, 1.0));
    let campus = at(&[(-7695.9, 4864745.7), (-7300.8, 4865017.3)]);
    assert_eq!((campus.cell_m(), campus.origin()), (1.0, site(-7696.0, 4864745.0)));
    let drive = at(&[(0.0, 0.0), (3000.0, 100.0)]);
    assert_eq!((drive.cell_m(), drive.rows()), (20.0, 151));
    let desk = at(&[(0.0, 0.0), (0.5, 0.25)]);
    assert_eq!((desk.rows(), desk.cols()), (65, 33));
}

#[test]
fn noise_and_repeats_follow_their_sensors() {
    let readings = power(array![[1.0, 2.0], [3.0, f64::NAN]], &[(0.0, 0.0), (0.0, 1.0)]).unwrap();
    let wrong = readings.clone().with_noise_db(Some(array![[1.0, 1.0], [-1.0, 1.0]]));
    assert!(wrong.unwrap_err().to_string().contains("noise of sensor 1, band 0"));
    assert!(readings.clone().with_repeats(Some(array![[0.0, 1.0], [1.0, 1.0]])).is_err());
    // What is said of a gap does not matter.
    let fine = readings.with_noise_db(Some(array![[1.0, 2.0], [3.0, f64::NAN]])).unwrap();
    let fine = fine.with_time_s(Some(vec![5.0, 6.0])).unwrap();
    let turned = fine.subset(&[1, 0]).unwrap();
    assert_eq!(turned.noise_db().unwrap()[[1, 1]], 2.0);
    assert_eq!(turned.time_s().unwrap(), [6.0, 5.0]);
}
