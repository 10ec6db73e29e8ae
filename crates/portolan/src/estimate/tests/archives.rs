//! Models as named arrays and back.

use super::*;

#[test]
fn a_model_read_back_predicts_the_same_to_the_last_bit() {
    use crate::model::Archive;
    let readings = survey(70);
    let silent = Progress::silent();
    for name in names() {
        let model = fitted(name, &readings);
        let archive = model.to_archive();
        let again = Model::from_archive(&archive).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (a, b) = (model.predict(&asked(), &silent), again.predict(&asked(), &silent));
        assert_eq!(a.unwrap(), b.unwrap(), "{name}");
        // As text, so that NaN is NaN.
        assert_eq!(format!("{:?}", again.to_archive()), format!("{archive:?}"), "{name}");
        assert_eq!(again.report().notes, model.report().notes);
        assert_eq!(again.emitters(), model.emitters());
        // Every array counts: without it the model is refused, and never a panic.
        for (missing, _) in archive.entries() {
            let rest = archive.entries().filter(|(name, _)| *name != missing);
            let rest = Archive::new(rest.map(|(name, stored)| (name.to_string(), stored.clone())));
            let optional = ["labels", "freq_hz", "chosen", "grid", "emitters"];
            let refused = Model::from_archive(&rest).is_err();
            let on_grid = missing == "grid" && model.grid().is_some();
            // Models of the versions before had none of these.
            let new = ["candidates_weight", "fit_levels", "fit_hearing"].contains(&missing)
                || missing.contains("masts_")
                || missing.starts_with("emitter_weights_")
                || missing.ends_with("_sills")
                || missing.ends_with("_levels")
                || missing.ends_with("_hearing");
            let free =
                optional.contains(&missing) || missing == "cell_m" || missing == "origin_m" || new;
            assert!(refused || (free && !on_grid), "{name} without {missing}");
        }
    }
}

#[test]
fn a_model_of_a_newer_program_is_refused() {
    use crate::model::{Archive, Stored};
    let archive = fitted("nearest", &survey(10)).to_archive();
    let newer = archive.entries().map(|(name, stored)| {
        let stored = match name {
            "portolan_model" => Stored::Whole(ndarray::arr1(&[99]).into_dyn()),
            _ => stored.clone(),
        };
        (name.to_string(), stored)
    });
    let error = Model::from_archive(&Archive::new(newer)).unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains("up to 2"), "{error}");
    assert!(Model::from_archive(&Archive::default()).is_err());
}

/// Found by fuzzing: the claim was believed and memory asked for.
#[test]
fn a_model_that_claims_a_trillion_bands_is_refused() {
    use crate::model::{Archive, Stored};
    for name in ["nearest", "idw", "linear", "thin_plate", "kriging"] {
        let archive = fitted(name, &survey(10)).to_archive();
        let claims = archive.entries().map(|(name, stored)| {
            let stored = match name {
                "bands" => Stored::Whole(ndarray::arr1(&[1 << 40]).into_dyn()),
                _ => stored.clone(),
            };
            (name.to_string(), stored)
        });
        let error = Model::from_archive(&Archive::new(claims)).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{name}: {error}");
    }
}

/// Models on a grid draw on it while they are read: a claimed grid must not take the memory.
#[test]
fn a_model_that_claims_a_grid_beyond_memory_is_refused() {
    use crate::model::{Archive, Stored};
    let archive = fitted("btd", &survey(30)).to_archive();
    let refusal = |archive: &Archive, free_bytes| {
        Model::from_archive_within(archive, free_bytes).err().map(|e| e.to_string())
    };
    assert_eq!(refusal(&archive, 1 << 30), None);
    let error = refusal(&archive, 1000).expect("a drawing takes more than that");
    assert!(error.contains("fit it on a smaller grid"), "{error}");
    let claims = archive.entries().map(|(name, stored)| match name {
        "grid" => (name.into(), Stored::Whole(ndarray::arr1(&[1 << 30, 1 << 30]).into_dyn())),
        _ => (name.into(), stored.clone()),
    });
    let error = refusal(&Archive::new(claims), u64::MAX).expect("nobody has so much memory");
    assert!(error.contains("1073741824 x 1073741824 cells"), "{error}");
}

#[test]
fn the_register_says_which_methods_tell_heights_apart() {
    let (sites, power) = (0..24)
        .map(|i| {
            let site = Site::new(f64::from(i * 7 % 24), f64::from(i * 5 % 24));
            (site.at_height(f64::from(i % 3)), 1e-6 / f64::from(1 + i))
        })
        .unzip::<_, _, Vec<Site>, Vec<f64>>();
    let values = Values::Power(Array2::from_shape_vec((24, 1), power).unwrap());
    let readings = Readings::new(sites, values, Scale::Absolute).unwrap();
    for name in names() {
        let entry = crate::estimate::method(name).unwrap();
        let fast: Vec<(String, String)> = match name {
            "unn" | "naive_unn" => vec![("iterations".into(), "2".into())],
            _ => Vec::new(),
        };
        let method = entry.build(fast).unwrap();
        let model = method.fit(&readings, &Context::default(), &Progress::silent()).unwrap();
        assert_eq!(model.sees_heights(), entry.has(Capability::Heights), "{name}");
    }
}
