//! The compiled kernels: PTX, compressed with gzip as `kernels/compile` leaves it. A device that is
//! opened gets the text.

use std::ffi::CString;
use std::io::{self, Read};

use flate2::read::GzDecoder;

/// Kernels for devices of compute capability 8.0 and later, which use no clusters.
pub(crate) const LAYERED: Kernels = Kernels(include_bytes!("../kernels/layered.ptx.gz"));
/// Kernels for clusters of blocks: 9.0 and later.
pub(crate) const RESIDENT: Kernels = Kernels(include_bytes!("../kernels/resident.ptx.gz"));

/// A set of kernels that a driver loads together.
#[derive(Clone, Copy)]
pub(crate) struct Kernels(&'static [u8]);

impl Kernels {
    /// The PTX, as the driver takes it.
    pub fn ptx(self) -> io::Result<CString> {
        let mut text = Vec::new();
        GzDecoder::new(self.0).read_to_end(&mut text)?;
        Ok(CString::new(text)?)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::LazyLock;

    /// Whether the compiled kernels for launches with clusters, or for those without, hold a kernel.
    pub(crate) fn are_compiled(kernel: &str, clusters: bool) -> bool {
        static TEXTS: LazyLock<[String; 2]> = LazyLock::new(|| [LAYERED, RESIDENT].map(text));
        TEXTS[usize::from(clusters)].contains(&format!(".visible .entry {kernel}("))
    }

    fn text(kernels: Kernels) -> String {
        kernels.ptx().unwrap().into_string().unwrap()
    }

    /// As `kernels/compile.py` computes it.
    fn fingerprint(source: &str) -> String {
        let all = include_str!("../kernels/common.cuh").bytes().chain(source.bytes());
        let value = all.fold(0xcbf2_9ce4_8422_2325u64, |value, byte| {
            (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("// {value:016x}\n")
    }

    /// The words that stand between two others.
    fn between<'a>(text: &'a str, before: &str, after: char) -> Vec<&'a str> {
        text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
    }

    #[test]
    fn compiled_kernels_are_those_of_their_sources() {
        for (kernels, source, count) in [
            (LAYERED, include_str!("../kernels/layered.cu"), 17),
            (RESIDENT, include_str!("../kernels/resident.cu"), 4),
        ] {
            let ptx = text(kernels);
            assert!(ptx.starts_with(&fingerprint(source)), "run kernels/compile");
            // Drivers of CUDA 12.0 read this version and earlier ones.
            assert!(ptx.contains("\n.version 8.0\n"));
            let declared = between(source, "extern \"C\" __global__ void ", '(');
            let mut declared: Vec<_> =
                declared.iter().filter_map(|name| name.split(' ').next_back()).collect();
            let mut compiled = between(&ptx, "\n.visible .entry ", '(');
            declared.sort_unstable();
            compiled.sort_unstable();
            assert_eq!(compiled, declared);
            assert_eq!(compiled.len(), count);
        }
    }
}
