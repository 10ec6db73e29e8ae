//! The page, compiled in.

use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::answer::{Answered, Refusal, bytes_answer};

/// Name, kind and content of every file of the page.
const FILES: &[(&str, &str, &[u8])] = &[
    ("api.js", "text/javascript", include_bytes!("../page/api.js")),
    ("app.js", "text/javascript", include_bytes!("../page/app.js")),
    ("chart.js", "text/javascript", include_bytes!("../page/chart.js")),
    ("check.js", "text/javascript", include_bytes!("../page/check.js")),
    ("close.js", "text/javascript", include_bytes!("../page/close.js")),
    ("colour.js", "text/javascript", include_bytes!("../page/colour.js")),
    ("here.js", "text/javascript", include_bytes!("../page/here.js")),
    ("icon.svg", "image/svg+xml", include_bytes!("../page/icon.svg")),
    ("jobs.js", "text/javascript", include_bytes!("../page/jobs.js")),
    ("legend.js", "text/javascript", include_bytes!("../page/legend.js")),
    ("link.js", "text/javascript", include_bytes!("../page/link.js")),
    ("linked.js", "text/javascript", include_bytes!("../page/linked.js")),
    ("marks.js", "text/javascript", include_bytes!("../page/marks.js")),
    ("open.js", "text/javascript", include_bytes!("../page/open.js")),
    ("style.css", "text/css", include_bytes!("../page/style.css")),
    ("take.js", "text/javascript", include_bytes!("../page/take.js")),
    ("tiles.js", "text/javascript", include_bytes!("../page/tiles.js")),
    ("under.js", "text/javascript", include_bytes!("../page/under.js")),
    ("view.js", "text/javascript", include_bytes!("../page/view.js")),
    ("work.js", "text/javascript", include_bytes!("../page/work.js")),
];

const INDEX: &[u8] = include_bytes!("../page/index.html");

/// The description of the API.
pub const OPENAPI: &[u8] = include_bytes!("../openapi.json");

pub async fn index() -> Response {
    fresh(bytes_answer("text/html; charset=utf-8", INDEX.to_vec()))
}

pub async fn file(axum::extract::Path(name): axum::extract::Path<String>) -> Answered {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let (_, kind, bytes) = found.ok_or_else(|| Refusal::missing("there is no such file"))?;
    Ok(fresh(bytes_answer(kind, bytes.to_vec())))
}

/// A newer version of the program must not meet an old page.
fn fresh(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
