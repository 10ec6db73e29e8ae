//! The options of `portolan study calibration` alone.

use clap::Args;

#[derive(Args)]
pub struct CalibrationArgs {
    /// Calibration: what surveys are drawn from: process:RANGE (a Gaussian process with this range
    /// in metres), path (path loss with shadowing) [default: process:20,process:60,path]
    #[arg(long, value_name = "TRUTH,..", value_delimiter = ',')]
    pub truths: Option<Vec<String>>,
    /// Calibration: standard deviations of the readings' noise in dB [default: 0,1,3,5]
    #[arg(long, value_name = "DB,..", value_delimiter = ',')]
    pub noise: Option<Vec<f64>>,
    /// Calibration: numbers of bands, each a row of its own [default: 1,2,4,16]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub bands_each: Option<Vec<usize>>,
}

impl CalibrationArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.truths.is_some(), "--truths"),
            (self.noise.is_some(), "--noise"),
            (self.bands_each.is_some(), "--bands-each"),
        ];
        given.iter().find(|(given, _)| *given).map(|(_, name)| *name)
    }
}
