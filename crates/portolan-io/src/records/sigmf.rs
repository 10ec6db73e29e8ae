//! SigMF recordings (github.com/sigmf/SigMF, 1.2) as records: a record per capture with the place and
//! the mean square of its samples in decibels below full scale. The samples lie in the `.sigmf-data`
//! beside the `.sigmf-meta`; they are read in blocks. A folder is all recordings in it.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Input, Records};
use crate::error::{Check, Problem, quoted};
use crate::source::contents;

/// Samples that are read at once.
const BLOCK: usize = 1 << 14;

pub(super) const ENDING: &str = "sigmf-meta";

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    if !input.path.is_dir() {
        let bytes = input.bytes()?;
        let mut records = Records::new("capture", bytes.len());
        recording(&bytes, input.path, &mut records)?;
        return Ok(records);
    }
    let paths = recordings(input.path);
    let mut records = Records::new("capture", 0);
    for path in paths {
        let bytes = contents(&path).map_err(|error| Problem::new(error.to_string()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        recording(&bytes, &path, &mut records)
            .map_err(|problem| Problem::new(format!("{}: {problem}", quoted(&name))))?;
    }
    Ok(records)
}

/// The recordings in a folder, by their names.
pub(crate) fn recordings(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    paths
}

fn recording(bytes: &[u8], path: &Path, records: &mut Records) -> Check<()> {
    let meta: Value = serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(format!("not JSON as in SigMF: {error}")))?;
    let global = meta.get("global").ok_or_else(|| Problem::new("SigMF without `global`"))?;
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(String::from);
    let kind = text(global, "core:datatype").unwrap_or_default();
    let kind = SampleKind::of(&kind).ok_or_else(|| {
        Problem::new(format!(
            "core:datatype {}, expected one such as cf32_le or ci16_le",
            quoted(&kind)
        ))
    })?;
    if global.get("core:num_channels").and_then(Value::as_u64).is_some_and(|count| count > 1) {
        return Err(Problem::new("a recording of several channels, expected one"));
    }
    let data = path.with_extension("sigmf-data");
    let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut samples = File::open(&data).map(BufReader::new).map_err(|error| {
        Problem::new(format!("its samples {} cannot be opened: {error}", quoted(&name)))
    })?;
    let none = Vec::new();
    let captures = meta.get("captures").and_then(Value::as_array).unwrap_or(&none);
    if captures.is_empty() {
        return Err(Problem::new("SigMF without captures"));
    }
    let start = |capture: &Value| capture.get("core:sample_start").and_then(Value::as_u64);
    let mut skipped = 0;
    for (number, capture) in captures.iter().enumerate() {
        let lacks = |what: &str| Problem::new(format!("capture {}: no {what}", number + 1));
        let place = capture.get("core:geolocation").or(global.get("core:geolocation"));
        let coordinates =
            place.and_then(|place| place.get("coordinates")).and_then(Value::as_array);
        let [lon, lat] = [0, 1].map(|at| coordinates.and_then(|c| c.get(at)?.as_f64()));
        let (Some(lon), Some(lat)) = (lon, lat) else {
            return Err(lacks("place: expected a point in core:geolocation"));
        };
        let freq_hz = capture.get("core:frequency").and_then(Value::as_f64);
        let freq_hz = freq_hz.ok_or_else(|| lacks("core:frequency"))?;
        let first = start(capture).unwrap_or(0);
        let count = captures.get(number + 1).and_then(start).map(|end| end.saturating_sub(first));
        let header = capture.get("core:header_bytes").and_then(Value::as_u64).unwrap_or(0);
        let at = first.saturating_mul(kind.bytes() as u64).saturating_add(header);
        let failed = |error| Problem::new(format!("reading {} stopped: {error}", quoted(&name)));
        samples.seek(SeekFrom::Start(at)).map_err(failed)?;
        let power = mean_square(&mut samples, kind, count).map_err(failed)?;
        let Some(power) = power.filter(|power| *power > 0.0 && power.is_finite()) else {
            skipped += 1;
            continue;
        };
        records.begin();
        records.put("lon", lon.to_string())?;
        records.put("lat", lat.to_string())?;
        records.put("freq_hz", freq_hz.to_string())?;
        records.put("power_db", (10.0 * power.log10()).to_string())?;
        if let Some(time) = text(capture, "core:datetime").or(text(global, "core:datetime")) {
            records.put("time", time)?;
        }
    }
    if skipped > 0 {
        records
            .notes
            .push(format!("{skipped} capture(s) of {} without samples: left out", quoted(&name)));
    }
    Ok(())
}

/// How a sample is written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SampleKind {
    complex: bool,
    float: bool,
    signed: bool,
    big: bool,
    /// Bytes of a component.
    width: usize,
}

impl SampleKind {
    /// From `cf32_le`, `ri8` and the like.
    fn of(text: &str) -> Option<Self> {
        let (body, big) = match text.strip_suffix("_be") {
            Some(body) => (body, true),
            None => (text.strip_suffix("_le").unwrap_or(text), false),
        };
        let mut letters = body.chars();
        let complex = match letters.next()? {
            'c' => true,
            'r' => false,
            _ => return None,
        };
        let (float, signed) = match letters.next()? {
            'f' => (true, true),
            'i' => (false, true),
            'u' => (false, false),
            _ => return None,
        };
        let width = match (float, letters.as_str()) {
            (_, "32") => 4,
            (true, "64") => 8,
            (false, "16") => 2,
            (false, "8") => 1,
            _ => return None,
        };
        Some(Self { complex, float, signed, big, width })
    }

    /// Bytes of a sample.
    fn bytes(self) -> usize {
        self.width * (1 + usize::from(self.complex))
    }

    /// A component, 1 being full scale.
    fn value(self, bytes: &[u8]) -> f64 {
        let mut word = [0u8; 8];
        for (place, byte) in bytes.iter().take(8).enumerate() {
            word[if self.big { self.width - 1 - place } else { place }] = *byte;
        }
        let bits = u64::from_le_bytes(word);
        let unused = 64 - 8 * self.width as u32;
        let half = (1u64 << (8 * self.width as u32 - 1)) as f64;
        match (self.float, self.width) {
            (true, 4) => f64::from(f32::from_bits(bits as u32)),
            (true, _) => f64::from_bits(bits),
            (false, _) if self.signed => (((bits << unused) as i64) >> unused) as f64 / half,
            _ => (bits as f64 - half) / half,
        }
    }
}

/// The mean square of so many samples, or of all up to the end; None without any.
fn mean_square(
    source: &mut impl Read,
    kind: SampleKind,
    count: Option<u64>,
) -> std::io::Result<Option<f64>> {
    let most = count.map_or(u64::MAX, |count| count.saturating_mul(kind.bytes() as u64));
    let mut source = source.take(most);
    let mut block = Vec::with_capacity(BLOCK * kind.bytes());
    let (mut sum, mut samples) = (0.0, 0usize);
    loop {
        block.clear();
        source.by_ref().take((BLOCK * kind.bytes()) as u64).read_to_end(&mut block)?;
        for sample in block.chunks_exact(kind.bytes()) {
            sum += sample.chunks_exact(kind.width).map(|c| kind.value(c).powi(2)).sum::<f64>();
            samples += 1;
        }
        if block.len() < BLOCK * kind.bytes() {
            return Ok((samples > 0).then(|| sum / samples as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_every_kind() {
        let of = |text: &str, bytes: &[u8]| {
            mean_square(&mut &*bytes, SampleKind::of(text).unwrap(), None).unwrap()
        };
        assert_eq!(of("ci8", &[64, 0, 0, 0xc0]), Some(0.25));
        assert_eq!(of("ru8", &[0, 192]), Some(0.625));
        assert_eq!(of("ri16_be", &[0x40, 0]), Some(0.25));
        assert_eq!(of("rf32_le", &0.5f32.to_le_bytes()), Some(0.25));
        assert_eq!(of("cf64_be", &[0.5f64, 0.5].map(f64::to_be_bytes).concat()), Some(0.5));
        assert_eq!(of("cf32_le", &[1, 2, 3]), None);
        assert_eq!([SampleKind::of("cf16_le"), SampleKind::of("x"), SampleKind::of("")], [None; 3]);
    }

    #[test]
    fn damaged_meta_is_refused() {
        let path = Path::new("there is none.sigmf-meta");
        let mut records = Records::new("capture", 0);
        for text in ["", "{}", "{\"global\":{}}", "{\"global\":{\"core:datatype\":\"cf32_le\"}}"] {
            assert!(recording(text.as_bytes(), path, &mut records).is_err(), "{text}");
        }
    }
}
