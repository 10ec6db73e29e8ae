//! What jobs do: fit, validate, advise.

use std::sync::Arc;
use std::time::Instant;

use portolan::advise::{Process, advise};
use portolan::estimate::{Capability, Split, build, check_used, folds, method, validate};
use portolan::{Context, Emitters, Progress, Readings};
use serde_json::json;

use crate::answer::Refusal;
use crate::jobs::{Judged, Outcome};
use crate::library::{Content, FitCall, Item, Library, Settings, Source};
use crate::surface::Surface;

/// Entries of a map that advice may draw at once.
const MOST_ENTRIES: usize = 1 << 23;

/// Refuses a fit that cannot be made, before any work.
pub fn check_fit(call: &FitCall) -> Result<(), Refusal> {
    let registered = method(&call.method)?;
    registered.build(call.settings.clone())?;
    if registered.has(Capability::Truth) {
        return Err(Refusal::input(format!(
            "method {} needs the true map: use `portolan compare`",
            call.method
        )));
    }
    match call.emitters {
        Some(0) => Err(Refusal::input("emitters: expected 1 or more, or auto")),
        Some(_) => Ok(check_used(Capability::Emitters, [registered.name])?),
        None => Ok(()),
    }
}

fn emitters(count: Option<usize>) -> Emitters {
    count.map_or(Emitters::Auto, Emitters::Count)
}

/// Fits a method and keeps the model.
pub fn fit(
    library: &Library,
    readings: &Readings,
    name: String,
    call: FitCall,
    progress: &Progress<'_>,
) -> Result<Outcome, Refusal> {
    let built = build(&call.method, call.settings.clone())?;
    let context =
        Context { emitters: emitters(call.emitters), seed: call.seed, ..Context::default() };
    let model = built.fit(readings, &context, progress)?.named(&call.method);
    // A cancel that came too late to be noticed still counts.
    progress.report(1, 1)?;
    let notes = model.report().notes.clone();
    let content = Content::Surface(Arc::new(Surface::Model(Box::new(model))));
    Ok(Outcome::Item(library.add(name, Source::Fit(call), content, notes)?.id))
}

/// What is validated how.
pub struct Validation {
    /// Label, name and settings of every method.
    pub methods: Vec<(String, String, Settings)>,
    pub blocks: bool,
    pub folds: usize,
    pub seed: u64,
}

/// Says how well methods predict sensors that they have not seen.
pub fn judge(
    readings: &Arc<Readings>,
    asked: &Validation,
    progress: &Progress<'_>,
) -> Result<Outcome, Refusal> {
    let split = if asked.blocks { Split::Blocks } else { Split::Random };
    let dealt = folds(readings.sites(), asked.folds, split, asked.seed);
    if dealt.len() < 2 {
        let how = if asked.blocks { "into boxes" } else { "in parts" };
        return Err(Refusal::input(format!("the sensors cannot be split {how}")));
    }
    let context = Context { seed: asked.seed, ..Context::default() };
    let count = asked.methods.len() as f64;
    let mut rows = Vec::new();
    for (i, (label, name, settings)) in asked.methods.iter().enumerate() {
        let built = build(name, settings.clone())?;
        let part = progress.part(i as f64 / count..(i + 1) as f64 / count);
        let start = Instant::now();
        let found = validate(readings, built.as_ref(), &dealt, &context, &part);
        let seconds = start.elapsed().as_secs_f64();
        progress.check()?;
        let found = found.map_err(|error| error.to_string());
        rows.push(Judged { label: label.clone(), found, seconds });
    }
    let about = json!({
        "split": if asked.blocks { "blocks" } else { "random" },
        "folds": dealt.len(), "seed": asked.seed, "sensors": readings.sensors(),
    });
    Ok(Outcome::Validated { readings: readings.clone(), rows, about })
}

/// Finds the places where new sensors help most.
pub fn advised(item: &Item, count: usize, progress: &Progress<'_>) -> Result<Outcome, Refusal> {
    let surface = item.surface()?;
    let Surface::Model(model) = surface.as_ref() else {
        return Err(Refusal::input("advice needs a model: fit a method to readings"));
    };
    if !model.gives_spread() {
        return Err(Refusal::input(
            "the model has no spread, and advice needs one: fit kriging, field or auto",
        ));
    }
    let process = Process::from_report(model.report()).ok_or_else(|| {
        Refusal::input("the method has fitted no decorrelation distance: fit kriging or field")
    })?;
    let grid = model.grid_or_default()?;
    if grid.cells().saturating_mul(model.bands()) > MOST_ENTRIES {
        return Err(Refusal::input(format!(
            "advice looks at the whole map, {} x {} x {} entries: too many for the page, use \
             `portolan advise`",
            grid.rows(),
            grid.cols(),
            model.bands()
        )));
    }
    let map = model.map(grid, &progress.part(0.0..0.5))?;
    let places = advise(model.sites(), &map, &[], process, count, &progress.part(0.5..1.0))?;
    let sensors = model.sites().to_vec();
    Ok(Outcome::Advised { sensors, map: Box::new(map), advice: places })
}
