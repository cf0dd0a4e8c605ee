//! The result as text: what each contender showed, and the ratios that count.

use super::measure::{Best, Results};

/// What a ratio is taken of: a name, the value, and the ratios to nginx and to Envoy to reach.
struct Row {
    name: &'static str,
    value: fn(&Best, &Best) -> f64,
    goals: &'static str,
}

const NOT_MEASURED: &str = "–";

const ROWS: &[Row] = &[
    Row {
        name: "cpu µs per request",
        value: |best, _| best.request_us,
        goals: "≤ 1.25 required, 1.2 aimed at; ≤ 0.45",
    },
    Row { name: "requests/s at saturation", value: |best, _| best.per_second, goals: "" },
    Row {
        name: "added latency p50 µs",
        value: |best, direct| best.p50_us - direct.p50_us,
        goals: "",
    },
    Row {
        name: "added latency p99 µs",
        value: |best, direct| best.p99_us - direct.p99_us,
        goals: "–; ≤ 1",
    },
    Row {
        name: "cpu µs per stream event", value: |best, _| best.event_us, goals: "≤ 1.15; –"
    },
    Row {
        name: "cpu µs per 60 ready events", value: |best, _| best.ready_us, goals: "≤ 1; –"
    },
    Row {
        name: "added time to first token µs",
        value: |best, direct| best.first_token_us - direct.first_token_us,
        goals: "–; ≤ 1",
    },
    Row { name: "memory idle MiB", value: |best, _| mib(best.idle_kib), goals: "≤ 8 MiB" },
    Row { name: "memory peak MiB", value: |best, _| mib(best.peak_kib), goals: "" },
    Row { name: "memory after MiB", value: |best, _| mib(best.after_kib), goals: "" },
];

/// A table of all values, the gateway's ratios to the others, and the goals.
pub(super) fn render(results: &Results) -> String {
    let Some((ours, others)) = results.contenders.split_last() else { return String::new() };
    let mut text = format!("\n{:30}", "");
    for best in &results.contenders {
        text.push_str(&format!("{:>10}", best.name));
    }
    for other in others {
        text.push_str(&format!("{:>10}", format!("× {}", other.name)));
    }
    text.push_str("   goals (× nginx; × envoy)\n");
    for row in ROWS {
        let value = |best: &Best| (row.value)(best, &results.direct);
        if !value(ours).is_finite() {
            continue;
        }
        text.push_str(&format!("{:30}", row.name));
        for best in &results.contenders {
            text.push_str(&format!("{:>10}", shown(value(best))));
        }
        for other in others {
            let ratio = format!("{:.2}", value(ours) / value(other));
            let told = if value(other).is_finite() { &ratio } else { NOT_MEASURED };
            text.push_str(&format!("{told:>10}"));
        }
        text.push_str(&format!("   {}\n", row.goals));
    }
    text
}

fn shown(value: f64) -> String {
    if !value.is_finite() {
        return NOT_MEASURED.to_owned();
    }
    if value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::bench::measure::{Best, Results};

    fn best(name: &'static str, request_us: f64) -> Best {
        Best {
            name,
            request_us,
            per_second: 1000.0,
            p50_us: f64::INFINITY,
            p99_us: f64::INFINITY,
            event_us: 9.0,
            ready_us: 90.0,
            first_token_us: f64::INFINITY,
            idle_kib: 1024,
            peak_kib: 2048,
            after_kib: 1024,
        }
    }

    #[test]
    fn ratios_are_ours_to_the_others_and_what_was_not_measured_is_left_out() {
        let contenders = vec![best("nginx", 10.0), best("envoy", 30.0), best("tidegate", 12.0)];
        let text = render(&Results { direct: best("direct", 0.0), contenders });
        let line = text.lines().find(|line| line.starts_with("cpu µs per request"));
        let words: Vec<&str> = line.expect("a row").split_whitespace().collect();
        assert_eq!(&words[4..9], ["10.0", "30.0", "12.0", "1.20", "0.40"]);
        assert!(!text.contains("added latency"), "{text}");
    }

    #[test]
    fn a_contender_of_which_a_part_was_not_measured_does_not_hide_the_others() {
        let without = Best { event_us: f64::INFINITY, ..best("litellm", 900.0) };
        let contenders = vec![best("nginx", 10.0), without, best("tidegate", 12.0)];
        let text = render(&Results { direct: best("direct", 0.0), contenders });
        let line = text.lines().find(|line| line.starts_with("cpu µs per stream event"));
        let words: Vec<&str> = line.expect("a row").split_whitespace().collect();
        assert_eq!(&words[5..10], ["9.0", "–", "9.0", "1.00", "–"]);
    }
}
