//! The options of commands about files and the program itself: `inspect`, `convert`, `methods`,
//! `completions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::{ReadArgs, UnitName};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct InspectArgs {
    /// A map or readings (.npz, .csv, .mat, Wi-Fi trace)
    pub file: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum KindName {
    Map,
    Readings,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ConvertArgs {
    /// A map or readings (.npz, .csv, .mat, Wi-Fi trace)
    pub input: PathBuf,
    /// Where to write (.npz, .mat, .csv)
    pub output: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    /// Read a table as this, whatever it looks like
    #[arg(long = "as", value_enum)]
    pub kind: Option<KindName>,
    /// Unit of a written table [default: dbm, linear where a band holds a zero]
    #[arg(long, value_enum)]
    pub output_unit: Option<UnitName>,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
pub struct MethodsArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell to complete in
    pub shell: clap_complete::Shell,
}
