use proptest::prelude::*;

use super::*;

fn factored() -> FactoredClass {
    FactoredClass {
        decoder: DecoderClass::paper(),
        emitters: 4,
        bands: 64,
        psd_norm: 1.0,
        slf_norm: 1.0,
        factor: NetworkFactor::Printed,
    }
}

fn bound(precision: Precision, log_covering: f64) -> RecoveryBound {
    let ln_log_covering = log_covering.ln();
    RecoveryBound { precision, emitters: 4, bands: 64, ln_log_covering, constant: 1.0, misfit: 0.0 }
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{what}: {found}, expected {expected}");
}

#[test]
fn lemma_1_by_hand() {
    // R = 2, K = 3, L = 2, W = 4, s = 3, b = 5, P = 0.25, D_0^2 = 9, a = 2, kappa = 0.5,
    // gamma = 1.5, epsilon = 0.5. ln(2 * 16) = ln 32 = 3.4657359027997265.
    // Network: 8 * 2 * 4 * 25 * 0.25 * ln 32 * 9 * 8 / 0.25 = 115200 ln 32.
    // Latents: 2 * 9 * ln(6 * 2 * 0.25 * 2 * 2 / 0.5) = 18 ln 24 (ln 24 = 3.1780538303479458).
    // Spectra: 2 * 3 * ln(3 * 2 * 0.5 * 2 / 0.5) = 6 ln 12 (ln 12 = 2.4849066497880004).
    let decoder = DecoderClass {
        layers: 2,
        width: 4,
        spectral_norm: 3.0,
        column_norm: 5.0,
        lipschitz: 0.25,
        latent_size: 9,
        latent_norm: 2.0,
    };
    let class = FactoredClass {
        decoder,
        emitters: 2,
        bands: 3,
        psd_norm: 0.5,
        slf_norm: 1.5,
        factor: NetworkFactor::Printed,
    };
    let covering = class.covering(0.5).unwrap();
    close(covering.ln_network.exp(), 115_200.0 * 3.465_735_902_799_726_5, "network");
    close(covering.ln_latents.exp(), 18.0 * 3.178_053_830_347_945_8, "latents");
    close(covering.ln_spectra.exp(), 6.0 * 2.484_906_649_788_000_4, "spectra");
    close(
        covering.ln_log().exp(),
        399_252.776_002_525_23 + 57.204_968_946_263_02 + 14.909_439_898_728,
        "sum",
    );
    // The other factor is 4 (kappa + gamma) = 8 times as large.
    let other = FactoredClass { factor: NetworkFactor::Substituted, ..class };
    close((other.covering(0.5).unwrap().ln_network - covering.ln_network).exp(), 8.0, "factor");
    // Lemma 2: 4 * 4 * 25 * 0.25 * ln 32 * 9 * 8 / 0.25 = 28800 ln 32, and 9 ln(6 * 0.25 * 2 / 0.5).
    let alone = decoder_covering(&decoder, 0.5).unwrap();
    close(alone.ln_network.exp(), 28_800.0 * 3.465_735_902_799_726_5, "Lemma 2, network");
    close(alone.ln_latents.exp(), 9.0 * 1.791_759_469_228_055, "Lemma 2, latents (9 ln 6)");
    assert_eq!(alone.ln_spectra, f64::NEG_INFINITY);
}

#[test]
fn substituting_lemma_2_gives_lemma_1() {
    // R covers of SLFs at epsilon / (R (kappa + gamma)), as in the proof.
    let class = FactoredClass { factor: NetworkFactor::Substituted, slf_norm: 2.5, ..factored() };
    let each = decoder_covering(&class.decoder, 0.1 / (4.0 * 3.5)).unwrap();
    let all = class.covering(0.1).unwrap();
    close(all.ln_network.exp(), 4.0 * each.ln_network.exp(), "network");
    close(all.ln_latents.exp(), 4.0 * each.ln_latents.exp(), "latents");
}

#[test]
fn propositions_by_hand() {
    // R = 4, K = 64, N = 256, log N = 10^4: 4 / 16 and 10 / (8 * 4).
    let full = bound(Precision::Full, 1e4).terms(256).unwrap();
    close(full.ln_sampling.exp(), 0.25, "sampling");
    close(full.ln_covering.exp(), 0.3125, "covering");
    close(full.ln_total().exp(), 0.5625, "full precision");
    // 2 / (64 * 16) and 100 / 16.
    let quantised = bound(Precision::Quantised, 1e4).terms(256).unwrap();
    close(quantised.ln_sampling.exp(), 0.001_953_125, "sampling");
    close(quantised.ln_covering.exp(), 6.25, "covering");
    // The constant multiplies both, the misfit stands apart.
    let scaled = RecoveryBound { constant: 2.0, misfit: 0.5, ..bound(Precision::Full, 1e4) };
    close(scaled.terms(256).unwrap().ln_total().exp(), 2.0 * 0.5625 + 0.5, "scaled");
}

#[test]
fn sensors_by_hand() {
    // The bounds of the test above, the other way round.
    for (precision, error) in [(Precision::Full, 0.5625), (Precision::Quantised, 6.251_953_125)] {
        let bound = bound(precision, 1e4);
        let needed = bound.sensors_for(error * (1.0 + 1e-12)).unwrap();
        assert_eq!(needed.count, Some(256));
        assert_eq!(bound.sensors_for(1e9).unwrap(), SensorsNeeded { ln: 0.0, count: Some(1) });
    }
}

#[test]
fn parameters_of_the_paper() {
    assert_eq!(parameters(4, 6, 3, 1), 1080.0);
    // The naive decoders of the paper's table of parameters have 64 outputs.
    for (width, count) in [(5, 1080.0), (10, 3510.0), (14, 6426.0), (18, 10206.0), (32, 30240.0)] {
        assert_eq!(parameters(4, width, 3, 64), count);
    }
}

#[test]
fn nothing_overflows() {
    let decoder = DecoderClass { layers: 500, spectral_norm: 1e6, ..DecoderClass::paper() };
    let class = FactoredClass { decoder, ..factored() };
    let ln_log = class.covering(1e-6).unwrap().ln_log();
    // s^998 alone is 10^5988.
    assert!(ln_log / std::f64::consts::LN_10 > 5988.0 && ln_log.is_finite());
    for precision in [Precision::Full, Precision::Quantised] {
        let bound = RecoveryBound { ln_log_covering: ln_log, ..bound(precision, 1.0) };
        let needed = bound.sensors_for(0.1).unwrap();
        assert!(needed.count.is_none() && needed.ln > 13_000.0 && needed.ln.is_finite());
    }
}

#[test]
fn a_wide_net_needs_one_element() {
    let covering = factored().covering(1e9).unwrap();
    assert_eq!(covering.ln_latents, f64::NEG_INFINITY);
    assert_eq!(covering.ln_spectra, f64::NEG_INFINITY);
    assert!(covering.ln_log() < -20.0);
}

#[test]
fn impossible_numbers_are_refused() {
    let said = |error: InputError| error.to_string();
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(said(factored().covering(epsilon).unwrap_err()).contains("epsilon"));
        assert!(decoder_covering(&DecoderClass::paper(), epsilon).is_err());
    }
    let paper = DecoderClass::paper();
    for (decoder, word) in [
        (DecoderClass { layers: 0, ..paper }, "layers is 0"),
        (DecoderClass { width: 0, ..paper }, "width is 0"),
        (DecoderClass { latent_size: 0, ..paper }, "latent size is 0"),
        (DecoderClass { spectral_norm: 0.0, ..paper }, "spectral norm is 0"),
        (DecoderClass { column_norm: -2.0, ..paper }, "column norm is -2"),
        (DecoderClass { lipschitz: f64::NAN, ..paper }, "Lipschitz"),
        (DecoderClass { latent_norm: f64::INFINITY, ..paper }, "latent norm is inf"),
    ] {
        let error = said(FactoredClass { decoder, ..factored() }.covering(0.1).unwrap_err());
        assert!(error.contains(word), "{error}");
    }
    for class in [
        FactoredClass { emitters: 0, ..factored() },
        FactoredClass { bands: 0, ..factored() },
        FactoredClass { psd_norm: 0.0, ..factored() },
        FactoredClass { slf_norm: -1.0, ..factored() },
    ] {
        assert!(class.covering(0.1).is_err());
    }
    let good = bound(Precision::Full, 1e4);
    assert!(good.terms(0).is_err());
    assert!(RecoveryBound { constant: 0.0, ..good }.terms(5).is_err());
    assert!(RecoveryBound { misfit: -1.0, ..good }.terms(5).is_err());
    assert!(RecoveryBound { ln_log_covering: f64::NAN, ..good }.terms(5).is_err());
    let error = said(RecoveryBound { misfit: 0.5, ..good }.sensors_for(0.5).unwrap_err());
    assert!(error.contains("misfit alone is 0.5"), "{error}");
    assert!(good.sensors_for(0.0).is_err());
}

proptest! {
    #[test]
    fn laws_of_the_covering_number(
        epsilon in 1e-4f64..10.0,
        emitters in 1usize..20,
        layers in 1usize..8,
        width in 1usize..64,
        norms in prop::array::uniform5(0.1f64..10.0),
    ) {
        let [spectral_norm, column_norm, lipschitz, latent_norm, psd_norm] = norms;
        let decoder = DecoderClass {
            layers, width, spectral_norm, column_norm, lipschitz, latent_norm, latent_size: 16,
        };
        let class = FactoredClass { decoder, emitters, psd_norm, ..factored() };
        let here = class.covering(epsilon).unwrap().ln_log();
        prop_assert!(class.covering(0.5 * epsilon).unwrap().ln_log() > here);
        let more = FactoredClass { emitters: emitters + 1, ..class };
        prop_assert!(more.covering(epsilon).unwrap().ln_log() > here);
        let wider = DecoderClass { width: width + 1, ..decoder };
        prop_assert!(decoder_covering(&wider, epsilon).unwrap().ln_log()
            > decoder_covering(&decoder, epsilon).unwrap().ln_log());
    }

    #[test]
    fn more_sensors_promise_more_and_the_inverse_is_exact(
        log_covering in 1.0f64..1e9,
        sensors in 1usize..1_000_000,
        constant in 0.1f64..10.0,
        misfit in 0.0f64..0.5,
        quantised: bool,
    ) {
        let precision = if quantised { Precision::Quantised } else { Precision::Full };
        let bound = RecoveryBound { constant, misfit, ..bound(precision, log_covering) };
        let here = bound.terms(sensors).unwrap().ln_total().exp();
        prop_assert!(bound.terms(sensors + 1).unwrap().ln_total().exp() < here);
        let richer = RecoveryBound { ln_log_covering: bound.ln_log_covering + 1.0, ..bound };
        prop_assert!(richer.terms(sensors).unwrap().ln_total().exp() > here);
        let between = 0.5 * (here + bound.terms(sensors + 1).unwrap().ln_total().exp());
        let needed = bound.sensors_for(between).unwrap();
        prop_assert_eq!(needed.count, Some(sensors as u64 + 1));
        prop_assert!(needed.ln > (sensors as f64).ln() && needed.ln <= (sensors as f64 + 1.0).ln());
    }
}
