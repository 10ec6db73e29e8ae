//! Table V: weights of the penalties, learning rates, and the start; and how the algorithm is read.

use super::{Builder, USUAL};
use crate::experiment::{Call, Experiment, Section, Simulated, TableCell};

/// A swept option: section, its name, values, and the default of each recipe (a value equal to it is
/// not set, so that the record is that of the plain method).
struct Sweep {
    name: &'static str,
    title: &'static str,
    option: &'static str,
    values: &'static [&'static str],
    paper_default: &'static str,
    our_default: &'static str,
}

const SWEEPS: [Sweep; 5] = [
    Sweep {
        name: "lambda1",
        title: "Penalty of the latents, lambda1",
        option: "lambda_latent",
        values: &["0.0001", "0.001", "0.01", "0.1"],
        paper_default: "0.001",
        our_default: "0.001",
    },
    Sweep {
        name: "lambda2",
        title: "Penalty of the PSDs, lambda2",
        option: "lambda_psd",
        values: &["0.0001", "0.001", "0.01", "0.1"],
        paper_default: "0.001",
        our_default: "0.001",
    },
    Sweep {
        name: "alpha",
        title: "Learning rate of network and latents, alpha",
        option: "lr_network",
        values: &["0.005", "0.01", "0.05", "0.5"],
        paper_default: "0.05",
        our_default: "0.005",
    },
    Sweep {
        name: "beta",
        title: "Learning rate of the PSDs, beta",
        option: "lr_psd",
        values: &["0.0001", "0.001", "0.01", "0.1"],
        paper_default: "0.001",
        our_default: "0.002",
    },
    Sweep {
        name: "start",
        title: "Start",
        option: "start",
        values: &["uniform", "xavier", "btd", "interpolation", "unmixed"],
        paper_default: "btd",
        our_default: "unmixed",
    },
];

const SCENE: Simulated = Simulated { shadow_db: 4.0, ..USUAL };

pub(super) fn build(builder: &Builder) -> Experiment {
    let mut sections: Vec<Section> = SWEEPS.iter().map(|sweep| section(builder, sweep)).collect();
    sections.push(readings(builder));
    let caption = "Hyperparameters of `unn`, by the paper's recipe (alpha .05, beta .001, start \
        btd) and by the default one (.005 and .002, both falling, start unmixed). 64 x 64 cells, \
        64 bands, 4 emitters, shadowing 4 dB, decorrelation 90 m, 10 % sensors. The paper's text \
        and its algorithm box disagree on which rate is alpha's; here alpha is the network's, as \
        in the text.";
    builder.experiment("Hyperparameters (Table V)", caption, sections)
}

/// The algorithm as its text and its box allow it to be read: label and options.
const READINGS: [(&str, &[(&str, &str)]); 7] = [
    ("rates of the text, loop of the box (recipe=paper)", &[]),
    ("rates and loop of the text", &[("ending", "text")]),
    ("rates and loop of the box", &[("rates", "box")]),
    ("rates of the box, loop of the text", &[("rates", "box"), ("ending", "text")]),
    ("start fitted in linear power", &[("start_domain", "linear")]),
    ("start of 300 iterations", &[("start_iterations", "300")]),
    ("start fitted to SLFs, PSDs of btd", &[("start_learns", "slf")]),
];

fn readings(builder: &Builder) -> Section {
    let cell = |(row, options): &(&str, &[(&str, &str)])| -> TableCell {
        let method = Call::new("unn:recipe=paper");
        let method = options.iter().fold(method, |method, (k, v)| method.with(k, v));
        builder.cell("reading", row, "unn", "", Some(builder.setup(SCENE, method)))
    };
    Section {
        name: "reading",
        title: "How the algorithm is read".into(),
        rows: "reading",
        cells: READINGS.iter().map(cell).collect(),
        notes: vec![
            "The loop of the text ends after 300 iterations or at a relative change below .001; \
             that of the box goes on while the loss changes by .001 or 300 iterations are not \
             over, here at most 3,000, of which the one of least loss counts."
                .into(),
        ],
    }
}

fn section(builder: &Builder, sweep: &Sweep) -> Section {
    let recipes = [
        ("unn, recipe=paper", "unn:recipe=paper", sweep.paper_default),
        ("unn", "unn", sweep.our_default),
    ];
    let cells = sweep
        .values
        .iter()
        .flat_map(|value| {
            recipes.map(|(label, method, default)| -> TableCell {
                let method = Call::new(method);
                let method =
                    if *value == default { method } else { method.with(sweep.option, value) };
                let setup = builder.setup(SCENE, method);
                builder.cell(sweep.name, value, label, "Prop.", Some(setup))
            })
        })
        .collect();
    let notes = Vec::new();
    Section { name: sweep.name, title: sweep.title.into(), rows: sweep.name, cells, notes }
}
