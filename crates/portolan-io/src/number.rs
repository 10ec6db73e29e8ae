//! Numbers of any width and byte order, turned into f64.

/// How the elements of an array are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementType {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl ElementType {
    pub fn size(self) -> usize {
        match self {
            ElementType::Bool | ElementType::I8 | ElementType::U8 => 1,
            ElementType::I16 | ElementType::U16 | ElementType::F16 => 2,
            ElementType::I32 | ElementType::U32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::U64 | ElementType::F64 => 8,
        }
    }

    /// Appends the numbers in `bytes`; a rest shorter than one number is left out.
    pub fn decode(self, big_endian: bool, bytes: &[u8], out: &mut Vec<f64>) {
        macro_rules! append {
            ($number:ty, $value:expr) => {{
                let value = $value;
                let (numbers, _) = bytes.as_chunks::<{ size_of::<$number>() }>();
                if big_endian {
                    out.extend(numbers.iter().map(|b| value(<$number>::from_be_bytes(*b))));
                } else {
                    out.extend(numbers.iter().map(|b| value(<$number>::from_le_bytes(*b))));
                }
            }};
        }
        match self {
            ElementType::Bool => out.extend(bytes.iter().map(|&b| f64::from(u8::from(b != 0)))),
            ElementType::I8 => append!(i8, f64::from),
            ElementType::U8 => append!(u8, f64::from),
            ElementType::I16 => append!(i16, f64::from),
            ElementType::U16 => append!(u16, f64::from),
            ElementType::I32 => append!(i32, f64::from),
            ElementType::U32 => append!(u32, f64::from),
            ElementType::I64 => append!(i64, |v| v as f64),
            ElementType::U64 => append!(u64, |v| v as f64),
            ElementType::F16 => append!(u16, half),
            ElementType::F32 => append!(f32, f64::from),
            ElementType::F64 => append!(f64, |v| v),
        }
    }
}

/// IEEE 754 binary16: 1 sign bit, 5 of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(kind: ElementType, big_endian: bool, bytes: &[u8]) -> Vec<f64> {
        let mut out = Vec::new();
        kind.decode(big_endian, bytes, &mut out);
        out
    }

    #[test]
    fn both_byte_orders() {
        assert_eq!(decode(ElementType::I16, false, &[0xfe, 0xff, 1, 0]), [-2.0, 1.0]);
        assert_eq!(decode(ElementType::I16, true, &[0xff, 0xfe, 0, 1]), [-2.0, 1.0]);
        assert_eq!(decode(ElementType::F64, true, &0.1f64.to_be_bytes()), [0.1]);
        assert_eq!(decode(ElementType::U64, false, &u64::MAX.to_le_bytes()), [u64::MAX as f64]);
        assert_eq!(decode(ElementType::Bool, false, &[0, 7]), [0.0, 1.0]);
    }

    #[test]
    fn halves() {
        for (bits, value) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333251953125), (1, 2f64.powi(-24))]
        {
            assert_eq!(half(bits), value);
        }
        assert_eq!(half(0x7c00), f64::INFINITY);
        assert!(half(0x7e00).is_nan());
    }
}
