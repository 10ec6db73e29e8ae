//! From what makes blocks of a map to what writes them: the next block is made while the one before is
//! encoded and written by one thread. Two blocks are held at most.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, scope};

use crate::error::{IoError, Result};

/// Hands every block to `write`, which runs on a thread of its own. Nothing is made or written any
/// more once either side fails.
pub(crate) fn write_blocks<B: Send, E: From<IoError>>(
    path: &Path,
    blocks: impl Iterator<Item = std::result::Result<B, E>>,
    mut write: impl FnMut(B) -> Result<()> + Send,
) -> std::result::Result<(), E> {
    scope(|scope| {
        let (give, taken) = sync_channel::<B>(0);
        let writer = Builder::new()
            .name("writer".into())
            .spawn_scoped(scope, move || taken.into_iter().try_for_each(&mut write))
            .map_err(|source| IoError::Write { path: path.to_owned(), source })?;
        let make = || {
            for block in blocks {
                // Only a writer that failed takes no more.
                if give.send(block?).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let made = make();
        drop(give);
        writer.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        made
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    fn run(
        blocks: impl Iterator<Item = Result<usize>>,
        write: impl FnMut(usize) -> Result<()> + Send,
    ) -> Result<()> {
        write_blocks(Path::new("map.tif"), blocks, write)
    }

    fn full() -> IoError {
        IoError::Write { path: "map.tif".into(), source: std::io::ErrorKind::StorageFull.into() }
    }

    #[test]
    fn a_block_is_made_while_the_one_before_is_written() {
        // Both sides wait for each other: one after the other they would wait for ever.
        let (meet, mut written) = (Barrier::new(2), Vec::new());
        let blocks = (0..3).map(|block| {
            if block > 0 {
                meet.wait();
            }
            Ok(block)
        });
        run(blocks, |block| {
            if block < 2 {
                meet.wait();
            }
            written.push(block);
            Ok(())
        })
        .unwrap();
        assert_eq!(written, [0, 1, 2]);
    }

    #[test]
    fn a_failed_write_ends_the_making() {
        let mut made = 0;
        let blocks = (0..100).map(|block| {
            made += 1;
            Ok(block)
        });
        let error = run(blocks, |block| if block == 3 { Err(full()) } else { Ok(()) }).unwrap_err();
        assert!(error.to_string().contains("writing failed"), "{error}");
        assert!(made < 7, "{made}");
    }

    #[test]
    fn a_failed_block_ends_the_writing() {
        let mut written = Vec::new();
        let blocks = (0..9).map(|block| if block == 2 { Err(full()) } else { Ok(block) });
        let slow = |block| {
            std::thread::sleep(Duration::from_millis(5));
            written.push(block);
            Ok(())
        };
        run(blocks, slow).unwrap_err();
        assert_eq!(written, [0, 1]);
    }
}
