//! The options of the methods with a decoder, as text.

use super::recipe::{Lesson, StartIterations, Unn, UnnStart};
use crate::error::InputError;
use crate::estimate::bands::{Domain, OFFSET};
use crate::estimate::{Method, OptionSpec, Options};
use portolan_decoder::{Normalisation, Output, Padding, Shape, Upsampling};

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "recipe", default: "default (our measured best)", takes: "default | paper" },
    OptionSpec {
        name: "start",
        default: "default = unmixed (ours); btd in recipe=paper",
        takes: "default | uniform | xavier | btd | interpolation | unmixed",
    },
    OptionSpec {
        name: "tolerance",
        default: "0 (ours); 1e-3 in recipe=paper",
        takes: "the change of the loss that counts as none; 0 = the iterations alone decide",
    },
    OptionSpec {
        name: "ending",
        default: "text (ours); box in recipe=paper",
        takes: "text (the iterations or a relative change below tolerance) | box (the iterations \
                and a change below tolerance)",
    },
    OptionSpec {
        name: "most_iterations",
        default: "3000; 500 for levels",
        takes: "1 to 1000000: where ending=box stops at last",
    },
    OptionSpec { name: "channels", default: "6 (paper)", takes: "1 to 128" },
    OptionSpec {
        name: "output",
        default: "exp (ours); sigmoid from a random start and in recipe=paper",
        takes: "sigmoid | exp",
    },
    OptionSpec {
        name: "start_learns",
        default: "slf (ours); map in recipe=paper",
        takes: "slf (the start's SLFs; its PSDs are kept) | map (the start's map, PSDs too)",
    },
    OptionSpec {
        name: "start_domain",
        default: "log",
        takes: "log | linear: how a map is learnt (start_learns=map)",
    },
    OptionSpec {
        name: "start_iterations",
        default: "3000, with noise 1000 (ours); 1500 in recipe=paper; fewer on large grids",
        takes: "how long the decoder learns what the start says",
    },
    OptionSpec {
        name: "lr_start",
        default: "0.03, falling (ours); 0.05 in recipe=paper",
        takes: "a number above 0: rate of the network while it learns the start",
    },
    OptionSpec {
        name: "lr_start_psd",
        default: "as lr_start",
        takes: "a number, 0 or more: rate of the PSDs then (start_learns=map)",
    },
    OptionSpec {
        name: "rates",
        default: "text",
        takes: "text | box: which of the paper's two assignments of .05 and .001 (recipe=paper)",
    },
    OptionSpec {
        name: "lr_network",
        default: "0.005, falling (ours); 0.05 from a random start; as rates in recipe=paper",
        takes: "a number above 0",
    },
    OptionSpec {
        name: "lr_psd",
        default: "0.002, falling (ours); 0.01 from a random start; as rates in recipe=paper",
        takes: "a number, 0 or more",
    },
    OptionSpec {
        name: "members",
        default: "8 (ours); 1 with fewer than 32 places, on grids of more than 65536 cells, from \
                  a random start and in recipe=paper",
        takes: "1 to 1000: fits that are averaged; from 2 on they have a spread",
    },
    OptionSpec { name: "lambda_psd", default: "1e-3 (paper)", takes: "a number, 0 or more" },
    OFFSET,
];
pub(in crate::estimate) const OPTIONS: &[&[OptionSpec]] = &[OWN, DECODER_OPTIONS];

/// The options that every method with a decoder has, with the same defaults.
pub const DECODER_OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "iterations", default: "300 (paper)", takes: "1 to 1000000" },
    OptionSpec { name: "lambda_latent", default: "1e-3 (paper)", takes: "a number, 0 or more" },
    OptionSpec { name: "lambda_network", default: "1e-4 (paper)", takes: "a number, 0 or more" },
    OptionSpec { name: "blocks", default: "4 (paper)", takes: "1 to 7" },
    OptionSpec {
        name: "keep",
        default: "0 (paper)",
        takes: "0 to 7: further blocks, after those that enlarge, that keep the size",
    },
    OptionSpec { name: "kernel", default: "3 (paper)", takes: "1 to 7" },
    OptionSpec {
        name: "upsample",
        default: "bilinear (paper)",
        takes: "bilinear | nearest | none",
    },
    OptionSpec {
        name: "norm",
        default: "batch (the paper's table)",
        takes: "batch | sample | none",
    },
    OptionSpec {
        name: "pad",
        default: "reflect (as in the deep decoder)",
        takes: "reflect | zero",
    },
];

pub(in crate::estimate) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let paper = options.choice("recipe", &[("default", false), ("paper", true)])?.unwrap_or(false);
    let starts = [
        ("default", None),
        ("uniform", Some(UnnStart::Uniform)),
        ("xavier", Some(UnnStart::Xavier)),
        ("btd", Some(UnnStart::Btd)),
        ("interpolation", Some(UnnStart::Interpolation)),
        ("unmixed", Some(UnnStart::Unmixed)),
    ];
    let named = options.choice("start", &starts)?.flatten();
    let mut usual = match paper {
        true => Unn::paper(named.unwrap_or(UnnStart::Btd)),
        false => Unn::from_start(named.unwrap_or_default()),
    };
    if let Some(boxed) = options.choice("rates", &[("text", false), ("box", true)])? {
        if !paper {
            return Err(InputError::Request("rates belongs to recipe=paper".into()));
        }
        let (more, less) = (0.05, 0.001);
        (usual.rate_network, usual.rate_psd) = if boxed { (less, more) } else { (more, less) };
    }
    let rates = f64::MIN_POSITIVE..f64::INFINITY;
    let weight = |name: &str, default: f64| -> Result<f64, InputError> {
        Ok(options.number(name, 0.0..f64::INFINITY)?.unwrap_or(default))
    };
    let mut start_fit = usual.start_fit;
    if let Some(rate) = options.number("lr_start", rates.clone())? {
        (start_fit.rate_network, start_fit.rate_psd) = (rate, rate);
    }
    start_fit.rate_psd = weight("lr_start_psd", start_fit.rate_psd)?;
    if let Some(iterations) = options.count("start_iterations", 0..=1_000_000)? {
        start_fit.iterations = StartIterations::Exactly(iterations);
    }
    let learns = [("slf", Lesson::Slfs), ("map", Lesson::LogMap)];
    start_fit.lesson = options.choice("start_learns", &learns)?.unwrap_or(start_fit.lesson);
    if let Some(domain) =
        options.choice("start_domain", &[("log", Lesson::LogMap), ("linear", Lesson::LinearMap)])?
    {
        if start_fit.lesson == Lesson::Slfs {
            return Err(InputError::Request("start_domain needs start_learns=map".into()));
        }
        start_fit.lesson = domain;
    }
    let endings = [("text", false), ("box", true)];
    Ok(Box::new(Unn {
        shape: shape_from_options(options, usual.shape.output)?,
        start_fit,
        iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(usual.iterations),
        tolerance: weight("tolerance", usual.tolerance)?,
        until_calm: options.choice("ending", &endings)?.unwrap_or(usual.until_calm),
        most_iterations: options.count("most_iterations", 1..=1_000_000)?,
        rate_network: options.number("lr_network", rates)?.unwrap_or(usual.rate_network),
        rate_psd: weight("lr_psd", usual.rate_psd)?,
        lambda_latent: weight("lambda_latent", usual.lambda_latent)?,
        lambda_psd: weight("lambda_psd", usual.lambda_psd)?,
        lambda_network: weight("lambda_network", usual.lambda_network)?,
        offset: Domain::log_from_options(options)?,
        members: options.count("members", 1..=1000)?.or(usual.members),
        engine: options.engine(),
        start_insisted: named.is_some(),
        ..usual
    }))
}

/// The decoder's shape from the options that every method with a decoder has.
pub fn shape_from_options(options: &Options, output: Output) -> Result<Shape, InputError> {
    let paper = Shape::default();
    Ok(Shape {
        blocks: options.count("blocks", 1..=7)?.unwrap_or(paper.blocks),
        keep: options.count("keep", 0..=7)?.unwrap_or(paper.keep),
        channels: options.count("channels", 1..=128)?.unwrap_or(paper.channels),
        kernel: options.count("kernel", 1..=7)?.unwrap_or(paper.kernel),
        upsampling: options.choice("upsample", &UPSAMPLINGS)?.unwrap_or(paper.upsampling),
        normalisation: options.choice("norm", &NORMS)?.unwrap_or(paper.normalisation),
        padding: options.choice("pad", &PADS)?.unwrap_or(paper.padding),
        output: options.choice("output", &OUTPUTS)?.unwrap_or(output),
        outputs: 1,
    })
}

pub(super) const UPSAMPLINGS: [(&str, Upsampling); 3] = [
    ("bilinear", Upsampling::Bilinear),
    ("nearest", Upsampling::Nearest),
    ("none", Upsampling::None),
];
pub(super) const NORMS: [(&str, Normalisation); 3] = [
    ("batch", Normalisation::Batch),
    ("sample", Normalisation::PerSample),
    ("none", Normalisation::None),
];
pub(super) const PADS: [(&str, Padding); 2] =
    [("reflect", Padding::Reflect), ("zero", Padding::Zero)];
pub(super) const OUTPUTS: [(&str, Output); 2] =
    [("sigmoid", Output::Sigmoid), ("exp", Output::Exponential)];
