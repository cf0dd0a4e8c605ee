//! The core against a naive reference, step by step, over random worlds and histories.
//!
//! Each case draws settings (tiers, tactics, pools of keys, shared endpoints, thresholds) and a
//! history in which several requests are under way at once, and compares after every step:
//! snapshots, pins, who may be chosen, how a request ends, how many transitions were told.
//!
//! 1000 cases of about 300 steps by default; `PROPTEST_CASES` asks for more. A failing history is
//! shrunk and printed; nothing is kept on disk. `PROPTEST_RNG_SEED=N` repeats a run.

mod breaker;
mod evidence;
mod history;
mod pair;
mod reference;

use history::{Deed, deeds, settings};
use pair::Pair;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(1000);
    ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_core_and_the_reference_agree_after_every_step(
        settings in settings(), deeds in deeds(300),
    ) {
        let mut pair = Pair::new(settings);
        for deed in deeds {
            pair.act(&deed)?;
            pair.compare()?;
        }
    }
}
