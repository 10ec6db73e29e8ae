//! A plain HTTP client, so that tests can also send what no browser would.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ndarray::Array2;
use portolan::{Context, Grid, Method, Model, Progress, Readings, Scale, Site, Values};
use portolan_explore::{Explorer, Server};
use serde_json::Value;

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_string()
    }

    pub fn numbers(&self) -> Vec<i16> {
        self.body.chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect()
    }
}

/// Sends bytes and reads until the server closes.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that has refused may have closed already.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

pub fn parsed(answer: &[u8]) -> Answer {
    let at = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8_lossy(&answer[..at]).into_owned();
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let mut body = answer[at + 4..].to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    Answer { status, head, body }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(at) = bytes.windows(2).position(|w| w == b"\r\n") {
        let size =
            std::str::from_utf8(&bytes[..at]).ok().and_then(|s| usize::from_str_radix(s, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        out.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[at + 4 + size..];
    }
    out
}

pub fn send(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let address = server.address();
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if method != "GET" {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    parsed(&raw(address, &bytes))
}

pub fn get(server: &Server, path: &str) -> Answer {
    send(server, "GET", path, &[], b"")
}

pub fn found(server: &Server, path: &str) -> Value {
    let answer = get(server, path);
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

pub fn post(server: &Server, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/json")];
    send(server, "POST", path, &headers, body.to_string().as_bytes())
}

/// Waits until a job has ended.
pub fn ended(server: &Server, job: u64) -> Value {
    let start = Instant::now();
    loop {
        let job = found(server, &format!("/api/jobs/{job}"));
        if job["state"] != "running" && job["state"] != "waiting" {
            return job;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{job}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn serve(explorer: Explorer) -> Server {
    Server::start(explorer, &[(Ipv4Addr::LOCALHOST, 0).into()]).unwrap()
}

/// Sensors on an uneven lattice, a field that falls from a corner, three bands.
pub fn readings() -> Readings {
    let sites: Vec<Site> = (0..60)
        .map(|i| {
            Site::new(f64::from(i % 10) * 3.1 + f64::from(i % 7) * 0.2, f64::from(i / 10) * 4.3)
        })
        .collect();
    let power = Array2::from_shape_fn((60, 3), |(i, band)| {
        let Site { x_m, y_m, .. } = sites[i];
        let db =
            -50.0 - 0.7 * x_m - 0.4 * y_m * (band as f64) + (x_m * 0.9).sin() - 3.0 * band as f64;
        if (i, band) == (5, 1) { f64::NAN } else { 10f64.powf(db / 10.0) }
    });
    Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap()
}

pub fn kriged(readings: &Readings) -> Model {
    let method = portolan::estimate::Kriging::default();
    method.fit(readings, &Context::default(), &Progress::silent()).unwrap().named("kriging")
}

/// A server with readings (1) and a model of them (2).
pub fn with_model() -> (Server, Model) {
    let mut explorer = Explorer::empty();
    let readings = readings();
    explorer.add_readings("survey", readings.clone()).unwrap();
    explorer.add_model("kriging", kriged(&readings)).unwrap();
    (serve(explorer), kriged(&readings))
}

/// A map that is not symmetric.
pub fn lopsided() -> portolan::RadioMap {
    let grid = Grid::new(9, 5, 2.0).unwrap().with_origin(Site::new(-4.0, 10.0)).unwrap();
    let power = ndarray::Array3::from_shape_fn((9, 5, 2), |(r, c, k)| {
        10f64.powf(-4.0 - 0.3 * r as f64 - 0.11 * (c * c) as f64 - k as f64)
    });
    portolan::RadioMap::dense(grid, power, Scale::Absolute).unwrap()
}
