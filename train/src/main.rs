//! Trains the generator of spatial loss fields that ships with portolan, measures it and exports it.

mod checkpoint;
mod cli;
mod code;
mod evaluate;
mod fields;
mod fold;
mod layers;
mod networks;
mod params;
mod picture;
mod progress;
mod target;
mod train;
mod variogram;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use burn::backend::Flex;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use clap::Parser;

use cli::{Cli, EvaluateArgs, ExportArgs, Measure, PictureArgs, Processor, Task, TrainArgs};
use evaluate::{Comparison, latents, reconstruct, sample, summarise};
use fields::{CELLS, SIDE, SPAN, Set, Source};
use fold::Folded;
use networks::{Norm, generate};
use picture::Sheet;
use target::{Fields, Target};
use train::Trainer;

/// Offsets from the plan's seed, so that nothing measured was trained on.
const UNSEEN: u64 = 1_000_003;
const POPULATION: u64 = 2_000_003;
/// Latents that normalising statistics are taken from.
const POPULATION_SIZE: usize = 1024;
/// The most that rounding to f16 may move an output: 0.2 dB in the worst cell of many fields.
const F16_BOUND: f32 = 2e-3;
const SAMPLES: u64 = 3_000_017;

/// Runs a function for the processor asked for.
macro_rules! on {
    ($processor:expr, $task:ident, $args:expr) => {
        match $processor {
            Processor::Cpu => $task::<Flex>($args),
            #[cfg(feature = "cuda")]
            Processor::Cuda => $task::<burn::backend::Cuda>($args),
            #[cfg(not(feature = "cuda"))]
            Processor::Cuda => bail!("this build has no CUDA: build with --features cuda"),
        }
    };
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Train(args) => on!(args.training.backend, train_task, &args),
        Task::Export(args) => on!(args.training.backend, export_task, &args),
        Task::Evaluate(args) => on!(args.backend, evaluate_task, &args),
        Task::Picture(args) => picture_task(&args),
    }
}

fn checkpoint_in(folder: &Path) -> PathBuf {
    folder.join("checkpoint.safetensors")
}

fn train_task<B: Backend>(args: &TrainArgs) -> Result<()> {
    let device = B::Device::default();
    let set = args.training.set;
    let plan = args.training.plan();
    if plan.fields < plan.batch {
        bail!("--fields {} is less than a batch of {}", plan.fields, plan.batch);
    }
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {:?}", args.out))?;
    let path = checkpoint_in(&args.out);
    let mut trainer = match args.resume && path.exists() {
        true => Trainer::<B>::load(plan, &path, set.name(), &device)?,
        false => Trainer::<B>::new(plan, &device),
    };
    let start = std::time::Instant::now();
    let source = Source::new(set)?;
    let drawn = source.draw(plan.seed, plan.fields);
    let fields = Fields::<B>::new(&drawn, &device);
    let target = Target::new(&drawn.fields, source.modes(), &device);
    println!("{} fields in {:.1} s", plan.fields, start.elapsed().as_secs_f64());
    let some = |count: usize| &drawn.fields[..drawn.fields.len().min(count * CELLS)];
    progress::run(&mut trainer, &fields, &target, args.every, args.limit_s, |trainer| {
        trainer.save(&path, set.name())?;
        let matrices = folded(trainer, &device);
        let count = 2 * picture::COLUMNS;
        let samples = sample(&matrices, plan.seed + SAMPLES, count.max(1024), &device);
        Comparison::new(&samples, some(4096)).print();
        let sheets = [
            Sheet { name: "sample", fields: &samples[..count * CELLS] },
            Sheet { name: "simulated", fields: some(count) },
        ];
        let heading = format!("Spatial loss fields, {}", set.name());
        let note = format!("step {} of {}", trainer.step, plan.steps);
        picture::write(&args.out.join("samples.png"), &heading, &note, &sheets)
    })
}

/// The generator with the statistics of a large batch folded in.
fn folded<B: Backend>(trainer: &Trainer<B>, device: &B::Device) -> Vec<Tensor<B, 2>> {
    let weights = trainer.generator();
    let population = latents::<B>(trainer.plan.seed + POPULATION, POPULATION_SIZE, device);
    fold::fold(&weights, &fold::population(&weights, population))
}

fn export_task<B: Backend>(args: &ExportArgs) -> Result<()> {
    let device = B::Device::default();
    let set = args.training.set;
    let plan = args.training.plan();
    let trainer = Trainer::<B>::load(plan, &checkpoint_in(&args.from), set.name(), &device)?;
    let exact = folded(&trainer, &device);
    let mut file = Folded::new(&exact);
    let rounded = file.matrices::<B>(&device);
    let tried = latents::<B>(plan.seed + SAMPLES, 64, &device);
    let difference = generate(&exact, tried.clone(), Norm::Folded)
        - generate(&rounded, tried.clone(), Norm::Folded);
    let worst = difference.abs().max().into_data().to_vec::<f32>().expect("f32")[0];
    println!("f16 moves the output by at most {worst:.1e}");
    if worst.is_nan() || worst > F16_BOUND {
        bail!(
            "the file's generator differs from the trained one by {worst:.1e}: over {F16_BOUND:e}"
        );
    }
    let figures = measure::<B>(set, &rounded, &args.measure, plan.seed, &device)?;
    let words = [
        ("what", format!("generator of spatial loss fields, set {}", set.name())),
        ("seed", plan.seed.to_string()),
        ("steps", trainer.step.to_string()),
        ("command", args.trained_by.clone()),
        ("variogram error", format!("{:.3} at lags 2 to 20", figures.variogram)),
        ("reconstruction", format!("{:.2} dB rmse", figures.full)),
        ("from 10 %", format!("{:.2} dB rmse", figures.tenth)),
    ];
    file.words.extend(words.map(|(key, value)| (key.to_string(), value)));
    file.write(&args.weights)?;
    let one = tried.slice([0..1, 0..networks::LATENT]);
    let made = (generate(&rounded, one.clone(), Norm::Folded) - 1.0) * SPAN;
    let values = |data: TensorData| data.to_vec::<f32>().expect("f32");
    fold::write_reference(
        &args.reference,
        &values(one.into_data()),
        &values(made.into_data()),
        SIDE,
    )
}

fn evaluate_task<B: Backend>(args: &EvaluateArgs) -> Result<()> {
    let device = B::Device::default();
    let file = Folded::read(&args.weights)?;
    let mut words: Vec<_> = file.words.iter().collect();
    words.sort();
    words.iter().for_each(|(key, value)| println!("{key}: {value}"));
    let matrices = file.matrices::<B>(&device);
    measure::<B>(args.set, &matrices, &args.measure, args.seed, &device).map(drop)
}

struct Figures {
    variogram: f64,
    /// Rmse in dB with all cells seen, and with one in ten.
    full: f64,
    tenth: f64,
}

fn measure<B: Backend>(
    set: Set,
    matrices: &[Tensor<B, 2>],
    args: &Measure,
    seed: u64,
    device: &B::Device,
) -> Result<Figures> {
    if args.samples < 2 || args.fits == 0 {
        bail!("it takes --samples of at least 2 and --fits of at least 1");
    }
    let source = Source::new(set)?;
    let simulated = source.draw(seed + UNSEEN, args.samples.max(args.fits)).fields;
    let samples = sample(matrices, seed + SAMPLES, args.samples, device);
    let comparison = Comparison::new(&samples, &simulated);
    comparison.print();
    summarise(&simulated).print("simulator");
    summarise(&samples).print("samples");
    let fields = &simulated[..args.fits * CELLS];
    let rmse = |seen| reconstruct(matrices, fields, seen, args.fit_steps, device);
    let (full, tenth) = (rmse(1.0), rmse(0.1));
    println!("latents fitted to {} unseen fields: {full:.2} dB rmse", args.fits);
    println!("the same from 10 % of the cells: {tenth:.2} dB rmse");
    Ok(Figures { variogram: comparison.worst(), full, tenth })
}

fn picture_task(args: &PictureArgs) -> Result<()> {
    let device = Default::default();
    let mut rows = Vec::new();
    for (set, path) in [(Set::Broad, &args.broad), (Set::Narrow, &args.narrow)] {
        let matrices = Folded::read(path)?.matrices::<Flex>(&device);
        let made = sample(&matrices, args.seed + SAMPLES, picture::COLUMNS, &device);
        rows.push((format!("{}, generator", set.name()), made));
        let drawn = Source::new(set)?.draw(args.seed + UNSEEN, picture::COLUMNS).fields;
        rows.push((format!("{}, simulator", set.name()), drawn));
    }
    let sheets: Vec<_> = rows.iter().map(|(name, fields)| Sheet { name, fields }).collect();
    let note = "the first draws, not chosen";
    picture::write(&args.out, "Spatial loss fields, learned and simulated", note, &sheets)
}
