//! What must not be answered: foreign pages, foreign paths, too much of anything.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use portolan_explore::{Explorer, Server};
use serde_json::json;

use crate::client::{get, parsed, post, raw, send, serve, with_model};

#[test]
fn paths_lead_nowhere() {
    let (server, _) = with_model();
    for path in [
        "/../../../../etc/passwd",
        "/page/../Cargo.toml",
        "/page/..%2f..%2fCargo.toml",
        "/page/%2e%2e/%2e%2e/etc/passwd",
        "/page//etc/passwd",
        "/page/%2fetc%2fpasswd",
        "/page/index.html%00.js",
        "/etc/passwd",
        "/api/items/../../etc/passwd",
        "/api/uploads/..%2f1/open",
        "/page/",
        "//",
    ] {
        let answer = get(&server, path);
        assert!(matches!(answer.status, 400 | 404 | 405), "{path}: {}", answer.status);
        assert!(!String::from_utf8_lossy(&answer.body).contains("root:"), "{path}");
    }
    assert_eq!(get(&server, "/page/app.js").status, 200);
}

#[test]
fn other_sites_and_other_names_are_refused() {
    let (server, _) = with_model();
    let port = server.address().port();
    let own = format!("localhost:{port}");
    assert_eq!(send(&server, "GET", "/api/state", &[("Host", &own)], b"").status, 200);
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost:1"] {
        let answer = send(&server, "GET", "/api/state", &[("Host", host)], b"");
        assert_eq!(answer.status, 403, "{host}");
        assert!(answer.error().contains("localhost"));
    }
    let request = json!({ "kind": "fit", "readings": 1, "method": "idw" }).to_string();
    let typed = ("Content-Type", "application/json");
    for origin in ["http://evil.example", "null", "http://localhost:1"] {
        let headers = [("Host", own.as_str()), typed, ("Origin", origin)];
        let answer = send(&server, "POST", "/api/jobs", &headers, request.as_bytes());
        assert_eq!(answer.status, 403, "{origin}");
    }
    // What a form of another site can send without asking first.
    let plain = [("Host", own.as_str()), ("Content-Type", "text/plain")];
    assert_eq!(send(&server, "POST", "/api/jobs", &plain, request.as_bytes()).status, 415);
    let same = format!("http://{own}");
    let headers = [("Host", own.as_str()), typed, ("Origin", &same)];
    assert_eq!(send(&server, "POST", "/api/jobs", &headers, request.as_bytes()).status, 200);
    let answer = get(&server, "/");
    assert!(!answer.head.to_ascii_lowercase().contains("access-control-allow"));
    assert!(answer.head.contains("default-src 'none'") && answer.head.contains("nosniff"));
}

#[test]
fn giant_uploads_are_refused_before_they_are_read() {
    let (server, _) = with_model();
    let address = server.address();
    let head = format!(
        "POST /api/uploads?name=x.csv HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 99999999999\r\n\r\n"
    );
    assert_eq!(parsed(&raw(address, head.as_bytes())).status, 413);
    // One that does not say how long it is.
    let head = format!(
        "POST /api/uploads?name=x.csv HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b'x'; 1 << 20];
    let mut sent = 0;
    for _ in 0..100 {
        let chunk = format!("{:x}\r\n", piece.len());
        let whole = stream
            .write_all(chunk.as_bytes())
            .and_then(|()| stream.write_all(&piece))
            .and_then(|()| stream.write_all(b"\r\n"));
        if whole.is_err() {
            break;
        }
        sent += piece.len();
    }
    assert!(sent < 90 << 20, "the server reads on: {sent} bytes");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    if !answer.is_empty() {
        assert_eq!(parsed(&answer).status, 413);
    }
    let long = json!({ "kind": "x".repeat(100_000) });
    assert_eq!(post(&server, "/api/jobs", &long).status, 413);
}

#[test]
fn endless_heads_and_nonsense_end_the_connection() {
    let (server, _) = with_model();
    let address = server.address();
    let long = format!("GET /{} HTTP/1.1\r\nHost: {address}\r\n\r\n", "a".repeat(200_000));
    let many: String = (0..5000).map(|i| format!("X-{i}: y\r\n")).collect();
    let many = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{many}\r\n");
    for bytes in [
        long.as_bytes(),
        many.as_bytes(),
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET",
        b"\r\n\r\n\r\n\r\nx",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        if !answer.is_empty() {
            assert!((400..500).contains(&parsed(&answer).status));
        }
    }
    assert_eq!(get(&server, "/api/state").status, 200);
}

#[test]
fn wrong_requests_get_a_line_that_says_what_to_do() {
    let (server, _) = with_model();
    for (path, status, word) in [
        ("/api/items/99", 404, "no item 99"),
        ("/api/items/x", 404, "no such"),
        ("/api/items/1/tile/0/0/0", 400, "fit a method"),
        ("/api/items/2/tile/0/0/0?band=3", 400, "0 to 2"),
        ("/api/items/2/tile/0/0/0?band=-1", 400, "whole number"),
        ("/api/items/2/tile/0/0/0?layer=heat", 400, "expected power"),
        ("/api/items/2/tile/0/0/0?layer=above", 400, "level"),
        ("/api/items/2/tile/0/0/0?step=3", 400, "1, 2, 4"),
        ("/api/items/2/tile/99/0/0", 404, "zooms"),
        ("/api/items/2/tile/0/9/9", 404, "outside"),
        ("/api/items/2/tile/0/99999999999999999999/0", 404, "whole numbers"),
        ("/api/items/2/tiles?z=0&x0=0&x1=9999&y0=0&y1=9999", 400, "at most"),
        ("/api/items/2/tiles?z=0&x0=0", 400, "missing"),
        ("/api/items/2/at?x=1", 400, "x and y"),
        ("/api/items/2/at?x=NaN&y=1", 400, "number"),
        ("/api/items/2/at?x=1e999&y=1", 400, "number"),
        ("/api/items/2/sensor?n=60", 404, "no sensor 60"),
        ("/api/items/2/export?what=model&format=csv", 400, "npz"),
        ("/api/items/2/export?what=map&format=exe", 400, "expected npz"),
        ("/api/items/2/commands?what=map&format=exe", 400, "expected npz"),
        ("/api/items/2/export?what=map&mask=/etc/x.geojson", 400, "expected spread"),
        ("/api/items/2/export?what=map&cell-m=-1", 400, "cell"),
        ("/api/items/2/export?what=map&cell-m=0.000001", 400, ""),
        ("/api/items/2/export?what=secrets", 400, "expected model"),
        ("/api/jobs/7", 404, "no job 7"),
        ("/api/nothing", 404, "openapi"),
    ] {
        let answer = get(&server, path);
        assert_eq!(answer.status, status, "{path}: {}", String::from_utf8_lossy(&answer.body));
        assert!(answer.error().contains(word), "{path}: {}", answer.error());
    }
    for (body, word) in [
        (json!({}), "kind"),
        (json!({ "kind": "fit" }), "readings"),
        (json!({ "kind": "fit", "readings": 1, "method": "magic" }), "magic"),
        (json!({ "kind": "fit", "readings": 1, "method": "idw", "settings": { "x": "1" } }), "x"),
        (
            json!({ "kind": "fit", "readings": 1, "method": "idw", "settings": { "power": [] } }),
            "word",
        ),
        (json!({ "kind": "fit", "readings": 1, "method": "idw", "emitters": 3 }), "emitters"),
        (json!({ "kind": "fit", "readings": 1, "method": "oracle" }), "true map"),
        (json!({ "kind": "fit", "readings": 2 }), "no readings"),
        (json!({ "kind": "validate", "readings": 1, "methods": [] }), "methods"),
        (json!({ "kind": "validate", "readings": 1, "folds": 1 }), "folds"),
        (json!({ "kind": "advise", "item": 1 }), "fit a method"),
    ] {
        let answer = post(&server, "/api/jobs", &body);
        assert!((400..500).contains(&answer.status), "{body}");
        assert!(answer.error().contains(word), "{body}: {}", answer.error());
    }
    assert_eq!(send(&server, "PUT", "/api/jobs", &[], b"").status, 405);
}

#[test]
fn a_client_that_stalls_holds_nobody_up() {
    let (server, _) = with_model();
    let address = server.address();
    let mut stalled = Vec::new();
    for i in 0..60 {
        let mut stream = TcpStream::connect(address).unwrap();
        // Half a head, or a whole request whose answer is never read.
        let text = if i % 2 == 0 {
            "GET /api/state HT".to_string()
        } else {
            format!("GET /api/items/2/tile/3/0/0 HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(20)
        };
        stream.write_all(text.as_bytes()).unwrap();
        stalled.push(stream);
    }
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(get(&server, "/api/items/2").status, 200);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    drop(stalled);
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let (server, _) = with_model();
    let answer = send(&server, "DELETE", "/api/state", &[], b"");
    assert_eq!(answer.status, 405);
    assert!(answer.error().contains("openapi.json"), "{}", answer.error());
    for count in [0, 1_000_000] {
        let request = json!({ "kind": "advise", "item": 2, "count": count });
        let answer = post(&server, "/api/jobs", &request);
        assert_eq!((answer.status, answer.error().contains("expected 1 to")), (400, true));
    }
}

#[test]
fn elsewhere_a_token_is_needed() {
    let server = Server::start(Explorer::empty(), &[(Ipv4Addr::UNSPECIFIED, 0).into()]).unwrap();
    let (host, token) =
        server.url().split_once("/?token=").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
    assert!(host.starts_with("http://0.0.0.0:") && token.len() == 32);
    let address = std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, server.address().port()));
    let ask = |path: &str, more: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: lab:1\r\nConnection: close\r\n{more}\r\n");
        parsed(&raw(address, text.as_bytes()))
    };
    assert_eq!(ask("/api/state", "").status, 401);
    assert_eq!(ask("/", "").status, 401);
    assert_eq!(ask("/api/state?token=wrong", "").status, 401);
    assert_eq!(ask("/api/state", &format!("Authorization: Bearer {token}\r\n")).status, 200);
    let first = ask(&format!("/?token={token}"), "");
    assert_eq!(first.status, 303);
    // Named by the port: another explorer on this machine has a cookie of its own.
    let cookie = format!("portolan-{}={token}", server.address().port());
    assert!(first.head.contains(&format!("{cookie}; HttpOnly; SameSite=Strict")));
    assert_eq!(ask("/", &format!("Cookie: {cookie}\r\n")).status, 200);
    // Here the page needs none.
    let own = serve(Explorer::empty());
    assert!(!own.url().contains("token"));
}
