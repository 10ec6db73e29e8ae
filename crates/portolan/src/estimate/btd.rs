//! Block-term decomposition (Zhang et al. 2020): every SLF has low rank, S_r = A_r B_r^T, all
//! factors non-negative, fitted to the readings; the paper's start and baseline. In power the fit
//! is least squares as published, for levels it is maximum likelihood (Timilsina et al. 2023).

use ndarray::{Array2, Array3, Axis};

use super::bands::Domain;
use super::emitters::{number_of_emitters, unmix_readings};
use super::thin_plate::ThinPlate;
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::grid::Grid;
use crate::likelihood::Probit;
use crate::map::Factors;
use crate::model::{
    Archive, Drawing, DrawnGrid, Gridded, Model, ModelEmitter, Report, damaged, power_shares,
};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::unmix::Unmixed;
use crate::unmix::btd::{BtdOptions, BtdProblem, Observed, Start, fit};

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "rank", default: "10 (paper)", takes: "1 to 1000: the rank L of an SLF" },
    OptionSpec {
        name: "thin_plate",
        default: "true (as published)",
        takes: "true | false: regularise towards SLFs interpolated by thin-plate splines",
    },
    OptionSpec { name: "iterations", default: "200", takes: "1 to 1000000" },
    OptionSpec {
        name: "tolerance",
        default: "1e-5",
        takes: "stop once the loss changes relatively less; 0 = never",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

pub(super) const KIND: &str = "btd";

/// Block-term decomposition: emitters with SLFs of low rank. Also the start of the paper's decoder.
///
/// ```
/// use portolan::estimate::{Btd, Method};
/// use portolan::{Context, Emitters, Grid, Progress};
/// # use portolan::sense::{SensorLayout, Sensing, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(24, 24, 1.0)?;
/// let truth = simulate(&Scenario { bands: 8, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
/// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 0))?;
/// let context = Context { emitters: Emitters::Count(2), ..Context::default() };
/// let model = Btd::default().fit(&readings, &context, &Progress::silent())?;
/// let map = model.map(grid, &Progress::silent())?;
/// assert_eq!(map.factors().map(|f| f.psd.dim()), Some((2, 8)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Btd {
    /// Rank, iterations and weights of the fit.
    pub options: BtdOptions,
    /// Regularise towards SLFs interpolated from the sensors by thin-plate splines.
    pub thin_plate: bool,
}

impl Default for Btd {
    fn default() -> Self {
        Self { options: BtdOptions::default(), thin_plate: true }
    }
}

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("btd", "block-term decomposition: emitters with SLFs of low rank", build)
        .with_revision(2)
        .with_capabilities(&[Capability::Emitters, Capability::Grid])
        .with_options(OPTIONS)
        .with_kinds(&[(KIND, |saved| {
            saved.gridded(BlockTerms::load(saved.archive, saved.bands)?)
        })]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let usual = Btd::default();
    let thin_plate = options.choice("thin_plate", &[("true", true), ("false", false)])?;
    let BtdOptions { rank, iterations, tolerance, .. } = usual.options;
    Ok(Box::new(Btd {
        options: BtdOptions {
            rank: options.count("rank", 1..=1000)?.unwrap_or(rank),
            iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(iterations),
            tolerance: options.number("tolerance", 0.0..1.0)?.unwrap_or(tolerance),
            ..usual.options
        },
        thin_plate: thin_plate.unwrap_or(usual.thin_plate),
    }))
}

impl Btd {
    /// The decomposition of readings on a grid, in the readings' own unit.
    pub(super) fn decompose(
        &self,
        readings: &Readings,
        grid: Grid,
        emitters: usize,
        seed: u64,
        progress: &Progress<'_>,
    ) -> Result<crate::unmix::btd::BtdFit, EstimateError> {
        let link = readings.floored_link();
        let power = readings.power_or_floor();
        // In units of the brightest reading: the fit must not depend on the unit.
        let brightest = power.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
        let unit = match readings.values() {
            Values::Power(_) => brightest,
            Values::Levels { .. } => 1.0,
        };
        let power = power.mapv(|x| x / unit);
        let guess = if self.thin_plate {
            let mut unmixed = unmix_readings(readings, emitters, link.offset(), seed)?;
            unmixed.slf_at_sensors.mapv_inplace(|s| s / unit);
            Some((thin_plate_slfs(readings, grid, &unmixed, progress)?, unmixed.psd))
        } else {
            None
        };
        let start = match &guess {
            Some((slf, psd)) => Start::Factors { slf: slf.view(), psd: psd.view(), seed },
            None => Start::Random { emitters, seed },
        };
        let probit;
        let observed = match readings.values() {
            Values::Power(_) => Observed::Power(power.view()),
            Values::Levels { levels, quantiser } => {
                probit = Probit::new(quantiser);
                Observed::Levels { levels: levels.view(), probit: &probit, link }
            }
        };
        let cells = readings.cells(grid)?;
        let problem = BtdProblem {
            grid,
            cells: &cells,
            observed,
            prior_slf: guess.as_ref().map(|(slf, _)| slf.view()),
        };
        progress.fit_begins();
        let mut found = fit(&problem, &self.options, &start, progress)?;
        found.c.mapv_inplace(|c| c * unit);
        Ok(found)
    }
}

/// Each emitter's SLF through its values at the sensors, in linear power, never negative.
fn thin_plate_slfs(
    readings: &Readings,
    grid: Grid,
    unmixed: &Unmixed,
    progress: &Progress<'_>,
) -> Result<Array3<f64>, EstimateError> {
    let at_sensors = slf_readings(readings, unmixed.slf_at_sensors.clone())?;
    let spline = ThinPlate { domain: Domain::Linear, ..ThinPlate::default() };
    let quiet = progress.quiet();
    let model = spline.fit(&at_sensors, &Context::default(), &quiet)?;
    let dense = model.map(grid, &quiet)?.to_dense().into_owned();
    Ok(dense.permuted_axes([2, 0, 1]).as_standard_layout().into_owned())
}

/// SLFs at the sensors (sensors x emitters) as readings of so many bands.
pub(super) fn slf_readings(readings: &Readings, slf: Array2<f64>) -> Result<Readings, InputError> {
    // Zero is a value here, whatever the readings' own scale.
    let scale = crate::scale::Scale::paper();
    Readings::new(readings.sites().to_vec(), Values::Power(slf), scale)
}

impl Method for Btd {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        let grid = context.grid_for(readings)?;
        let readings = &readings.on_grid(grid)?;
        let emitters = number_of_emitters(readings, context)?;
        let btd = self.decompose(readings, grid, emitters, context.seed, progress)?;
        let mut report = Report::of_descent(btd.loss_trace);
        report.iterations = report.iterations.saturating_sub(1);
        let terms = BlockTerms { a: btd.a, b: btd.b, c: btd.c };
        Ok(gridded_model(readings, grid, terms)?.with_report(report))
    }
}

/// A model on a grid, with its emitters at the brightest cells of their SLFs.
pub fn gridded_model(
    readings: &Readings,
    grid: Grid,
    drawing: impl Drawing + 'static,
) -> Result<Model, EstimateError> {
    let fitted = Gridded::new(grid, 1e-3 * readings.floored_link().offset(), drawing)?;
    let emitters = fitted.factors().map(|factors| peaks(readings, grid, factors));
    let model = Model::new(readings, fitted).with_grid(Some(grid));
    Ok(model.with_emitters(emitters.unwrap_or_default()))
}

pub(super) fn peaks(readings: &Readings, grid: Grid, factors: &Factors) -> Vec<ModelEmitter> {
    let cells = readings.cells(grid).unwrap_or_default();
    let emitters = factors.psd.nrows();
    let at_sensors = Array2::from_shape_fn((emitters, cells.len()), |(r, n)| {
        factors.slf[[r, cells[n].row, cells[n].col]]
    });
    let shares = power_shares(&at_sensors, &factors.psd);
    let peak = |r: usize| {
        let field = factors.slf.index_axis(Axis(0), r);
        let peak = field.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1));
        peak.map_or([0.0, 0.0], |((row, col), _)| [row as f64, col as f64])
    };
    let emitter = |r: usize| ModelEmitter {
        places: Vec::new(),
        at: grid.site_at(peak(r)),
        at_se_m: None,
        exponent: None,
        psd: factors.psd.row(r).to_vec(),
        power_share: shares[r],
    };
    (0..emitters).map(emitter).collect()
}

/// SLFs of unit norm, PSDs carrying the power.
pub fn unit_norm(mut slf: Array3<f64>, mut psd: Array2<f64>) -> Result<DrawnGrid, EstimateError> {
    for (mut field, mut spectrum) in slf.outer_iter_mut().zip(psd.outer_iter_mut()) {
        let norm = field.iter().map(|v| v * v).sum::<f64>().sqrt();
        if !norm.is_finite() || spectrum.iter().any(|c| !c.is_finite()) {
            return Err(EstimateError::Numerical("the fit diverged".into()));
        }
        field.mapv_inplace(|v| v / norm.max(f64::MIN_POSITIVE));
        spectrum.mapv_inplace(|c| c * norm);
    }
    Ok(DrawnGrid::Factored(Factors { slf, psd }))
}

/// What the decomposition found: S_r = A_r B_r^T and PSDs.
pub(super) struct BlockTerms {
    /// Emitters x rows x rank, emitters x columns x rank, emitters x bands.
    a: Array3<f64>,
    b: Array3<f64>,
    c: Array2<f64>,
}

impl BlockTerms {
    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let cube = |name: &str| {
            let shape = archive.whole(&format!("{name}_shape"))?;
            let flat = archive.finite(name)?;
            let &[emitters, side, rank] = &shape[..] else {
                return Err(damaged(name, "has not three axes"));
            };
            Array3::from_shape_vec((emitters, side, rank), flat)
                .map_err(|_| damaged(name, "does not have its shape"))
        };
        let terms = Self { a: cube("a")?, b: cube("b")?, c: archive.matrix("c")? };
        let (emitters, _, rank) = terms.a.dim();
        let fits = terms.b.dim().0 == emitters
            && terms.b.dim().2 == rank
            && terms.c.dim() == (emitters, bands)
            && emitters > 0;
        if fits { Ok(terms) } else { Err(damaged("c", "does not fit the others").into()) }
    }
}

impl Drawing for BlockTerms {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError> {
        let (emitters, rows, _) = self.a.dim();
        let cols = self.b.dim().1;
        if (rows, cols) != (grid.rows(), grid.cols()) {
            return Err(damaged("a", "is of another grid").into());
        }
        let mut slf = Array3::zeros((emitters, rows, cols));
        for ((a, b), mut s) in
            self.a.outer_iter().zip(self.b.outer_iter()).zip(slf.axis_iter_mut(Axis(0)))
        {
            s.assign(&a.dot(&b.t()));
        }
        unit_norm(slf, self.c.clone())
    }

    fn save(&self, archive: &mut Archive) {
        for (name, factor) in [("a", &self.a), ("b", &self.b)] {
            let (emitters, side, rank) = factor.dim();
            archive.put_whole(&format!("{name}_shape"), [emitters, side, rank]);
            archive.put_vector(name, &factor.iter().copied().collect::<Vec<f64>>());
        }
        archive.put_matrix("c", &self.c);
    }
}
