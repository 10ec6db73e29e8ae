//! Measured and ray-traced data: the office floor and a part of a city.

use portolan::Emitters;

use super::Builder;
use crate::experiment::{Call, Experiment, PictureKind, Scene, Section, TableCell, TrialSetup};

/// Label, method, and the number of emitters it is told (0 = chosen from the readings). The paper
/// tells its methods 7 and gives its decoder 4 channels.
type Method = (&'static str, &'static str, usize);

const FLOOR: [Method; 10] = [
    ("naive_unn", "naive_unn:channels=4", 7),
    ("interpolation", "thin_plate:domain=linear", 7),
    ("btd", "btd", 7),
    ("dgm", "dgm:weights=broad", 7),
    ("unn, recipe=paper", "unn:recipe=paper:channels=4", 7),
    ("unn", "unn:channels=4", 7),
    ("thin_plate", "thin_plate", 0),
    ("kriging", "kriging", 0),
    ("field", "field", 0),
    ("auto", "auto", 0),
];

const CITY: [Method; 8] = [
    ("interpolation", "thin_plate:domain=linear", 5),
    ("btd", "btd", 5),
    ("unn, recipe=paper", "unn:recipe=paper", 5),
    ("unn", "unn", 5),
    ("thin_plate", "thin_plate", 0),
    ("kriging", "kriging", 0),
    ("field", "field", 0),
    ("auto", "auto", 0),
];

/// Every second of the nine bands.
const SHOWN: [usize; 5] = [0, 2, 4, 6, 8];

fn setup(builder: &Builder, scene: Scene, &(_, method, emitters): &Method) -> TrialSetup {
    let told = if emitters == 0 { Emitters::Auto } else { Emitters::Count(emitters) };
    TrialSetup::new(scene, builder.call(Call::new(method)), told)
}

pub(super) fn table(builder: &Builder) -> Experiment {
    let row = |name: &str, row: String, scene: Scene, methods: &[Method]| -> Vec<TableCell> {
        let cell = |method: &Method| {
            builder.cell(name, &row, method.0, "", Some(setup(builder, scene.clone(), method)))
        };
        methods.iter().map(cell).collect()
    };
    let floor = [24, 48, 80]
        .into_iter()
        .flat_map(|sensors| row("floor", sensors.to_string(), Scene::Floor { sensors }, &FLOOR));
    let city = row("city", "5 %".into(), Scene::City { fraction: 0.05 }, &CITY);
    let sections = vec![
        Section {
            name: "floor",
            title: "Office floor: rmse at held-out measured cells and at places off the grid"
                .into(),
            rows: "sensors",
            cells: floor.collect(),
            notes: vec![
                "A split keeps so many of the 166 measured cells and is scored on the others; \
                 cells that nobody measured are never scored. The places off the grid are the \
                 survey's own test set; the map between cell centres is bilinear in dBm."
                    .into(),
                "`btd`, `dgm` and `unn` are told 7 emitters and decoders have 4 channels, as in \
                 the paper; `field` and `auto` choose from the readings."
                    .into(),
            ],
        },
        Section {
            name: "city",
            title: "Ray-traced city: rmse outside buildings, at cells without a sensor".into(),
            rows: "sensors",
            cells: city,
            notes: vec![
                "`btd` and `unn` are told 5 emitters, one for each band; `field` and `auto` choose."
                    .into(),
            ],
        },
    ];
    let caption = "Measured data. Wi-Fi survey of an office floor (34 x 14 cells of 1 m, 9 bands, \
        median per cell and band) and the 128 x 128 cells in the middle of a ray-traced city (5 bands, 5 % of the \
        cells outside buildings are sensors). Differences are in dBm; an estimate more than \
        20 dB below the weakest reading counts as that. The paper prints no numbers for its measured data.";
    builder.experiment("Measured data", caption, sections)
}

pub(super) fn figure(builder: &Builder) -> Experiment {
    const NAME: &str = "floor";
    let shown = [FLOOR[1], FLOOR[2], FLOOR[3], FLOOR[5], FLOOR[7], FLOOR[9]];
    let cell = |method: &Method| {
        let mut setup = setup(builder, Scene::Floor { sensors: 48 }, method);
        setup.draw = SHOWN.to_vec();
        builder.cell(NAME, method.0, "48 sensors", "", Some(setup))
    };
    let section = Section {
        name: NAME,
        title: "Office floor, 48 sensors".into(),
        rows: "method",
        cells: shown.iter().map(cell).collect(),
        notes: Vec::new(),
    };
    let caption = "Recovered maps of the office floor at five of its nine frequencies. The paper \
        says rho = 10 %: of 34 x 14 = 476 cells that is 48 sensors, out of 166 measured cells. \
        Cells that nobody measured are masked in grey.";
    Experiment {
        picture: PictureKind::Bands,
        ..builder.experiment("Recovered maps of measured data", caption, vec![section])
    }
}
