use std::fmt::Write;

use super::*;

const NOON: f64 = 1_714_564_800.0;

fn options(clock: &str) -> ReadOptions {
    let survey = SurveyOptions { clock: Some(Clock::parse(clock).unwrap()), ..Default::default() };
    ReadOptions { survey, ..ReadOptions::default() }
}

/// Fixes a second apart along x, from 2024-05-01 12:00:00 UTC.
fn track(folder: &std::path::Path, seconds: impl Iterator<Item = i64>) -> Track {
    let mut text = "time,x_m,y_m\n".to_string();
    for t in seconds {
        writeln!(text, "{},{t},0", NOON as i64 + t).unwrap();
    }
    let path = folder.join("track.csv");
    std::fs::write(&path, text).unwrap();
    Track::open(&path, None, 5.0).unwrap()
}

fn read(text: &str, track: &Track, options: &ReadOptions) -> (Check<Readings>, Vec<String>) {
    let mut warnings = Vec::new();
    (joined(text.as_bytes(), track, options, &mut warnings), warnings)
}

/// A sweep of two hops at a time of day, as rtl_power writes it: the last level comes twice.
fn sweep(day: &str, time: &str, level: f64) -> String {
    let mut text = String::new();
    for (low, high) in [(100_000_000, 102_000_000), (102_000_000, 104_000_000)] {
        let next = level + 1.0;
        writeln!(text, "{day}, {time}, {low}, {high}, 1000000.00, 10, {level}, {next}, {next}")
            .unwrap();
    }
    text
}

#[test]
fn sweeps_find_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let track = track(folder.path(), 0..60);
    let day = "2024-05-01";
    let text: String = (0..4).map(|i| sweep(day, &format!("14:00:{:02}", 10 * i), -60.0)).collect();
    let (found, warnings) = read(&text, &track, &options("+2"));
    let found = found.unwrap();
    assert_eq!((found.sensors(), found.bands()), (4, 4));
    assert_eq!(found.sites()[2].x_m, 20.0);
    assert_eq!(found.freq_hz().unwrap(), [100.5e6, 101.5e6, 102.5e6, 103.5e6]);
    assert_eq!(found.scale(), Scale::Uncalibrated);
    assert!((10.0 * found.power()[[0, 1]].log10() + 59.0).abs() < 1e-9);
    assert!(warnings.is_empty(), "{warnings:?}");
    // Bins add up: two of -60 and -59 dB.
    let mut wide = options("+2");
    wide.survey.band_width_hz = Some(2e6);
    let found = read(&text, &track, &wide).0.unwrap();
    assert_eq!(found.freq_hz().unwrap(), [101e6, 103e6]);
    let sum = 10f64.powf(-6.0) + 10f64.powf(-5.9);
    assert!((found.power()[[0, 0]] / sum - 1.0).abs() < 1e-9);
    let mut edges = options("+2");
    edges.survey.band_edges_hz = Some(vec![101e6, 104e6]);
    assert_eq!(read(&text, &track, &edges).0.unwrap().freq_hz().unwrap(), [102.5e6]);
}

#[test]
fn what_has_no_position_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing between 20 and 40 s.
    let track = track(folder.path(), (0..60).filter(|t| !(20..40).contains(t)));
    let at = |s: i64| sweep("2024-05-01", &format!("12:00:{s:02}"), -60.0);
    let text = [at(5), at(30), at(45)].concat() + &sweep("2024-05-01", "12:05:00", -60.0);
    let (found, warnings) = read(&text, &track, &options("0"));
    assert_eq!(found.unwrap().sensors(), 2);
    assert!(warnings[0].contains("2 of 4 sweep(s) have no position"), "{warnings:?}");
    let error = read(&text, &track, &options("+1")).0.unwrap_err().to_string();
    assert!(error.contains("check --utc-offset") && error.contains("2024-05-01T12:00"), "{error}");
}

#[test]
fn midnight_offsets_and_daylight_saving() {
    let folder = tempfile::tempdir().unwrap();
    let track = track(folder.path(), 0..60);
    // 12:00 UTC is one second before midnight on a clock 11:59:59 ahead.
    let text = sweep("2024-05-01", "23:59:59", -60.0) + &sweep("2024-05-02", "00:00:09", -61.0);
    let found = read(&text, &track, &options("+11:59:59")).0.unwrap();
    assert_eq!(found.sites().iter().map(|s| s.x_m).collect::<Vec<_>>(), [0.0, 10.0]);
    // The hour that comes twice: 00:59:50 UTC and ten seconds later.
    let put_back = 1_729_990_790.0 - NOON;
    let path = folder.path().join("night.csv");
    let fixes: String =
        (0..40).map(|t| format!("{},{t},0\n", NOON + put_back + f64::from(t))).collect();
    std::fs::write(&path, format!("time,x_m,y_m\n{fixes}")).unwrap();
    let night = Track::open(&path, None, 5.0).unwrap();
    let day = "2024-10-27";
    let text = sweep(day, "02:59:50", -60.0) + &sweep(day, "02:00:05", -61.0);
    let found = read(&text, &night, &options("Europe/Berlin")).0.unwrap();
    assert_eq!(found.sites().iter().map(|s| s.x_m).collect::<Vec<_>>(), [0.0, 15.0]);
    let error = read(&text, &night, &options("+2")).0.unwrap_err().to_string();
    assert!(error.contains("goes back by 60 minutes"), "{error}");
}

#[test]
fn lines_of_other_programs_and_damaged_ones() {
    let folder = tempfile::tempdir().unwrap();
    let track = track(folder.path(), 0..60);
    // hackrf_sweep: microseconds, hops out of order; soapy_power: frequencies as floats.
    let text = "2024-05-01, 12:00:01.500000, 2405000000, 2410000000, 2500000.00, 20, -70, -71\n\
                2024-05-01, 12:00:01.600000, 2400000000, 2405000000, 2500000.00, 20, -72, -inf\n\
                2024-05-01, 12:00:02.500000, 2.405e9, 2.41e9, 2.5e6, 20, -70, -71\n\
                2024-05-01, 12:00:02.600000, 2.4e9, 2.405e9, 2.5e6, 20, -72, -73\n";
    let found = read(text, &track, &options("0")).0.unwrap();
    assert_eq!((found.sensors(), found.bands(), found.gaps()), (2, 4, 1));
    assert!((found.sites()[0].x_m - 1.55).abs() < 1e-6);
    assert!(is_sweep(text.as_bytes()) && !is_sweep(b"x_m,y_m,dbm_1GHz\n1,2,3\n"));
    for wrong in [
        "2024-05-01, 12:00:01, 1, 2, 1, 20\n",
        "2024-05-01, 25:00:01, 1, 2, 1, 20, -70\n",
        "2024-05-01, 12:00:01, 2, 1, 1, 20, -70\n",
        "2024-05-01, 12:00:01, 1, 2, 0, 20, -70\n",
        "2024-05-01, 12:00:01, 1, 2, 1, 20, loud\n",
    ] {
        let error = read(wrong, &track, &options("0")).0.unwrap_err().to_string();
        assert!(error.starts_with("line 1"), "{wrong} {error}");
    }
    let no_clock = ReadOptions::default();
    let error = read(text, &track, &no_clock).0.unwrap_err().to_string();
    assert!(error.contains("--utc-offset"), "{error}");
}
