//! The tour in one command, and the commands that only tell.

use crate::support::{Desk, METHODS, PNG};

#[test]
fn the_demo_leaves_its_files_and_lists_every_method_it_ran() {
    let desk = Desk::new();
    let said = desk.ok("demo --out tour --seed 1");
    for file in ["truth.npz", "readings.npz", "map.npz"] {
        desk.ok(&format!("inspect tour/{file}"));
        assert!(said.stdout.contains(file), "{}", said.stdout);
    }
    for picture in ["methods.png", "map.png"] {
        assert!(desk.read(&format!("tour/{picture}")).starts_with(PNG), "{picture}");
    }
    for method in ["nearest", "idw", "linear", "thin_plate", "kriging", "unn", "field"] {
        assert!(said.stdout.lines().any(|line| line.starts_with(method)), "{}", said.stdout);
    }
    assert!(!said.stdout.contains('\x1b'), "colours only on a terminal");
    let files = std::fs::read_dir(desk.path("tour")).unwrap().count();
    assert_eq!(files, 5, "no other file is left");
    desk.refused("demo --out tour", &["tour/truth.npz", "--force"]);
}

#[test]
fn every_method_is_listed_with_its_options() {
    let desk = Desk::new();
    let text = desk.ok("methods").stdout;
    let list = desk.json("methods --json");
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|method| method["name"].as_str().unwrap()).collect();
    for method in METHODS {
        assert!(names.contains(&method), "{names:?}");
        assert!(text.lines().any(|line| line.starts_with(&format!("{method}: "))), "{text}");
    }
    for method in list.as_array().unwrap() {
        for option in method["options"].as_array().unwrap() {
            for key in ["name", "default", "takes"] {
                assert!(!option[key].as_str().unwrap().is_empty(), "{method}");
            }
        }
    }
    let kriging = list.as_array().unwrap().iter().find(|m| m["name"] == "kriging").unwrap();
    let options: Vec<&str> = kriging["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["name"].as_str().unwrap())
        .collect();
    for option in ["covariance", "decorrelation", "sill", "nugget", "trend", "neighbours", "domain"]
    {
        assert!(options.contains(&option), "{options:?}");
    }
}

#[test]
fn every_shell_gets_a_completion_script() {
    let desk = Desk::new();
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef portolan"), ("fish", "complete -c portolan")]
    {
        let said = desk.ok(&format!("completions {shell}"));
        assert!(said.stdout.contains(mark), "{shell}");
        assert!(said.stdout.contains("estimate") && said.stderr.is_empty(), "{shell}");
    }
    desk.refused("completions cobol", &["cobol", "bash"]);
}

#[test]
fn help_is_a_result_and_no_arguments_are_a_mistake() {
    let desk = Desk::new();
    let help = desk.ok("--help");
    assert!(help.stderr.is_empty());
    for command in [
        "demo",
        "simulate",
        "sense",
        "estimate",
        "score",
        "compare",
        "plot",
        "coverage",
        "inspect",
        "convert",
        "methods",
        "completions",
    ] {
        assert!(help.stdout.contains(command), "{command}");
        let own = desk.ok(&format!("{command} --help"));
        assert!(own.stdout.contains("Usage:") && own.stderr.is_empty(), "{command}");
    }
    assert!(desk.ok("--version").stdout.starts_with("portolan "));
    let bare = desk.run("");
    assert_eq!((bare.code, bare.stdout.as_str()), (Some(2), ""));
    assert!(bare.stderr.contains("Usage:"), "{}", bare.stderr);
}
