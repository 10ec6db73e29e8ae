//! An iteration of a fit allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use portolan_decoder::adam::Adam;
use portolan_decoder::{Decoder, Shape};

struct Counting;

thread_local! {
    /// Of this thread: the test harness has one of its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_iteration_allocates_nothing() {
    for (rows, cols, outputs) in [(64, 64, 1), (34, 14, 1), (160, 150, 1), (34, 14, 5)] {
        let shape = Shape { outputs, ..Shape::default() };
        let decoder = Decoder::new(&shape, rows, cols, 4).unwrap().parallel(false);
        let mut params = vec![0.1; decoder.parameters()];
        params.iter_mut().enumerate().for_each(|(i, p)| *p *= (i % 7) as f32 - 3.0);
        let latents: Vec<f32> = (0..4 * decoder.latent_len()).map(|i| (i % 5) as f32).collect();
        let cells: Vec<usize> = (0..rows * cols).step_by(9).collect();
        let at = decoder.readout(&cells).unwrap();
        let mut ws = decoder.workspace();
        let (mut dp, mut dz) = (params.clone(), latents.clone());
        let upstream = vec![0.1; 4 * outputs * cells.len()];
        let dense = vec![0.1; 4 * outputs * rows * cols];
        let mut adam = Adam::new(params.len());
        let mut pass = || {
            decoder.forward_at(&params, &latents, &at, &mut ws);
            decoder.backward_at(&params, &at, &upstream, &mut ws, &mut dp, &mut dz);
            decoder.forward(&params, &latents, &mut ws);
            decoder.backward(&params, &dense, &mut ws, &mut dp, &mut dz);
            adam.step(0.05, &mut params, &dp);
        };
        pass();
        let before = ALLOCATIONS.get();
        pass();
        assert_eq!(ALLOCATIONS.get(), before);
    }
}
