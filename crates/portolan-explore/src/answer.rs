//! Answers: JSON and bytes out, and refusals that say what to do.

use std::path::Path;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use portolan::{EstimateError, InputError};
use portolan_io::IoError;
use portolan_io::export::PartFailure;
use portolan_io::picture::PictureError;
use serde_json::{Value, json};

/// Why a request is not answered as asked.
#[derive(Clone, Debug)]
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

    /// The same without a folder of ours: it is of no use to who reads the message.
    pub fn without(self, folder: &Path) -> Self {
        let message = self.message.replace(&format!("{}/", folder.display()), "");
        Self { message, ..self }
    }

    /// An internal error.
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
        let message = error.to_string();
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
