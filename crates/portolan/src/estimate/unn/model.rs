//! What a fit of the decoder leaves: drawn again wherever the model is asked.

use ndarray::{Array2, Array3};

use super::KIND;
use super::options::{NORMS, OUTPUTS, PADS, UPSAMPLINGS};
use crate::error::{EstimateError, InputError};
use crate::estimate::btd::unit_norm;
use crate::grid::Grid;
use crate::model::{Archive, Drawing, DrawnGrid, damaged};
use portolan_decoder::{Decoder, Shape};

/// The result of the fit: a network, a latent for each emitter, and PSDs in multiples of a unit.
pub(in crate::estimate) struct DecodedSlfs {
    pub(super) shape: Shape,
    pub(super) bands: usize,
    pub(super) params: Vec<f32>,
    pub(super) latents: Vec<f32>,
    /// Emitters x bands.
    pub(super) psd: Vec<f32>,
    pub(super) unit: f64,
}

impl DecodedSlfs {
    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        Ok(Self {
            shape: load_shape(archive)?,
            bands,
            params: archive.single("params")?,
            latents: archive.single("latents")?,
            psd: archive.single("psd")?,
            unit: archive.number("unit")?,
        })
    }
}

impl DecodedSlfs {
    /// Writes members of one shape, one after the other.
    pub fn save_all(members: &[Self], archive: &mut Archive) {
        let joined =
            |of: fn(&Self) -> &[f32]| members.iter().flat_map(of).copied().collect::<Vec<f32>>();
        save_shape(&members[0].shape, archive);
        archive.put_single("params", &joined(|m| &m.params));
        archive.put_single("latents", &joined(|m| &m.latents));
        archive.put_single("psd", &joined(|m| &m.psd));
        archive.put_vector("unit", &members.iter().map(|m| m.unit).collect::<Vec<f64>>());
    }

    /// Reads what [`Self::save_all`] wrote.
    pub fn load_all(
        archive: &Archive,
        bands: usize,
        members: usize,
    ) -> Result<Vec<Self>, EstimateError> {
        let shape = load_shape(archive)?;
        let (params, latents) = (archive.single("params")?, archive.single("latents")?);
        let (psd, unit) = (archive.single("psd")?, archive.finite("unit")?);
        let sound = unit.len() == members
            && [&params, &latents, &psd].iter().all(|v| v.len() % members == 0 && !v.is_empty());
        if !sound {
            return Err(damaged("members", "does not fit the others").into());
        }
        let part = |all: &[f32], m: usize| {
            let each = all.len() / members;
            all[m * each..(m + 1) * each].to_vec()
        };
        let member = |m: usize| Self {
            shape,
            bands,
            params: part(&params, m),
            latents: part(&latents, m),
            psd: part(&psd, m),
            unit: unit[m],
        };
        Ok((0..members).map(member).collect())
    }
}

impl Drawing for DecodedSlfs {
    fn kind(&self) -> &'static str {
        KIND
    }

    /// SLFs of unit norm, PSDs in the readings' own unit.
    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError> {
        let width = self.bands;
        let emitters = self.psd.len() / width;
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let fits = self.psd.len() == emitters * width
            && self.params.len() == decoder.parameters()
            && self.latents.len() == emitters * decoder.latent_len();
        if !fits {
            return Err(damaged("params", "does not fit the decoder's shape").into());
        }
        let mut workspace = decoder.workspace();
        decoder.forward(&self.params, &self.latents, &mut workspace);
        let drawn = workspace.slf().iter().map(|v| f64::from(*v)).collect();
        let slf = Array3::from_shape_vec((emitters, grid.rows(), grid.cols()), drawn)
            .expect("the decoder draws the grid");
        let psd = Array2::from_shape_fn((emitters, self.bands), |(r, k)| {
            self.unit * f64::from(self.psd[r * width + k])
        });
        unit_norm(slf, psd)
    }

    fn save(&self, archive: &mut Archive) {
        save_shape(&self.shape, archive);
        archive.put_single("params", &self.params);
        archive.put_single("latents", &self.latents);
        archive.put_single("psd", &self.psd);
        archive.put_number("unit", self.unit);
    }
}

/// A decoder's shape as arrays of a model.
pub fn save_shape(shape: &Shape, archive: &mut Archive) {
    let Shape { blocks, keep, channels, kernel, outputs, .. } = *shape;
    archive.put_whole("shape", [blocks, keep, channels, kernel, outputs]);
    archive.put_choice("upsample", &UPSAMPLINGS, shape.upsampling);
    archive.put_choice("norm", &NORMS, shape.normalisation);
    archive.put_choice("pad", &PADS, shape.padding);
    archive.put_choice("output", &OUTPUTS, shape.output);
}

/// The shape that [`save_shape`] wrote.
pub fn load_shape(archive: &Archive) -> Result<Shape, InputError> {
    let &[blocks, keep, channels, kernel, outputs] = &archive.whole("shape")?[..] else {
        return Err(damaged("shape", "is not five numbers"));
    };
    if blocks > 7 || keep > 7 || channels > 128 || kernel > 7 || outputs > 1 << 16 {
        return Err(damaged("shape", "is of no decoder"));
    }
    Ok(Shape {
        blocks,
        keep,
        channels,
        kernel,
        outputs,
        upsampling: archive.choice("upsample", &UPSAMPLINGS)?,
        normalisation: archive.choice("norm", &NORMS)?,
        padding: archive.choice("pad", &PADS)?,
        output: archive.choice("output", &OUTPUTS)?,
    })
}
