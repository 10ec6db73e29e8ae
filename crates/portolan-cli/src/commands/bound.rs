//! `portolan bound`: the paper's covering number and recovery bounds for given sizes.

use portolan_paper::bound::{
    BoundTerms, Covering, DecoderClass, FactoredClass, NetworkFactor, Precision, RecoveryBound,
    SensorsNeeded, decoder_covering, parameters,
};
use serde_json::{Value, json};

use crate::args::{BoundArgs, NetworkTerm};
use crate::failure::Failure;
use crate::output::{emit, emit_json, table};

const PRECISIONS: [(Precision, &str); 2] =
    [(Precision::Full, "full precision"), (Precision::Quantised, "quantised")];

/// The naive decoder of the paper's table of parameters that is as accurate as the factored one.
const NAIVE_WIDTH: usize = 32;

pub fn run(args: &BoundArgs) -> Result<(), Failure> {
    let request = Request::new(args)?;
    let covering = request.class.covering(args.epsilon)?;
    let bounds = PRECISIONS
        .iter()
        .map(|(precision, name)| Recovery::new(&request, *precision, name, &covering))
        .collect::<Result<Vec<_>, _>>()?;
    let compared = if args.compare { Some(compare(&request, &covering)?) } else { None };
    if args.json {
        let mut object = json!({
            "inputs": inputs_json(&request),
            "log_covering": covering_json(&covering),
            "bounds": bounds.iter().map(Recovery::json).collect::<Vec<_>>(),
            "trivial": request.trivial,
        });
        if let Some(rows) = &compared {
            object["compare"] = rows.iter().map(Compared::json).collect();
        }
        return emit_json(&object);
    }
    let mut parts = vec![inputs_text(&request), covering_text(&covering)];
    parts.push(bounds_text(&request, &bounds));
    parts.extend(compared.map(|rows| compared_text(&rows)));
    parts.push(notes(&request));
    emit(&parts.join("\n\n"))
}

/// The arguments with their defaults filled in.
struct Request<'a> {
    args: &'a BoundArgs,
    class: FactoredClass,
    sensors: usize,
    cells: usize,
    /// No two maps of the class differ by more: root mean square over cells and bands.
    trivial: f64,
}

impl<'a> Request<'a> {
    fn new(args: &'a BoundArgs) -> Result<Self, Failure> {
        let cells = portolan::Grid::new(args.grid.0, args.grid.1, 1.0)?.cells();
        let sensors = args.sensors.unwrap_or(cells.div_ceil(10));
        if sensors > cells {
            return Err(Failure::input(format!(
                "--sensors {sensors}: more than the {cells} cells of the map"
            )));
        }
        if args.kernel == 0 {
            return Err(Failure::input("--kernel 0: give at least 1"));
        }
        let decoder = DecoderClass {
            layers: args.layers,
            width: args.width,
            spectral_norm: args.spectral_norm,
            column_norm: args.column_norm.unwrap_or(args.width as f64 * args.spectral_norm),
            lipschitz: args.lipschitz,
            latent_size: args.latent_size,
            latent_norm: args.latent_norm,
        };
        let factor = match args.network_term {
            NetworkTerm::Printed => NetworkFactor::Printed,
            NetworkTerm::Substituted => NetworkFactor::Substituted,
        };
        let class = FactoredClass {
            decoder,
            emitters: args.emitters,
            bands: args.bands,
            psd_norm: args.psd_norm,
            slf_norm: args.slf_norm,
            factor,
        };
        let trivial = 2.0 * class.radius() / (cells as f64 * args.bands as f64).sqrt();
        Ok(Self { args, class, sensors, cells, trivial })
    }

    fn recovery(&self, precision: Precision, covering: &Covering) -> RecoveryBound {
        RecoveryBound {
            precision,
            emitters: self.args.emitters,
            bands: self.args.bands,
            ln_log_covering: covering.ln_log(),
            constant: self.args.constant,
            misfit: self.args.misfit,
        }
    }

    /// The naive decoder: its widest layer may be the one that draws the bands.
    fn naive(&self) -> (DecoderClass, usize) {
        let channels = self.args.naive_width.unwrap_or(NAIVE_WIDTH);
        let width = if channels == 0 { 0 } else { channels.max(self.args.bands) };
        let column_norm =
            self.args.naive_column_norm.unwrap_or(width as f64 * self.args.spectral_norm);
        (DecoderClass { width, column_norm, ..self.class.decoder }, channels)
    }

    /// Symbol, meaning and value of every input.
    fn inputs(&self) -> Vec<(&'static str, &'static str, Value)> {
        let (args, decoder) = (self.args, &self.class.decoder);
        vec![
            ("R", "emitters", json!(args.emitters)),
            ("K", "bands", json!(args.bands)),
            ("I J", "cells", json!(self.cells)),
            ("N", "sensors", json!(self.sensors)),
            ("L", "layers", json!(decoder.layers)),
            ("W", "width", json!(decoder.width)),
            ("s", "spectral norm", json!(decoder.spectral_norm)),
            ("b", "column norm", json!(decoder.column_norm)),
            ("P", "lipschitz", json!(decoder.lipschitz)),
            ("D0^2", "latent size", json!(decoder.latent_size)),
            ("a", "latent norm", json!(decoder.latent_norm)),
            ("kappa", "psd norm", json!(args.psd_norm)),
            ("gamma", "slf norm", json!(args.slf_norm)),
            ("epsilon", "epsilon", json!(args.epsilon)),
            ("O(..)", "constant", json!(args.constant)),
            ("nu", "misfit", json!(args.misfit)),
        ]
    }
}

/// One proposition at the given number of sensors.
struct Recovery {
    name: &'static str,
    terms: BoundTerms,
    needed: Option<SensorsNeeded>,
}

impl Recovery {
    fn new(
        request: &Request<'_>,
        precision: Precision,
        name: &'static str,
        covering: &Covering,
    ) -> Result<Self, Failure> {
        let bound = request.recovery(precision, covering);
        let terms = bound.terms(request.sensors)?;
        let needed = request.args.target.map(|error| bound.sensors_for(error)).transpose()?;
        Ok(Self { name, terms, needed })
    }

    fn json(&self) -> Value {
        json!({
            "readings": self.name,
            "sampling": self.terms.ln_sampling.exp(),
            "covering": self.terms.ln_covering.exp(),
            "misfit": self.terms.ln_misfit.exp(),
            "bound": self.terms.ln_total().exp(),
            "ln_bound": self.terms.ln_total(),
            "sensors_for_target": self.needed.map(needed_json),
        })
    }
}

/// One decoder under one proposition.
struct Compared {
    decoder: &'static str,
    readings: &'static str,
    parameters: f64,
    ln_log_covering: f64,
    ln_bound: f64,
    ln_error: f64,
    needed: SensorsNeeded,
}

/// Both decoders at the same error: the target, or what the factored one is promised.
fn compare(request: &Request<'_>, covering: &Covering) -> Result<Vec<Compared>, Failure> {
    let args = request.args;
    let (naive, channels) = request.naive();
    let naive_covering = decoder_covering(&naive, args.epsilon)?;
    let own = args.emitters as f64 * (args.latent_size as f64 + args.bands as f64);
    let decoders = [
        ("factored", covering, parameters(args.layers, args.width, args.kernel, 1) + own),
        (
            "naive",
            &naive_covering,
            parameters(args.layers, channels, args.kernel, args.bands) + args.latent_size as f64,
        ),
    ];
    let mut rows = Vec::new();
    for (precision, readings) in PRECISIONS {
        let promised = request.recovery(precision, covering).terms(request.sensors)?;
        let ln_error = args.target.map_or(promised.ln_total(), f64::ln);
        for (decoder, covering, parameters) in decoders {
            let bound = request.recovery(precision, covering);
            rows.push(Compared {
                decoder,
                readings,
                parameters,
                ln_log_covering: covering.ln_log(),
                ln_bound: bound.terms(request.sensors)?.ln_total(),
                ln_error,
                needed: bound.sensors_for_ln(ln_error)?,
            });
        }
    }
    Ok(rows)
}

impl Compared {
    fn json(&self) -> Value {
        json!({
            "decoder": self.decoder,
            "readings": self.readings,
            "parameters": self.parameters,
            "log_covering": self.ln_log_covering.exp(),
            "ln_log_covering": self.ln_log_covering,
            "bound": self.ln_bound.exp(),
            "error": self.ln_error.exp(),
            "sensors": needed_json(self.needed),
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.decoder.into(),
            self.readings.into(),
            format!("{}", self.parameters),
            number(self.ln_log_covering),
            number(self.ln_bound),
            number(self.ln_error),
            needed_text(self.needed),
        ]
    }
}

fn inputs_json(request: &Request<'_>) -> Value {
    let named =
        request.inputs().into_iter().map(|(_, name, value)| (name.replace(' ', "_"), value));
    Value::Object(named.collect())
}

fn covering_json(covering: &Covering) -> Value {
    json!({
        "network": covering.ln_network.exp(),
        "latents": covering.ln_latents.exp(),
        "spectra": covering.ln_spectra.exp(),
        "total": covering.ln_log().exp(),
        "ln_total": covering.ln_log(),
    })
}

fn needed_json(needed: SensorsNeeded) -> Value {
    json!({ "count": needed.count, "ln": needed.ln })
}

fn inputs_text(request: &Request<'_>) -> String {
    let rows: Vec<Vec<String>> = request
        .inputs()
        .into_iter()
        .map(|(symbol, name, value)| vec![format!("{symbol:<8} {name}"), value.to_string()])
        .collect();
    table(&["input", "value"], &rows)
}

fn covering_text(covering: &Covering) -> String {
    let row = |name: &str, ln: f64| vec![name.to_string(), number(ln)];
    let rows = [
        row("network", covering.ln_network),
        row("latents", covering.ln_latents),
        row("spectra", covering.ln_spectra),
        row("log N, their sum", covering.ln_log()),
    ];
    table(&["log covering number (Lemma 1)", "value"], &rows)
}

fn bounds_text(request: &Request<'_>, bounds: &[Recovery]) -> String {
    let mut header =
        vec!["error with N sensors", "sampling", "covering", "misfit", "bound", "trivial"];
    let target = request.args.target.map(|error| format!("sensors for {error}"));
    header.extend(target.as_deref());
    let rows: Vec<Vec<String>> = bounds
        .iter()
        .map(|recovery| {
            let BoundTerms { ln_sampling, ln_covering, ln_misfit } = recovery.terms;
            let (bound, trivial) = (recovery.terms.ln_total(), request.trivial.ln());
            let figures = [ln_sampling, ln_covering, ln_misfit, bound, trivial];
            let mut row = vec![recovery.name.to_string()];
            row.extend(figures.map(number));
            row.extend(recovery.needed.map(needed_text));
            row
        })
        .collect();
    table(&header, &rows)
}

fn compared_text(rows: &[Compared]) -> String {
    let header = ["decoder", "readings", "parameters", "log N", "bound", "error", "sensors for it"];
    table(&header, &rows.iter().map(Compared::cells).collect::<Vec<_>>())
}

fn notes(request: &Request<'_>) -> String {
    let args = request.args;
    let mut notes = vec![
        "Error: root mean square over cells and bands, in the unit of the map. Trivial: no two maps \
         of the class differ by more, whatever the readings say."
            .to_string(),
        format!(
            "Left open by the paper: the constant of O(..), taken as {}, and epsilon, taken as {}.",
            args.constant, args.epsilon
        ),
    ];
    if args.column_norm.is_none() {
        notes.push("The column norm b is not given: taken as W s, which always holds.".into());
    }
    if args.compare {
        notes.push(
            "Factored: parameters of network, latents and spectra. Naive: Lemma 2 for one decoder \
             that draws all bands, R of the propositions kept."
                .into(),
        );
    }
    notes.join("\n")
}

fn needed_text(needed: SensorsNeeded) -> String {
    needed.count.map_or_else(|| number(needed.ln), |count| count.to_string())
}

/// A positive number from its natural logarithm, with four digits; it may be too large for a float.
fn number(ln: f64) -> String {
    if ln == f64::NEG_INFINITY {
        return "0".into();
    }
    let exponent = (ln / std::f64::consts::LN_10).floor();
    if (-4.0..6.0).contains(&exponent) {
        let digits = (3.0 - exponent).max(0.0) as usize;
        return format!("{:.digits$}", ln.exp());
    }
    format!("{:.3}e{exponent}", (ln - exponent * std::f64::consts::LN_10).exp())
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_of_any_size() {
        for (ln, text) in [
            (f64::NEG_INFINITY, "0"),
            (0.0, "1.000"),
            (1234.2f64.ln(), "1234"),
            (0.001_234_2f64.ln(), "0.001234"),
            (1.5e8f64.ln(), "1.500e8"),
            (2.5e-7f64.ln(), "2.500e-7"),
            (std::f64::consts::LN_10 * 5000.0, "1.000e5000"),
        ] {
            assert_eq!(number(ln), text);
        }
    }
}
