//! `portolan locate`: where the transmitters of some readings stand.

use std::path::Path;

use portolan::model::ModelEmitter;
use portolan_io::{
    FileKind, check_output, inspect, located_json, read_model, regions, write_regions,
};
use serde_json::json;

use super::fit::fitted;
use crate::args::LocateArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, table, warn};

const LOCATING: &str = "auto and field find transmitters where path loss explains a band; unn and \
                        btd give the peaks of their emitters, other methods none";

/// What stands for the region of an emitter that has none, by the standard errors of its place.
fn without_region(at_se_m: Option<[f64; 2]>) -> &'static str {
    if at_se_m == Some([0.0; 2]) { "given" } else { "-" }
}

pub fn run(args: &LocateArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        if output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("geojson")) {
            let name = output.display();
            return Err(Failure::input(format!("{name}: places and regions end in .geojson")));
        }
        check_output(output, args.force)?;
    }
    let file = &args.fit.readings;
    let is_model = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"))
        && inspect(file, &args.fit.read.options()).is_ok_and(|s| s.kind == FileKind::Model);
    let model = match is_model {
        true => read_model(file)?,
        false => {
            let output = args.output.as_deref().unwrap_or(Path::new(""));
            let (_, model, _) = fitted(&args.fit, output, |_, _| Ok(()))?;
            warn(&model.report().notes);
            model
        }
    };
    if model.emitters().is_empty() {
        return Err(Failure::Run(format!(
            "{}: no transmitter was found. {LOCATING}",
            file.display()
        )));
    }
    if let Some(output) = &args.output {
        write_regions(output, &model, args.force)?;
    }
    if args.json {
        return emit_json(&json!({ "emitters": located_json(&model), "output": args.output }));
    }
    let row = |e: &ModelEmitter| {
        let se = |axis: usize| figure(e.at_se_m.map(|se| se[axis]), 1);
        let band = e.band().map_or("several".to_string(), |band| model.labels().label(band));
        let area = regions(e).iter().find(|r| r.share == 0.9).map(|r| r.area_m2);
        vec![
            band,
            format!("{:.1} ± {}", e.at.x_m, se(0)),
            format!("{:.1} ± {}", e.at.y_m, se(1)),
            area.map_or(without_region(e.at_se_m).to_string(), |area| format!("{area:.0}")),
            e.exponent.map_or("-".to_string(), |e| format!("{:.2} ± {:.2}", e.value, e.se)),
        ]
    };
    let rows: Vec<Vec<String>> = model.emitters().iter().map(row).collect();
    emit(&table(&["band", "x_m", "y_m", "90 % region m2", "exponent"], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_that_were_given_are_called_so() {
        assert_eq!(without_region(Some([0.0; 2])), "given");
        assert_eq!(without_region(Some([2.0, 0.0])), "-");
        assert_eq!(without_region(None), "-");
    }
}
