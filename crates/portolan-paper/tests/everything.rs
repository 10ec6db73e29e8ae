//! Every experiment from end to end at tiny size: trials, journal, tables, pictures; and a second run
//! that has nothing left to do.

use std::path::Path;
use std::sync::Mutex;

use ndarray::Array2;
use portolan::simulate::{Scenario, simulate};
use portolan::{BandLabels, Cell, Grid, RadioMap, Readings, Scale, Values};
use portolan_paper::{
    City, Data, Desk, Done, Experiment, Floor, JOURNAL, Journal, NAMES, PAGE, RunSettings, Size,
    Status, SurveyPlace, Watch, experiments, run,
};

/// A simulated floor with the shape of the real one, and a city with a building.
fn data() -> Data {
    let grid = Grid::new(34, 14, 1.0).unwrap();
    let map = simulate(&Scenario { bands: 9, emitters: 3, ..Scenario::new(grid) }).unwrap();
    let cells: Vec<Cell> = (0..grid.cells()).step_by(2).take(166).map(|i| grid.cell(i)).collect();
    let mut power = Array2::zeros((cells.len(), map.bands()));
    for (mut row, &cell) in power.outer_iter_mut().zip(&cells) {
        map.spectrum_into(cell, row.as_slice_mut().unwrap());
    }
    let freq_hz = (0..9).map(|band| 2.412e9 + 5e6 * f64::from(band)).collect();
    let sites: Vec<_> = cells.iter().map(|&cell| grid.site(cell)).collect();
    let survey = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let labels = BandLabels::from_frequencies(freq_hz).unwrap();
    let survey = survey.with_grid(Some(grid)).unwrap().with_labels(labels).unwrap();
    let place = |row: f64| SurveyPlace { at: [row, 3.5], dbm: vec![-40.0; 9] };
    let off_grid = vec![place(1.25), place(20.5)];

    let grid = Grid::new(24, 24, 1.0).unwrap();
    let open = simulate(&Scenario { bands: 5, emitters: 2, ..Scenario::new(grid) }).unwrap();
    let mut dense = open.to_dense().into_owned();
    dense.slice_mut(ndarray::s![8..14, 5..12, ..]).fill(f64::NAN);
    let map = RadioMap::dense(grid, dense, Scale::Absolute).unwrap();
    Data { floor: Some(Floor { survey, off_grid }), city: Some(City { map }) }
}

fn perform(folder: &Path, all: &[Experiment], data: &Data, trials: usize) -> Done {
    let journal = Mutex::new(Journal::open(folder).unwrap());
    let last = Mutex::new(None);
    let status = |now: Status| *last.lock().unwrap() = Some(now);
    let watch = Watch { go_on: &|| true, status: &status };
    let settings = RunSettings { trials, first_seed: 500, threads: 2 };
    let done = run(all, &settings, data, &journal, &watch).unwrap();
    let last = last.into_inner().unwrap().expect("the run says how far it is");
    assert_eq!(last.done, last.total);
    let journal = journal.into_inner().unwrap();
    let desk = Desk { folder, journal: &journal, data, first_seed: 500 };
    for experiment in all {
        assert!(desk.has(experiment), "{}", experiment.name);
        desk.write(experiment).unwrap();
    }
    desk.write_page(all).unwrap();
    done
}

#[test]
fn every_experiment_runs_once_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (all, data) = (experiments("all", Size::Tiny).unwrap(), data());
    let done = perform(folder.path(), &all, &data, 1);
    assert!(done.refused.is_empty(), "{:?}", done.refused);
    assert_eq!(done.known, 0);
    let journal = read(JOURNAL);
    assert_eq!(journal.lines().count(), done.asked);

    for experiment in &all {
        let value: serde_json::Value =
            serde_json::from_str(&read(&format!("{}.json", experiment.name))).unwrap();
        let sections = value["sections"].as_array().unwrap();
        assert_eq!(sections.len(), experiment.sections.len());
        for (written, section) in sections.iter().zip(&experiment.sections) {
            for (written, cell) in written["cells"].as_array().unwrap().iter().zip(&section.cells) {
                let finished =
                    written["maps"].as_u64().unwrap() + written["failed"].as_u64().unwrap();
                let wanted = u64::from(cell.setup.is_some());
                assert_eq!(finished, wanted, "{} {written}", experiment.name);
                if written["maps"] == 1 {
                    assert!(written["rmse_db"]["mean"].is_f64(), "{written}");
                    assert_eq!(
                        written["ssim"]["mean"].is_f64(),
                        !experiment.is_real(),
                        "{written}"
                    );
                }
                let printed = cell.printed.as_ref().map(|printed| printed.ssim);
                assert_eq!(written["paper"]["ssim"].as_f64(), printed);
            }
        }
        let lines = read(&format!("{}.csv", experiment.name)).lines().count();
        assert_eq!(lines, 1 + experiment.cells().count());
        assert!(read(PAGE).contains(experiment.title), "{}", experiment.name);
    }
    for picture in [
        "figure-maps.png",
        "figure-real.png",
        "table-emitters-full-precision.png",
        "table-emitters-3-bits.png",
        "table-shadowing-xc.png",
        "table-shadowing-eta.png",
        "table-assumed-emitters.png",
    ] {
        assert!(folder.path().join(picture).is_file(), "{picture}");
        assert!(read(PAGE).contains(picture), "{picture}");
    }

    let pages = || NAMES.map(|name| read(&format!("{name}.md")));
    let before = pages();
    let again = perform(folder.path(), &all, &data, 1);
    assert_eq!((again.asked, again.known), (done.asked, done.asked));
    assert_eq!(read(JOURNAL), journal, "nothing is computed twice");
    assert_eq!(pages(), before);
}

#[test]
fn more_trials_add_to_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let few = experiments("table-parameters", Size::Tiny).unwrap();
    let first = perform(folder.path(), &few, &Data::default(), 1);
    let second = perform(folder.path(), &few, &Data::default(), 2);
    assert_eq!((second.asked, second.known), (2 * first.asked, first.asked));
    let text = std::fs::read_to_string(folder.path().join("table-parameters.md")).unwrap();
    assert!(text.contains("over 2 trials"), "{text}");
}

#[test]
fn figures_do_not_depend_on_the_number_of_threads() {
    let few = experiments("table-parameters", Size::Tiny).unwrap();
    let keep = |threads: usize| {
        let folder = tempfile::tempdir().unwrap();
        let journal = Mutex::new(Journal::open(folder.path()).unwrap());
        let settings = RunSettings { trials: 1, first_seed: 3, threads };
        let watch = Watch { go_on: &|| true, status: &|_| () };
        run(&few, &settings, &Data::default(), &journal, &watch).unwrap();
        let text = std::fs::read_to_string(folder.path().join(JOURNAL)).unwrap();
        let mut lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &mut lines {
            line["seconds"].take();
            line["fit_seconds"].take();
        }
        lines.sort_by_key(|line| line["key"].to_string());
        lines
    };
    assert_eq!(keep(1), keep(2));
}

#[test]
fn a_stopped_run_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let few = experiments("table-parameters", Size::Tiny).unwrap();
    let journal = Mutex::new(Journal::open(folder.path()).unwrap());
    let finished = std::sync::atomic::AtomicUsize::new(0);
    let order = std::sync::atomic::Ordering::SeqCst;
    let status = |now: Status| finished.store(now.done, order);
    let watch = Watch { go_on: &|| finished.load(order) < 1, status: &status };
    let settings = RunSettings { trials: 3, first_seed: 0, threads: 1 };
    let stopped = run(&few, &settings, &Data::default(), &journal, &watch);
    assert!(matches!(stopped, Err(portolan_paper::ReproduceError::Stopped)));
    let kept = finished.load(order);
    assert!(kept >= 1);
    drop(journal);
    assert_eq!(Journal::open(folder.path()).unwrap().len(), kept);
}
