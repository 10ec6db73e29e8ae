//! Fills `corpus/` with the seeds of `crates/portolan-io/tests/hostile.rs` and a few more:
//! `cargo run --example corpus`, in this folder.

use std::path::Path;

use portolan::estimate::build;
use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Context, Emitters, Grid, Progress};

const TABLE: &[u8] = b"x_m,y_m,dbm_2412MHz,mw_2.422GHz\n0,0,-30,0.5\n1,2,,0.25\n3,1,-40,\n";
const CELLS: &[u8] = b"row,col,dbm_1GHz\n0,0,-30\n0,1,-35\n1,0,-40\n";
const RECORDS: &[u8] = br#"[{"at":{"lat":49.1,"lon":8.1},"seen":[{"bssid":"a","rssi":-60}]}]"#;
const PLACEMARK: &[u8] = b"<kml><Placemark><description>RSRP: -90&lt;br&gt;PCI: 7</description><Point>\
<coordinates>8.1,49.1,0</coordinates></Point></Placemark></kml>";
const PLACES: &[u8] = b"x_m,y_m,name\n0,0,gate\n1.5,-2,\"the, roof\"\n";
const TRACE: &[u8] = b"# timestamp=2006-02-11 08:31:58\n\
t=1139643118358;id=00:02:2D:21:0F:33;pos=1.0,0.0,0.0;degree=0.5;00:14:bf:b1:97:00=-50,2437000000,3;00:14:bf:b1:97:01=-60,2412000000,3\n\
t=1139643118358;id=00:02:2D:21:0F:33;pos=0.0,2.0,0.0;degree=0.5;00:14:bf:b1:97:00=-70,2412000000,3;00:14:bf:b1:97:01=-80,2437000000,1\n";

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = here.join("corpus");
    let put = |target: &str, name: &str, bytes: &[u8]| -> Outcome {
        std::fs::create_dir_all(corpus.join(target))?;
        Ok(std::fs::write(corpus.join(target).join(name), bytes)?)
    };
    for entry in std::fs::read_dir(here.join("../crates/portolan-io/tests/data"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let target = match name.rsplit_once('.') {
            Some((_, "npz")) => "npz",
            Some((_, "xlsx" | "kmz")) => "xlsx",
            Some((_, "zip")) => "shapefile",
            Some((_, "gpkg" | "kismet")) => "sqlite",
            Some((stem, "mat")) if stem.contains("73") => "mat73",
            Some((_, "mat")) => "mat5",
            _ => continue,
        };
        put(target, &name, &std::fs::read(entry.path())?)?;
    }
    put("csv", "table", TABLE)?;
    put("json", "records", RECORDS)?;
    put("kml", "placemark", PLACEMARK)?;
    put("csv", "cells", CELLS)?;
    put("places", "places", PLACES)?;
    put("trace", "trace", TRACE)?;
    models(&corpus.join("model"))
}

/// One small model of every method that keeps something of its own.
fn models(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder)?;
    let grid = Grid::new(8, 8, 1.0)?;
    let truth = simulate(&Scenario { bands: 3, emitters: 1, ..Scenario::new(grid) })?;
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(9), 0))?;
    let context = Context { emitters: Emitters::Count(1), ..Context::default() };
    for name in ["nearest", "idw", "linear", "thin_plate", "kriging", "btd", "field"] {
        let model = build(name, [])?.fit(&readings, &context, &Progress::silent())?;
        portolan_io::write_model(folder.join(format!("{name}.npz")), &model, true)?;
    }
    let few = [("iterations", "3"), ("start_iterations", "3"), ("draws", "2"), ("starts", "1")];
    let few = few.map(|(key, value)| (key.to_string(), value.to_string()));
    portolan_paper::register();
    let model = build("dgm", few)?.fit(&readings, &context, &Progress::silent())?;
    portolan_io::write_model(folder.join("dgm.npz"), &model, true)?;
    Ok(())
}
