//! The register of methods: what each can do and be told, how it is built, and how its models are
//! read. Methods of other crates join with [`register`].

use std::sync::{Arc, RwLock};

use super::{
    Method, OptionSpec, Options, auto, btd, field, heights, idw, kriging, linear, nearest, oracle,
    thin_plate, times, unn,
};
use crate::engine::Engine;
use crate::error::{EstimateError, InputError};
use crate::model::{Archive, Drawing, Gridded, Predictor, Room, damaged};

/// What a method gives, or makes use of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Its models state a spread.
    Spread,
    /// It tells emitters apart, and makes use of [`Context::emitters`](super::Context::emitters).
    Emitters,
    /// It makes use of [`Context::transmitters`](super::Context::transmitters).
    Transmitters,
    /// It makes use of [`Context::obstacles`](super::Context::obstacles).
    Obstacles,
    /// It makes use of [`Context::start`](super::Context::start).
    Start,
    /// It cannot do without [`Context::truth`](super::Context::truth).
    Truth,
    /// It tells places at several heights apart.
    Heights,
    /// It tells readings of several times apart.
    Times,
    /// It lives on a grid and is read between cell centres.
    Grid,
    /// Its fits run on an [`Engine`], which may be another device's.
    Device,
}

impl Capability {
    /// Its name, which is also that of what a method is told.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Emitters => "emitters",
            Self::Transmitters => "transmitters",
            Self::Obstacles => "obstacles",
            Self::Start => "start",
            Self::Truth => "truth",
            Self::Heights => "heights",
            Self::Times => "times",
            Self::Grid => "grid",
            Self::Device => "device",
        }
    }
}

/// A function that makes a method from its options.
pub type Build = fn(&Options) -> Result<Box<dyn Method>, InputError>;

/// A function that makes a predictor from what it saved.
pub type Load = fn(&Saved<'_>) -> Result<Box<dyn Predictor>, EstimateError>;

/// What a predictor saved, and what the model knows beside it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Saved<'a> {
    /// The arrays that [`Predictor::save`] wrote.
    pub archive: &'a Archive,
    /// Number of bands.
    pub bands: usize,
    pub(crate) room: Room,
    /// How many others it lies within.
    depth: usize,
}

/// Predictors within each other: those of obstacles, of a combination, of heights, and of a method.
const DEEPEST: usize = 6;

impl<'a> Saved<'a> {
    pub(crate) fn new(archive: &'a Archive, bands: usize, room: Room) -> Self {
        Self { archive, bands, room, depth: 0 }
    }

    /// Another's, within the same model.
    pub(crate) fn of<'b>(&self, archive: &'b Archive) -> Saved<'b> {
        Saved { archive, depth: self.depth + 1, ..*self }
    }

    /// A predictor that draws on the model's grid.
    pub fn gridded(
        &self,
        drawing: impl Drawing + 'static,
    ) -> Result<Box<dyn Predictor>, EstimateError> {
        Ok(Box::new(Gridded::load(self.archive, self.room, drawing)?))
    }

    /// The predictor of a kind.
    pub(crate) fn load(&self, kind: &str) -> Result<Box<dyn Predictor>, EstimateError> {
        if self.depth > DEEPEST {
            return Err(damaged("kind", "lies too deep").into());
        }
        match kind {
            heights::KIND => return Ok(Box::new(heights::Lifted::load(self)?)),
            times::KIND => return times::load(self),
            _ => {}
        }
        let all = methods();
        let known = all.iter().flat_map(|entry| entry.kinds).find(|(known, _)| *known == kind);
        match known {
            Some((_, load)) => load(self),
            None => {
                let message = format!("is '{kind}', which names no method of this program");
                Err(damaged("kind", &message).into())
            }
        }
    }
}

/// A method of the register: its name, what it does, what it can be told, and how its models are
/// read.
///
/// ```
/// use portolan::estimate::{Capability, method, methods};
/// let kriging = method("kriging")?;
/// assert!(kriging.has(Capability::Spread) && !kriging.has(Capability::Grid));
/// assert!(kriging.options().any(|option| option.name == "covariance"));
/// let grid = methods().into_iter().filter(|m| m.has(Capability::Grid)).map(|m| m.name);
/// assert_eq!(grid.collect::<Vec<_>>(), ["btd", "unn"]);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Goes up when the same input and options begin to give other numbers than in the last
    /// version: results kept under an older one are not this method's.
    pub revision: u32,
    capabilities: &'static [Capability],
    options: &'static [&'static [OptionSpec]],
    kinds: &'static [(&'static str, Load)],
    build: Build,
}

impl Entry {
    /// A method that can do nothing but predict power, and has no options.
    pub const fn new(name: &'static str, summary: &'static str, build: Build) -> Self {
        Self { name, summary, revision: 1, capabilities: &[], options: &[], kinds: &[], build }
    }

    /// With another revision than 1.
    pub const fn with_revision(self, revision: u32) -> Self {
        Self { revision, ..self }
    }

    /// With what it gives and makes use of.
    pub const fn with_capabilities(self, capabilities: &'static [Capability]) -> Self {
        Self { capabilities, ..self }
    }

    /// With its options, in groups that methods may share.
    pub const fn with_options(self, options: &'static [&'static [OptionSpec]]) -> Self {
        Self { options, ..self }
    }

    /// With the kinds of its predictors ([`Predictor::kind`]) and how each is read.
    pub const fn with_kinds(self, kinds: &'static [(&'static str, Load)]) -> Self {
        Self { kinds, ..self }
    }

    /// Whether it gives something, or makes use of it.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Every option of the method.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionSpec> + use<> {
        self.options.iter().copied().flatten()
    }

    /// The method with its options set; an option it does not have is an error.
    pub fn build(
        &self,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Box<dyn Method>, InputError> {
        (self.build)(&Options::new(self.name, self.options, given)?)
    }

    /// The same with another engine for the fits of decoders; methods without one do not look at
    /// it.
    pub fn build_on(
        &self,
        engine: Arc<dyn Engine>,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Box<dyn Method>, InputError> {
        (self.build)(&Options::new(self.name, self.options, given)?.on(engine))
    }
}

/// The methods of this library, simplest first.
const OWN: &[Entry] = &[
    nearest::ENTRY,
    idw::ENTRY,
    linear::ENTRY,
    thin_plate::ENTRY,
    kriging::ENTRY,
    btd::ENTRY,
    unn::ENTRY,
    field::ENTRY,
    auto::ENTRY,
    oracle::ENTRY,
];

/// Methods of other crates.
static OTHERS: RwLock<Vec<&'static Entry>> = RwLock::new(Vec::new());

/// Adds a method to the register, for as long as the program runs: [`method`], [`methods`] and
/// [`build`] know it, its models can be read, and so the command and the explorer of a program that
/// registers it offer it. Names and kinds must be new.
pub fn register(entry: Entry) -> Result<(), InputError> {
    let mut others = OTHERS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let known = || OWN.iter().chain(others.iter().copied());
    let taken = |what: &str, name: &str| {
        InputError::Request(format!("method {}: the {what} '{name}' is taken", entry.name))
    };
    if known().any(|m| m.name == entry.name) {
        return Err(taken("name", entry.name));
    }
    let kinds = || known().flat_map(|m| m.kinds).map(|(kind, _)| *kind).chain([heights::KIND]);
    if let Some((kind, _)) = entry.kinds.iter().find(|(kind, _)| kinds().any(|k| k == *kind)) {
        return Err(taken("kind", kind));
    }
    others.push(Box::leak(Box::new(entry)));
    Ok(())
}

/// All methods: this library's, simplest first, then those that were registered.
pub fn methods() -> Vec<&'static Entry> {
    let others = OTHERS.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    OWN.iter().chain(others.iter().copied()).collect()
}

/// The method of that name.
pub fn method(name: &str) -> Result<&'static Entry, InputError> {
    let all = methods();
    all.iter().copied().find(|m| m.name == name).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|m| m.name).collect();
        InputError::UnknownMethod { name: name.into(), known: known.join(", ") }
    })
}

/// The names of the methods that give something, or make use of it.
pub fn methods_with(capability: Capability) -> Vec<&'static str> {
    methods().into_iter().filter(|m| m.has(capability)).map(|m| m.name).collect()
}

/// Refuses what none of some methods makes use of, whichever way it was given.
///
/// ```
/// use portolan::estimate::{Capability, check_used};
/// assert!(check_used(Capability::Transmitters, ["kriging", "field"]).is_ok());
/// let refused = check_used(Capability::Transmitters, ["kriging"]).unwrap_err().to_string();
/// assert_eq!(refused, "transmitters: not used by kriging; choose from field, auto");
/// ```
pub fn check_used<'a>(
    capability: Capability,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), InputError> {
    let names: Vec<&str> = names.into_iter().collect();
    for name in &names {
        if method(name)?.has(capability) {
            return Ok(());
        }
    }
    let (methods, able) = (names.join(", "), methods_with(capability).join(", "));
    Err(InputError::NotUsed { what: capability.name(), methods, able })
}

/// Short for looking a method up and setting its options.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::build;
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// # let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// # let power = array![[1e-6], [1e-8], [1e-8]];
/// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let settings = [("covariance".to_string(), "matern32".to_string())];
/// let model = build("kriging", settings)?.fit(&readings, &Context::default(), &Progress::silent())?;
/// assert!(model.gives_spread());
/// let typo = build("kriging", [("covarianse".to_string(), "matern32".to_string())]);
/// assert!(typo.err().unwrap().to_string().contains("covarianse"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn build(
    name: &str,
    given: impl IntoIterator<Item = (String, String)>,
) -> Result<Box<dyn Method>, InputError> {
    method(name)?.build(given)
}
