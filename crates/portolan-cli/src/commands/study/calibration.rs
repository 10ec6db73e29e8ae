//! `portolan study calibration`: whether the error bars of methods hold on simulated surveys whose
//! truth and law are known, at sensors that read again, at new places, and by distance to the
//! nearest sensor.

mod bars;
mod design;
mod law;
mod report;
mod tally;
mod truth;

use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Array2;
use portolan::estimate::{Capability, method};
use portolan::{Context, Progress, Readings, Scale, Values};
use rayon::prelude::*;

use self::bars::Setting;
use self::design::Design;
use self::law::{Answer, TrueLaw, without_noise};
use self::tally::{Figures, Seen};
use self::truth::{Drawn, Truth};
use super::calls;
use crate::args::StudyArgs;
use crate::commands::MethodCall;
use crate::failure::Failure;
use crate::output::{emit, emit_json};
use crate::watch::counted;

/// What stands for this study in place of a survey's name.
pub const WORD: &str = "calibration";

const METHODS: &str = "kriging,field,auto";
const TRUTHS: &str = "process:20,process:60,path";
const SURVEYS: u64 = 200;
const SENSORS: [usize; 3] = [30, 100, 300];
const NOISE_DB: [f64; 4] = [0.0, 1.0, 3.0, 5.0];
const BANDS: [usize; 4] = [1, 2, 4, 16];

/// Who knows the law stands before the methods: all of it, and all but the noise.
const KNOWING: [&str; 2] = ["true law", "noise unknown"];

/// Refuses options of this study where another was asked for.
pub fn check_options(args: &StudyArgs) -> Result<(), Failure> {
    match args.calibration.given() {
        Some(name) => Err(Failure::input(format!(
            "{name}: belongs to the study of error bars: portolan study {WORD} {name} .."
        ))),
        None => Ok(()),
    }
}

pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    if let Some(name) = args.changed().or(args.force.then_some("--force")) {
        return Err(Failure::input(format!(
            "{name}: the study of error bars has no use for it (./{WORD} names a file)"
        )));
    }
    let calls = calls(args, METHODS)?;
    if let Some(call) =
        calls.iter().find(|call| method(&call.name).is_ok_and(|m| m.has(Capability::Truth)))
    {
        let message = format!("--methods {}: needs a true map, which there is none of", call.name);
        return Err(Failure::input(message));
    }
    let study = Study::new(args, &calls)?;
    let rows = study.run()?;
    if args.json {
        return emit_json(&report::json(&study, &rows));
    }
    emit(&report::tables(&study, &rows))
}

/// One line of settings, with what the methods and the true law did in it.
struct Row {
    setting: Setting,
    /// Places found in each bin, over all surveys.
    places: [usize; design::BINS.len()],
    /// Who knows the law, then the methods.
    figures: Vec<Figures>,
}

struct Study<'a> {
    calls: &'a [MethodCall],
    truths: Vec<Truth>,
    sensors: Vec<usize>,
    noise_db: Vec<f64>,
    bands: Vec<usize>,
    surveys: u64,
    seed: u64,
}

impl<'a> Study<'a> {
    fn new(args: &StudyArgs, calls: &'a [MethodCall]) -> Result<Self, Failure> {
        let own = &args.calibration;
        let default = || TRUTHS.split(',').map(str::to_string).collect();
        let truths: Vec<String> = own.truths.clone().unwrap_or_else(default);
        let truths = truths
            .iter()
            .map(|text| Truth::parse(text))
            .collect::<Result<_, _>>()
            .map_err(|why| Failure::input(format!("--truths {why}")))?;
        let sensors = args.sensors.clone().unwrap_or(SENSORS.to_vec());
        if let Some(count) = sensors.iter().find(|count| !(2..=2000).contains(*count)) {
            return Err(Failure::input(format!("--sensors {count}: it takes 2 to 2000")));
        }
        let noise_db = own.noise.clone().unwrap_or(NOISE_DB.to_vec());
        if let Some(noise) = noise_db.iter().find(|noise| !(0.0..=30.0).contains(*noise)) {
            return Err(Failure::input(format!("--noise {noise}: it takes 0 to 30 dB")));
        }
        let bands = own.bands_each.clone().unwrap_or(BANDS.to_vec());
        if let Some(count) = bands.iter().find(|count| !(1..=1000).contains(*count)) {
            return Err(Failure::input(format!("--bands-each {count}: it takes 1 to 1000")));
        }
        let surveys = args.maps.unwrap_or(SURVEYS);
        Ok(Self { calls, truths, sensors, noise_db, bands, surveys, seed: args.seed })
    }

    /// Who knows the law, and the methods.
    fn labels(&self) -> impl Iterator<Item = &str> {
        KNOWING.into_iter().chain(self.calls.iter().map(|call| call.label.as_str()))
    }

    fn run(&self) -> Result<Vec<Row>, Failure> {
        let mut jobs = Vec::new();
        for &truth in &self.truths {
            for &sensors in &self.sensors {
                jobs.extend((0..self.surveys).map(|number| (truth, sensors, number)));
            }
        }
        let rows = self.noise_db.len() * self.bands.len();
        let total = jobs.len() * rows * self.calls.len();
        let seen = counted("study", |tell, go_on| {
            let done = AtomicUsize::new(0);
            let step = || {
                tell(done.fetch_add(1, Ordering::Relaxed) + 1, total, None);
                if go_on() { Ok(()) } else { Err(Failure::Interrupted) }
            };
            jobs.par_iter()
                .with_max_len(1)
                .map(|&(truth, sensors, number)| {
                    let seed = self.seed.wrapping_add(number);
                    let design = Design::draw(sensors, seed);
                    let seen = self.survey(truth, &design, seed, &step)?;
                    Ok((std::array::from_fn(|bin| design.bins[bin].len()), seen))
                })
                .collect::<Result<Vec<([usize; design::BINS.len()], Vec<Vec<Seen>>)>, Failure>>()
        })?;
        let mut surveys = seen.chunks(self.surveys as usize);
        let mut found = Vec::new();
        for &truth in &self.truths {
            for &sensors in &self.sensors {
                let surveys = surveys.next().unwrap_or_default();
                let places = |bin: usize| surveys.iter().map(|(places, _)| places[bin]).sum();
                for (index, (noise_db, bands)) in self.cases().enumerate() {
                    let of = |who: usize| -> Vec<&Seen> {
                        surveys.iter().map(|(_, seen)| &seen[index][who]).collect()
                    };
                    let law = of(0);
                    found.push(Row {
                        setting: Setting { truth, sensors, noise_db, bands },
                        places: std::array::from_fn(places),
                        figures: (0..KNOWING.len() + self.calls.len())
                            .map(|i| Figures::of(&of(i), &law))
                            .collect(),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Noise and bands of the rows that share surveys.
    fn cases(&self) -> impl Iterator<Item = (f64, usize)> {
        self.noise_db.iter().flat_map(|&noise| self.bands.iter().map(move |&bands| (noise, bands)))
    }

    /// One survey in all its cases, as the true law and each method saw it.
    fn survey(
        &self,
        truth: Truth,
        design: &Design,
        seed: u64,
        step: &dyn Fn() -> Result<(), Failure>,
    ) -> Result<Vec<Vec<Seen>>, Failure> {
        let singular = || {
            let label = truth.label();
            Failure::Run(format!("--truths {label}, seed {seed}: the covariance is singular"))
        };
        let most = self.bands.iter().copied().max().unwrap_or(1);
        let drawn = Drawn::new(truth, design, most, seed).ok_or_else(singular)?;
        let mut all = Vec::new();
        let law = |noise: &f64| TrueLaw::new(truth, design, *noise).ok_or_else(singular);
        let laws: Vec<TrueLaw> = self.noise_db.iter().map(law).collect::<Result<_, _>>()?;
        for (&noise_db, law) in self.noise_db.iter().zip(&laws) {
            for &bands in &self.bands {
                let case = (noise_db, bands);
                let dbm = drawn.readings(noise_db, bands);
                let knowing = [law.answer(&drawn, bands), without_noise(&laws, &drawn, &dbm)];
                let mut seen: Vec<Seen> =
                    knowing.iter().map(|said| Seen::of(design, &drawn, case, said)).collect();
                for call in self.calls {
                    seen.push(match fit(call, design, &dbm, seed) {
                        Ok(answer) => Seen::of(design, &drawn, case, &answer),
                        Err(Failure::Input(why) | Failure::Run(why)) => {
                            Seen::failed(design, bands, why)
                        }
                        Err(stopped) => return Err(stopped),
                    });
                    step()?;
                }
                all.push(seen);
            }
        }
        Ok(all)
    }
}

/// What a method says of the places of a survey.
fn fit(
    call: &MethodCall,
    design: &Design,
    dbm: &Array2<f64>,
    seed: u64,
) -> Result<Answer, Failure> {
    let power = dbm.mapv(|level| 10f64.powf(level / 10.0));
    let readings = Readings::new(design.sensors.clone(), Values::Power(power), Scale::Absolute)?;
    let context = Context { seed, ..Context::default() };
    let silent = Progress::silent();
    let model = call.build()?.fit(&readings, &context, &silent)?;
    let found = model.predict(&design.asked(), &silent)?;
    Ok(Answer {
        field: found.power.mapv(|power| 10.0 * power.max(f64::MIN_POSITIVE).log10()),
        spread_db: found.spread_db,
        reading_spread_db: found.reading_spread_db,
    })
}
