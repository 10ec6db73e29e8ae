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
pub use models::{
    AdviseArgs, ChangesArgs, CoverageArgs, DifferenceArgs, EstimateArgs, FitArgs, LocateArgs,
    PredictArgs, UpdateArgs,
};
pub use plot::{AxesName, ColoursName, LookArgs, PlotArgs};
pub use scenes::{DemoArgs, Psd, SenseArgs, SimulateArgs};
pub use shared::{DeviceName, FitChoice, MomentArgs, ObstacleArgs, ReadArgs, RunArgs};

/// Draws maps of radio power over space and frequency from readings of a few sensors.
#[derive(Parser)]
#[command(name = "portolan", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Demonstration: simulate, sense, estimate with several methods, score, draw
    Demo(DemoArgs),
    /// Make a map with a known truth: path loss, shadowing, smooth spectra
    Simulate(SimulateArgs),
    /// Take readings of a map with sensors
    Sense(SenseArgs),
    /// Estimate the whole map from readings: fit and predict in one
    Estimate(EstimateArgs),
    /// Fit a method to readings and save the model
    Fit(FitArgs),
    /// Predict power and its standard deviation at places, or draw a map, from a fitted model
    Predict(PredictArgs),
    /// Add readings to a fitted model without refitting its law
    Update(UpdateArgs),
    /// Say what new readings show to have changed: a band's level, its shape, gone or new
    Changes(ChangesArgs),
    /// Compare two maps or models of one area: their difference, and where it is significant
    Difference(DifferenceArgs),
    /// Find transmitters: their places, with regions of 50 and 90 %
    Locate(LocateArgs),
    /// Compute the area above a level, with 50, 90 and 99 % certainty
    Coverage(CoverageArgs),
    /// Explore readings, models and maps in a browser
    Explore(ExploreArgs),
    /// Cross-validate methods on your own sensors
    Validate(ValidateArgs),
    /// Compare methods over many simulated maps, or over splits of a survey
    Study(StudyArgs),
    /// Compare an estimated map with the truth
    Score(ScoreArgs),
    /// Run several methods on the same readings and score them
    Compare(CompareArgs),
    /// List the places where new sensors reduce the variance most
    Advise(AdviseArgs),
    /// Draw a map as PNG, SVG or PDF, or preview it in the terminal
    Plot(PlotArgs),
    /// Show what a file contains
    Inspect(InspectArgs),
    /// Convert between npz, csv and mat
    Convert(ConvertArgs),
    /// Run the paper's experiments; an interrupted run resumes
    #[cfg(feature = "paper")]
    Reproduce(ReproduceArgs),
    /// List the methods with their options and defaults
    Methods(MethodsArgs),
    #[cfg(feature = "paper")]
    /// Compute the paper's covering number and recovery bounds
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
