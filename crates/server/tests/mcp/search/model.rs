//! `mcp.search.model` where it cannot be used: it costs no search its answer, and is told.
//!
//! What a model changes takes the engine, which default builds leave out: `tests/search_model.rs`.

use super::vectors::{BY_NAME, find, twins};
use crate::bed::Setup;
use tidegate_testkit::time::eventually;

const FAILED: &str = "tidegate_mcp_search_model{state=\"failed\"}";
const MISSING: &str = "tidegate_mcp_searches_total{model=\"missing\"}";

#[test]
fn a_model_that_cannot_be_used_degrades_the_search_and_is_told() {
    let twins = twins();
    let mcp = "tools: search, search: {model: 'file:/nowhere/at/all/model.onnx'},";
    let gate = Setup { mcp, ..Setup::of(&[("pictures", &twins)]) }.start();
    assert_eq!(find(&gate.open()), (BY_NAME.to_owned(), true));
    eventually("the metrics tell it", || gate.metric(FAILED) >= 1.0);
    let snapshot = gate.admin("/api/snapshot").text();
    assert!(snapshot.contains(r#""search_model":"failed""#), "{snapshot}");
    assert!(gate.metric(MISSING) >= 1.0);
    // It stays so, and costs no search its answer.
    assert_eq!(find(&gate.open()), (BY_NAME.to_owned(), true));
}

#[test]
fn without_a_model_nothing_is_degraded_and_no_state_is_told() {
    let twins = twins();
    let gate = Setup { mcp: "tools: search,", ..Setup::of(&[("pictures", &twins)]) }.start();
    assert_eq!(find(&gate.open()), (BY_NAME.to_owned(), false));
    assert_eq!(gate.metric("tidegate_mcp_searches_total{model=\"none\"}"), 1.0);
    let metrics = gate.admin("/metrics").text();
    assert!(!metrics.contains("tidegate_mcp_search_model{"), "{metrics}");
}
