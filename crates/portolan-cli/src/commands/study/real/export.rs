//! The readings of every split as tables, so that others can be run on the very same ones.

use std::path::Path;

use ndarray::Array2;
use portolan::Site;
use portolan_io::write_bytes;

use super::splits::{Rule, Split};
use super::surveys::Survey;
use crate::failure::Failure;

/// Writes `splits.csv` and, for each of its lines, a folder with `train.csv` and `test.csv`.
pub fn write(
    folder: &Path,
    surveys: &[Survey],
    (count, seed): (u64, u64),
    force: bool,
) -> Result<(), Failure> {
    let mut index = String::from("survey,train,split,folder\n");
    for survey in surveys {
        for rule in Rule::ALL {
            for number in 0..count {
                let split = Split::new(survey, rule, number, seed);
                let name = format!("{}-{}-{number}", survey.name, rule.word());
                index += &format!("{},{},{number},{name}\n", survey.name, rule.label());
                let inner = folder.join(name);
                std::fs::create_dir_all(&inner)
                    .map_err(|error| Failure::input(format!("{}: {error}", inner.display())))?;
                let unit = survey.scale.decibels().to_lowercase();
                let bands: Vec<String> =
                    split.bands.iter().map(|&b| format!("{unit}_{}", survey.bands[b])).collect();
                let (sites, level) = split.training(survey);
                write_bytes(&inner.join("train.csv"), &table(&bands, &sites, &level), force)?;
                let (sites, level) = split.testing(survey);
                write_bytes(&inner.join("test.csv"), &table(&bands, &sites, &level), force)?;
            }
        }
    }
    Ok(write_bytes(&folder.join("splits.csv"), index.as_bytes(), force)?)
}

/// A line per place; an empty cell where nothing was heard.
fn table(bands: &[String], sites: &[Site], level: &Array2<f64>) -> Vec<u8> {
    let mut text = format!("x_m,y_m,{}\n", bands.join(","));
    for (site, row) in sites.iter().zip(level.rows()) {
        text += &format!("{},{}", site.x_m, site.y_m);
        for value in row {
            text.push(',');
            if !value.is_nan() {
                text += &value.to_string();
            }
        }
        text.push('\n');
    }
    text.into_bytes()
}
