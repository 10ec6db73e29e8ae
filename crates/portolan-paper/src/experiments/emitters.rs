//! Table I: SSIM for one to six emitters, full precision and quantised.

use super::{Builder, Column, EXTRAS, PAPERS, USUAL};
use crate::experiment::{Experiment, PictureKind, Section, Simulated};

const QUANTISED: [Column; 8] = [
    ("naive_unn", "naive_unn", ""),
    ("btd", "btd", "Q-BTD"),
    ("dgm", "dgm:weights=broad", "Q-DGM"),
    ("unn, recipe=paper", "unn:recipe=paper", "Q-Prop."),
    ("unn", "unn", "Q-Prop."),
    ("kriging", "kriging", ""),
    ("field", "field", ""),
    ("auto", "auto", ""),
];

pub(super) fn build(builder: &Builder) -> Experiment {
    let full: Vec<Column> = PAPERS.into_iter().chain(EXTRAS).collect();
    let section = |name: &'static str, title: &str, scene: Simulated, columns: &[Column]| Section {
        name,
        title: title.into(),
        rows: "R",
        cells: (1..=6)
            .flat_map(|emitters| {
                let scene = Simulated { emitters, ..scene };
                builder.row(name, &emitters.to_string(), scene, columns)
            })
            .collect(),
        notes: Vec::new(),
    };
    let quantised = Simulated { fraction: 0.05, bits: Some(3), ..USUAL };
    let sections = vec![
        section("full precision", "Full precision, 10 % sensors", USUAL, &full),
        section("3 bits", "3 bits, 5 % sensors", quantised, &QUANTISED),
    ];
    let caption = "Number of emitters R. 64 x 64 cells, 64 bands, shadowing 6 dB, decorrelation \
        90 m; full precision from 10 % of the cells, 3 bits (the authors' edges, sigma 1.7) from \
        5 %. Every factored method is told R. The naive decoder has at most 1080 + 16 R parameters.";
    Experiment {
        picture: PictureKind::Curves,
        compares_conventions: true,
        ..builder.experiment("Number of emitters (Table I)", caption, sections)
    }
}
