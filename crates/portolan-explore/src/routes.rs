//! The API: what can be asked and what is answered. `openapi.json` describes it for others.

mod about;
mod tiles;
mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use portolan::Progress;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::answer::{Answered, Refusal, bytes_answer, json_answer};
use crate::assets;
use crate::blocks::Blocks;
use crate::guard::{Door, check};
use crate::jobs::{About, Job, Jobs, Work};
use crate::library::{FitCall, Item, Library};
use crate::query::Query;
use crate::uploads::{MOST_BYTES, Uploads};
use crate::work::{check_fit, fit};

/// Bytes of a request in JSON.
const MOST_JSON: usize = 64 << 10;
/// How long a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// How long an upload may take to arrive.
const UPLOAD: Duration = Duration::from_secs(120);
/// Files that are written for export at once.
const MOST_EXPORTS: usize = 2;
/// Requests that may wait for tiles to be drawn.
const MOST_WAITING: usize = 600;
/// Questions about places and sensors that are worked on at once.
const MOST_QUESTIONS: usize = 8;

/// What all requests share.
pub struct Shared {
    pub door: Door,
    pub library: Arc<Library>,
    pub jobs: Jobs,
    pub blocks: Arc<Blocks>,
    pub uploads: Uploads,
    /// Files that were not opened, and why.
    pub skipped: Vec<(String, String)>,
    exports: Semaphore,
    waiting: Semaphore,
    questions: Semaphore,
    /// Number of internal errors.
    failures: AtomicU64,
    /// Tells a server from the one before it.
    instance: String,
}

impl Shared {
    pub fn new(
        door: Door,
        library: Library,
        skipped: Vec<(String, String)>,
    ) -> std::io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            door,
            library: Arc::new(library),
            jobs: Jobs::default(),
            blocks: Arc::new(Blocks::new()),
            waiting: Semaphore::new(MOST_WAITING),
            uploads: Uploads::new()?,
            skipped,
            exports: Semaphore::new(MOST_EXPORTS),
            questions: Semaphore::new(MOST_QUESTIONS),
            failures: AtomicU64::new(0),
            instance: format!("{:x}-{}", now.as_nanos(), std::process::id()),
        })
    }

    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// What a fit is about, and its work.
    fn fit(&self, call: FitCall) -> Result<(About, Work), Refusal> {
        check_fit(&call)?;
        let item = self.library.get(call.readings)?;
        let readings = item.readings().cloned().ok_or_else(|| {
            Refusal::input(format!("item {} holds no readings to fit a method to", item.id))
        })?;
        let name = call.method.clone();
        let what = format!("{name} on {}", item.name);
        let about = About { kind: "fit", of: item.id, what, asked: call.request() };
        let library = self.library.clone();
        let work = move |progress: &Progress<'_>| fit(&library, &readings, name, call, progress);
        Ok((about, Box::new(work)))
    }

    /// Starts to fit a method.
    pub fn start_fit(&self, call: FitCall) -> Result<Arc<Job>, Refusal> {
        let (about, work) = self.fit(call)?;
        self.jobs.start(about, work)
    }

    /// Fits a method as soon as nothing else runs.
    pub fn queue_fit(&self, call: FitCall) -> Result<Arc<Job>, Refusal> {
        let (about, work) = self.fit(call)?;
        Ok(self.jobs.queue(about, work))
    }

    /// Lets go of an item, of the fits to it, and of everything about them; returns their numbers.
    pub fn close(&self, id: u32) -> Result<Vec<u32>, Refusal> {
        let gone = self.library.remove(id)?;
        for &id in &gone {
            self.jobs.forget(id);
            self.blocks.forget(id);
        }
        Ok(gone)
    }

    /// Runs what takes a while beside the connections.
    pub async fn question<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shared) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = self.questions.acquire().await.map_err(|_| Refusal::busy("the server ends"))?;
        let shared = self.clone();
        let found = tokio::task::spawn_blocking(move || work(&shared)).await;
        drop(turn);
        found.map_err(|_| Refusal::broken("the query failed: internal error"))?
    }
}

pub type State = axum::extract::State<Arc<Shared>>;

/// A part of a path that must be a number: anything else names nothing.
pub struct Id(pub u32);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let missing = || Refusal::missing("there is no such thing");
        let Path(all) = Path::<HashMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|_| missing())?;
        let id = all.get("id").and_then(|id| id.parse().ok()).ok_or_else(missing)?;
        Ok(Id(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let found =
            axum::extract::Query::<HashMap<String, String>>::from_request_parts(parts, state);
        let found = found.await.map_err(|error| Refusal::input(error.to_string()))?;
        Ok(Query(found.0))
    }
}

/// The body of a request, where it is small enough and comes soon enough.
async fn body(request: Request, most: usize, within: Duration) -> Result<Bytes, Refusal> {
    let too_large = || {
        let message = format!("the request is larger than {most} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if length.is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(within, to_bytes(request.into_body(), most)).await {
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request came too slowly")),
        Ok(Ok(bytes)) => Ok(bytes),
        // Cut off by the limit, or by the client.
        Ok(Err(error)) => match std::error::Error::source(&error) {
            Some(cause) if cause.to_string().contains("limit") => Err(too_large()),
            _ => Err(Refusal::input("the request broke off")),
        },
    }
}

/// A request in JSON, which only a page of this server or no page can send.
pub async fn json_body(request: Request) -> Result<Value, Refusal> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let message = "expected content-type: application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let bytes = body(request, MOST_JSON, ARRIVAL).await?;
    serde_json::from_slice(&bytes).map_err(|error| Refusal::input(format!("JSON: {error}")))
}

/// An uploaded file.
pub async fn upload_body(request: Request) -> Result<Bytes, Refusal> {
    body(request, MOST_BYTES, UPLOAD).await
}

async fn openapi() -> Answered {
    Ok(bytes_answer("application/json", assets::OPENAPI.to_vec()))
}

async fn nothing() -> Refusal {
    Refusal::missing("there is no such address; /api/openapi.json lists those that there are")
}

async fn other_verb() -> Refusal {
    let message = "this address is asked in another way; /api/openapi.json says how";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// All addresses.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(assets::index))
        .route("/page/{name}", get(assets::file))
        .route("/api/openapi.json", get(openapi))
        .route("/api/state", get(about::state))
        .route("/api/methods", get(about::methods))
        .route("/api/palettes", get(about::palettes))
        .route("/api/items/{id}", get(about::item).delete(about::close))
        .route("/api/items/{id}/at", get(about::at))
        .route("/api/items/{id}/places", get(about::places))
        .route("/api/items/{id}/levels", get(about::levels))
        .route("/api/items/{id}/sensor", get(about::sensor))
        .route("/api/items/{id}/commands", get(work::commands))
        .route("/api/items/{id}/export", get(work::export))
        .route("/api/items/{id}/tile/{z}/{x}/{y}", get(tiles::one))
        .route("/api/items/{id}/tiles", get(tiles::many))
        .route("/api/jobs", post(work::start))
        .route("/api/jobs/{id}", get(work::job).delete(work::cancel))
        .route("/api/jobs/{id}/export", get(work::export_job))
        .route("/api/uploads", post(work::upload))
        .route("/api/uploads/{id}/preview", post(work::preview))
        .route("/api/uploads/{id}/open", post(work::open))
        .fallback(nothing)
        .method_not_allowed_fallback(other_verb)
        .layer(from_fn_with_state(shared.clone(), check))
        .with_state(shared)
}

/// A list in JSON, numbers with four decimals and null where there is none.
pub fn rounded(values: impl IntoIterator<Item = f64>) -> Value {
    let one = |value: f64| {
        if value.is_finite() { serde_json::json!((value * 1e4).round() / 1e4) } else { Value::Null }
    };
    Value::Array(values.into_iter().map(one).collect())
}

/// The band that a query asks for.
pub fn band_of(query: &Query, bands: usize) -> Result<usize, Refusal> {
    let band = query.whole("band")?.unwrap_or(0);
    if band < bands {
        return Ok(band);
    }
    Err(Refusal::input(format!("band {band}: expected a number from 0 to {}", bands - 1)))
}

/// An item by its number.
pub fn item_of(shared: &Shared, id: u32) -> Result<Arc<Item>, Refusal> {
    shared.library.get(id)
}

/// Says yes.
pub fn done() -> Answered {
    Ok(json_answer(&serde_json::json!({ "done": true })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::until;
    use crate::library::{Content, Source};
    use crate::surface::Surface;
    use crate::work::advised;
    use ndarray::Array2;
    use portolan::{Context, Method, Readings, Scale, Site, Values};

    #[test]
    fn what_is_closed_is_let_go() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        let sites: Vec<Site> =
            (0..36).map(|i| Site::new(f64::from(i % 6), f64::from(i / 6))).collect();
        let level = |i: usize| -50.0 - (i % 6) as f64 - ((i * 7) % 5) as f64;
        let power = Array2::from_shape_fn((36, 1), |(i, _)| 10f64.powf(level(i) / 10.0));
        let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
        let method = portolan::estimate::Kriging::default();
        let model = method.fit(&readings, &Context::default(), &Progress::silent()).unwrap();

        let door = Door { port: 1, token: None };
        let shared = Shared::new(door, Library::default(), Vec::new()).unwrap();
        let add = |source, content| shared.library.add("x", source, content, Vec::new()).unwrap();
        let survey = add(Source::Given, Content::Readings(Arc::new(readings)));
        let call = FitCall {
            readings: survey.id,
            method: "kriging".into(),
            settings: Vec::new(),
            emitters: None,
            seed: 0,
        };
        let surface = Arc::new(Surface::Model(Box::new(model.named("kriging"))));
        let item = add(Source::Fit(call), Content::Surface(surface.clone()));
        // Tiles and advice hold on to it.
        shared.blocks.draw_ahead(item.id, &surface);
        until(|| shared.blocks.drawn.load(Ordering::Relaxed) > 0);
        let about = About { kind: "advise", of: item.id, what: String::new(), asked: Value::Null };
        let own = item.clone();
        let work = move |progress: &Progress<'_>| advised(&own, 2, progress);
        let job = Arc::downgrade(&shared.jobs.start(about, Box::new(work)).unwrap());
        until(|| job.upgrade().is_some_and(|job| job.outcome().is_some()));

        let weak = (Arc::downgrade(&survey), Arc::downgrade(&item), Arc::downgrade(&surface));
        let ids = vec![survey.id, item.id];
        drop((survey, item, surface));
        assert!(weak.2.upgrade().is_some());
        assert_eq!(shared.close(ids[0]).unwrap(), ids);
        until(|| {
            weak.0.strong_count() + weak.1.strong_count() + weak.2.strong_count() == 0
                && job.strong_count() == 0
        });
    }
}
