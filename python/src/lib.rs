//! The native part of the Python package: readings, maps, fits and models. Everything that users see is
//! made of these in `portolan/*.py`.

mod arrays;
mod earth;
mod errors;
mod explore;
mod judge;
mod maps;
mod model;
mod obstacles;
mod pool;
mod readings;
mod space;
mod study;
mod transmitters;
mod watched;

use portolan::estimate::Capability;
use pyo3::prelude::*;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    /// Methods that only the paper's tables need are offered too.
    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        portolan_paper::register();
        Ok(())
    }

    #[pymodule_export]
    use super::earth::{to_degrees, to_metres, well_known_text};
    #[pymodule_export]
    use super::explore::{NativeExplorer, explore};
    #[pymodule_export]
    use super::judge::{advise, folds, validate};
    #[pymodule_export]
    use super::maps::{NativeMap, authors_edges, map_of, read_map, simulate};
    #[pymodule_export]
    use super::methods;
    #[pymodule_export]
    use super::model::{NativeModel, fit, fit_many, read_model};
    #[pymodule_export]
    use super::obstacles::NativeObstacles;
    #[pymodule_export]
    use super::readings::{NativeReadings, read_readings, readings};
    #[pymodule_export]
    use super::space::{NativeSpace, fit_space};
    #[pymodule_export]
    use super::study::study;
    #[pymodule_export]
    use super::transmitters::transmitters;
}

/// Every method: name, summary, whether it gives a spread and takes known transmitters, and its options
/// as (name, default, takes).
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a list for Python, not a type of ours")]
fn methods()
-> Vec<(&'static str, &'static str, bool, bool, Vec<(&'static str, &'static str, &'static str)>)> {
    portolan::estimate::methods()
        .into_iter()
        .map(|method| {
            let options = method.options().map(|o| (o.name, o.default, o.takes)).collect();
            let can = |what| method.has(what);
            let (spread, known) = (can(Capability::Spread), can(Capability::Transmitters));
            (method.name, method.summary, spread, known, options)
        })
        .collect()
}
