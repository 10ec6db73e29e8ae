use super::*;
use crate::grid::Grid;
use crate::score::score;
use crate::sense::{Sensing, SensorLayout, sense};
use crate::simulate::{Scenario, simulate};

fn told(emitters: Emitters, auto: Auto, readings: &Readings) -> Model {
    let context = Context { emitters, ..Context::default() };
    auto.fit(readings, &context, &Progress::silent()).unwrap()
}

#[test]
fn many_sensors_of_a_simulated_map_lead_to_field() {
    let grid = Grid::new(40, 40, 1.0).unwrap();
    let mut chosen = 0;
    for seed in 0..3 {
        let scenario = Scenario { bands: 24, emitters: 3, seed, ..Scenario::new(grid) };
        let truth = simulate(&scenario).unwrap();
        let readings = sense(&truth, &Sensing::exact(SensorLayout::Fraction(0.1), seed)).unwrap();
        let auto = told(Emitters::Auto, Auto::default(), &readings);
        let silent = Progress::silent();
        let kriging = Kriging::default().fit(&readings, &Context::default(), &silent).unwrap();
        let rmse = |m: &Model| score(&m.map(grid, &silent).unwrap(), &truth, None).unwrap().rmse_db;
        assert!(rmse(&auto) <= rmse(&kriging), "{} {}", rmse(&auto), rmse(&kriging));
        let field = auto.report().chosen.as_deref() == Some("field");
        chosen += usize::from(field);
        if field && chosen == 1 {
            let more = told(Emitters::Count(6), Auto::default(), &readings);
            let map = |m: &Model| m.map(grid, &silent).unwrap().to_dense().into_owned();
            assert_eq!(map(&more), map(&auto));
            let says = |note: &String| note.contains("6 emitters were asked for");
            assert!(more.report().notes.iter().any(says), "{:?}", more.report().notes);
        }
    }
    assert!(chosen >= 2, "field was chosen on {chosen} of 3 maps");
}

#[test]
fn the_report_says_what_was_compared() {
    let grid = Grid::new(16, 16, 1.0).unwrap();
    let truth = simulate(&Scenario { bands: 8, emitters: 2, ..Scenario::new(grid) }).unwrap();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 1)).unwrap();
    for auto in [Auto::default(), Auto { folds: Some(3) }] {
        let model = told(Emitters::Auto, auto, &readings);
        let report = model.report();
        let chosen = report.chosen.as_deref().unwrap();
        let error = |label: &str| {
            report.candidates.iter().find(|c| c.method == label).unwrap().rmse_db.unwrap()
        };
        assert!(report.candidates.len() >= 2);
        assert_eq!(report.fitted("cross_validated_rmse_db"), Some(error(chosen)));
        assert!(report.notes[0].starts_with(&format!("chose {chosen} ")), "{:?}", report.notes);
        assert!(error("kriging").is_finite());
    }
}
