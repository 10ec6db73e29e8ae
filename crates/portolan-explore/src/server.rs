//! The server: connections, their limits, and its end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore};

use crate::guard::Door;
use crate::routes::{Shared, router};
use crate::{Explorer, StartError};

/// Connections at once.
const MOST_CONNECTIONS: usize = 512;
/// Bytes of a request's head.
const HEAD: usize = 32 << 10;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a connection lives; a browser opens another without a word.
const LIFETIME: Duration = Duration::from_secs(300);
/// How long an answer may still be on its way then.
const GRACE: Duration = Duration::from_secs(30);

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    token: Option<String>,
    shared: Arc<Shared>,
    stop: Arc<Notify>,
    runtime: Option<Runtime>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts to answer on the first of the addresses that is free. One other than this machine's
    /// own gets a token that every request must carry.
    pub fn start(explorer: Explorer, addresses: &[SocketAddr]) -> Result<Self, StartError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.clamp(2, 8))
            .max_blocking_threads(64)
            .thread_name("explorer")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(addresses))?;
        let address = listener.local_addr()?;
        let token = (!address.ip().is_loopback()).then(token).transpose()?;
        let door = Door { port: address.port(), token: token.clone() };
        let shared = explorer.share(door)?;
        let inside = runtime.enter();
        // The page shows the last map or model first.
        for item in shared.library.all().iter().rev() {
            if let Ok(surface) = item.surface() {
                shared.blocks.draw_ahead(item.id, surface);
                break;
            }
        }
        drop(inside);
        let stop = Arc::new(Notify::new());
        let task = runtime.spawn(accept(listener, shared.clone(), stop.clone()));
        Ok(Self { address, token, shared, stop, runtime: Some(runtime), task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser; with the token where there is one.
    pub fn url(&self) -> String {
        let address = self.address;
        match &self.token {
            None => format!("http://{address}/"),
            Some(token) => format!("http://{address}/?token={token}"),
        }
    }

    /// Whether it still answers; it ends by itself only where it fails.
    pub fn running(&self) -> bool {
        !self.task.is_finished()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.notify_one();
        self.shared.jobs.cancel_all();
        self.shared.blocks.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(500));
        }
    }
}

/// 128 random bits.
fn token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: Arc<Notify>) {
    let service = TowerToHyperService::new(router(shared));
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.notified() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, say: let some close.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Small answers go out at once; where that cannot be set they go out a little later.
        let _ = stream.set_nodelay(true);
        let service = service.clone();
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(HEAD)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = pin!(connection);
            // A client that goes away or talks nonsense ends its own connection only.
            if tokio::time::timeout(LIFETIME, connection.as_mut()).await.is_err() {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(GRACE, connection).await;
            }
            drop(permit);
        });
    }
}
