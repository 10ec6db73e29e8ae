//! `portolan bound`: the calculator's table and JSON, and what it refuses.

use crate::support::Desk;

/// R = 4, K = 64, L = 4, W = 6, s = 1, b = 6, P = 1, D0^2 = 16, a = kappa = gamma = 1, N = 410.
#[test]
fn the_paper_s_setting() {
    let desk = Desk::new();
    let said = desk.json("bound --epsilon 0.5 --json");
    let near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{value}, expected {expected}");
    };
    assert_eq!(said["inputs"]["sensors"], 410);
    assert_eq!(said["inputs"]["column_norm"], 6.0);
    // 64 * 2 * 36 * ln 72 * 64 * 4, 4 * 16 * ln(6 * 4 * 2 / 0.5), 4 * 64 * ln(3 * 4 * 2 / 0.5).
    let network = 64.0 * 2.0 * 36.0 * 72f64.ln() * 64.0 * 4.0;
    let (latents, spectra) = (64.0 * 96f64.ln(), 256.0 * 48f64.ln());
    near(&said["log_covering"]["network"], network);
    near(&said["log_covering"]["latents"], latents);
    near(&said["log_covering"]["spectra"], spectra);
    let log_covering = network + latents + spectra;
    near(&said["log_covering"]["total"], log_covering);
    let full = 4.0 / 410f64.sqrt() + (log_covering / 410.0).powf(0.25) / 8.0;
    near(&said["bounds"][0]["bound"], full);
    let quantised = 2.0 / (64.0 * 410f64.sqrt()) + (log_covering / 410.0).sqrt();
    near(&said["bounds"][1]["bound"], quantised);
    // 2 * 4 / sqrt(64^3): the bound says nothing here.
    near(&said["trivial"], 8.0 / 512.0);
}

#[test]
fn the_table_names_every_input_and_what_is_open() {
    let desk = Desk::new();
    let said = desk.ok("bound --target 0.5 --constant 2").stdout;
    for word in ["spectral norm", "gamma", "epsilon", "network", "latents", "spectra", "sampling"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(said.contains("sensors for 0.5"), "{said}");
    assert!(said.contains("the constant of O(..), taken as 2"), "{said}");
    assert!(said.contains("taken as W s"), "{said}");
    assert!(!desk.ok("bound --column-norm 3").stdout.contains("taken as W s"));
}

#[test]
fn the_naive_decoder_needs_more_sensors_for_the_same_promise() {
    let desk = Desk::new();
    let said = desk.json("bound --compare --json");
    let rows = said["compare"].as_array().unwrap();
    let (factored, naive) = (&rows[0], &rows[1]);
    // 1080 + 4 * 16 + 4 * 64 and 30240 + 16.
    assert_eq!((&factored["parameters"], &naive["parameters"]), (&1400.0.into(), &30256.0.into()));
    assert_eq!(factored["sensors"]["count"], 410);
    assert!(naive["sensors"]["count"].as_u64().unwrap() > 410);
    // Lemma 2 with W = K = 64 and b = 64.
    let expected = 4.0 * 4096.0 * 8192f64.ln() * 64.0 * 100.0 + 16.0 * 60f64.ln();
    let found = naive["log_covering"].as_f64().unwrap();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    let table = desk.ok("bound --compare --naive-width 200").stdout;
    assert!(table.contains("sensors for it") && table.contains("naive"), "{table}");
}

#[test]
fn the_derived_factor_is_an_option() {
    let desk = Desk::new();
    let printed = desk.json("bound --json");
    let derived = desk.json("bound --network-term substituted --json");
    let network = |said: &serde_json::Value| said["log_covering"]["network"].as_f64().unwrap();
    assert!((network(&derived) / network(&printed) - 8.0).abs() < 1e-9);
}

#[test]
fn numbers_too_large_for_a_float_are_printed() {
    let desk = Desk::new();
    // s^798 b^2 L^3 R^3 (kappa + gamma) ln 72 / epsilon^2 with b = 6 s.
    let said = desk.ok("bound --layers 400 --spectral-norm 1e5 --target 1").stdout;
    assert!(said.contains("1.261e4014") && !said.contains("inf"), "{said}");
    let json = desk.json("bound --layers 400 --spectral-norm 1e5 --json");
    assert!(json["log_covering"]["total"].is_null());
    assert!(json["log_covering"]["ln_total"].as_f64().unwrap() > 9000.0);
}

#[test]
fn impossible_numbers_are_refused() {
    let desk = Desk::new();
    for (args, word) in [
        ("--epsilon 0", "epsilon is 0"),
        ("--epsilon -1", "epsilon is -1"),
        ("--spectral-norm NaN", "spectral norm"),
        ("--emitters 0", "emitters is 0"),
        ("--layers 0", "layers is 0"),
        ("--sensors 0", "sensors is 0"),
        ("--sensors 5000", "4096 cells"),
        ("--grid 0x5", "grid of 0 x 5"),
        ("--constant 0", "constant is 0"),
        ("--misfit -1", "misfit is -1"),
        ("--misfit 1 --target 0.5", "misfit alone is 1"),
        ("--target 0", "error is 0"),
        ("--naive-width 9", "--compare"),
        ("--compare --naive-width 0", "width is 0"),
        ("--compare --kernel 0", "--kernel 0"),
    ] {
        desk.refused(&format!("bound {args}"), &[word]);
    }
}
