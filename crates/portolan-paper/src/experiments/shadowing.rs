//! Table IV: decorrelation distance and standard deviation of the shadowing.

use super::{Builder, Column, EXTRAS, PAPERS, USUAL};
use crate::experiment::{Experiment, PictureKind, Section, Simulated};

pub(super) fn build(builder: &Builder) -> Experiment {
    let narrow: Column = ("dgm, narrow", "dgm:weights=narrow", "");
    // This table calls the naive decoder "Naive".
    let renamed = PAPERS.map(|(label, method, paper)| match paper {
        "Naive UNN" => (label, method, "Naive"),
        _ => (label, method, paper),
    });
    let columns: Vec<Column> = renamed.into_iter().chain([narrow]).chain(EXTRAS).collect();
    let section = |name: &'static str, title: &str, rows, scenes: Vec<(f64, Simulated)>| Section {
        name,
        title: title.into(),
        rows,
        cells: scenes
            .into_iter()
            .flat_map(|(value, scene)| builder.row(name, &value.to_string(), scene, &columns))
            .collect(),
        notes: Vec::new(),
    };
    let distance =
        |metres| (metres, Simulated { shadow_db: 4.0, decorrelation_m: metres, ..USUAL });
    let deviation = |db| (db, Simulated { shadow_db: db, ..USUAL });
    let sections = vec![
        section(
            "Xc",
            "Decorrelation distance, shadowing 4 dB",
            "Xc [m]",
            [30.0, 50.0, 70.0, 90.0, 100.0].map(distance).to_vec(),
        ),
        section(
            "eta",
            "Standard deviation, decorrelation 90 m",
            "eta [dB]",
            [4.0, 5.0, 6.0, 7.0, 8.0].map(deviation).to_vec(),
        ),
    ];
    let caption = "Shadowing. 64 x 64 cells, 64 bands, 4 emitters, 10 % sensors. `dgm` was trained \
        on eta 4 to 8 dB and Xc 40 to 90 m, `dgm, narrow` on eta 7 to 8 dB and Xc 40 to 70 m (the \
        paper's case of training that does not match).";
    Experiment {
        picture: PictureKind::Curves,
        ..builder.experiment("Shadowing (Table IV)", caption, sections)
    }
}
