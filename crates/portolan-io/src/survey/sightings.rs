//! Levels of bands at places, one by one, and the readings that they make. A row is a visit to a place:
//! levels that were read within some minutes of each other, no band twice. Without times the second
//! level of a band at a place is in the second row of that place, and so on.

use std::collections::{HashMap, HashSet};

use ndarray::Array2;
use portolan::{BandLabels, DeviceReading, Devices, Scale, Site};

use super::devices::DeviceNames;
use crate::error::{Check, Problem};
use crate::memory;
use crate::options::{Combine, ReadOptions, Silence};
use crate::table::Entries;

/// A survey of a few lines must not claim a huge table of places x bands.
pub(crate) const MOST_ENTRIES: usize = 1 << 24;

/// Transmitters heard at fewer places than this are left out, unless the caller says otherwise.
const MIN_PLACES: usize = 5;

/// Levels at a place that were read further apart than this are two visits.
const VISIT_S: f64 = 600.0;

/// Bytes of an entry: power, count, and the copy that readings make.
const BYTES: u64 = 32;

/// What tells bands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BandKind {
    Frequency,
    Channel,
    Name,
}

/// A level of a band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub band: u32,
    /// Linear; NaN where there is none.
    pub power: f64,
    /// Listened for and not heard.
    pub silent: bool,
    /// Seconds; NaN where unknown.
    pub time_s: f64,
    /// What it was read with, where known.
    pub device: Option<u32>,
    /// Which of the transmitters that the band is made of; 0 where it is one.
    pub member: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    place: u32,
    band: u32,
    member: u32,
    power: f64,
    silent: bool,
    time_s: f64,
    device: Option<u32>,
}

impl Entry {
    /// A level, or the word that there was none to hear.
    fn says(&self) -> bool {
        self.silent || !self.power.is_nan()
    }
}

/// Sightings, by place and band.
pub(crate) struct Sightings {
    kind: BandKind,
    names: HashMap<String, u32>,
    members: HashMap<String, u32>,
    numbers: HashMap<u64, u32>,
    /// The frequency of each band, where known.
    freq_hz: Vec<Option<f64>>,
    places: HashMap<[u64; 3], u32>,
    sites: Vec<Site>,
    /// Sum and number of the times at each place.
    times: Vec<(f64, u32)>,
    entries: Vec<Entry>,
    pub devices: DeviceNames,
}

impl Sightings {
    pub fn new(kind: BandKind) -> Self {
        Self {
            kind,
            names: HashMap::new(),
            members: HashMap::new(),
            numbers: HashMap::new(),
            freq_hz: Vec::new(),
            places: HashMap::new(),
            sites: Vec::new(),
            times: Vec::new(),
            entries: Vec::new(),
            devices: DeviceNames::default(),
        }
    }

    /// The band of a frequency in Hz.
    pub fn frequency(&mut self, freq_hz: f64) -> u32 {
        self.number(freq_hz.to_bits(), Some(freq_hz))
    }

    /// The band of a channel.
    pub fn channel(&mut self, channel: u32) -> u32 {
        self.number(u64::from(channel), channel_hz(channel))
    }

    fn number(&mut self, key: u64, freq_hz: Option<f64>) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.freq_hz.push(freq_hz);
            (self.freq_hz.len() - 1) as u32
        })
    }

    /// The band of a name.
    pub fn name(&mut self, name: &str, freq_hz: impl FnOnce() -> Option<f64>) -> u32 {
        if let Some(band) = self.names.get(name) {
            return *band;
        }
        let band = self.freq_hz.len() as u32;
        self.names.insert(name.to_string(), band);
        self.freq_hz.push(freq_hz());
        band
    }

    /// The number of a transmitter, from 1.
    pub fn member(&mut self, name: &str) -> u32 {
        if let Some(member) = self.members.get(name) {
            return *member;
        }
        let member = self.members.len() as u32 + 1;
        self.members.insert(name.to_string(), member);
        member
    }

    pub fn add(&mut self, site: Site, sighting: Sighting) {
        let Sighting { band, power, silent, time_s, device, member } = sighting;
        let place = *self.places.entry(bits(site)).or_insert_with(|| {
            self.sites.push(site);
            self.times.push((0.0, 0));
            (self.sites.len() - 1) as u32
        });
        if !time_s.is_nan() {
            let (sum, count) = &mut self.times[place as usize];
            *sum += time_s;
            *count += 1;
        }
        self.entries.push(Entry { place, band, member, power, silent, time_s, device });
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Multiplies all frequencies, where all of them are below `most`.
    pub fn scale_frequencies(&mut self, most: f64, factor: f64) -> bool {
        let small = self.freq_hz.iter().flatten().all(|f| *f < most);
        if small {
            self.freq_hz.iter_mut().flatten().for_each(|f| *f *= factor);
        }
        small
    }

    /// A frequency that may be kHz as well as Hz, where there is one: above 100 kHz and below `most`.
    pub fn frequencies_in_khz(&self, most: f64) -> Option<f64> {
        self.freq_hz.iter().flatten().copied().find(|hz| (1e5..most).contains(hz))
    }

    /// The places as they were given, in order of their first sighting.
    pub fn take_sites(&mut self) -> Vec<Site> {
        self.places = HashMap::new();
        std::mem::take(&mut self.sites)
    }

    /// Rows x bands. `sites` are the places in metres, on return one for every row; those that are
    /// gathered become one, those that lost all of their bands are left out.
    pub fn gathered(
        mut self,
        sites: &mut Vec<Site>,
        scale: Scale,
        options: &ReadOptions,
        warnings: &mut Vec<String>,
    ) -> Check<(Entries, BandLabels)> {
        if let Some(size) = options.survey.gather_m {
            gather(sites, size)?;
        }
        self.merge_places(sites);
        let devices = self.level(sites, warnings)?;
        let lines = self.entries.len();
        // Sorting is stable: visits stay in the order of the file.
        self.entries.sort_by_key(|e| (e.place, e.band, e.member));
        self.combine(options.survey.combine, scale, warnings);
        let kept = self.kept_bands(options, warnings)?;
        self.drop_places(sites, &kept, options.not_heard == Some(Silence::Absent));
        let bands = kept.iter().flatten().count();
        let labels = self.labels(&kept, bands)?;
        let shape = (sites.len(), bands);
        let entries = shape.0.checked_mul(shape.1);
        let too_sparse = |n: &usize| *n > MOST_ENTRIES.max(lines.saturating_mul(1000)).max(1 << 20);
        let advice = "gather places by --gather METRES, or set rare bands aside by --min-places N";
        let entries = entries.filter(|n| !too_sparse(n)).ok_or_else(|| {
            Problem::new(format!(
                "{} places and {bands} bands in {lines} lines: too few places share a band; {advice}",
                shape.0
            ))
        })?;
        let rows = Rows::new(&self.entries, shape, warnings);
        let what = format!("a table of {} rows x {bands} bands", rows.place.len());
        let entries = entries.max(rows.place.len() * bands) as u64;
        memory::check(&what, entries.saturating_mul(BYTES), advice)?;
        let Filled { power, count, mut silent, times } = self.fill(&rows, &kept, scale);
        if options.not_heard == Some(Silence::Absent) {
            let mut marked = 0usize;
            // What a place heard at all is in its first row.
            for &row in &rows.first {
                for (p, s) in power.row(row).iter().zip(silent.row_mut(row)) {
                    marked += usize::from(p.is_nan() && !*s);
                    *s |= p.is_nan();
                }
            }
            warnings.push(format!("{marked} band(s) absent where others were heard: not heard"));
        }
        let time_s = self.times.iter().any(|(_, n)| *n > 0).then(|| {
            let mean = |(sum, n): (f64, u32)| plain_nan(sum / f64::from(n));
            let own = times.iter().zip(&rows.place);
            own.map(|(time, place)| mean(if time.1 > 0 { *time } else { self.times[*place] }))
                .collect()
        });
        *sites = rows.place.iter().map(|&place| sites[place]).collect();
        Ok((Entries { power, count, silent, spread: None, time_s, devices }, labels))
    }

    /// Makes one level of those that several transmitters of a band had in a visit to a place. Without
    /// times one that was heard less often is taken again.
    fn combine(&mut self, how: Option<Combine>, scale: Scale, warnings: &mut Vec<String>) {
        let several = |group: &[Entry]| group.iter().any(|e| e.member != group[0].member);
        let mut combined = Vec::with_capacity(self.entries.len());
        let (mut bands, mut most) = (HashSet::new(), 0usize);
        for group in self.entries.chunk_by(|a, b| (a.place, a.band) == (b.place, b.band)) {
            if !several(group) {
                combined.extend_from_slice(group);
                continue;
            }
            let members: Vec<&[Entry]> = group.chunk_by(|a, b| a.member == b.member).collect();
            bands.insert(group[0].band);
            most = most.max(members.len());
            let timed = group.iter().any(|e| !e.time_s.is_nan());
            let visit = visits(group, |e| e.member);
            let count = visit.iter().copied().max().map_or(0, |last| last + 1);
            let mut own: Vec<Vec<&Entry>> = vec![Vec::new(); count];
            group.iter().zip(&visit).for_each(|(entry, visit)| own[*visit].push(entry));
            for (visit, of_visit) in own.into_iter().enumerate() {
                let now: Vec<&Entry> = match timed {
                    true => of_visit,
                    false => members.iter().map(|own| &own[visit % own.len()]).collect(),
                };
                let heard: Vec<f64> = now.iter().map(|e| e.power).filter(|p| *p > 0.0).collect();
                let mut entry = *now[0];
                entry.silent = heard.is_empty() && now.iter().any(|e| e.silent);
                entry.member = 0;
                entry.power = match how.unwrap_or_default() {
                    _ if heard.is_empty() => now[0].power,
                    Combine::Strongest => heard.iter().copied().fold(0.0, f64::max),
                    Combine::Sum => heard.iter().sum(),
                    Combine::Mean if scale.has_zero() => {
                        heard.iter().sum::<f64>() / heard.len() as f64
                    }
                    Combine::Mean => {
                        (heard.iter().map(|p| p.ln()).sum::<f64>() / heard.len() as f64).exp()
                    }
                };
                combined.push(entry);
            }
        }
        self.entries = combined;
        if bands.is_empty() {
            return;
        }
        let word = match how.unwrap_or_default() {
            Combine::Strongest => "the strongest counts",
            Combine::Sum => "their powers are added",
            Combine::Mean => "their levels are averaged",
        };
        warnings.push(format!(
            "{} band(s) are made of several transmitters, up to {most} at a place: {word} (--combine \
             strongest, sum or mean)",
            bands.len()
        ));
    }

    /// Takes the offsets of the devices out of the levels.
    fn level(&mut self, sites: &[Site], warnings: &mut Vec<String>) -> Check<Option<Devices>> {
        let read = self.entries.iter().filter(|e| e.power > 0.0).filter_map(|e| {
            let (site, band, device) = (sites[e.place as usize], e.band as usize, e.device?);
            Some(DeviceReading { site, band, device: device as usize, power: e.power })
        });
        let found = std::mem::take(&mut self.devices).found(&Vec::from_iter(read), warnings)?;
        if let Some(devices) = &found {
            for entry in &mut self.entries {
                let factor = entry.device.map_or(1.0, |device| devices.factor(device as usize));
                entry.power *= factor;
            }
        }
        Ok(found)
    }

    /// One index for every place that differs.
    fn merge_places(&mut self, sites: &mut Vec<Site>) {
        let mut index: HashMap<[u64; 3], u32> = HashMap::with_capacity(sites.len());
        let (mut merged, mut times): (Vec<Site>, Vec<(f64, u32)>) = (Vec::new(), Vec::new());
        let slot: Vec<u32> = sites
            .iter()
            .zip(&self.times)
            .map(|(site, (sum, count))| {
                let place = *index.entry(bits(*site)).or_insert_with(|| {
                    merged.push(*site);
                    times.push((0.0, 0));
                    (merged.len() - 1) as u32
                });
                times[place as usize].0 += sum;
                times[place as usize].1 += count;
                place
            })
            .collect();
        self.entries.iter_mut().for_each(|e| e.place = slot[e.place as usize]);
        (*sites, self.times) = (merged, times);
    }

    /// The number of each band among those that are kept, in order of frequency, channel or name.
    fn kept_bands(
        &self,
        options: &ReadOptions,
        warnings: &mut Vec<String>,
    ) -> Check<Vec<Option<u32>>> {
        let mut places = vec![0usize; self.freq_hz.len()];
        let mut last = vec![u32::MAX; self.freq_hz.len()];
        for entry in self.entries.iter().filter(|e| !e.power.is_nan()) {
            let band = entry.band as usize;
            if last[band] != entry.place {
                (places[band], last[band]) = (places[band] + 1, entry.place);
            }
        }
        let usual = if self.kind == BandKind::Name { MIN_PLACES } else { 1 };
        let least = options.survey.min_places.unwrap_or(usual).max(1);
        let rare = places.iter().filter(|n| **n < least).count();
        if rare > 0 {
            let all = places.len();
            warnings.push(match least {
                1 => format!("{rare} of {all} bands were heard nowhere: left out"),
                _ => format!("{rare} of {all} bands heard at fewer than {least} places: left out"),
            });
        }
        if rare == places.len() {
            return Err(Problem::new(format!(
                "no band was heard at {least} places or more: say fewer by --min-places"
            )));
        }
        let mut order: Vec<u32> =
            (0..places.len() as u32).filter(|b| places[*b as usize] >= least).collect();
        match self.kind {
            BandKind::Frequency => order.sort_by(|a, b| {
                let freq = |band: &u32| self.freq_hz[*band as usize].unwrap_or(0.0);
                freq(a).total_cmp(&freq(b))
            }),
            BandKind::Channel => {
                let numbers: HashMap<u32, u64> =
                    self.numbers.iter().map(|(n, b)| (*b, *n)).collect();
                order.sort_by_key(|band| numbers[band]);
            }
            BandKind::Name => {
                let names = self.names_by_band();
                order.sort_by(|a, b| names[a].cmp(names[b]));
            }
        }
        let mut kept = vec![None; places.len()];
        for (number, band) in order.into_iter().enumerate() {
            kept[band as usize] = Some(number as u32);
        }
        Ok(kept)
    }

    fn names_by_band(&self) -> HashMap<u32, &str> {
        self.names.iter().map(|(name, band)| (*band, name.as_str())).collect()
    }

    /// Leaves out places that have none of the kept bands, unless `silent`: there they were not heard.
    fn drop_places(&mut self, sites: &mut Vec<Site>, kept: &[Option<u32>], silent: bool) {
        let mut used = vec![false; sites.len()];
        let says = |e: &&Entry| silent || kept[e.band as usize].is_some();
        self.entries.iter().filter(says).for_each(|e| used[e.place as usize] = true);
        self.entries.retain(|e| kept[e.band as usize].is_some());
        let mut slot = vec![0u32; sites.len()];
        let mut next = 0;
        for (slot, used) in slot.iter_mut().zip(&used) {
            *slot = next;
            next += u32::from(*used);
        }
        self.entries.iter_mut().for_each(|e| e.place = slot[e.place as usize]);
        let mut keep = used.iter();
        sites.retain(|_| *keep.next().unwrap_or(&false));
        let mut keep = used.iter();
        self.times.retain(|_| *keep.next().unwrap_or(&false));
    }

    fn labels(&self, kept: &[Option<u32>], bands: usize) -> Check<BandLabels> {
        let mut freq_hz = vec![None; bands];
        for (band, number) in kept.iter().enumerate() {
            if let Some(number) = number {
                freq_hz[*number as usize] = self.freq_hz[band];
            }
        }
        let freq_hz: Option<Vec<f64>> = freq_hz.into_iter().collect();
        let named = |of: &mut dyn Iterator<Item = (u32, String)>| {
            let mut names = vec![String::new(); bands];
            for (band, name) in of {
                if let Some(number) = kept[band as usize] {
                    names[number as usize] = name;
                }
            }
            names
        };
        let clean = |name: &str| name.chars().filter(|c| !c.is_control()).collect::<String>();
        let names = match self.kind {
            BandKind::Frequency => None,
            BandKind::Channel => {
                Some(named(&mut self.numbers.iter().map(|(n, b)| (*b, format!("channel {n}")))))
            }
            BandKind::Name => Some(named(&mut self.names.iter().map(|(n, b)| (*b, clean(n))))),
        };
        Ok(BandLabels::new(freq_hz, names, bands)?)
    }

    /// The entries row by row.
    fn fill(&self, rows: &Rows, kept: &[Option<u32>], scale: Scale) -> Filled {
        let shape = (rows.place.len(), kept.iter().flatten().count());
        let mut power = Array2::from_elem(shape, f64::NAN);
        let mut count = Array2::from_elem(shape, 1.0);
        let mut silent = Array2::from_elem(shape, false);
        let mut times = vec![(0.0, 0u32); shape.0];
        let mut told: Vec<(usize, &Entry)> = Vec::new();
        let pairs: Vec<(&usize, &Entry)> = rows.row.iter().zip(&self.entries).collect();
        for group in pairs.chunk_by(|a, b| (a.1.place, a.1.band) == (b.1.place, b.1.band)) {
            let Some(band) = kept[group[0].1.band as usize] else { continue };
            told.clear();
            told.extend(group.iter().filter(|(_, e)| e.says()).map(|(row, e)| (**row, *e)));
            told.sort_by_key(|(row, _)| *row);
            for visit in told.chunk_by(|a, b| a.0 == b.0) {
                let row = visit[0].0;
                let own = || visit.iter().map(|(_, entry)| *entry);
                let at = [row, band as usize];
                // Where the scale has no zero, a power of zero was not heard.
                let heard = own().filter(|e| e.power > 0.0 || (scale.has_zero() && !e.silent));
                let (mut sum, mut number, mut only) = (0.0, 0usize, f64::NAN);
                for entry in heard {
                    sum += if scale.has_zero() { entry.power } else { entry.power.ln() };
                    (number, only) = (number + 1, entry.power);
                }
                count[at] = number.max(1) as f64;
                power[at] = match number {
                    0 if own().any(|e| e.power == 0.0) => 0.0,
                    0 => f64::NAN,
                    // One reading stays what it is, to the last bit.
                    1 => only,
                    _ if scale.has_zero() => sum / number as f64,
                    _ => (sum / number as f64).exp(),
                };
                // Heard once is heard.
                silent[at] = number == 0 && own().any(|e| e.silent);
                for entry in own().filter(|e| !e.time_s.is_nan()) {
                    times[row] = (times[row].0 + entry.time_s, times[row].1 + 1);
                }
            }
        }
        let count = count.iter().any(|n| *n > 1.0).then_some(count);
        Filled { power, count, silent, times }
    }
}

/// What the rows of readings hold.
struct Filled {
    power: Array2<f64>,
    /// How often each was read, where levels had to share a row.
    count: Option<Array2<f64>>,
    silent: Array2<bool>,
    /// Sum and number of the times in each row.
    times: Vec<(f64, u32)>,
}

/// The visit of every entry of one place, and of each key at most one in a visit. Entries without a time
/// are counted key by key, behind those that have one.
fn visits(entries: &[Entry], key: impl Fn(&Entry) -> u32) -> Vec<usize> {
    let mut visit = vec![0; entries.len()];
    let mut timed: Vec<usize> =
        (0..entries.len()).filter(|i| !entries[*i].time_s.is_nan()).collect();
    timed.sort_by(|a, b| entries[*a].time_s.total_cmp(&entries[*b].time_s));
    let (mut count, mut since, mut seen) = (0, f64::NEG_INFINITY, HashSet::new());
    for i in timed {
        let entry = &entries[i];
        if entry.time_s - since > VISIT_S || seen.contains(&key(entry)) {
            (count, since) = (count + 1, entry.time_s);
            seen.clear();
        }
        seen.insert(key(entry));
        visit[i] = count - 1;
    }
    let mut before: HashMap<u32, usize> = HashMap::new();
    for i in (0..entries.len()).filter(|i| entries[*i].time_s.is_nan()) {
        let own = before.entry(key(&entries[i])).or_insert(0);
        visit[i] = count + *own;
        *own += 1;
    }
    visit
}

/// A row for every visit to a place.
struct Rows {
    /// The place of every row.
    place: Vec<usize>,
    /// The first row of every place.
    first: Vec<usize>,
    /// The row of every entry.
    row: Vec<usize>,
}

impl Rows {
    /// Of entries sorted by place and band.
    fn new(entries: &[Entry], (places, bands): (usize, usize), warnings: &mut Vec<String>) -> Self {
        // Entries that say nothing make no visit.
        let mut own: Vec<usize> = Vec::with_capacity(entries.len());
        let mut needed = vec![1usize; places];
        for group in entries.chunk_by(|a, b| a.place == b.place) {
            let said: Vec<Entry> = group.iter().copied().filter(Entry::says).collect();
            let mut visit = visits(&said, |e| e.band).into_iter();
            let of = |e: &Entry| if e.says() { visit.next().unwrap_or(0) } else { 0 };
            let first = own.len();
            own.extend(group.iter().map(of));
            let last = own[first..].iter().copied().max().unwrap_or(0);
            needed[group[0].place as usize] = last + 1;
        }
        let greatest = needed.iter().copied().max().unwrap_or(1);
        let mut most = greatest;
        // A table of rows x bands is dense: one place that was read for a day must not fill it.
        let rows = |most: usize| needed.iter().map(|v| (*v).min(most)).sum::<usize>();
        while most > 1 && rows(most).saturating_mul(bands) > MOST_ENTRIES {
            most /= 2;
        }
        if most < greatest {
            warnings.push(format!(
                "places were read up to {greatest} times, too often to keep every reading: averaged \
                 to at most {most} for each place and band"
            ));
        }
        let (mut place, mut first) = (Vec::with_capacity(rows(most)), Vec::with_capacity(places));
        for (number, needed) in needed.iter().enumerate() {
            first.push(place.len());
            place.extend(std::iter::repeat_n(number, (*needed).min(most)));
        }
        // Neighbouring visits share a row where there are too many.
        let shared = |(visit, entry): (usize, &Entry)| {
            let number = entry.place as usize;
            first[number] + visit * needed[number].min(most) / needed[number]
        };
        let row = own.into_iter().zip(entries).map(shared).collect();
        Self { place, first, row }
    }
}

/// Moves places within one square of `size` metres to their mean.
pub(crate) fn gather(sites: &mut [Site], size: f64) -> Check<()> {
    if !(size.is_finite() && size > 0.0) {
        return Err(Problem::new(format!("--gather {size}: expected a positive number of metres")));
    }
    let along = |site: &Site| [site.x_m, site.y_m, site.z_m];
    let key = |site: &Site| along(site).map(|v| (v / size).floor() as i64);
    let mut sums: HashMap<[i64; 3], (Site, [f64; 3], f64)> = HashMap::new();
    for site in sites.iter() {
        let (first, sum, n) = sums.entry(key(site)).or_insert((*site, [0.0; 3], 0.0));
        // Relative to the first: coordinates may be millions of metres.
        let off = along(site).into_iter().zip(along(first));
        sum.iter_mut().zip(off).for_each(|(sum, (own, first))| *sum += own - first);
        *n += 1.0;
    }
    for site in sites.iter_mut() {
        let (first, [x, y, z], n) = sums[&key(site)];
        *site = Site::new(first.x_m + x / n, first.y_m + y / n).at_height(first.z_m + z / n);
    }
    Ok(())
}

/// The centre of a Wi-Fi channel in the bands of 2.4 and 5 GHz.
pub(crate) fn channel_hz(channel: u32) -> Option<f64> {
    match channel {
        1..=13 => Some(2.407e9 + 5e6 * f64::from(channel)),
        14 => Some(2.484e9),
        32..=177 => Some(5e9 + 5e6 * f64::from(channel)),
        _ => None,
    }
}

/// Equal places have equal bits: -0 is 0.
fn bits(site: Site) -> [u64; 3] {
    [site.x_m, site.y_m, site.z_m].map(|v| (v + 0.0).to_bits())
}

/// A NaN of 0 / 0 has a sign that depends on the processor.
fn plain_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_one_square_become_their_mean() {
        let far = 5e6;
        let mut sites = [(0.1, 0.2), (0.3, 0.6), (2.5, 0.0)].map(|(x, y)| Site::new(far + x, y));
        gather(&mut sites, 1.0).unwrap();
        assert!(sites[0] == sites[1] && sites[0].distance_m(Site::new(far + 0.2, 0.4)) < 1e-8);
        assert_eq!(sites[2], Site::new(far + 2.5, 0.0));
        assert!(gather(&mut sites, 0.0).is_err());
    }

    #[test]
    fn a_row_is_a_visit_of_one_time() {
        const MONTH: f64 = 2.6e6;
        let mut all = Sightings::new(BandKind::Channel);
        let mut hear = |channel: u32, dbm: f64, time_s: f64| {
            let band = all.channel(channel);
            let power = 10f64.powf(0.1 * dbm);
            let sighting = Sighting { band, power, silent: false, time_s, device: None, member: 0 };
            all.add(Site::new(1.0, 2.0), sighting);
            all.add(Site::new(5.0, 2.0), sighting);
        };
        // One channel in each of twelve months, another in the last of them only, one without times.
        (0..12).for_each(|month| hear(1, -60.0 - f64::from(month), MONTH * f64::from(month)));
        hear(6, -40.0, 11.0 * MONTH - 30.0);
        hear(11, -90.0, f64::NAN);
        let mut sites = all.take_sites();
        let options = ReadOptions::default();
        let (found, _) =
            all.gathered(&mut sites, Scale::Absolute, &options, &mut Vec::new()).unwrap();
        assert_eq!((sites.len(), found.power.dim()), (26, (26, 3)));
        let months: Vec<f64> = found.time_s.unwrap().iter().map(|t| (t / MONTH).round()).collect();
        for (row, month) in months[..12].iter().enumerate() {
            assert_eq!(*month, row as f64);
            assert_eq!(found.power[[row, 1]].is_nan(), row != 11, "row {row}");
            assert!(!found.power[[row, 0]].is_nan() && found.power[[row, 2]].is_nan());
        }
        assert!(!found.power[[12, 2]].is_nan() && found.power[[12, 0]].is_nan());
    }

    #[test]
    fn channels_have_frequencies() {
        let known = [1, 6, 14, 36, 165, 200].map(channel_hz);
        let expected =
            [Some(2.412e9), Some(2.437e9), Some(2.484e9), Some(5.18e9), Some(5.825e9), None];
        assert_eq!(known, expected);
    }
}
