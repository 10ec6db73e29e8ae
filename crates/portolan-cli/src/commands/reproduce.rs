//! `portolan reproduce`: the paper's experiments.

use std::path::PathBuf;
use std::sync::Mutex;

use portolan_paper::{
    Data, Desk, Done, Experiment, Journal, PAGE, ReproduceError, RunSettings, Size, Status, Watch,
    experiments, run as run_jobs,
};

use crate::args::ReproduceArgs;
use crate::failure::Failure;
use crate::output::{emit, say, warn};
use crate::watch::counted;

/// The word that runs nothing and only writes results again.
const REPORT: &str = "report";

pub fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.trials == 0 || args.trials > 100_000 {
        let message = format!("--trials {}: it takes 1 to 100000", args.trials);
        return Err(Failure::input(message));
    }
    if args.seed > u64::MAX / 2 {
        return Err(Failure::input(format!("--seed {}: too large", args.seed)));
    }
    let size = if args.tiny { Size::Tiny } else { Size::Full };
    let only_report = args.what == REPORT;
    let all = experiments("all", size)?;
    let asked = if only_report { Vec::new() } else { experiments(&args.what, size)? };
    let (asked, data) = with_data(args, asked, size)?;
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Failure::input(format!("{}: {error}", args.out.display())))?;
    let journal = Mutex::new(Journal::open(&args.out)?);
    let settings = RunSettings {
        trials: args.trials,
        first_seed: args.seed,
        threads: rayon::current_num_threads(),
    };
    let outcome = counted(&args.what, |tell, go_on| {
        let status = |now: Status| tell(now.done, now.total, now.seconds_left);
        run_jobs(&asked, &settings, &data, &journal, &Watch { go_on, status: &status })
    });
    let journal = journal.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let desk = Desk { folder: &args.out, journal: &journal, data: &data, first_seed: args.seed };
    // A stopped run writes what it has: the journal is what counts, and it is whole already.
    let mut shown = asked;
    if only_report {
        shown.extend(all.iter().filter(|experiment| desk.has_most(experiment)).cloned());
    }
    let written = write(&desk, &shown, &all);
    let done = match outcome {
        Err(ReproduceError::Stopped) => {
            let kept = journal.len();
            say(&format!("portolan: {kept} finished trials are kept: the same command goes on"));
            return Err(Failure::Interrupted);
        }
        outcome => outcome?,
    };
    emit(written?.trim_end())?;
    finish(args, &done, journal.is_empty())
}

/// Writes the files of some experiments and the page of all; returns what to print.
fn write(
    desk: &Desk<'_>,
    shown: &[Experiment],
    all: &[Experiment],
) -> Result<String, ReproduceError> {
    let mut printed = Vec::new();
    for experiment in shown.iter().filter(|experiment| desk.has(experiment)) {
        printed.push(desk.write(experiment)?);
    }
    desk.write_page(all)?;
    Ok(printed.join("\n"))
}

/// Says what ran, and fails where something could not.
fn finish(args: &ReproduceArgs, done: &Done, nothing: bool) -> Result<(), Failure> {
    let refused: usize = done.refused.iter().map(|(_, count)| count).sum();
    let reasons = done.refused.iter().map(|(why, count)| format!("{count} trials: {why}"));
    warn(&reasons.collect::<Vec<_>>());
    if nothing && args.what == REPORT {
        let message = format!("{}: holds no finished trials to report", args.out.display());
        return Err(Failure::input(message));
    }
    say(&format!(
        "{}: {} trials, {} of them from earlier runs",
        args.out.join(PAGE).display(),
        done.asked,
        done.known
    ));
    if refused > 0 {
        return Err(Failure::Run(format!("{refused} of {} trials could not run", done.asked)));
    }
    Ok(())
}

/// The real data where an experiment needs it. `all` does without what is not there and says so.
fn with_data(
    args: &ReproduceArgs,
    mut asked: Vec<Experiment>,
    size: Size,
) -> Result<(Vec<Experiment>, Data), Failure> {
    let folder = args.data.clone().or_else(|| std::env::var_os("PORTOLAN_DATA").map(PathBuf::from));
    let report = args.what == REPORT;
    let Some(real) = asked.iter().find(|experiment| experiment.is_real()) else {
        let data = match folder {
            Some(folder) if report => Data::load(&folder, size)?,
            _ => Data::default(),
        };
        return Ok((asked, data));
    };
    if let Some(folder) = folder {
        return Ok((asked, Data::load(&folder, size)?));
    }
    let missing = ReproduceError::NoData { what: real.name.into() };
    if args.what != "all" {
        return Err(missing.into());
    }
    asked.retain(|experiment| !experiment.is_real());
    warn(&[format!("left out: {missing}")]);
    Ok((asked, Data::default()))
}
