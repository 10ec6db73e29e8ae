//! The command line.

#[cfg(feature = "paper")]
mod bound;
mod calibration;
mod explore;
mod figures;
mod files;
mod models;
pub mod parse;
mod plot;
mod scenes;
mod shared;

use clap::{Parser, Subcommand};

#[cfg(feature = "paper")]
pub use bound::{BoundArgs, NetworkTerm};
pub use explore::ExploreArgs;
#[cfg(feature = "paper")]
pub use figures::ReproduceArgs;
pub use figures::{CompareArgs, ScoreArgs, SplitName, StudyArgs, ValidateArgs};
#[cfg(feature = "cuda")]
pub use files::GpuCheckArgs;
pub use files::{CompletionsArgs, ConvertArgs, InspectArgs, KindName, MethodsArgs};
pub use models::{AdviseArgs, CoverageArgs, EstimateArgs, FitArgs, PredictArgs, UpdateArgs};
pub use plot::{AxesName, ColoursName, LookArgs, PlotArgs};
pub use scenes::{DemoArgs, Psd, SenseArgs, SimulateArgs};
pub use shared::{DeviceName, FitChoice, RunArgs};

/// Draws the radio spectrum over space and frequency from a handful of sensors.
#[derive(Parser)]
#[command(name = "portolan", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// The tour: simulate, sense, estimate with several methods, score, draw
    Demo(DemoArgs),
    /// Make a map with a known truth: path loss, shadowing, smooth spectra
    Simulate(SimulateArgs),
    /// Take readings of a map with sensors
    Sense(SenseArgs),
    /// Estimate the whole map from readings: fit and predict in one
    Estimate(EstimateArgs),
    /// Fit a method to readings and keep what it found
    Fit(FitArgs),
    /// Ask a fitted model for power and spread at places, or for a map
    Predict(PredictArgs),
    /// Add readings to a fitted model; its law stays as it is
    Update(UpdateArgs),
    /// Say how much of the area lies above a level, and how surely
    Coverage(CoverageArgs),
    /// Look at readings, models and maps in a browser, and ask them questions
    Explore(ExploreArgs),
    /// Say how well methods would have predicted your own sensors
    Validate(ValidateArgs),
    /// Compare methods over many simulated maps, or over splits of a survey
    Study(StudyArgs),
    /// Compare an estimated map with the truth
    Score(ScoreArgs),
    /// Run several methods on the same readings and score them
    Compare(CompareArgs),
    /// Say where new sensors would help most
    Advise(AdviseArgs),
    /// Draw a map as PNG, SVG or PDF, or preview it in the terminal
    Plot(PlotArgs),
    /// Say what is in a file
    Inspect(InspectArgs),
    /// Convert between npz, csv and mat
    Convert(ConvertArgs),
    /// Run the paper's experiments again; a stopped run goes on where it was
    #[cfg(feature = "paper")]
    Reproduce(ReproduceArgs),
    /// List the methods with their options and defaults
    Methods(MethodsArgs),
    #[cfg(feature = "paper")]
    /// Work out the paper's covering number and recovery bounds
    Bound(BoundArgs),
    /// Compare every kernel of the CUDA engine with the processor
    #[cfg(feature = "cuda")]
    GpuCheck(GpuCheckArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
