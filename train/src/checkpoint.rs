//! Checkpoints: named f32 vectors and a few words of metadata in one safetensors file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// What a file holds.
#[derive(Default)]
pub struct Store {
    pub words: HashMap<String, String>,
    vectors: Vec<(String, Vec<u8>)>,
}

impl Store {
    pub fn put<B: Backend, const D: usize>(&mut self, name: &str, tensor: &Tensor<B, D>) {
        let values = tensor.to_data().to_vec::<f32>().expect("the backend computes in f32");
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.vectors.push((name.to_string(), bytes));
    }

    /// Vector `name`, which must have `len` values.
    pub fn get<B: Backend>(
        &self,
        name: &str,
        len: usize,
        device: &B::Device,
    ) -> Result<Tensor<B, 1>> {
        let (_, bytes) =
            self.vectors.iter().find(|(have, _)| have == name).ok_or_else(|| {
                anyhow!("the checkpoint has no {name}: it is from another program")
            })?;
        let values: Vec<f32> =
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        if values.len() != len {
            return Err(anyhow!(
                "{name} has {} values, {len} expected: the checkpoint is of other networks",
                values.len()
            ));
        }
        Ok(Tensor::from_data(TensorData::new(values, [len]), device))
    }

    pub fn word(&self, name: &str) -> Result<&str> {
        let word = self.words.get(name).map(String::as_str);
        word.ok_or_else(|| anyhow!("the checkpoint does not say its {name}"))
    }

    /// Writes beside the old file and renames, so that a kill leaves one of the two whole.
    pub fn write(self, path: &Path) -> Result<()> {
        let views = self.vectors.iter().map(|(name, bytes)| {
            let view = TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes);
            Ok((name.clone(), view?))
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        let bytes = safetensors::serialize(views, Some(self.words.clone()))?;
        let draft = path.with_extension("draft");
        std::fs::write(&draft, bytes).with_context(|| format!("cannot write {draft:?}"))?;
        std::fs::rename(&draft, path).with_context(|| format!("cannot write {path:?}"))
    }

    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {path:?}"))?;
        let (_, header) = SafeTensors::read_metadata(&bytes)?;
        let words = header.metadata().clone().unwrap_or_default();
        let tensors = SafeTensors::deserialize(&bytes)?;
        let vectors =
            tensors.iter().map(|(name, view)| (name.to_string(), view.data().to_vec())).collect();
        Ok(Self { words, vectors })
    }
}
