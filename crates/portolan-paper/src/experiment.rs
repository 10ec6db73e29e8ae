//! What an experiment is: sections of cells, each a scene, a method and the number of emitters it is
//! told, beside the number that the paper prints.

use std::fmt;

use crate::methods::method;
use portolan::Emitters;

use crate::printed::Printed;

/// Goes up when scenes are made or scored in another way; what a method does has a revision of its
/// own in the register.
const RECORDS: &str = "records 2";

/// One of the paper's tables or figures.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub name: &'static str,
    pub title: &'static str,
    /// The settings, for the caption.
    pub caption: String,
    pub sections: Vec<Section>,
    pub picture: PictureKind,
    /// Whether its columns are set beside the paper's under every convention of SSIM.
    pub compares_conventions: bool,
}

/// What is drawn of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureKind {
    Nothing,
    /// SSIM over the rows, one curve per column, for each section with numbers as rows.
    Curves,
    /// Estimates of one band side by side, for each section.
    Maps,
    /// Bands as rows, methods as columns.
    Bands,
}

/// A table of its own: rows by columns.
#[derive(Clone, Debug)]
pub struct Section {
    /// Short name, as in `data/paper.csv`.
    pub name: &'static str,
    pub title: String,
    /// What the rows are.
    pub rows: &'static str,
    pub cells: Vec<TableCell>,
    pub notes: Vec<String>,
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub struct TableCell {
    pub row: String,
    pub column: String,
    /// `None` where there is nothing that we could run beside the paper's number.
    pub setup: Option<TrialSetup>,
    pub printed: Option<Printed>,
    /// Cells that take minutes get no more trials than this.
    pub most_trials: usize,
}

/// What a trial runs: everything but the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSetup {
    pub scene: Scene,
    pub method: Call,
    pub emitters: Emitters,
    /// Bands whose estimate is kept for a picture, in the first trial.
    pub draw: Vec<usize>,
    /// Runs with the machine to itself, because its seconds are what is asked for.
    pub alone: bool,
}

/// What is measured, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum Scene {
    Simulated(Simulated),
    /// The office floor: this many of its measured places, at random.
    Floor {
        sensors: usize,
    },
    /// The ray-traced city: this share of the cells outside buildings.
    City {
        fraction: f64,
    },
}

/// A simulated map and its sensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// Rows, columns, bands.
    pub size: [usize; 3],
    pub emitters: usize,
    pub shadow_db: f64,
    pub decorrelation_m: f64,
    pub fraction: f64,
    pub bits: Option<u32>,
}

/// A method of the register, or `oracle`, with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: &'static str,
    pub options: Vec<(String, String)>,
}

impl Call {
    /// From "name" or "name:key=value:key=value".
    pub fn new(text: &'static str) -> Self {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let options = parts.filter_map(|part| part.split_once('='));
        Self { name, options: options.map(|(k, v)| (k.into(), v.into())).collect() }
    }

    /// With one more option.
    pub fn with(mut self, option: &str, value: impl ToString) -> Self {
        self.options.push((option.into(), value.to_string()));
        self
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.options.iter().try_for_each(|(option, value)| write!(f, ":{option}={value}"))
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scene::Simulated(map) => {
                let [rows, cols, bands] = map.size;
                let Simulated { emitters, shadow_db, decorrelation_m, fraction, .. } = map;
                write!(f, "{rows}x{cols}x{bands} R={emitters} eta={shadow_db}")?;
                write!(f, " Xc={decorrelation_m} fraction={fraction}")?;
                map.bits.map_or(Ok(()), |bits| write!(f, " bits={bits}"))
            }
            Scene::Floor { sensors } => write!(f, "floor sensors={sensors}"),
            Scene::City { fraction } => write!(f, "city fraction={fraction}"),
        }
    }
}

impl TrialSetup {
    pub fn new(scene: Scene, method: Call, emitters: Emitters) -> Self {
        Self { scene, method, emitters, draw: Vec::new(), alone: false }
    }

    /// Whether the record of a trial keeps bands for a picture.
    pub fn draws(&self, trial: usize) -> bool {
        trial == 0 && !self.draw.is_empty()
    }

    /// A text that tells everything that determines a result: two trials with the same key are
    /// the same trial, in whichever table they stand.
    pub fn key(&self, first_seed: u64, trial: usize) -> String {
        let emitters = match self.emitters {
            Emitters::Auto => "auto".to_string(),
            Emitters::Count(count) => count.to_string(),
        };
        let seed = first_seed + trial as u64;
        let revision = method(self.method.name).map_or(0, |method| method.revision);
        let mut key = format!(
            "{RECORDS} | {} | seed={seed} | {} | revision {revision} | emitters={emitters}",
            self.scene, self.method
        );
        if self.draws(trial) {
            let bands: Vec<String> = self.draw.iter().map(usize::to_string).collect();
            key += &format!(" | draw={}", bands.join(","));
        }
        if self.alone {
            key += " | alone";
        }
        key
    }
}

impl Section {
    /// Labels of the rows, in order.
    pub fn row_labels(&self) -> Vec<&str> {
        distinct(self.cells.iter().map(|cell| cell.row.as_str()))
    }

    /// Labels of the columns, in order.
    pub fn column_labels(&self) -> Vec<&str> {
        distinct(self.cells.iter().map(|cell| cell.column.as_str()))
    }

    pub fn cell(&self, row: &str, column: &str) -> Option<&TableCell> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }
}

impl Experiment {
    pub fn cells(&self) -> impl Iterator<Item = &TableCell> {
        self.sections.iter().flat_map(|section| &section.cells)
    }

    /// Whether it runs on measured or ray-traced data.
    pub fn is_real(&self) -> bool {
        let real = |cell: &TableCell| {
            cell.setup.as_ref().is_some_and(|setup| !matches!(setup.scene, Scene::Simulated(_)))
        };
        self.cells().any(real)
    }
}

fn distinct<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for label in labels {
        if !seen.contains(&label) {
            seen.push(label);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> TrialSetup {
        let scene = Simulated {
            size: [64, 64, 64],
            emitters: 4,
            shadow_db: 6.0,
            decorrelation_m: 90.0,
            fraction: 0.1,
            bits: None,
        };
        let method = Call::new("unn:recipe=paper").with("channels", 16);
        TrialSetup::new(Scene::Simulated(scene), method, Emitters::Count(4))
    }

    #[test]
    fn a_key_tells_everything() {
        let key = setup().key(1000, 3);
        let revision = method("unn").unwrap().revision;
        assert!(revision > 0);
        assert_eq!(
            key,
            format!(
                "records 2 | 64x64x64 R=4 eta=6 Xc=90 fraction=0.1 | seed=1003 | \
                 unn:recipe=paper:channels=16 | revision {revision} | emitters=4"
            )
        );
    }

    #[test]
    fn pictures_are_kept_in_the_first_trial_only() {
        let mut drawn = setup();
        drawn.draw = vec![29];
        assert!(drawn.key(0, 0).ends_with(" | draw=29"));
        assert_eq!(drawn.key(0, 1), setup().key(0, 1));
        drawn.alone = true;
        assert_ne!(drawn.key(0, 1), setup().key(0, 1));
    }
}
