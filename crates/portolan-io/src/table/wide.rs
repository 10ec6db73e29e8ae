//! Tables with a line per sensor and a column per band.

use ndarray::Array2;
use portolan::{BandLabels, DeviceReading, Devices, Site};

use super::columns::Band;
use super::lines::Lines;
use super::positions::Positions;
use super::{Entries, entry, no_readings};
use crate::error::{Check, Problem};
use crate::options::ReadOptions;
use crate::survey::{DeviceNames, TimeColumn};

/// The place of a line; value, "not heard" and spread of each of its bands.
type WideLine = (Site, Vec<(f64, bool, f64)>);

pub(super) fn read(
    lines: &mut Lines<'_>,
    positions: &mut Positions,
    (bands, time, device): (&[Band], Option<usize>, Option<usize>),
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<(Vec<Site>, Entries, BandLabels, LineDevices)> {
    let (mut sites, mut values, mut silent, mut spread) = (vec![], vec![], vec![], vec![]);
    let (mut times, mut lost, mut timeless) = (Vec::new(), 0usize, 0usize);
    let mut devices = LineDevices::default();
    let mut time = time.map(|column| TimeColumn::new(column, &options.survey));
    while let Some(line) = lines.next()? {
        let mut read = || -> Check<Option<WideLine>> {
            let Some(site) = positions.site(&line)? else { return Ok(None) };
            let entries = bands.iter().map(|band| {
                let (value, unheard) = entry(&line, band.column, band.unit, options)?;
                let own = band.spread.map(|column| line.number(column)).transpose()?;
                Ok((value, unheard, own.unwrap_or(f64::NAN)))
            });
            Ok(Some((site, entries.collect::<Check<_>>()?)))
        };
        let (site, entries) = match read() {
            Ok(Some(read)) => read,
            Ok(None) => {
                lost += 1;
                continue;
            }
            Err(problem) => {
                lines.pass_over(problem)?;
                continue;
            }
        };
        sites.push(site);
        if let Some(name) = device.and_then(|column| line.record.get(column)) {
            devices.of.push(devices.names.number(name));
        }
        if let Some(time) = &mut time {
            times.push(time.of(&line).unwrap_or_else(|_| {
                timeless += 1;
                f64::NAN
            }));
        }
        for ((value, unheard, own), band) in entries.into_iter().zip(bands) {
            values.push(value);
            silent.push(unheard);
            if band.spread.is_some() {
                spread.push(own);
            }
        }
    }
    lines.finish(warnings)?;
    if lost > 0 {
        warnings.push(format!("{lost} line(s) without a position: left out"));
    }
    warnings.extend(time.as_ref().and_then(TimeColumn::warning));
    if timeless > 0 {
        warnings.push(format!("{timeless} line(s) with a time that is none: kept without it"));
    }
    if sites.is_empty() {
        return Err(no_readings(lost));
    }
    let freq_hz: Option<Vec<f64>> = bands.iter().map(|band| band.freq_hz).collect();
    let names: Option<Vec<String>> = bands.iter().map(|band| band.label.clone()).collect();
    let shape = (sites.len(), bands.len());
    let wrong = |error: ndarray::ShapeError| Problem::new(error.to_string());
    let spread = match spread.len() == values.len() {
        true => Some(Array2::from_shape_vec(shape, spread).map_err(wrong)?),
        false => None,
    };
    let entries = Entries {
        power: Array2::from_shape_vec(shape, values).map_err(wrong)?,
        count: None,
        silent: Array2::from_shape_vec(shape, silent).map_err(wrong)?,
        spread,
        time_s: time.is_some().then_some(times),
        devices: None,
    };
    Ok((sites, entries, BandLabels::new(freq_hz, names, bands.len())?, devices))
}

/// Which device each line is of; nothing where the table does not say.
#[derive(Default)]
pub(super) struct LineDevices {
    names: DeviceNames,
    of: Vec<Option<u32>>,
}

impl LineDevices {
    /// Takes the offsets of the devices out of the readings.
    pub fn level(
        self,
        sites: &[Site],
        power: &mut Array2<f64>,
        warnings: &mut Vec<String>,
    ) -> Check<Option<Devices>> {
        let lines = power.rows().into_iter().zip(sites).zip(&self.of);
        let read = lines.filter_map(|((line, site), device)| Some((line, *site, (*device)?)));
        let read = read.flat_map(|(line, site, device)| {
            let heard = line.into_iter().copied().enumerate().filter(|(_, power)| *power > 0.0);
            let device = device as usize;
            heard.map(move |(band, power)| DeviceReading { site, band, device, power })
        });
        let found = self.names.found(&Vec::from_iter(read), warnings)?;
        if let Some(devices) = &found {
            for (mut line, device) in power.rows_mut().into_iter().zip(&self.of) {
                let factor = device.map_or(1.0, |device| devices.factor(device as usize));
                line.mapv_inplace(|power| power * factor);
            }
        }
        Ok(found)
    }
}
