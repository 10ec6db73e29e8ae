//! Table VI: a wrong number of emitters, and seconds.

use portolan::Emitters;

use super::{Builder, Column, USUAL};
use crate::experiment::{Call, Experiment, PictureKind, Section, Simulated, TableCell, TrialSetup};

const COLUMNS: [Column; 5] = [
    ("btd", "btd", "BTD"),
    ("dgm", "dgm:weights=broad", "DGM"),
    ("unn, recipe=paper", "unn:recipe=paper", "Proposed"),
    ("unn", "unn", "Proposed"),
    ("field", "field", ""),
];

const NAME: &str = "assumed emitters";

pub(super) fn build(builder: &Builder) -> Experiment {
    let scene = Simulated { shadow_db: 4.0, ..USUAL };
    let cell = |assumed: usize, &(label, method, paper): &Column| -> TableCell {
        let told = Emitters::Count(assumed);
        let method = builder.call(Call::new(method));
        let setup =
            TrialSetup { alone: true, ..TrialSetup::new(builder.scene(scene), method, told) };
        builder.cell(NAME, &assumed.to_string(), label, paper, Some(setup))
    };
    let cells = (1..=7).flat_map(|assumed| COLUMNS.iter().map(move |column| cell(assumed, column)));
    let section = Section {
        name: NAME,
        title: "Assumed emitters where the truth has four".into(),
        rows: "assumed R",
        cells: cells.collect(),
        notes: Vec::new(),
    };
    let caption = "Assumed number of emitters where the truth has 4, and seconds: each estimate \
        runs with the machine to itself, on all threads; seconds include the start that a method \
        makes for itself. 64 x 64 cells, 64 bands, shadowing 4 dB, decorrelation 90 m, 10 % \
        sensors.";
    Experiment {
        picture: PictureKind::Curves,
        ..builder.experiment("Assumed emitters and runtime (Table VI)", caption, vec![section])
    }
}
