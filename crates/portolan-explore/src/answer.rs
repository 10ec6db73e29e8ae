//! Answers: JSON and bytes out, and refusals that say what to do.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use portolan::{EstimateError, InputError};
use portolan_io::IoError;
use portolan_io::drawn::PartFailure;
use portolan_io::picture::PictureError;
use serde_json::{Value, json};

/// Why a request is not answered as asked.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// The request is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn missing(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// Ask again later.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// A mistake of ours, or of the machine.
    pub fn broken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        Refusal::input(error.to_string())
    }
}

impl From<EstimateError> for Refusal {
    fn from(error: EstimateError) -> Self {
        match error {
            EstimateError::Input(error) => error.into(),
            EstimateError::Cancelled => Refusal::busy("cancelled"),
            // The data asked for more than the method can do: 422, not a failure of the server.
            error => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        }
    }
}

impl From<PictureError> for Refusal {
    fn from(error: PictureError) -> Self {
        Refusal::input(error.to_string())
    }
}

impl From<IoError> for Refusal {
    fn from(error: IoError) -> Self {
        // Folders of this machine are nobody's business, and of no use to who reads the message.
        let folder = error.path().parent().map(|p| format!("{}/", p.display())).unwrap_or_default();
        let message = error.to_string();
        let message = if folder.len() > 1 { message.replace(&folder, "") } else { message };
        if error.is_input() { Refusal::input(message) } else { Refusal::broken(message) }
    }
}

impl From<PartFailure> for Refusal {
    fn from(failure: PartFailure) -> Self {
        match failure {
            PartFailure::Draw(error) => error.into(),
            PartFailure::File(error) => error.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json_answer(&json!({ "error": self.message }));
        *response.status_mut() = self.status;
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

pub type Answered = Result<Response, Refusal>;

pub fn json_answer(value: &Value) -> Response {
    bytes_answer("application/json", value.to_string().into_bytes())
}

pub fn bytes_answer(kind: &'static str, bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], Body::from(bytes)).into_response()
}
