//! Access control: pages of this server, from this machine, or holders of the token.
//!
//! On loopback the Host header must name this machine, so that a foreign page whose name has been
//! pointed here (DNS rebinding) is refused. Elsewhere every request must carry the token. Requests
//! that change something must come from a page of this server, or from no page at all.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::Refusal;
use crate::routes::Shared;

/// Names under which this machine is known to itself.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What the browser may do with the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: \
                      data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'self' http://localhost:* http://127.0.0.1:*";

/// How requests are told apart.
#[derive(Clone, Debug)]
pub struct Door {
    pub port: u16,
    /// What every request must carry, where others than this machine can ask.
    pub token: Option<String>,
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Compares without saying by its time how much is right.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Door {
    fn own_host(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        port == Some(self.port) && OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
    }

    /// The name of the cookie. A browser sends cookies to every port of a machine: two explorers must
    /// not take each other's.
    fn cookie(&self) -> String {
        format!("portolan-{}", self.port)
    }

    /// The token that a request carries: bearer, cookie, or in its address.
    fn carries(&self, headers: &HeaderMap, query: Option<&str>, token: &str) -> bool {
        let bearer = text(headers, header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
        let cookie = text(headers, header::COOKIE).unwrap_or_default();
        let mut cookies = cookie.split(';').filter_map(|pair| pair.trim().split_once('='));
        let own = self.cookie();
        let cookie = cookies.find(|(name, _)| *name == own).map(|(_, value)| value);
        [bearer, cookie, asked_token(query)].into_iter().flatten().any(|given| same(given, token))
    }

    /// Why a request is refused, where it is.
    pub fn refused(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Option<Refusal> {
        let forbidden = |why: &str| Some(Refusal::new(StatusCode::FORBIDDEN, why));
        let Some(host) = text(headers, header::HOST) else {
            return Some(Refusal::input("the request has no Host header"));
        };
        match &self.token {
            None if !self.own_host(host) => {
                return forbidden("this server answers to localhost and 127.0.0.1 only");
            }
            Some(token) if !self.carries(headers, query, token) => {
                let why =
                    "open the address with the token that was printed when the explorer began";
                return Some(Refusal::new(StatusCode::UNAUTHORIZED, why));
            }
            _ => {}
        }
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let foreign = match headers.get(HeaderName::from_static("sec-fetch-site")) {
            Some(site) => site != "same-origin" && site != "none",
            None => false,
        };
        // A notebook elsewhere may show the page; only the page itself may ask the API.
        if foreign && (!reads || path.starts_with("/api/")) {
            return forbidden("pages of other sites may not ask");
        }
        match text(headers, header::ORIGIN) {
            Some(origin)
                if origin != format!("http://{host}") && (!reads || path.starts_with("/api/")) =>
            {
                forbidden("pages of other sites may not ask")
            }
            None if !reads && headers.contains_key(header::ORIGIN) => {
                forbidden("an Origin that is not text")
            }
            _ => None,
        }
    }
}

fn asked_token(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Stands before every route.
pub async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (path, query) = (request.uri().path(), request.uri().query());
    let door = &shared.door;
    let refusal = door.refused(request.method(), path, query, request.headers());
    let mut response = match (refusal, &door.token) {
        (Some(refusal), _) => refusal.into_response(),
        // The token leaves the address bar as soon as the browser knows it.
        (None, Some(token)) if path == "/" && asked_token(query).is_some() => {
            let name = door.cookie();
            let cookie = format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/");
            let to = [(header::LOCATION, "/".to_string()), (header::SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, to).into_response()
        }
        (None, _) => next.run(request).await,
    };
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        shared.count_failure();
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap())).collect()
    }

    fn refused(
        door: &Door,
        method: Method,
        path: &str,
        pairs: &[(&'static str, &str)],
    ) -> Option<u16> {
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        door.refused(&method, path, query, &headers(pairs)).map(|r| r.status.as_u16())
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let door = Door { port: 8123, token: None };
        for host in ["localhost:8123", "127.0.0.1:8123", "[::1]:8123", "LOCALHOST:8123"] {
            assert_eq!(refused(&door, Method::GET, "/", &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example:8123",
            "127.0.0.1",
            "localhost:80",
            "127.0.0.1.evil.example:8123",
            "",
            "[::1]",
            "localhost:",
        ] {
            assert_eq!(refused(&door, Method::GET, "/", &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(refused(&door, Method::GET, "/", &[]), Some(400));
    }

    #[test]
    fn other_sites_may_not_post() {
        let door = Door { port: 8123, token: None };
        let host = ("host", "localhost:8123");
        let post =
            |pairs: &[(&'static str, &str)]| refused(&door, Method::POST, "/api/jobs", pairs);
        assert_eq!(post(&[host]), None);
        assert_eq!(
            post(&[host, ("origin", "http://localhost:8123"), ("sec-fetch-site", "same-origin")]),
            None
        );
        for origin in [
            "http://evil.example",
            "null",
            "https://localhost:8123",
            "http://localhost:9999",
            "http://127.0.0.1:8123",
        ] {
            assert_eq!(post(&[host, ("origin", origin)]), Some(403), "{origin}");
        }
        assert_eq!(post(&[host, ("sec-fetch-site", "cross-site")]), Some(403));
        assert_eq!(post(&[host, ("sec-fetch-site", "same-site")]), Some(403));
        let get = |path: &str| {
            refused(&door, Method::GET, path, &[host, ("sec-fetch-site", "cross-site")])
        };
        assert_eq!((get("/"), get("/api/items")), (None, Some(403)));
    }

    #[test]
    fn elsewhere_every_request_carries_the_token() {
        let door = Door { port: 8123, token: Some("abc123".into()) };
        let host = ("host", "lab:8123");
        let get =
            |path: &str, pairs: &[(&'static str, &str)]| refused(&door, Method::GET, path, pairs);
        assert_eq!(get("/", &[host]), Some(401));
        assert_eq!(get("/?token=abc124", &[host]), Some(401));
        assert_eq!(get("/?token=abc123", &[host]), None);
        assert_eq!(get("/api/items", &[host, ("cookie", "x=1; portolan-8123=abc123")]), None);
        assert_eq!(get("/api/items", &[host, ("cookie", "portolan-8124=abc123")]), Some(401));
        assert_eq!(get("/api/items", &[host, ("authorization", "Bearer abc123")]), None);
        assert_eq!(get("/api/items", &[host, ("authorization", "Bearer ")]), Some(401));
        let post = refused(
            &door,
            Method::POST,
            "/api/jobs",
            &[host, ("cookie", "portolan-8123=abc123"), ("origin", "http://evil.example")],
        );
        assert_eq!(post, Some(403));
    }
}
