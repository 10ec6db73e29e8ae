//! What commands that draw share: how a picture looks, and the file that it becomes.

use std::path::Path;

use portolan_io::picture::{
    Axes, ColourMap, Layer, Look, PictureKind, Scene, Typeface, Underlay, read_plan,
};
use portolan_io::{check_output, write_bytes};

use crate::args::{AxesName, ColoursName, LookArgs};
use crate::failure::Failure;
use crate::output::{say, warn};
use crate::watch::check_interrupt;

/// How much of what lies under it a map hides, where it is not said.
const OPACITY: f64 = 0.65;

/// Refuses a name that is no picture's, and an output that cannot be written.
pub fn kind_of(output: &Path, force: bool) -> Result<PictureKind, Failure> {
    let ending = output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let kind = PictureKind::of_ending(ending).ok_or_else(|| {
        Failure::input(format!("{}: expected a .png, .svg or .pdf name", output.display()))
    })?;
    check_output(output, force)?;
    Ok(kind)
}

/// The look that was asked for.
pub fn look(args: &LookArgs, layer: Layer) -> Result<Look, Failure> {
    let levels = |levels: &Option<crate::args::parse::Levels>| {
        levels.as_ref().map(|levels| levels.to_vec()).unwrap_or_default()
    };
    let under = args.under.as_ref().map(|path| underlay(args, path)).transpose()?;
    let opacity = args.opacity.unwrap_or(OPACITY);
    Ok(Look {
        axes: axes(args),
        layer,
        colours: match args.colours {
            ColoursName::Viridis => ColourMap::Power,
            ColoursName::Cividis => ColourMap::Cividis,
            ColoursName::Magma => ColourMap::Spread,
        },
        range: args.range,
        levels: levels(&args.levels),
        contours: levels(&args.contours),
        opacity: if under.is_some() { opacity } else { 1.0 },
        under,
        typeface: args.font.as_deref().map_or_else(|| Ok(Typeface::new()), Typeface::from_file)?,
    })
}

pub fn axes(args: &LookArgs) -> Axes {
    match args.axes {
        AxesName::Xy => Axes::Xy,
        AxesName::Rows => Axes::Rows,
    }
}

fn underlay(args: &LookArgs, path: &Path) -> Result<Underlay, Failure> {
    if args.extent.is_none() && args.control.is_none() {
        let name = path.display();
        let message = format!("--under {name}: say where it lies with --extent or --control");
        return Err(Failure::input(message));
    }
    let image = read_plan(path)?;
    let placed = match (args.extent, &args.control) {
        (Some(region), _) => Some(Underlay::covering(image, region)),
        (None, Some(points)) => Underlay::through(image, points),
        (None, None) => None,
    };
    placed.ok_or_else(|| {
        Failure::input("--control: the three points lie on a line, expected a triangle")
    })
}

/// Says which letters no font has, once.
fn warn_missing(typeface: &Typeface) {
    let missing: Vec<String> =
        typeface.missing().iter().take(12).map(|c| format!("'{}'", c.escape_debug())).collect();
    if !missing.is_empty() {
        let letters = missing.join(", ");
        warn(&[format!("no font has {letters}: name one that has them with --font FILE.ttf")]);
    }
}

/// Writes a scene in our own words as the picture that its name asks for.
pub fn draw(output: &Path, scene: &Scene, force: bool) -> Result<(), Failure> {
    save(output, kind_of(output, force)?, scene, &Typeface::new(), None, force)
}

/// Writes a scene as the picture that its name asks for.
pub fn save(
    output: &Path,
    kind: PictureKind,
    scene: &Scene,
    typeface: &Typeface,
    width: Option<u32>,
    force: bool,
) -> Result<(), Failure> {
    warn_missing(typeface);
    let (bytes, width) = kind.bytes(scene, width)?;
    let unit = kind.unit();
    check_interrupt()?;
    write_bytes(output, &bytes, force)?;
    let height = scene.height * width / scene.width;
    say(&format!("{}: {width:.0} x {height:.0} {unit}", output.display()));
    Ok(())
}
