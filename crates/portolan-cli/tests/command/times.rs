//! Readings of several times.

use std::fmt::Write;

use crate::support::{Desk, table};

const MONTH: i64 = 30 * 86_400;
/// 2024-01-01T00:00:00Z.
const ZERO: i64 = 1_704_067_200;

/// Twenty-five places, read in each of eight months; the first band is 4 dB fainter every month, the
/// second stays. In `louder.csv`, a ninth, the first is 45 dB louder than that.
fn desk() -> Desk {
    let desk = Desk::new();
    let noise = |i: i64, k: i64| ((i * 7919 + k * 104_729) % 1009) as f64 / 250.0 - 2.0;
    let level = |month: i64, place: i64, k: i64| {
        let (x, y) = ((place % 5) as f64, (place / 5) as f64);
        let drift = if k == 0 { -4.0 * month as f64 } else { 0.0 };
        -40.0 - 2.0 * (x - 1.5 * k as f64).hypot(y - 2.0) + drift + noise(25 * month + place, k)
    };
    let header = "x_m,y_m,time_s,dbm_868MHz,dbm_2412MHz\n";
    let (mut survey, mut new) = (String::from(header), String::from(header));
    for month in 0..9 {
        for place in 0..25 {
            let (x, y, time) = (4 * (place % 5), 4 * (place / 5), ZERO + MONTH * month);
            let more = if month == 8 { 45.0 } else { 0.0 };
            let (a, b) = (level(month, place, 0) + more, level(month, place, 1));
            let into = if month == 8 { &mut new } else { &mut survey };
            writeln!(into, "{x},{y},{time},{a:.2},{b:.2}").unwrap();
        }
    }
    desk.write("survey.csv", survey);
    desk.write("louder.csv", new);
    desk
}

#[test]
fn places_and_maps_are_asked_at_their_moment() {
    let desk = desk();
    let said = desk.ok("fit survey.csv -o m.npz --method kriging");
    assert!(said.stderr.contains("times are used: 8 surveys"), "{}", said.stderr);
    desk.write(
        "places.csv",
        "x_m,y_m,time\n8,8,2024-01-01T00:00:00Z\n8,8,\n8,8,2024-07-29T02:00:00+02:00\n",
    );
    desk.ok("predict m.npz places.csv -o out.csv");
    let levels = table(&desk, "out.csv").numbers("dbm_868MHz");
    assert!((levels[0] - levels[1] - 28.0).abs() < 3.0, "{levels:?}");
    assert!((levels[1] - levels[2]).abs() < 1e-9, "{levels:?}");
    desk.write("place.csv", "x_m,y_m\n8,8\n");
    desk.ok("predict m.npz place.csv -o out.csv --at 2024-01-01T00:00:00Z --force");
    let early = table(&desk, "out.csv").numbers("dbm_868MHz");
    assert!(early.len() == 1 && (early[0] - levels[0]).abs() < 1e-9, "{early:?} {levels:?}");
    let ahead = desk.ok("predict m.npz place.csv -o out.csv --at 2024-12-31T00:00:00Z --force");
    assert!(ahead.stderr.contains("after the last reading: a forecast"), "{}", ahead.stderr);
    // Maps of it, however they are asked for.
    desk.ok("predict m.npz -o a.npz --grid 5x5 --cell-m 4 --at 1704067200");
    desk.ok("estimate survey.csv -o b.npz --method kriging --at 1704067200");
    for name in ["a.npz", "b.npz"] {
        assert!(desk.ok(&format!("inspect {name}")).stdout.contains("868"), "{name}");
    }
    let covered = |at: &str| {
        let told = desk.json(&format!("coverage m.npz --above -60 --bands 868MHz --json {at}"));
        told["bands"][0]["above_m2"][0].as_f64().unwrap()
    };
    assert!(covered("--at 1704067200") > covered("") + 10.0);
    desk.ok("plot m.npz -o early.png --band 0 --at 1704067200");
    desk.ok("plot m.npz -o late.png --band 0 --at 2024-07-29T00:00:00Z");
    assert_ne!(desk.read("early.png"), desk.read("late.png"));
}

#[test]
fn moments_that_cannot_be_asked_are_refused() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging");
    desk.write("places.csv", "x_m,y_m,time\n8,8,2024-05-01 12:00:00\n");
    let zone = ["2024-05-01 12:00:00", "no zone", "--utc-offset"];
    desk.refused("predict m.npz places.csv -o out.csv", &zone);
    desk.ok("predict m.npz places.csv -o out.csv --utc-offset +2");
    desk.refused("predict m.npz -o out.npz --at noon", &["--at noon", "expected a time"]);
    let said = desk.ok("fit survey.csv -o still.npz --method kriging --ignore-time");
    assert!(!said.stderr.contains("times"), "{}", said.stderr);
    desk.refused("predict still.npz -o out.npz --at 1704067200", &["readings have no times"]);
    desk.refused("changes still.npz louder.csv", &["several surveys with their times"]);
    desk.ok("predict m.npz -o map.npz --grid 5x5 --cell-m 4");
    desk.refused("coverage map.npz --above -60 --at 1704067200", &["--at asks a model"]);
    desk.refused("plot map.npz -o p.png --at 1704067200", &["map.npz", "is not a model"]);
}

#[test]
fn times_of_another_clock_are_said() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging");
    // The same tables with other times, or none: the third column.
    let timed = |name: &str, time: &dyn Fn(usize) -> Option<usize>| {
        let text = String::from_utf8(desk.read(name)).unwrap();
        let line = |(i, line): (usize, &str)| {
            let mut fields: Vec<String> = line.split(',').map(str::to_string).collect();
            match (i, time(i.saturating_sub(1))) {
                (_, None) => drop(fields.remove(2)),
                (0, _) => fields[2] = "time".into(),
                (_, Some(time)) => fields[2] = time.to_string(),
            }
            fields.join(",") + "\n"
        };
        text.lines().enumerate().map(line).collect::<String>()
    };
    desk.write("bare.csv", timed("louder.csv", &|_| None));
    let said = desk.ok("changes m.npz bare.csv --all").stderr;
    assert!(said.contains("no times: they are taken as the next survey"), "{said}");
    let said = desk.ok("update m.npz bare.csv -o u.npz").stderr;
    assert!(said.contains("the mean level of their band"), "{said}");
    desk.write("months.csv", timed("louder.csv", &|_| Some(9)));
    for command in ["changes m.npz months.csv", "update m.npz months.csv -o v.npz"] {
        let said = desk.ok(&format!("{command} --time-unit month")).stderr;
        assert!(said.contains("another clock? --time-unit"), "{said}");
    }
    // Numbers of months are asked for in months; what cannot be read is found before the fit.
    desk.write("by_month.csv", timed("survey.csv", &|row| Some(row / 25)));
    desk.ok("fit by_month.csv -o by_month.npz --method kriging --time-unit month");
    desk.write("places.csv", "x_m,y_m,time\n8,8,0\n8,8,7\n");
    desk.ok("predict by_month.npz places.csv -o out.csv --time-unit month");
    let levels = table(&desk, "out.csv").numbers("dbm_868MHz");
    desk.ok("predict by_month.npz places.csv -o out.csv --time-unit month --at 7 --force");
    let late = table(&desk, "out.csv").numbers("dbm_868MHz");
    assert!(
        (levels[1] - late[0]).abs() < 1e-9 && (levels[0] - levels[1]).abs() > 5.0,
        "{levels:?}"
    );
    desk.refused("estimate survey.csv -o no.npz --at noon", &["--at noon", "expected a time"]);
    desk.refused("estimate survey.csv -o no.tif --at 0/100/10", &["no.tif", ".npz or .nc"]);
}

#[test]
fn maps_of_several_moments_are_one_file() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging");
    let asked = "--grid 5x6 --cell-m 4 --at 2024-01-01T00:00:00Z/2024-07-29T00:00:00Z/30d";
    desk.ok(&format!("predict m.npz -o series.npz {asked}"));
    let told = desk.ok("inspect series.npz").stdout;
    for array in ["time_s", "8 x 5 x 6 x 2"] {
        assert!(told.contains(array), "{array}: {told}");
    }
    desk.ok(&format!("predict m.npz -o series.nc {asked}"));
    assert!(desk.read("series.nc").starts_with(b"\x89HDF"));
    desk.ok("estimate survey.csv -o e.npz --method kriging --at 1704067200/1706659200/15d");
    desk.write("place.csv", "x_m,y_m\n8,8\n");
    desk.refused(&format!("predict m.npz -o series.tif {asked}"), &["series.tif", ".npz or .nc"]);
    for (at, why) in [("1/2", "FROM/TO/STEP"), ("2/1/1d", "in order"), ("1/2/0", "step such as")] {
        desk.refused(&format!("predict m.npz -o no.npz --at {at}"), &["--at", why]);
    }
    desk.refused("predict m.npz place.csv -o no.csv --at 1/2/1", &["column of times"]);
}

#[test]
fn times_that_are_odd_or_not_used_are_said() {
    let desk = desk();
    let survey = String::from_utf8(desk.read("survey.csv")).unwrap();
    let late = survey.replace(",17", ",91");
    desk.write("late.csv", late);
    let said = desk.ok("fit late.csv -o m.npz --method kriging");
    assert!(said.stderr.contains("lie in the future"), "{}", said.stderr);
    let said = desk.ok("fit survey.csv -o l.npz --method linear");
    assert!(said.stderr.contains("taken as if of one"), "{}", said.stderr);
    let mut months = String::from("x_m,y_m,month,dbm_868MHz\n");
    let mut zoneless = String::from("x_m,y_m,time,dbm_868MHz\n");
    for (i, line) in survey.lines().skip(1).enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let month = i / 25 + 1;
        writeln!(months, "{},{},{month},{}", cells[0], cells[1], cells[3]).unwrap();
        writeln!(zoneless, "{},{},2024-0{month}-01 12:00:00,{}", cells[0], cells[1], cells[3])
            .unwrap();
    }
    desk.write("months.csv", months);
    desk.write("zoneless.csv", zoneless);
    let said =
        desk.ok("fit months.csv -o n.npz --method kriging --columns time=month --time-unit month");
    assert!(said.stderr.contains("times are used: 8 surveys"), "{}", said.stderr);
    assert!(!said.stderr.contains("1970"), "{}", said.stderr);
    let said = desk.ok("fit zoneless.csv -o z.npz --method kriging");
    assert!(said.stderr.contains("no zone: read as UTC"), "{}", said.stderr);
    desk.refused("fit months.csv -o o.npz --time-unit moon", &["--time-unit", "month or year"]);
}

#[test]
fn what_changed_is_told_and_taken_up() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging");
    let told = desk.json("changes m.npz louder.csv --json");
    let kind = |band: usize| told["bands"][band]["kind"].as_str().unwrap().to_string();
    assert_eq!((kind(0), kind(1)), ("level".into(), "same".into()), "{told}");
    assert!((told["bands"][0]["level_db"].as_f64().unwrap() - 45.0).abs() < 15.0, "{told}");
    let said = desk.ok("changes m.npz louder.csv");
    assert!(said.stderr.contains("1 of 2 bands changed"), "{}", said.stderr);
    assert!(said.stdout.contains("868MHz") && !said.stdout.contains("2412MHz"), "{}", said.stdout);
    desk.ok("update m.npz louder.csv -o m.npz --force");
    desk.write("place.csv", "x_m,y_m\n8,8\n");
    desk.ok("predict m.npz place.csv -o out.csv");
    let level = table(&desk, "out.csv").numbers("dbm_868MHz")[0];
    assert!((level + 31.0).abs() < 6.0, "{level}");
}
