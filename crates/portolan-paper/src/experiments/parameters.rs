//! Table II: how many parameters it takes to model a whole map, with and without factorisation.

use super::{Builder, Size, USUAL};
use crate::experiment::{Call, Experiment, Section, Simulated};

/// The paper's counts and the channels that have them; 12 channels have 4860 parameters, not 4810.
const NAIVE: [(&str, usize); 6] =
    [("1080", 5), ("3510", 10), ("4810", 12), ("6426", 14), ("10206", 18), ("30240", 32)];

/// The paper stops after 300 iterations; a whole map takes a large network longer.
const LONG: usize = 3000;

pub(super) fn build(builder: &Builder) -> Experiment {
    const NAME: &str = "parameters";
    let scene = Simulated { emitters: 3, fraction: 1.0, ..USUAL };
    let long = |method: Call| match builder.size {
        Size::Full => method.with("iterations", LONG),
        // A tiny fit is cut short anyway.
        Size::Tiny => method.with("tolerance", 0),
    };
    let mut cells = Vec::new();
    for (row, channels) in NAIVE {
        let method = Call::new("naive_unn").with("channels", channels);
        let mut add = |label: &str, method: Call| {
            let setup = builder.setup(scene, method);
            cells.push(builder.cell(NAME, row, label, "Naive UNN", Some(setup)));
        };
        add("naive_unn", method.clone());
        add("naive_unn, 3000 iterations", long(method));
    }
    for (label, method) in [
        ("unn, recipe=paper", Call::new("unn:recipe=paper")),
        ("unn", Call::new("unn")),
        ("unn, 3000 iterations", long(Call::new("unn"))),
    ] {
        let setup = builder.setup(scene, method);
        cells.push(builder.cell(NAME, "1080", label, "Proposed", Some(setup)));
    }
    let notes = vec![
        "Rows are the paper's counts. The naive decoder reaches them with 5, 10, 12, 14, 18 and \
         32 channels; 12 channels have 4860 parameters where the paper prints 4810."
            .to_string(),
        "300 iterations are the paper's limit; ten times as many show what the networks could \
         reach."
            .to_string(),
    ];
    let title = "Every cell is a sensor".to_string();
    let section = Section { name: NAME, title, rows: "parameters", cells, notes };
    let caption = "Parameters needed to model a whole map: every one of the 64 x 64 cells is a \
        sensor. 64 bands, 3 emitters, shadowing 6 dB, decorrelation 90 m.";
    builder.experiment("Parameters (Table II)", caption, vec![section])
}
