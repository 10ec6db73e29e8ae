use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// Readings of three devices with known offsets, in bands of one law.
fn survey(offsets_db: &[f64], places: usize, seed: u64) -> Vec<DeviceReading> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let mut readings = Vec::new();
    let phases: Vec<(f64, f64)> = (0..6).map(|_| (normal(), normal())).collect();
    for i in 0..places {
        let site = Site::new(10.0 * normal(), 10.0 * normal());
        let device = i % offsets_db.len();
        for (band, (p, q)) in phases.iter().enumerate() {
            let field = 5.0 * (site.x_m / 9.0 + p).sin() + 5.0 * (site.y_m / 9.0 + q).cos();
            let dbm = -70.0 + field + offsets_db[device] + 2.0 * normal();
            readings.push(DeviceReading { site, band, device, power: 10f64.powf(dbm / 10.0) });
        }
    }
    readings
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("phone {n}")).collect()
}

#[test]
fn offsets_are_found_within_their_errors() {
    let truth = [-4.0, 0.0, 4.0];
    let found = Devices::find(names(3), &survey(&truth, 120, 1)).unwrap().unwrap();
    for ((offset, se), truth) in found.offset_db.iter().zip(&found.se_db).zip(truth) {
        assert!((offset - truth).abs() < 3.0 * se && *se < 1.0, "{found:?}");
    }
    assert!(found.spread_db > 2.0 && found.spread_db < 7.0, "{found:?}");
    // Devices that do not differ are left alone.
    assert_eq!(Devices::find(names(3), &survey(&[0.0; 3], 120, 2)).unwrap(), None);
}

#[test]
fn the_average_reading_stays_and_a_common_shift_changes_nothing() {
    let readings = survey(&[-3.0, 1.0, 5.0], 60, 3);
    let found = Devices::find(names(3), &readings).unwrap().unwrap();
    let mean: f64 = readings.iter().map(|r| found.offset_db[r.device]).sum();
    assert!(mean.abs() < 1e-9 * readings.len() as f64);
    let louder: Vec<_> =
        readings.iter().map(|r| DeviceReading { power: 1e4 * r.power, ..*r }).collect();
    let again = Devices::find(names(3), &louder).unwrap().unwrap();
    for (a, b) in found.offset_db.iter().zip(&again.offset_db) {
        assert!((a - b).abs() < 0.05, "{a} {b}");
    }
}

#[test]
fn one_device_has_no_offset_and_one_place_is_said() {
    let readings = survey(&[0.0], 20, 4);
    assert_eq!(Devices::find(names(1), &readings).unwrap(), None);
    let mut readings = survey(&[0.0, 6.0], 40, 5);
    readings.push(DeviceReading { device: 2, ..readings[0] });
    let known = names(3);
    assert_eq!(seen_once(&known, &readings), ["phone 2"]);
    let found = Devices::find(known, &readings).unwrap().unwrap();
    assert_eq!((found.offset_db[2], found.se_db[2]), (0.0, found.spread_db));
}

#[test]
fn devices_with_an_area_each_are_left_alone() {
    // The field falls from one half to the other in all bands; each half has a device of its own.
    let halved: Vec<DeviceReading> = survey(&[0.0], 120, 6)
        .into_iter()
        .map(|r| {
            let far = r.site.x_m > 0.0;
            let power = r.power * if far { 10f64.powf(-0.1 * r.site.x_m) } else { 1.0 };
            DeviceReading { device: usize::from(far), power, ..r }
        })
        .collect();
    assert_eq!(Devices::find(names(2), &halved).unwrap(), None);
}
