//! The explorer: a page that shows radio maps and answers questions about them, and the API that it
//! is made of. It runs on this machine, reads only the files that it is given, and needs no network.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use portolan_explore::{Explorer, Server};
//!
//! let explorer = Explorer::demo()?;
//! let server = Server::start(explorer, &[(Ipv4Addr::LOCALHOST, 0).into()])?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), portolan_explore::StartError>(())
//! ```

#![warn(missing_docs)]

mod answer;
mod assets;
mod blocks;
mod commands;
mod demo;
mod export;
mod guard;
mod jobs;
mod lattice;
mod library;
mod query;
mod request;
mod routes;
mod server;
mod surface;
mod tile;
mod uploads;
mod work;

use std::path::Path;
use std::sync::Arc;

use portolan::{Model, RadioMap, Readings};

pub use server::Server;

use crate::answer::Refusal;
use crate::guard::Door;
use crate::library::{Content, FitCall, Library, Source};
use crate::routes::Shared;
use crate::surface::Surface;

/// Why the explorer does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or a request is wrong.
    #[error("{0}")]
    Input(String),
    /// The machine failed: no port, no folder.
    #[error("the explorer cannot start: {0}")]
    Machine(#[from] std::io::Error),
}

impl From<Refusal> for StartError {
    fn from(refusal: Refusal) -> Self {
        StartError::Input(refusal.message)
    }
}

/// A method to be fitted when the explorer starts.
#[derive(Clone, Debug)]
pub struct FirstFit {
    /// The method's name.
    pub method: String,
    /// Its options.
    pub settings: Vec<(String, String)>,
    /// How many emitters it is told; None = auto.
    pub emitters: Option<usize>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for FirstFit {
    fn default() -> Self {
        Self { method: "auto".into(), settings: Vec::new(), emitters: None, seed: 0 }
    }
}

/// What is to be explored.
#[derive(Default)]
pub struct Explorer {
    library: Library,
    first: Vec<FitCall>,
    skipped: Vec<(String, String)>,
}

impl Explorer {
    /// Nothing yet: files are dropped into the page.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A simulated map, read by a tenth of its cells, with `field` fitted to it.
    pub fn demo() -> Result<Self, StartError> {
        let mut explorer = Self::default();
        let readings = demo::readings().map_err(Refusal::from)?;
        let content = Content::Readings(readings);
        let item = explorer.library.add("demo", Source::Demo, content, Vec::new())?;
        explorer.first = vec![demo::fit(item.id)];
        Ok(explorer)
    }

    /// Adds a file: readings, a model or a map. `words` are options of the command, without their
    /// dashes, and their values. Returns notes for the user.
    pub fn add_file(
        &mut self,
        path: &Path,
        words: &[(String, String)],
    ) -> Result<Vec<String>, StartError> {
        let name = path.display().to_string();
        let item = uploads::open(&self.library, path, &name, &words.to_vec())
            .map_err(|refusal| StartError::Input(refusal.message))?;
        Ok(item.notes.clone())
    }

    /// Adds readings under a name.
    pub fn add_readings(&mut self, name: &str, readings: Readings) -> Result<(), StartError> {
        let content = Content::Readings(Arc::new(readings));
        self.library.add(name, Source::Given, content, Vec::new())?;
        Ok(())
    }

    /// Adds a model under a name.
    pub fn add_model(&mut self, name: &str, model: Model) -> Result<(), StartError> {
        let notes = model.report().notes.clone();
        let content = Content::Surface(Arc::new(Surface::Model(Box::new(model))));
        self.library.add(name, Source::Given, content, notes)?;
        Ok(())
    }

    /// Adds a map under a name.
    pub fn add_map(&mut self, name: &str, map: RadioMap) -> Result<(), StartError> {
        let content = Content::Surface(Arc::new(Surface::Map(Box::new(map))));
        self.library.add(name, Source::Given, content, Vec::new())?;
        Ok(())
    }

    /// Tells the page about a file that was not opened.
    pub fn skip(&mut self, file: &str, why: &str) {
        self.skipped.push((file.into(), why.into()));
    }

    /// Fits a method to all readings without a model, one after the other, as soon as the server
    /// runs. A method that does not exist, or not with these options, is refused in any case.
    pub fn fit_first(&mut self, fit: FirstFit) -> Result<(), StartError> {
        let FirstFit { method, settings, emitters, seed } = fit;
        let call = FitCall { readings: 0, method, settings, emitters, seed };
        work::check_fit(&call)?;
        let items = self.library.all();
        let surfaces = items.iter().filter(|item| item.surface().is_ok());
        let fitted: Vec<u32> =
            surfaces.filter_map(|item| Some(self.library.readings_of(item)?.id)).collect();
        let surveys = items.iter().filter(|item| item.readings().is_some());
        let left = surveys.map(|item| item.id).filter(|id| !fitted.contains(id));
        self.first = left.map(|readings| FitCall { readings, ..call.clone() }).collect();
        Ok(())
    }

    fn share(self, door: Door) -> Result<Arc<Shared>, StartError> {
        let shared = Arc::new(Shared::new(door, self.library, self.skipped)?);
        for call in self.first {
            shared.queue_fit(call)?;
        }
        Ok(shared)
    }
}
