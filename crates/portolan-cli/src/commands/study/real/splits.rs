//! Places that train and places that test.

use ndarray::{Array2, Axis};
use portolan::estimate::Transmitter;
use portolan::{InputError, Readings, Site, Values};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::surveys::Survey;

/// At most so many places train, and so many test.
const MOST: (usize, usize) = (700, 600);

/// Boxes along each side of the survey, and the share of them that trains.
const BOXES: usize = 5;
const TRAINING_BOXES: f64 = 0.6;

/// How places are held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// This percentage of the places trains.
    Share(u32),
    /// Boxes of the survey train.
    Blocks,
}

impl Rule {
    pub const ALL: [Rule; 4] = [Rule::Share(10), Rule::Share(25), Rule::Share(50), Rule::Blocks];

    pub fn label(self) -> String {
        match self {
            Rule::Share(percent) => format!("{percent} %"),
            Rule::Blocks => "blocks".into(),
        }
    }

    /// For the names of files.
    pub fn word(self) -> String {
        self.label().replace(" %", "")
    }

    /// A stream of random numbers of its own.
    fn stream(self) -> u64 {
        match self {
            Rule::Share(percent) => u64::from(percent),
            Rule::Blocks => 1000,
        }
    }
}

/// One split of a survey.
pub struct Split {
    pub rule: Rule,
    pub seed: u64,
    train: Vec<usize>,
    test: Vec<usize>,
    /// The bands that were heard at a place that trains.
    pub bands: Vec<usize>,
}

impl Split {
    pub fn new(survey: &Survey, rule: Rule, number: u64, first_seed: u64) -> Self {
        let seed = first_seed.wrapping_add(number);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(rule.stream());
        let (mut train, mut test) = match rule {
            Rule::Share(percent) => {
                let mut places: Vec<usize> = (0..survey.sites.len()).collect();
                places.shuffle(&mut rng);
                let share = f64::from(percent) / 100.0 * places.len() as f64;
                let test = places.split_off(share.round() as usize);
                (places, test)
            }
            Rule::Blocks => {
                let boxes = boxes(&survey.sites);
                let mut visited = boxes.clone();
                visited.sort_unstable();
                visited.dedup();
                visited.shuffle(&mut rng);
                visited.truncate((TRAINING_BOXES * visited.len() as f64).round() as usize);
                let mut places: Vec<usize> = (0..boxes.len()).collect();
                places.shuffle(&mut rng);
                places.into_iter().partition(|&place| visited.contains(&boxes[place]))
            }
        };
        train.truncate(MOST.0);
        test.truncate(MOST.1);
        let heard =
            |band: &usize| train.iter().any(|&place| !survey.level[[place, *band]].is_nan());
        let bands = (0..survey.bands.len()).filter(heard).collect();
        Self { rule, seed, train, test, bands }
    }

    fn level(&self, survey: &Survey, places: &[usize]) -> Array2<f64> {
        survey.level.select(Axis(0), places).select(Axis(1), &self.bands)
    }

    fn sites(survey: &Survey, places: &[usize]) -> Vec<Site> {
        places.iter().map(|&place| survey.sites[place]).collect()
    }

    /// How many places train and how many test.
    pub fn places(&self) -> (usize, usize) {
        (self.train.len(), self.test.len())
    }

    /// What trains, in dB or dBm.
    pub fn training(&self, survey: &Survey) -> (Vec<Site>, Array2<f64>) {
        (Self::sites(survey, &self.train), self.level(survey, &self.train))
    }

    /// What tests.
    pub fn testing(&self, survey: &Survey) -> (Vec<Site>, Array2<f64>) {
        (Self::sites(survey, &self.test), self.level(survey, &self.test))
    }

    /// Readings to fit; gaps are gaps, or silence.
    pub fn readings(&self, survey: &Survey, silence: bool) -> Result<Readings, InputError> {
        let (sites, level) = self.training(survey);
        // A power of zero is "not heard".
        let gap = if silence { 0.0 } else { f64::NAN };
        let power = level.mapv(|v| if v.is_nan() { gap } else { 10f64.powf(v / 10.0) });
        Readings::new(sites, Values::Power(power), survey.scale)
    }

    /// The known transmitters of the bands of this split.
    pub fn transmitters(&self, survey: &Survey) -> Vec<Transmitter> {
        let of = |(place, &band): (usize, &usize)| {
            survey.transmitters.get(band).map(|at| Transmitter::new(*at).in_band(place))
        };
        self.bands.iter().enumerate().filter_map(of).collect()
    }
}

/// The box of every place over the survey's bounding rectangle.
fn boxes(sites: &[Site]) -> Vec<usize> {
    let along = |of: fn(&Site) -> f64| {
        let (low, high) = sites
            .iter()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let side = (high - low).max(f64::MIN_POSITIVE);
        move |site: &Site| ((of(site) - low) / side * BOXES as f64).min(BOXES as f64 - 1.0) as usize
    };
    let (x, y) = (along(|site| site.x_m), along(|site| site.y_m));
    sites.iter().map(|site| BOXES * x(site) + y(site)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan::Scale;

    fn survey() -> Survey {
        let sites: Vec<Site> =
            (0..100).map(|i| Site::new(f64::from(i % 10), f64::from(i / 10))).collect();
        let mut level = Array2::from_elem((100, 2), -60.0);
        level.column_mut(1).fill(f64::NAN);
        Survey {
            name: "square",
            title: "Square",
            scale: Scale::Absolute,
            transmitters: vec![sites[0], sites[1]],
            sites,
            bands: vec!["a".into(), "b".into()],
            level,
            gaps_are_silence: false,
        }
    }

    #[test]
    fn splits_cover_the_survey_once_and_follow_their_seed() {
        let survey = survey();
        for rule in Rule::ALL {
            let split = Split::new(&survey, rule, 1, 7);
            let mut all = [split.train.clone(), split.test.clone()].concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
            let share = match rule {
                Rule::Share(percent) => percent as usize,
                Rule::Blocks => 60,
            };
            assert_eq!(split.train.len(), share);
            assert_eq!(split.train, Split::new(&survey, rule, 0, 8).train);
            assert_ne!(split.train, Split::new(&survey, rule, 0, 7).train);
            // Nothing was heard in the second band.
            assert_eq!((split.bands.len(), split.transmitters(&survey).len()), (1, 1));
            assert_eq!(split.readings(&survey, false).unwrap().bands(), 1);
        }
    }

    #[test]
    fn a_box_trains_or_tests_as_a_whole() {
        let survey = survey();
        let split = Split::new(&survey, Rule::Blocks, 0, 0);
        let boxes = boxes(&survey.sites);
        assert!(split.train.iter().all(|a| split.test.iter().all(|b| boxes[*a] != boxes[*b])));
    }
}
