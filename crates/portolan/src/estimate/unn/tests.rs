//! The seam to the engine: what `unn` asks of it, and what it makes of the answers.

use std::sync::{Arc, Mutex};

use super::*;
use crate::engine::{CpuEngine, Engine, EngineError, Outcomes};
use crate::estimate::{Emitters, method};
use crate::fixture::{self, Estimate};
use crate::grid::Cell;
use crate::sense::{Quantising, Sensing, SensorLayout, sense};
use crate::simulate::{Scenario, simulate};

/// Writes down what it is asked and lets the processor do it.
#[derive(Debug, Default)]
struct Recorder {
    calls: Mutex<Vec<String>>,
    at_once: Option<usize>,
}

impl Recorder {
    fn note(&self, what: &str, decoder: &Decoder, maps: usize, iterations: usize) {
        let (rows, cols, emitters) = (decoder.rows(), decoder.cols(), decoder.emitters());
        let call = format!(
            "{what} {maps} of {rows} x {cols}, {emitters} emitters, {iterations} iterations"
        );
        self.calls.lock().unwrap().push(call);
    }
}

impl Engine for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn at_once(&self) -> Option<usize> {
        self.at_once
    }

    fn fit(
        &self,
        decoder: &Decoder,
        problems: &[FitProblem<'_>],
        options: &FitOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Unknowns> {
        self.note("fit", decoder, problems.len(), options.descent.iterations);
        CpuEngine.fit(decoder, problems, options, progress)
    }

    fn imitate(
        &self,
        decoder: &Decoder,
        problems: &[ImitationProblem<'_>],
        options: &ImitationOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Network> {
        self.note("imitate", decoder, problems.len(), options.descent.iterations);
        CpuEngine.imitate(decoder, problems, options, progress)
    }
}

/// Answers every start with itself; the fits as it was told.
#[derive(Debug)]
struct Canned(fn(&Unknowns) -> Outcomes<Unknowns>);

impl Engine for Canned {
    fn name(&self) -> &str {
        "canned"
    }

    fn fit(
        &self,
        _: &Decoder,
        problems: &[FitProblem<'_>],
        _: &FitOptions,
        _: &Progress<'_>,
    ) -> Outcomes<Unknowns> {
        (self.0)(problems[0].start)
    }

    fn imitate(
        &self,
        _: &Decoder,
        problems: &[ImitationProblem<'_>],
        _: &ImitationOptions,
        _: &Progress<'_>,
    ) -> Outcomes<Network> {
        let kept =
            |problem: &ImitationProblem<'_>| Descended { at: problem.start.clone(), trace: vec![] };
        Ok(problems.iter().map(|problem| Ok(kept(problem))).collect())
    }
}

fn readings(quantised: bool) -> Readings {
    let scenario = Scenario::new(Grid::new(24, 20, 1.0).unwrap());
    let truth = simulate(&Scenario { bands: 12, emitters: 2, seed: 3, ..scenario }).unwrap();
    let quantising = quantised.then_some(Quantising { bits: 3, edges: None, sigma: 0.3 });
    let exact = Sensing::exact(SensorLayout::Count(70), 5);
    sense(&truth, &Sensing { quantising, gaps: 0.1, ..exact }).unwrap()
}

fn run(
    engine: Arc<dyn Engine>,
    settings: &[(&str, &str)],
    readings: &Readings,
) -> Result<Estimate, EstimateError> {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let unn = method("unn")?.build_on(engine, settings)?;
    fixture::estimate(&*unn, readings, &context)
}

const QUICK: [(&str, &str); 3] =
    [("iterations", "20"), ("start_iterations", "30"), ("members", "1")];

#[test]
fn every_iteration_goes_through_the_engine() {
    for quantised in [false, true] {
        let readings = readings(quantised);
        let recorder = Arc::new(Recorder::default());
        let recorded = run(recorder.clone(), &QUICK, &readings).unwrap();
        let calls = recorder.calls.lock().unwrap();
        let size = "1 of 24 x 20, 2 emitters";
        let expected =
            [("imitate", 30), ("fit", 20)].map(|(w, n)| format!("{w} {size}, {n} iterations"));
        assert_eq!(*calls, expected);
        let plain = run(Arc::new(CpuEngine), &QUICK, &readings).unwrap();
        assert_eq!(recorded.map, plain.map);
        assert_eq!(recorded.loss_trace, plain.loss_trace);
    }
}

#[test]
fn progress_follows_the_iterations() {
    let readings = readings(false);
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    for (iterations, begins) in [("90", 0.25), ("30", 0.5), ("10", 0.75)] {
        let own = [("members", "1"), ("tolerance", "0")];
        let settings = [("iterations", iterations), ("start_iterations", "30"), own[0], own[1]];
        let settings = settings.map(|(name, value)| (name.to_string(), value.to_string()));
        let unn = method("unn").unwrap().build(settings).unwrap();
        let shares = Mutex::new(Vec::new());
        let began = Mutex::new(0.0);
        let tell = |share: f64| {
            shares.lock().unwrap().push(share);
            true
        };
        let on_fit = || *began.lock().unwrap() = *shares.lock().unwrap().last().unwrap();
        let progress = Progress::new(&tell).with_fit_start(&on_fit);
        unn.fit(&readings, &context, &progress).unwrap();
        let (shares, began) = (shares.into_inner().unwrap(), began.into_inner().unwrap());
        assert!((began - begins).abs() < 0.03, "{iterations}: {began}");
        assert!(shares.is_sorted() && *shares.last().unwrap() > 0.95, "{shares:?}");
    }
}

#[test]
fn what_the_engine_found_is_what_is_drawn() {
    let silenced: Canned = Canned(|start| {
        let mut at = start.clone();
        at.psd[12..].fill(0.0);
        Ok(vec![Ok(Descended { at, trace: vec![42.0, 41.0] })])
    });
    let estimate = run(Arc::new(silenced), &QUICK, &readings(false)).unwrap();
    assert_eq!((estimate.loss, estimate.iterations), (Some(41.0), 2));
    assert_eq!(estimate.loss_trace, [42.0, 41.0]);
    let psd = &estimate.map.factors().unwrap().psd;
    assert!(psd.row(0).sum() > 0.0 && psd.row(1).sum() == 0.0, "{psd}");
}

#[test]
fn a_refusal_is_an_error_that_names_the_engine() {
    let refuse = Canned(|_| {
        let reason = "kernels of 3 x 3 only".into();
        Err(EngineError::Refused { engine: "canned".into(), reason })
    });
    let error = run(Arc::new(refuse), &QUICK, &readings(false)).unwrap_err();
    assert!(matches!(error, EstimateError::Engine(EngineError::Refused { .. })));
    assert!(error.to_string().contains("canned cannot do this fit: kernels of 3 x 3"), "{error}");
    let cancelled =
        run(Arc::new(Canned(|_| Err(EngineError::Cancelled))), &QUICK, &readings(false));
    assert_eq!(cancelled.unwrap_err(), EstimateError::Cancelled);
    let diverged = Canned(|_| Ok(vec![Err(Diverged { iteration: 7 })]));
    let error = run(Arc::new(diverged), &QUICK, &readings(false)).unwrap_err().to_string();
    assert_eq!(error, "the fit diverged at iteration 7: lower lr_network or lr_psd");
}

/// The first line of the paper's algorithm: what the decoder draws is close to the decomposition's
/// map, PSDs included, before the fit begins.
#[test]
fn the_papers_start_draws_the_map_of_the_decomposition() {
    let readings = readings(false);
    // One step of next to nothing: the start is what is drawn.
    let still =
        [("recipe", "paper"), ("iterations", "1"), ("lr_network", "1e-9"), ("tolerance", "0")];
    let paper = [&still[..], &[("start_iterations", "600")]].concat();
    let recorder = Arc::new(Recorder::default());
    let drawn = run(recorder.clone(), &paper, &readings).unwrap().map;
    let size = "fit 1 of 24 x 20, 2 emitters";
    let calls = [format!("{size}, 600 iterations"), format!("{size}, 1 iterations")];
    assert_eq!(*recorder.calls.lock().unwrap(), calls);
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let goal = fixture::estimate(&Btd::default(), &readings, &context).unwrap().map;
    let distance = |map: &crate::RadioMap| {
        let score = crate::score::score(map, &goal, None).unwrap();
        score.rmse_db
    };
    let (close, far) = (distance(&drawn), {
        let random = [&still[..], &[("start", "xavier")]].concat();
        distance(&run(Arc::new(CpuEngine), &random, &readings).unwrap().map)
    });
    assert!(close < 3.0 && close < 0.3 * far, "{close} {far}");
    let linear = [&paper[..], &[("start_domain", "linear")]].concat();
    let linear = distance(&run(Arc::new(CpuEngine), &linear, &readings).unwrap().map);
    assert!(linear > close && linear < far, "{linear}");
}

#[test]
fn options_of_the_start_that_do_not_belong_together_are_refused() {
    for (settings, named) in [
        (&[("rates", "box")][..], "rates belongs to recipe=paper"),
        (&[("start_domain", "linear")], "start_domain needs start_learns=map"),
        (&[("recipe", "paper"), ("start_learns", "slf"), ("start_domain", "log")], "start_domain"),
    ] {
        let error = run(Arc::new(CpuEngine), settings, &readings(false)).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

/// Maps of several sorts in one batch: each as if it were alone, one bad one by itself.
#[test]
fn many_fits_equal_single_ones() {
    let [exact, levels] = [readings(false), readings(true)];
    let recorder = Arc::new(Recorder::default());
    let settings = || QUICK.map(|(k, v)| (k.to_string(), v.to_string()));
    let many = method("unn").unwrap().build_on(recorder.clone(), settings()).unwrap();
    let context = |seed, emitters| Context {
        emitters: Emitters::Count(emitters),
        seed,
        ..Context::default()
    };
    let jobs = [
        Job { readings: &exact, context: context(1, 2) },
        Job { readings: &levels, context: context(2, 2) },
        Job { readings: &exact, context: context(3, 500) },
        Job { readings: &exact, context: context(4, 2) },
        Job { readings: &exact, context: context(5, 3) },
    ];
    let models = many.fit_many(&jobs, &Progress::silent()).unwrap();
    let calls = recorder.calls.lock().unwrap().clone();
    assert!(calls.iter().any(|call| call.starts_with("imitate 2 of 24 x 20")), "{calls:?}");
    assert!(calls.iter().any(|call| call.starts_with("fit 2 of 24 x 20")), "{calls:?}");
    assert_eq!(calls.len(), 6, "{calls:?}");
    let alone = method("unn").unwrap().build(settings()).unwrap();
    for (k, (job, model)) in jobs.iter().zip(&models).enumerate() {
        let single = alone.fit(job.readings, &job.context, &Progress::silent());
        match (model, single) {
            (Ok(model), Ok(single)) => {
                assert_eq!(model.report().loss_trace, single.report().loss_trace, "{k}");
            }
            (Err(error), Err(single)) => assert_eq!((k, error), (2, &single)),
            _ => panic!("{k}: one failed, the other did not"),
        }
    }
    // An engine that learns two starts while others are made.
    let in_turn = Arc::new(Recorder { at_once: Some(2), ..Recorder::default() });
    let by_turns = method("unn").unwrap().build_on(in_turn, settings()).unwrap();
    let again = by_turns.fit_many(&jobs, &Progress::silent()).unwrap();
    for (one, other) in models.iter().zip(&again) {
        let trace = |model: &Model| model.report().loss_trace.clone();
        assert_eq!(one.as_ref().map(trace), other.as_ref().map(trace));
    }
    let never = |_: f64| false;
    for method in [&many, &by_turns] {
        let cancelled = method.fit_many(&jobs, &Progress::new(&never));
        assert_eq!(cancelled.err(), Some(EstimateError::Cancelled));
    }
}

fn members(count: &str) -> Vec<(&'static str, String)> {
    let quick = [("iterations", "60"), ("start_iterations", "200")];
    let quick = quick.map(|(name, value)| (name, value.to_string()));
    quick.into_iter().chain([("members", count.to_string())]).collect()
}

fn ensemble(engine: Arc<dyn Engine>, count: &str) -> Box<dyn Method> {
    let settings = members(count).into_iter().map(|(name, value)| (name.to_string(), value));
    method("unn").unwrap().build_on(engine, settings).unwrap()
}

#[test]
fn members_are_fitted_in_one_batch_and_say_how_sure_they_are() {
    for quantised in [false, true] {
        let readings = readings(quantised);
        let recorder = Arc::new(Recorder::default());
        let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
        let fitted = ensemble(recorder.clone(), "5");
        let model = fitted.fit(&readings, &context, &Progress::silent()).unwrap();
        let calls = recorder.calls.lock().unwrap().clone();
        let size = "5 of 24 x 20, 2 emitters";
        let expected =
            [("imitate", 200), ("fit", 60)].map(|(w, n)| format!("{w} {size}, {n} iterations"));
        assert_eq!(calls, expected);
        assert_eq!(model.report().fitted("members"), Some(5.0));
        let grid = Grid::new(24, 20, 1.0).unwrap();
        let map = model.map(grid, &Progress::silent()).unwrap();
        assert_eq!(map.factors().unwrap().psd.dim(), (2, 12));
        let spread = map.spread_db().expect("members have a spread");
        assert!(spread.iter().all(|s| s.is_finite() && *s > 0.0));
        // Places are predicted as the map is drawn.
        let found = model.predict(&[grid.site(Cell::new(7, 11))], &Progress::silent()).unwrap();
        let power = map.to_dense()[[7, 11, 3]];
        assert!((found.power[[0, 3]] / power - 1.0).abs() < 1e-9);
        let drawn = found.spread_db.unwrap()[[0, 3]];
        assert!((drawn / spread[[7, 11, 3]] - 1.0).abs() < 1e-5);
        // Batches give what single jobs do.
        let jobs = [Job { readings: &readings, context }, Job { readings: &readings, context }];
        let many = ensemble(Arc::new(CpuEngine), "5").fit_many(&jobs, &Progress::silent());
        for one in many.unwrap() {
            assert_eq!(one.unwrap().map(grid, &Progress::silent()).unwrap(), map);
        }
    }
}

#[test]
fn members_come_back_from_a_file() {
    let readings = readings(false);
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let model = ensemble(Arc::new(CpuEngine), "3");
    let model = model.fit(&readings, &context, &Progress::silent()).unwrap();
    let grid = Grid::new(24, 20, 1.0).unwrap();
    let drawn = model.map(grid, &Progress::silent()).unwrap();
    let back = Model::from_archive(&model.to_archive()).unwrap();
    assert_eq!(back.map(grid, &Progress::silent()).unwrap(), drawn);
}

#[test]
fn the_papers_recipe_and_few_sensors_have_one_member() {
    let context = Context { emitters: Emitters::Count(2), ..Context::default() };
    let whole = readings(false);
    let some: Vec<usize> = (0..20).collect();
    let few = whole.subset(&some).unwrap();
    let own = |unn: &Unn, readings| unn.members_of(readings, &context).unwrap();
    let usual = Unn::default();
    assert_eq!((own(&usual, &whole), own(&usual, &few)), (MEMBERS, 1));
    assert_eq!(own(&Unn::paper(UnnStart::Btd), &whole), 1);
    let large = Context { grid: Some(Grid::new(400, 400, 0.06).unwrap()), ..context };
    assert_eq!(usual.members_of(&whole, &large).unwrap(), 1);
}

/// The constant, multiple and offset of the spread, as a file has them.
fn spread_law(model: &Model) -> Vec<f64> {
    let archive = model.to_archive();
    let name = archive.entries().map(|(name, _)| name).find(|name| name.ends_with("spread"));
    archive.finite(name.unwrap()).unwrap()
}

#[test]
fn members_take_the_offset_that_is_set() {
    let readings = readings(false);
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let settings = [members("3"), vec![("offset", "2e-5".to_string())]].concat();
    let settings = settings.into_iter().map(|(name, value)| (name.to_string(), value));
    let unn = method("unn").unwrap().build(settings).unwrap();
    let model = unn.fit(&readings, &context, &Progress::silent()).unwrap();
    assert_eq!(spread_law(&model)[2], 2e-5);
}

/// Where nothing was judged, the smallest spread was once taken.
#[test]
fn members_that_cannot_leave_a_sensor_out_keep_the_usual_spread() {
    let whole = readings(false);
    let mut power = whole.power().mapv(|x| if x.is_nan() { 1e-7 } else { x });
    for (band, fold) in spread_folds(whole.sites(), FOLDS).iter().enumerate() {
        let only = power[[fold[0], band]];
        power.column_mut(band).fill(f64::NAN);
        power[[fold[0], band]] = only;
    }
    let readings = whole.with_values(Values::Power(power)).unwrap();
    let context = Context { emitters: Emitters::Count(2), seed: 1, ..Context::default() };
    let settings = [("members", "3"), ("start", "xavier"), ("iterations", "20")];
    let settings = settings.map(|(name, value)| (name.to_string(), value.to_string()));
    let unn = method("unn").unwrap().build(settings).unwrap();
    let model = unn.fit(&readings, &context, &Progress::silent()).unwrap();
    let usual = SpreadLaw::unknown(0.0);
    assert_eq!(spread_law(&model)[..2], [usual.constant, usual.multiple]);
    let notes = &model.report().notes;
    assert!(notes.iter().any(|note| note.contains("not calibrated")), "{notes:?}");
}
