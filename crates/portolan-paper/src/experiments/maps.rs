//! The figure of recovered maps: six emitters, the 30th band.

use super::{Builder, USUAL};
use crate::experiment::{Call, Experiment, PictureKind, Section, Simulated, TableCell, TrialSetup};

const FULL: [(&str, &str); 10] = [
    ("naive_unn", "naive_unn"),
    ("interpolation", "thin_plate:domain=linear"),
    ("btd", "btd"),
    ("dgm", "dgm:weights=broad"),
    ("dgm, narrow", "dgm:weights=narrow"),
    ("unn, recipe=paper", "unn:recipe=paper"),
    ("unn", "unn"),
    ("kriging", "kriging"),
    ("field", "field"),
    ("oracle", "oracle"),
];

const QUANTISED: [(&str, &str); 6] = [
    ("btd", "btd"),
    ("dgm", "dgm:weights=broad"),
    ("unn, recipe=paper", "unn:recipe=paper"),
    ("unn", "unn"),
    ("kriging", "kriging"),
    ("field", "field"),
];

pub(super) fn build(builder: &Builder) -> Experiment {
    let full = Simulated { emitters: 6, fraction: 0.05, ..USUAL };
    let quantised = Simulated { fraction: 0.1, bits: Some(3), ..full };
    let section = |name: &'static str, title: &str, scene: Simulated, methods: &[_]| Section {
        name,
        title: title.into(),
        rows: "method",
        cells: methods.iter().map(|method| cell(builder, name, scene, *method)).collect(),
        notes: Vec::new(),
    };
    let sections = vec![
        section("full precision", "Full precision, 5 % sensors", full, &FULL),
        section("3 bits", "3 bits, 10 % sensors", quantised, &QUANTISED),
    ];
    let caption = "Recovered maps. 64 x 64 cells, 64 bands, 6 emitters, shadowing 6 dB, \
        decorrelation 90 m; full precision from 5 % of the cells, 3 bits from 10 % (as the paper's \
        caption says). The pictures show the 30th band of the first map; the figures are over all \
        bands and maps.";
    Experiment {
        picture: PictureKind::Maps,
        ..builder.experiment("Recovered maps", caption, sections)
    }
}

fn cell(
    builder: &Builder,
    section: &str,
    scene: Simulated,
    (label, method): (&str, &'static str),
) -> TableCell {
    let method = super::sized(Call::new(method), scene.emitters);
    let mut setup: TrialSetup = builder.setup(scene, method);
    setup.draw = vec![match builder.size {
        super::Size::Full => 29,
        super::Size::Tiny => 3,
    }];
    builder.cell(section, label, "all bands", "", Some(setup))
}
