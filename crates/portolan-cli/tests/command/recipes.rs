//! Every command of docs/recipes.md, on the files beside it, as a reader would type it.

use std::path::Path;

use crate::support::Desk;

#[test]
fn the_recipes_work_as_written() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(docs.join("recipes.md")).unwrap();
    let desk = Desk::new();
    for file in std::fs::read_dir(docs.join("recipes")).unwrap() {
        let path = file.unwrap().path();
        std::fs::copy(&path, desk.path(&path.file_name().unwrap().to_string_lossy())).unwrap();
    }
    let mut ran = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("portolan ")) {
        match line.split_once(" < ") {
            Some((line, input)) => {
                let mut command = desk.command(line);
                command.stdin(std::fs::File::open(desk.path(input)).unwrap());
                let output = command.output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "portolan {line}\n{said}");
            }
            None => drop(desk.ok(line)),
        }
        if let Some((_, target)) = line.split_once("-o ") {
            let target = target.split_whitespace().next().unwrap();
            assert!(desk.path(target).exists(), "{line}");
        }
        ran += 1;
    }
    assert!(ran >= 10, "{ran} commands");
    // The same log, read by its names and by the caller's.
    assert_eq!(desk.read("phone.npz"), desk.read("columns.npz"));
}
