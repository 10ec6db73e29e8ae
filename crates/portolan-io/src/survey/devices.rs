//! Which device read what, and the offsets between devices taken out of a survey.

use std::collections::HashMap;

use portolan::seen_once;
use portolan::{DeviceReading, Devices};

use crate::error::{Check, Problem, quoted};

/// More devices than this are no devices but something else.
const MOST: usize = 256;
/// Names that a note lists.
const LISTED: usize = 12;

/// Names of devices, in order of their first line.
#[derive(Default)]
pub(crate) struct DeviceNames {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl DeviceNames {
    /// The number of a device; None where a line does not say.
    pub fn number(&mut self, name: &str) -> Option<u32> {
        let name = name.trim();
        if name.is_empty() {
            return None;
        }
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_string(), number);
        self.names.push(name.to_string());
        Some(number)
    }

    /// The offsets of the devices, and what there is to say about them.
    pub fn found(
        self,
        readings: &[DeviceReading],
        warnings: &mut Vec<String>,
    ) -> Check<Option<Devices>> {
        let names = self.names;
        if names.len() < 2 {
            return Ok(None);
        }
        let count = names.len();
        if count > MOST {
            warnings.push(format!("{count} devices are too many to be compared: read as one"));
            return Ok(None);
        }
        let once = seen_once(&names, readings);
        if !once.is_empty() {
            let listed: Vec<String> = once.iter().take(LISTED).map(|name| quoted(name)).collect();
            warnings.push(format!(
                "{} of {} devices read at one place only ({}): left as they are",
                once.len(),
                names.len(),
                listed.join(", ")
            ));
        }
        let found = Devices::find(names, readings);
        let found = found.map_err(|error| Problem::new(error.to_string()))?;
        if found.is_none() {
            warnings.push(format!(
                "{count} devices, but taking out offsets would not predict held-out readings \
                 better: left as they are"
            ));
        }
        if let Some(devices) = &found {
            let mut order: Vec<usize> = (0..devices.names.len()).collect();
            order.sort_by(|a, b| devices.offset_db[*b].total_cmp(&devices.offset_db[*a]));
            let told =
                |d: &usize| format!("{} {:+.1}", quoted(&devices.names[*d]), devices.offset_db[*d]);
            let listed: Vec<String> = match order.len() {
                0..=LISTED => order.iter().map(told).collect(),
                all => {
                    let ends = order[..LISTED / 2].iter().chain(&order[all - LISTED / 2..]);
                    ends.map(told).collect()
                }
            };
            warnings.push(format!(
                "{} devices differ by {:.1} dB and their offsets were removed ({} dB); \
                 --columns device=none keeps them",
                devices.names.len(),
                devices.spread_db,
                listed.join(", ")
            ));
        }
        Ok(found)
    }
}
