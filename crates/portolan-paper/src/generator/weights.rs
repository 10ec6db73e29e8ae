//! Weights as they are shipped: safetensors in half precision, batch norm folded into one scale and
//! shift per channel.

use safetensors::{Dtype, SafeTensors};

use portolan::InputError;

/// A transposed convolution with kernel 4.
pub(super) struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    /// (input, output, row, column), times the scale of its output.
    pub weight: Vec<f32>,
    pub shift: Vec<f32>,
}

impl Layer {
    /// Numbers of a kernel.
    pub const AREA: usize = 16;

    pub fn at(&self, input: usize, output: usize, row: usize, col: usize) -> f32 {
        self.weight[(input * self.outputs + output) * Self::AREA + 4 * row + col]
    }
}

fn unusable(what: impl std::fmt::Display) -> InputError {
    InputError::Request(format!("the generator's weights cannot be used: {what}"))
}

/// A tensor as f32, with its shape.
fn tensor(file: &SafeTensors<'_>, name: &str) -> Result<(Vec<usize>, Vec<f32>), InputError> {
    let view = file.tensor(name).map_err(|e| unusable(format!("{name}: {e}")))?;
    let bytes = view.data();
    let values: Vec<f32> = match view.dtype() {
        Dtype::F16 => {
            bytes.as_chunks().0.iter().map(|b| from_half(u16::from_le_bytes(*b))).collect()
        }
        Dtype::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        other => return Err(unusable(format!("{name} is {other:?}, expected F16 or F32"))),
    };
    if values.iter().any(|v| !v.is_finite()) {
        return Err(unusable(format!("{name} is not finite")));
    }
    Ok((view.shape().to_vec(), values))
}

/// One number for each output.
fn per_output(file: &SafeTensors<'_>, name: &str, outputs: usize) -> Result<Vec<f32>, InputError> {
    let (shape, values) = tensor(file, name)?;
    if shape != [outputs] {
        return Err(unusable(format!("{name} has shape {shape:?}, expected [{outputs}]")));
    }
    Ok(values)
}

/// All layers and the span, checked against each other.
pub(super) fn parse(bytes: &[u8]) -> Result<(Vec<Layer>, f32), InputError> {
    let file = SafeTensors::deserialize(bytes).map_err(unusable)?;
    let span = per_output(&file, "span", 1)?[0];
    if span <= 0.0 {
        return Err(unusable(format!("a span of {span} in ln power")));
    }
    let count = (0..).take_while(|i| file.tensor(&format!("layer{i}.weight")).is_ok()).count();
    if !(3..=8).contains(&count) {
        return Err(unusable(format!("{count} layers, expected 3 to 8")));
    }
    let mut layers: Vec<Layer> = Vec::with_capacity(count);
    for i in 0..count {
        let (shape, mut weight) = tensor(&file, &format!("layer{i}.weight"))?;
        let (inputs, outputs) = match shape[..] {
            [inputs, outputs, 4, 4] if inputs > 0 && outputs > 0 => (inputs, outputs),
            _ => return Err(unusable(format!("layer{i}.weight has shape {shape:?}"))),
        };
        let given = layers.last().map_or(inputs, |before| before.outputs);
        let last = i + 1 == count;
        if inputs != given || (last && outputs != 1) {
            return Err(unusable(format!("layer{i}.weight has shape {shape:?}")));
        }
        let shift = if last {
            per_output(&file, &format!("layer{i}.bias"), 1)?
        } else {
            let scale = per_output(&file, &format!("layer{i}.scale"), outputs)?;
            for (k, weight) in weight.chunks_exact_mut(Layer::AREA).enumerate() {
                weight.iter_mut().for_each(|w| *w *= scale[k % outputs]);
            }
            per_output(&file, &format!("layer{i}.shift"), outputs)?
        };
        layers.push(Layer { inputs, outputs, weight, shift });
    }
    Ok((layers, span))
}

/// IEEE half precision to single, exactly.
fn from_half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_read_exactly() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(from_half(bits).to_bits(), f32::to_bits(value), "{bits:04x}");
        }
        assert!(from_half(0x7e00).is_nan());
    }
}
