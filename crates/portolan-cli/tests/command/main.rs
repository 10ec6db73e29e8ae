//! Tests of the whole command: what goes in by arguments and files, what comes out by files,
//! standard output, standard error and exit code.

mod advise;
mod bad_files;
mod bad_requests;
mod bound;
mod calibration;
mod coverage;
mod damaged;
mod demo;
mod device;
mod difference;
mod emitters;
mod explore;
mod formats;
mod gis;
mod hearing;
mod heights;
mod locate;
mod models;
mod npz;
mod out_of_memory;
mod outputs;
mod pictures;
mod real;
mod recipes;
mod reproduce;
mod same_bytes;
mod signals;
mod support;
mod surveys;
mod times;
mod tour;
mod trace;
mod units;
mod updates;
mod validate;
