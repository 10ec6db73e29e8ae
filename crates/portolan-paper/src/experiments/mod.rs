//! The paper's tables and figures, one file each.

mod architecture;
mod assumed;
mod emitters;
mod hyper;
mod maps;
mod parameters;
mod real;
mod shadowing;

use portolan::Emitters;

use crate::error::ReproduceError;
use crate::experiment::{Call, Experiment, Scene, Section, Simulated, TableCell, TrialSetup};
use crate::printed::printed;

/// Every experiment, in the paper's order.
pub const NAMES: [&str; 9] = [
    "figure-maps",
    "table-emitters",
    "table-parameters",
    "table-architecture",
    "table-shadowing",
    "table-hyper",
    "table-assumed-emitters",
    "table-real",
    "figure-real",
];

/// How large the experiments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The paper's.
    Full,
    /// Small maps and few iterations, for tests: the results are not meaningful.
    Tiny,
}

/// The experiments of that name; `all` are all.
pub fn experiments(name: &str, size: Size) -> Result<Vec<Experiment>, ReproduceError> {
    if name == "all" {
        return Ok(NAMES.iter().filter_map(|name| experiment(name, size)).collect());
    }
    experiment(name, size).map(|found| vec![found]).ok_or_else(|| ReproduceError::Unknown {
        name: name.into(),
        known: format!("{}, all, report", NAMES.join(", ")),
    })
}

fn experiment(name: &str, size: Size) -> Option<Experiment> {
    let build: fn(&Builder) -> Experiment = match name {
        "figure-maps" => maps::build,
        "table-emitters" => emitters::build,
        "table-parameters" => parameters::build,
        "table-architecture" => architecture::build,
        "table-shadowing" => shadowing::build,
        "table-hyper" => hyper::build,
        "table-assumed-emitters" => assumed::build,
        "table-real" => real::table,
        "figure-real" => real::figure,
        _ => return None,
    };
    let name = NAMES.iter().find(|known| **known == name)?;
    Some(build(&Builder { experiment: name, size }))
}

/// A column: its label, the method, and the paper's name of the column (empty where it has none).
type Column = (&'static str, &'static str, &'static str);

/// The paper's five methods, in its order, and its proposed method by its printed recipe.
const PAPERS: [Column; 6] = [
    ("naive_unn", "naive_unn", "Naive UNN"),
    ("interpolation", "thin_plate:domain=linear", "Interp."),
    ("btd", "btd", "BTD"),
    ("dgm", "dgm:weights=broad", "DGM"),
    ("unn, recipe=paper", "unn:recipe=paper", "Prop."),
    ("unn", "unn", "Prop."),
];

/// What the paper does not compare with.
const EXTRAS: [Column; 5] = [
    ("thin_plate", "thin_plate", ""),
    ("kriging", "kriging", ""),
    ("field", "field", ""),
    ("auto", "auto", ""),
    ("oracle", "oracle", ""),
];

/// Makes cells of one experiment.
struct Builder {
    experiment: &'static str,
    size: Size,
}

/// A simulated map with the paper's usual settings; the rest is said where it differs.
const USUAL: Simulated = Simulated {
    size: [64, 64, 64],
    emitters: 4,
    shadow_db: 6.0,
    decorrelation_m: 90.0,
    fraction: 0.1,
    bits: None,
};

impl Builder {
    fn scene(&self, scene: Simulated) -> Scene {
        Scene::Simulated(match self.size {
            Size::Full => scene,
            Size::Tiny => Simulated { size: [16, 16, 8], ..scene },
        })
    }

    /// A method with its options; a tiny one makes few iterations.
    fn call(&self, method: Call) -> Call {
        match (self.size, method.name) {
            (Size::Full, _) => method,
            (Size::Tiny, "unn") => {
                let few = method.with("iterations", 3).with("start_iterations", 3);
                few.with("most_iterations", 3)
            }
            (Size::Tiny, "field") => method.with("rounds", 3),
            (Size::Tiny, "btd" | "naive_unn") => method.with("iterations", 3),
            (Size::Tiny, "dgm") => {
                let few = method.with("iterations", 3).with("start_iterations", 3);
                few.with("draws", 4).with("starts", 1)
            }
            (Size::Tiny, _) => method,
        }
    }

    /// A setup that is told the right number of emitters, as the paper's methods are.
    fn setup(&self, scene: Simulated, method: Call) -> TrialSetup {
        let told = Emitters::Count(scene.emitters);
        TrialSetup::new(self.scene(scene), self.call(method), told)
    }

    /// A cell beside the paper's number, found by the paper's own row and column.
    fn cell(
        &self,
        section: &str,
        row: &str,
        label: &str,
        paper: &str,
        setup: Option<TrialSetup>,
    ) -> TableCell {
        TableCell {
            row: row.into(),
            column: label.into(),
            setup,
            printed: printed(self.experiment, section, row, paper),
            most_trials: usize::MAX,
        }
    }

    /// A row of a table: the same scene for every method.
    fn row(
        &self,
        section: &str,
        row: &str,
        scene: Simulated,
        columns: &[Column],
    ) -> Vec<TableCell> {
        let cell = |&(label, method, paper): &Column| {
            let method = sized(Call::new(method), scene.emitters);
            self.cell(section, row, label, paper, Some(self.setup(scene, method)))
        };
        columns.iter().map(cell).collect()
    }

    fn experiment(&self, title: &'static str, caption: &str, sections: Vec<Section>) -> Experiment {
        Experiment {
            name: self.experiment,
            title,
            caption: caption.into(),
            sections,
            picture: crate::experiment::PictureKind::Nothing,
            compares_conventions: false,
        }
    }
}

/// "All UNN models use 1080 + 16R parameters": the naive one is given as many.
fn sized(method: Call, emitters: usize) -> Call {
    if method.name == "naive_unn" && method.options.is_empty() {
        return method.with("parameters", 1080 + 16 * emitters);
    }
    method
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::printed_cells;
    use std::collections::HashSet;

    #[test]
    fn every_printed_number_stands_in_its_table() {
        for name in NAMES {
            let [experiment] = &experiments(name, Size::Full).unwrap()[..] else { panic!() };
            let mut stands = HashSet::new();
            for section in &experiment.sections {
                for cell in &section.cells {
                    if let Some(printed) = &cell.printed {
                        stands.insert((section.name, cell.row.clone(), printed.column.clone()));
                    }
                }
            }
            assert_eq!(stands.len(), printed_cells(name), "{name}");
        }
    }

    #[test]
    fn every_cell_of_a_section_has_its_own_place_and_job() {
        for experiment in experiments("all", Size::Full).unwrap() {
            for section in &experiment.sections {
                let mut places = HashSet::new();
                for cell in &section.cells {
                    assert!(
                        places.insert((&cell.row, &cell.column)),
                        "{} {} {}",
                        section.name,
                        cell.row,
                        cell.column
                    );
                }
            }
        }
    }

    #[test]
    fn tables_share_what_they_have_in_common() {
        let keys = |name: &str| -> HashSet<String> {
            let found = experiments(name, Size::Full).unwrap();
            found[0].cells().filter_map(|c| Some(c.setup.as_ref()?.key(0, 0))).collect()
        };
        let shared = |a: &str, b: &str| keys(a).intersection(&keys(b)).count();
        assert!(shared("table-shadowing", "table-hyper") >= 2);
        assert!(shared("table-architecture", "table-hyper") >= 2);
        // Seconds are measured alone: other tables' records will not do.
        assert_eq!(shared("table-assumed-emitters", "table-shadowing"), 0);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = experiments("table-1", Size::Full).unwrap_err().to_string();
        assert!(error.contains("table-emitters") && error.contains("all"), "{error}");
    }
}
