//! What changes something: uploads, jobs, exports.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Bytes, Frame, SizeHint};
use portolan::Progress;
use portolan::advise::MOST_PLACES;
use portolan_io::json::{advice_json, residuals_json};
use portolan_io::picture::mean_errors;
use serde_json::{Value, json};

use super::{Id, Shared, State, done, item_of, json_body, rounded, upload_body};
use crate::answer::{Answered, Refusal, json_answer};
use crate::commands::{file_name, for_fit, for_job, for_request, same_bytes};
use crate::export::{Written, write, write_job};
use crate::jobs::{About, Job, Outcome};
use crate::library::{FitCall, Settings};
use crate::query::Query;
use crate::request::ExportRequest;
use crate::uploads::Fields;
use crate::work::{Validation, advised, judge};

/// Methods of one validation.
const MOST_METHODS: usize = 12;

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

fn whole(object: &Value, name: &str) -> Result<Option<u64>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Refusal::input(format!("{name}: expected a whole number"))),
    }
}

fn id(object: &Value, name: &str) -> Result<u32, Refusal> {
    let found = whole(object, name)?.and_then(|id| u32::try_from(id).ok());
    found.ok_or_else(|| Refusal::input(format!("{name}: expected the number of an item")))
}

/// Pairs of names and values, as an object.
fn pairs(object: &Value, name: &str) -> Result<Vec<(String, String)>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(key, value)| match value {
                Value::String(text) => Ok((key.clone(), text.clone())),
                Value::Number(number) => Ok((key.clone(), number.to_string())),
                Value::Bool(is) => Ok((key.clone(), is.to_string())),
                _ => Err(Refusal::input(format!("{name}.{key}: expected a word or a number"))),
            })
            .collect(),
        Some(_) => Err(Refusal::input(format!("{name}: expected an object of names and values"))),
    }
}

/// Starts a fit, a validation or advice.
pub async fn start(shared: State, request: Request) -> Answered {
    let asked = json_body(request).await?;
    let (job, commands) = match text(&asked, "kind") {
        Some("fit") => start_fit(&shared, &asked)?,
        Some("validate") => start_validation(&shared, &asked)?,
        Some("advise") => start_advice(&shared, &asked)?,
        _ => return Err(Refusal::input("kind: expected fit, validate or advise")),
    };
    let mut found = job_json(&job);
    found["commands"] = json!(commands);
    Ok(json_answer(&found))
}

fn start_fit(shared: &Shared, asked: &Value) -> Result<(Arc<Job>, Vec<String>), Refusal> {
    let emitters = whole(asked, "emitters")?;
    let call = FitCall {
        readings: id(asked, "readings")?,
        method: text(asked, "method").unwrap_or("auto").to_string(),
        settings: pairs(asked, "settings")?,
        emitters: emitters.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        seed: whole(asked, "seed")?.unwrap_or(0),
    };
    let commands = for_fit(&shared.library, &call);
    Ok((shared.start_fit(call)?, commands))
}

fn start_validation(shared: &Shared, asked: &Value) -> Result<(Arc<Job>, Vec<String>), Refusal> {
    let item = item_of(shared, id(asked, "readings")?)?;
    let readings = item
        .readings()
        .cloned()
        .ok_or_else(|| Refusal::input("validation is about readings: this item holds none"))?;
    let listed = asked.get("methods").and_then(Value::as_array);
    let named: Vec<&str> = match listed {
        Some(listed) => listed.iter().filter_map(Value::as_str).collect(),
        None => vec!["kriging", "field", "auto"],
    };
    if named.is_empty() || named.len() > MOST_METHODS {
        return Err(Refusal::input(format!("methods: expected 1 to {MOST_METHODS} names")));
    }
    let folds = whole(asked, "folds")?.unwrap_or(5);
    if !(2..=1000).contains(&folds) {
        return Err(Refusal::input("folds: expected 2 to 1000"));
    }
    let mut methods = Vec::new();
    for label in &named {
        let (name, settings) = called(label)?;
        let registered = portolan::estimate::method(&name)?;
        registered.build(settings.clone())?;
        if registered.has(portolan::estimate::Capability::Truth) {
            return Err(Refusal::input(format!("method {name} needs the true map")));
        }
        methods.push((label.to_string(), name, settings));
    }
    let blocks = match text(asked, "split") {
        None | Some("random") => false,
        Some("blocks") => true,
        Some(_) => return Err(Refusal::input("split: expected random or blocks")),
    };
    let seed = whole(asked, "seed")?.unwrap_or(0);
    let validation = Validation { methods, blocks, folds: folds as usize, seed };
    let mut words = vec![("--methods", named.join(","))];
    words.extend(blocks.then(|| ("--split", "blocks".to_string())));
    words.extend((folds != 5).then(|| ("--folds", folds.to_string())));
    words.extend((seed != 0).then(|| ("--seed", seed.to_string())));
    words.push(("--plot", "errors.png".into()));
    let commands = for_job(&shared.library, &item, &words, "validate");
    let what = format!("{} on {}", named.join(", "), item.name);
    let asked = json!({
        "kind": "validate", "readings": item.id, "methods": named, "folds": folds, "seed": seed,
        "split": if blocks { "blocks" } else { "random" },
    });
    let about = About { kind: "validate", of: item.id, what, asked };
    let work = move |progress: &Progress<'_>| judge(&readings, &validation, progress);
    Ok((shared.jobs.start(about, Box::new(work))?, commands))
}

/// A name, and settings behind colons: kriging:trend=linear.
fn called(text: &str) -> Result<(String, Settings), Refusal> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default().trim().to_string();
    let wrong = || Refusal::input(format!("methods: '{text}': expected name:key=value"));
    let pair = |part: &str| {
        part.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())).ok_or_else(wrong)
    };
    Ok((name, parts.map(pair).collect::<Result<_, _>>()?))
}

fn start_advice(shared: &Shared, asked: &Value) -> Result<(Arc<Job>, Vec<String>), Refusal> {
    let item = item_of(shared, id(asked, "item")?)?;
    item.surface()?;
    let count = whole(asked, "count")?.unwrap_or(10);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if !(1..=MOST_PLACES).contains(&count) {
        return Err(Refusal::input(format!("count {count}: expected 1 to {MOST_PLACES}")));
    }
    let words = [("--count", count.to_string()), ("-o", "places.csv".into())];
    let commands = for_job(&shared.library, &item, &words, "advise");
    let asked = json!({ "kind": "advise", "item": item.id, "count": count });
    let what = format!("{count} places for {}", item.name);
    let about = About { kind: "advise", of: item.id, what, asked };
    let work = move |progress: &Progress<'_>| advised(&item, count, progress);
    Ok((shared.jobs.start(about, Box::new(work))?, commands))
}

/// How a job stands, and what came of it.
pub fn job_json(job: &Job) -> Value {
    let mut object = job.json();
    match job.outcome().as_deref() {
        None => {}
        Some(Outcome::Item(id)) => object["item"] = json!(id),
        Some(Outcome::Validated { readings, rows, about }) => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    let found = row.found.as_ref().ok();
                    let mut object = residuals_json(&row.label, found);
                    object["seconds"] = json!(row.seconds);
                    object["failed"] = json!(row.found.as_ref().err());
                    let errors = found.map(|found| mean_errors(found, readings.sensors()));
                    let errors = errors
                        .map(|all| rounded(all.into_iter().map(|error| error.unwrap_or(f64::NAN))));
                    object["errors"] = json!(errors);
                    object
                })
                .collect();
            object["validation"] = json!({ "methods": rows, "about": about });
        }
        Some(Outcome::Advised { map, advice, .. }) => {
            object["advice"] = advice_json(advice, map.grid());
        }
    }
    object
}

pub async fn job(shared: State, Id(id): Id) -> Answered {
    Ok(json_answer(&job_json(shared.jobs.get(id)?.as_ref())))
}

pub async fn cancel(shared: State, Id(id): Id) -> Answered {
    shared.jobs.get(id)?.cancel();
    done()
}

/// Keeps a file and says what it looks like.
pub async fn upload(shared: State, query: Query, request: Request) -> Answered {
    let name = query.text("name").unwrap_or("upload").to_string();
    let bytes = upload_body(request).await?;
    let found = shared
        .question(move |shared| Ok(shared.uploads.add(&name, &bytes)?.preview(&Fields::new())))
        .await?;
    Ok(json_answer(&found))
}

/// What an upload would be, with these words.
pub async fn preview(shared: State, Id(id): Id, request: Request) -> Answered {
    let words = pairs(&json_body(request).await?, "words")?;
    let found = shared.question(move |shared| Ok(shared.uploads.get(id)?.preview(&words))).await?;
    Ok(json_answer(&found))
}

/// Reads an upload with these words.
pub async fn open(shared: State, Id(id): Id, request: Request) -> Answered {
    let words = pairs(&json_body(request).await?, "words")?;
    let found = shared
        .question(move |shared| {
            let item = shared.uploads.get(id)?.open(&shared.library, &words)?;
            Ok(json!({ "item": item.id, "notes": item.notes }))
        })
        .await?;
    Ok(json_answer(&found))
}

/// The lines that write what the same query exports.
pub async fn commands(shared: State, Id(id): Id, query: Query) -> Answered {
    let item = item_of(&shared, id)?;
    let request = ExportRequest::parse(&query, &item, &shared.uploads)?;
    let lines = for_request(&shared.library, &item, &request)?;
    Ok(json_answer(&json!({
        "commands": lines, "file": file_name(&request), "same_bytes": same_bytes(&item, &request),
    })))
}

/// A file of an item.
pub async fn export(shared: State, Id(id): Id, query: Query) -> Answered {
    let item = item_of(&shared, id)?;
    let request = ExportRequest::parse(&query, &item, &shared.uploads)?;
    written(&shared, move |shared| {
        write(&shared.library, &item, &request, &file_name(&request), &Progress::silent())
    })
    .await
}

/// A file of what came of a job.
pub async fn export_job(shared: State, Id(id): Id, query: Query) -> Answered {
    let job = shared.jobs.get(id)?;
    let ending = query.text("format").unwrap_or("png").to_string();
    written(&shared, move |_| write_job(&job, &ending)).await
}

async fn written(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> Result<Written, Refusal> + Send + 'static,
) -> Answered {
    let turn = shared.exports.acquire().await.map_err(|_| Refusal::busy("the server ends"))?;
    let own = shared.clone();
    let found = tokio::task::spawn_blocking(move || work(&own)).await;
    drop(turn);
    let written = found.map_err(|_| Refusal::broken("the export failed: internal error"))??;
    answer(written)
}

fn answer(written: Written) -> Answered {
    let broken = |error: std::io::Error| Refusal::broken(format!("{}: {error}", written.name));
    let file = File::open(&written.path).map_err(broken)?;
    let left = file.metadata().map_err(broken)?.len();
    let name = format!("attachment; filename=\"{}\"", written.name);
    let name = HeaderValue::from_str(&name).map_err(|_| Refusal::broken("a name of the file"))?;
    let body = Body::new(FileBody { file, left, _written: written });
    let mut response: Response = (StatusCode::OK, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// Bytes of one frame.
const FRAME: u64 = 256 << 10;

/// A file that is sent piece by piece; its folder goes when it is sent, or when nobody waits.
struct FileBody {
    file: File,
    left: u64,
    _written: Written,
}

impl hyper::body::Body for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        // A file that was just written is in memory: reading does not wait for a disk.
        let mut piece = vec![0; this.left.min(FRAME) as usize];
        let read = this.file.read_exact(&mut piece);
        this.left -= piece.len() as u64;
        Poll::Ready(Some(read.map(|()| Frame::data(piece.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
