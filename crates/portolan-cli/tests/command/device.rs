//! `--device` and `gpu-check`. What a device computes is `gpu-check`'s business; here it is what
//! the command says where there is none.

use crate::support::Desk;

/// Whether this machine has a CUDA device.
fn has_device(desk: &Desk) -> bool {
    desk.run("gpu-check --json").code == Some(0)
}

#[test]
fn a_method_without_an_engine_is_refused_before_a_device_is_looked_for() {
    let desk = Desk::with_readings();
    let said = desk.run("estimate readings.npz --method kriging --device cuda -o map.npz");
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("--device: not used by kriging; choose from unn"),
        "{}",
        said.stderr
    );
    let said = desk.run("study --maps 1 --grid 12x12 --bands 4 --methods kriging --device cuda");
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    // Where nothing could run elsewhere, auto has nothing to say.
    let said = desk.ok("estimate readings.npz --method idw --device auto -o map.npz");
    assert!(!said.stderr.contains("CUDA"), "{}", said.stderr);
}

#[test]
fn without_a_device_cuda_fails_in_one_line_and_auto_goes_on() {
    let desk = Desk::with_readings();
    if has_device(&desk) {
        return;
    }
    let quick = "--method unn --emitters 2 --set iterations=5 --set start_iterations=5";
    let said = desk.run(&format!("fit readings.npz {quick} --device cuda -o model.npz"));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains("--device cuda: the engine cuda failed: "), "{}", said.stderr);
    assert!(!desk.path("model.npz").exists());
    let said = desk.ok(&format!("fit readings.npz {quick} --device auto -o auto.npz"));
    assert!(said.stderr.contains("the fit runs on the processor"), "{}", said.stderr);
    desk.ok(&format!("fit readings.npz {quick} -o plain.npz"));
    assert_eq!(desk.read("auto.npz"), desk.read("plain.npz"));
    let said = desk.run("gpu-check");
    assert_eq!(said.code, Some(1));
    assert_eq!(said.stderr.trim_end().lines().count(), 1, "{}", said.stderr);
}
