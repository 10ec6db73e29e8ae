//! io

pub mod picture;
