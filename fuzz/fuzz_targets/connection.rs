//! `cargo +nightly fuzz run connection`: see [`connection::connection`].
#![no_main]

#[path = "../connection.rs"]
mod connection;

libfuzzer_sys::fuzz_target!(|data: &[u8]| connection::connection(data));
