//! Files in and out, through the crate's public face. One program for all of them: linking seven
//! would take longer than running them.

mod doubts;
mod formats;
mod logs;
mod measured;
mod models;
mod others;
mod round_trip;
mod surveys;
mod tables;
mod units;
