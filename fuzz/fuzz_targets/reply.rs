//! `cargo +nightly fuzz run reply`: see [`checks::reply`].
#![no_main]

#[path = "../checks.rs"]
#[allow(dead_code, reason = "every target uses one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::reply(data));
