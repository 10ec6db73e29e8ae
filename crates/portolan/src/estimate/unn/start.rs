//! Where the fit begins: a random network, or one that imitates SLFs found by simpler means.

use ndarray::{Array1, Array2};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::engine::Unknowns;
use crate::error::EstimateError;
use crate::estimate::bands::Domain;
use crate::estimate::btd::slf_readings;
use crate::estimate::thin_plate::MOST_TOGETHER;
use crate::estimate::{Context, Kriging, Method};
use crate::gaussian_process::{Fixed, clustered};
use crate::grid::Grid;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::unmix::Unmixed;
use portolan_decoder::{Decoder, Draw, random_network};

/// Sensors that the law of the SLFs' kriging is fitted to.
const LAW_SENSORS: usize = 128;
/// Number of nearest sensors used for a place if there are too many to use all.
const NEIGHBOURS: usize = 48;

/// SLFs and PSDs to begin with: emitters x cells in (0, 1), emitters x bands.
pub(super) struct Guess {
    pub slf: Vec<f32>,
    pub psd: Array2<f64>,
}

impl Guess {
    /// From unmixed SLFs at the sensors, carried to the grid by an interpolator, which is told a
    /// tenth of the least of them.
    pub fn interpolated(
        readings: &Readings,
        grid: Grid,
        unmixed: &Unmixed,
        method: impl Fn(f64, &Readings) -> Result<Box<dyn Method>, EstimateError>,
        floor: f64,
        progress: &Progress<'_>,
    ) -> Result<Self, EstimateError> {
        // An emitter that contributes less than the offset in every band cannot be told from none.
        let mut lifted = unmixed.slf_at_sensors.clone();
        for (mut column, spectrum) in lifted.columns_mut().into_iter().zip(unmixed.psd.outer_iter())
        {
            let peak = spectrum.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            column.mapv_inplace(|s| s.max(floor / peak));
        }
        let least = lifted.iter().copied().fold(f64::INFINITY, f64::min);
        let at_sensors = slf_readings(readings, lifted)?;
        let quiet = progress.quiet();
        let method = method((0.1 * least).max(f64::MIN_POSITIVE), &at_sensors)?;
        let model = method.fit(&at_sensors, &Context::default(), &quiet)?;
        let power = model.power_on(grid, &quiet)?;
        Ok(Self::new(grid, &unmixed.psd, |r| power.column(r).to_owned()))
    }

    /// Fills up to `emitters` with silent copies: they take nothing of what the decoder can draw.
    pub fn widened(mut self, emitters: usize) -> Self {
        let (shown, bands) = self.psd.dim();
        let cells = self.slf.len() / shown;
        for extra in shown..emitters {
            let from = extra % shown * cells;
            self.slf.extend_from_within(from..from + cells);
        }
        let mut psd = Array2::zeros((emitters.max(shown), bands));
        psd.slice_mut(ndarray::s![..shown, ..]).assign(&self.psd);
        self.psd = psd;
        self
    }

    /// The map that SLFs and PSDs make, cells x bands, in multiples of a unit.
    pub fn map(&self, unit: f64) -> Vec<f32> {
        let (emitters, bands) = self.psd.dim();
        let cells = self.slf.len() / emitters;
        let mut map = vec![0.0; cells * bands];
        for (slf, spectrum) in self.slf.chunks_exact(cells).zip(self.psd.outer_iter()) {
            for (row, s) in map.chunks_exact_mut(bands).zip(slf) {
                row.iter_mut().zip(spectrum).for_each(|(x, c)| *x += s * (c / unit) as f32);
            }
        }
        map
    }

    /// Scales each SLF to a peak just below 1 and its PSD inversely.
    pub fn new(grid: Grid, psd: &Array2<f64>, slf: impl Fn(usize) -> Array1<f64>) -> Self {
        let mut out =
            Self { slf: Vec::with_capacity(psd.nrows() * grid.cells()), psd: psd.clone() };
        for (r, mut spectrum) in out.psd.outer_iter_mut().enumerate() {
            let field = slf(r);
            let peak = field.iter().copied().fold(f64::MIN_POSITIVE, f64::max) / 0.9;
            out.slf.extend(field.iter().map(|v| (v / peak) as f32));
            spectrum.mapv_inplace(|c| c * peak);
        }
        out
    }
}

/// Kriging of SLFs in ln(x + offset). The decoder learns the start only roughly, so its law comes
/// from some of the sensors, and among many a place looks at few.
pub(super) fn kriging(offset: f64, at_sensors: &Readings) -> Result<Kriging, EstimateError> {
    let sensors = at_sensors.sensors();
    let mut kriging = Kriging { domain: Domain::LogOffset(offset), ..Kriging::default() };
    if sensors > MOST_TOGETHER {
        kriging.neighbours = Some(NEIGHBOURS);
    }
    if sensors > LAW_SENSORS {
        let some = at_sensors.subset(&clustered(at_sensors.sites(), LAW_SENSORS))?;
        let law = kriging.fit(&some, &Context::default(), &Progress::silent())?;
        let fitted = |name| law.report().fitted(name);
        kriging.fixed = Fixed {
            decorrelation_m: fitted("decorrelation_m"),
            sill: fitted("sill"),
            nugget: fitted("nugget"),
        };
    }
    Ok(kriging)
}

/// A random network and random PSDs in [0, 1).
pub(super) fn random(
    decoder: &Decoder,
    bands: usize,
    draw: Draw,
    rng: &mut ChaCha8Rng,
) -> Unknowns {
    let network = random_network(decoder, draw, rng);
    Unknowns { network, psd: random_psd(decoder.emitters(), bands, rng) }
}

/// PSDs uniform in [0, 1).
pub fn random_psd(emitters: usize, bands: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..emitters * bands).map(|_| rng.random()).collect()
}
