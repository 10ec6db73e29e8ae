//! The server over a real socket: what it answers, what it refuses, and that its files are the
//! library's own.

mod api;
mod client;
mod refusals;
mod schema;
mod tiles;
mod work;
