//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::fields::Set;
use crate::train::Plan;

#[derive(Parser)]
#[command(version, about)]
pub struct Cli {
    #[command(subcommand)]
    pub task: Task,
}

#[derive(Subcommand)]
pub enum Task {
    /// Train; writes checkpoint.safetensors and samples.png into a folder
    Train(TrainArgs),
    /// Fold a checkpoint's generator into the file that ships, with its figures
    Export(ExportArgs),
    /// Print how a shipped file compares with the simulator
    Evaluate(EvaluateArgs),
    /// Draw samples of shipped files beside the simulator's
    Picture(PictureArgs),
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Processor {
    Cpu,
    /// Needs a build with the feature `cuda`
    Cuda,
}

#[derive(Args, Clone)]
pub struct Training {
    #[arg(long)]
    pub set: Set,
    /// Simulated fields to train on
    #[arg(long, default_value_t = 262_144)]
    pub fields: usize,
    #[arg(long, default_value_t = 10_000)]
    pub steps: u64,
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(2..=4096))]
    pub batch: u16,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Weight of the critic's verdict on samples
    #[arg(long, default_value_t = 0.05)]
    pub adversarial: f64,
    /// Weight of the variogram's relative squared error
    #[arg(long, default_value_t = 5.0)]
    pub variogram: f64,
    /// Learning rate of the generator
    #[arg(long, default_value_t = 2e-3)]
    pub rate: f64,
    #[arg(long, default_value = "cpu")]
    pub backend: Processor,
}

impl Training {
    pub fn plan(&self) -> Plan {
        Plan {
            fields: self.fields,
            steps: self.steps,
            batch: usize::from(self.batch),
            seed: self.seed,
            adversarial: self.adversarial,
            variogram: self.variogram,
            rate: self.rate,
        }
    }
}

#[derive(Args)]
pub struct TrainArgs {
    #[command(flatten)]
    pub training: Training,
    /// Folder for the checkpoint and the samples
    #[arg(long)]
    pub out: PathBuf,
    /// Go on from the folder's checkpoint if it has one
    #[arg(long)]
    pub resume: bool,
    /// Steps between progress lines
    #[arg(long, default_value_t = 100)]
    pub every: u64,
    /// Stop after so many seconds, with a checkpoint
    #[arg(long, default_value_t = f64::INFINITY)]
    pub limit_s: f64,
}

#[derive(Args)]
pub struct Measure {
    /// Samples and simulated fields to compare
    #[arg(long, default_value_t = 4096)]
    pub samples: usize,
    /// Unseen fields to fit latents to
    #[arg(long, default_value_t = 64)]
    pub fits: usize,
    /// Steps of each fit
    #[arg(long, default_value_t = 400)]
    pub fit_steps: u64,
}

#[derive(Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub training: Training,
    #[command(flatten)]
    pub measure: Measure,
    /// The folder given to train
    #[arg(long)]
    pub from: PathBuf,
    /// The file to write
    #[arg(long)]
    pub weights: PathBuf,
    /// A latent and its field, for tests of other readers
    #[arg(long)]
    pub reference: PathBuf,
    /// The command that trained, for the file's metadata
    #[arg(long, default_value = "")]
    pub trained_by: String,
}

#[derive(Args)]
pub struct EvaluateArgs {
    #[arg(long)]
    pub set: Set,
    #[command(flatten)]
    pub measure: Measure,
    #[arg(long)]
    pub weights: PathBuf,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[arg(long, default_value = "cpu")]
    pub backend: Processor,
}

#[derive(Args)]
pub struct PictureArgs {
    #[arg(long)]
    pub broad: PathBuf,
    #[arg(long)]
    pub narrow: PathBuf,
    #[arg(long)]
    pub out: PathBuf,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
