//! Moments that commands are asked about.

use std::time::{SystemTime, UNIX_EPOCH};

use portolan::estimate::{Capability, Entry, methods_with};
use portolan::{Model, Readings};
use portolan_io::MomentFormat;

use crate::args::MomentArgs;
use crate::failure::Failure;
use crate::output::warn;

/// The model at the moment that was asked for, or as it is.
pub fn at_moment(
    model: Model,
    asked: &MomentArgs,
    format: &MomentFormat,
) -> Result<Model, Failure> {
    let Some(time_s) = one(asked, format)? else { return Ok(model) };
    let there = model.at_time(time_s)?;
    warn(&Vec::from_iter(ahead_note(&model, time_s)));
    Ok(there)
}

/// The one moment that was asked for; None where none was, or several.
pub fn one(asked: &MomentArgs, format: &MomentFormat) -> Result<Option<f64>, Failure> {
    let Some(text) = asked.at.as_deref().filter(|text| !text.contains('/')) else {
        return Ok(None);
    };
    format.read(text).map(Some).map_err(|why| Failure::input(format!("--at {text}: {why}")))
}

/// More moments than this are no request but a slip.
const MOST_MOMENTS: f64 = 10_000.0;

/// The moments of FROM/TO/STEP; None where one moment, or none, was asked for.
pub fn series(asked: &MomentArgs, format: &MomentFormat) -> Result<Option<Vec<f64>>, Failure> {
    let Some(text) = asked.at.as_deref().filter(|text| text.contains('/')) else { return Ok(None) };
    let wrong = |why: String| Failure::input(format!("--at {text}: {why}"));
    let &[from, to, step] = &text.split('/').collect::<Vec<_>>()[..] else {
        return Err(wrong("expected MOMENT or FROM/TO/STEP".into()));
    };
    let (from, to) = (format.read(from).map_err(wrong)?, format.read(to).map_err(wrong)?);
    let digits = step.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(step.len());
    let (number, unit) = step.split_at(digits);
    let unit = match unit {
        "" | "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => f64::NAN,
    };
    let step_s = number.parse().unwrap_or(f64::NAN) * unit;
    let count = (to - from) / step_s;
    if !(step_s > 0.0 && (0.0..MOST_MOMENTS).contains(&count)) {
        return Err(wrong(format!(
            "expected moments in order and a step such as 6h, 1d or 30min, {MOST_MOMENTS} moments at \
             most"
        )));
    }
    // The last moment counts where the steps meet it but for rounding.
    Ok(Some((0..=(count + 1e-9) as usize).map(|i| from + i as f64 * step_s).collect()))
}

/// Days, or hours where they are few.
fn lasting(seconds: f64) -> String {
    match seconds / 86_400.0 {
        days if days >= 3.0 => format!("{days:.0} days"),
        days => format!("{:.1} hours", 24.0 * days),
    }
}

/// Says that a moment lies outside of the readings, or that the model knows no moments.
pub fn ahead_note(model: &Model, time_s: f64) -> Option<String> {
    let (from, to) = model.time_span()?;
    let outside = if time_s > to { time_s - to } else { from - time_s };
    if !model.sees_times() {
        return (time_s.is_finite() && time_s != to).then(|| {
            "no change in time was seen in the model's readings: every moment has the same map"
                .into()
        });
    }
    (outside > 0.0 && outside.is_finite()).then(|| {
        let side = if time_s > to { "after the last" } else { "before the first" };
        format!("the moment asked for is {} {side} reading: a forecast", lasting(outside))
    })
}

/// New readings that lie so many times the model's own span away are of another clock.
const FAR_AWAY: f64 = 20.0;

/// What is odd about the times of new readings beside those of a model.
pub fn new_times_note(model: &Model, readings: &Readings) -> Option<String> {
    let (from, to) = model.time_span().filter(|_| model.sees_times())?;
    let Some((first, last)) = readings.points().time_span() else {
        return Some(
            "the readings have no times: they are taken as the next survey after the model's"
                .into(),
        );
    };
    let away = if first > to { first - to } else { from - last };
    (away > FAR_AWAY * (to - from)).then(|| {
        format!(
            "the readings were taken {} from the model's, which span {}: another clock? --time-unit \
             says what plain numbers of times count",
            lasting(away),
            lasting(to - from)
        )
    })
}

/// Two years after 1970: nobody surveyed for a file then, but clocks begin there.
const LEAST_S: f64 = 6.3e7;
/// A clock may be ahead of this one.
const AHEAD_S: f64 = 86_400.0;

/// What is odd about the times of readings, and whether a method makes no use of them; `relative`
/// times have a zero of their own.
pub fn times_note(readings: &Readings, method: &Entry, relative: bool) -> Option<String> {
    let known = readings.time_s()?.iter().copied().filter(|t| !t.is_nan());
    let (from, to) =
        known.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), t| (from.min(t), to.max(t)));
    if to <= from {
        return None;
    }
    if !method.has(Capability::Times) {
        return Some(format!(
            "readings of several times are taken as if of one: {} tell times apart",
            methods_with(Capability::Times).join(", ")
        ));
    }
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(f64::INFINITY, |t| t.as_secs_f64());
    let odd = match (from < LEAST_S, to > now + AHEAD_S) {
        _ if relative => return None,
        (true, _) => "begin in 1970 or before",
        (_, true) => "lie in the future",
        _ => return None,
    };
    Some(format!(
        "times {odd}: a clock that was not set? If they count from another zero, give --time-unit; \
         --ignore-time leaves them out"
    ))
}
