//! The numbers that the paper prints, from `data/paper.csv`: experiment, the paper's own table,
//! section, row, column, SSIM, and seconds where it gives them.

use std::collections::HashMap;
use std::sync::LazyLock;

const FILE: &str = include_str!("../data/paper.csv");

/// One printed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// The paper's name of the table.
    pub table: String,
    /// The paper's name of the column.
    pub column: String,
    pub ssim: f64,
    pub seconds: Option<f64>,
}

static ALL: LazyLock<HashMap<[String; 4], Printed>> = LazyLock::new(|| {
    let mut reader = csv::Reader::from_reader(FILE.as_bytes());
    let rows = reader.records().map(|row| row.expect("the file is part of the program"));
    rows.map(|row| {
        let text = |i: usize| row[i].to_string();
        let number = |i: usize| row[i].parse().ok();
        let printed = Printed {
            table: text(1),
            column: text(4),
            ssim: number(5).expect("every row has an SSIM"),
            seconds: number(6),
        };
        ([text(0), text(2), text(3), text(4)], printed)
    })
    .collect()
});

/// What the paper prints in a cell, by its own row and column.
pub fn printed(experiment: &str, section: &str, row: &str, column: &str) -> Option<Printed> {
    ALL.get(&[experiment, section, row, column].map(str::to_string)).cloned()
}

/// How many numbers the paper prints for an experiment.
pub fn printed_cells(experiment: &str) -> usize {
    ALL.keys().filter(|key| key[0] == experiment).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_every_table() {
        let counts = [
            ("table-emitters", 48),
            ("table-parameters", 7),
            ("table-architecture", 16),
            ("table-shadowing", 50),
            ("table-hyper", 20),
            ("table-assumed-emitters", 21),
        ];
        for (experiment, count) in counts {
            assert_eq!(printed_cells(experiment), count, "{experiment}");
        }
        assert_eq!(ALL.len(), 162, "no key twice");
        assert!(ALL.values().all(|p| (0.0..1.0).contains(&p.ssim)));
    }

    #[test]
    fn cells_are_found_by_the_papers_names() {
        let cell = printed("table-emitters", "3 bits", "4", "Q-Prop.").unwrap();
        assert_eq!((cell.ssim, cell.table.as_str()), (0.8571, "Table I"));
        let cell = printed("table-assumed-emitters", "assumed emitters", "7", "BTD").unwrap();
        assert_eq!((cell.ssim, cell.seconds), (0.7484, Some(2.6985)));
        assert_eq!(printed("table-emitters", "3 bits", "4", "Prop."), None);
    }
}
