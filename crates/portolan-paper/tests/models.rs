//! Models of the paper's baselines in files: those of now, and those that were written when the
//! methods were part of `portolan`.

use std::path::PathBuf;

use ndarray::{Array2, array};
use portolan::estimate::build;
use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Context, Emitters, Grid, Progress, Site};
use portolan_io::{read_model, write_model};

fn old(name: &str) -> PathBuf {
    format!("{}/tests/data/{name}_model.npz", env!("CARGO_MANIFEST_DIR")).into()
}

/// The files and the predictions were made by `portolan fit` and `predict` of version 0.2.0, before
/// the methods moved (commit f0f7a5a).
#[test]
fn models_written_before_predict_what_they_did() {
    portolan_paper::register();
    let at = [Site::new(3.25, 4.5), Site::new(12.0, 7.75), Site::new(20.5, 1.0)];
    let naive = array![
        [0.011584798622463352, 0.009927165480833057, 0.014660078772158741, 0.00920357942264851],
        [0.01921831853382728, 0.026867928101388876, 0.03871177568403737, 0.045261248914992426],
        [0.006777624214694543, 0.00565088046038403, 0.004248854533661052, 0.004530017389642365],
    ];
    let dgm = array![
        [0.012910896990095974, 0.014144619844035674, 0.013468142221324145, 0.01103977185455173],
        [0.018190418710610598, 0.020064298606554058, 0.019153957062668727, 0.01566639311516504],
        [0.004349722698207154, 0.004843001876967525, 0.004639642270407855, 0.0037835720435766104],
    ];
    for (name, expected) in [("naive_unn", naive), ("dgm", dgm)] {
        let model = read_model(old(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((model.report().method.as_str(), model.bands()), (name, 4));
        assert_eq!(model.emitters().len(), if name == "dgm" { 2 } else { 0 });
        let found: Array2<f64> = model.predict(&at, &Progress::silent()).unwrap().power;
        for (found, expected) in found.iter().zip(&expected) {
            // Other processors' vectors add in another order.
            assert!((found / expected - 1.0).abs() < 1e-4, "{name}: {found} {expected}");
        }
    }
}

#[test]
fn a_model_that_was_written_and_read_predicts_the_same_bits() {
    portolan_paper::register();
    let folder = tempfile::tempdir().unwrap();
    let grid = Grid::new(24, 16, 1.0).unwrap();
    let truth = simulate(&Scenario { bands: 3, emitters: 2, ..Scenario::new(grid) }).unwrap();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(28), 3)).unwrap();
    let context = Context { emitters: Emitters::Auto, seed: 3, ..Context::default() };
    for (name, iterations) in [("naive_unn", "15"), ("dgm", "5")] {
        let few = [("iterations".to_string(), iterations.to_string())];
        let method = build(name, few).unwrap();
        let model = method.fit(&readings, &context, &Progress::silent()).unwrap().named(name);
        let path = folder.path().join(format!("{name}.npz"));
        write_model(&path, &model, false).unwrap();
        let found = read_model(&path).unwrap();
        let bits = |model: &portolan::Model| -> Vec<u64> {
            let power = model.predict(&grid.sites(), &Progress::silent()).unwrap().power;
            power.iter().map(|x| x.to_bits()).collect()
        };
        assert_eq!(bits(&model), bits(&found), "{name}");
        assert_eq!(found.emitters(), model.emitters(), "{name}");
        assert_eq!(found.report().fitted, model.report().fitted, "{name}");
        // The same model is the same file.
        let again = folder.path().join("again.npz");
        write_model(&again, &found, true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&again).unwrap(), "{name}");
    }
}
