//! The metrics of `/metrics` as OTLP has them, under the same names and labels.
//!
//! Counters and histograms count from the start of the process. A histogram of Prometheus counts
//! everything up to a bound; one of OTLP counts what lies between two.

use prometheus::proto::{Metric, MetricFamily, MetricType};
use tidegate_core::time::Now;
use tidegate_runtime::clock::Clock;

use crate::{attribute::attribute, protobuf::Message, sender::Sender, spans::nanos};

/// Sums and histograms count from the start.
const CUMULATIVE: u64 = 2;

/// `ExportMetricsServiceRequest` of these metrics.
#[must_use]
pub fn message(sender: &Sender, clock: Clock, families: &[MetricFamily]) -> Vec<u8> {
    let span = (nanos(clock.unix_ms_of(Now::ZERO)), nanos(clock.unix_ms_of(clock.now())));
    let mut metrics = Message::default();
    for family in families {
        let mut metric = Message::default();
        metric.text(1, family.name());
        metric.text(2, family.help());
        let (field, data) = match family.get_field_type() {
            MetricType::COUNTER => (7, sum(family, span)),
            MetricType::HISTOGRAM => (9, histogram(family, span)),
            // The gateway has no summaries.
            MetricType::GAUGE | MetricType::UNTYPED | MetricType::SUMMARY => {
                (5, gauge(family, span))
            }
        };
        metric.message(field, &data);
        metrics.message(2, &metric);
    }
    sender.wrap(metrics)
}

fn sum(family: &MetricFamily, span: (u64, u64)) -> Message {
    let mut data = Message::default();
    for metric in family.get_metric() {
        data.message(1, &number(metric, metric.get_counter().get_value(), span));
    }
    data.number(2, CUMULATIVE);
    data.number(3, u64::from(true));
    data
}

fn gauge(family: &MetricFamily, span: (u64, u64)) -> Message {
    let mut data = Message::default();
    for metric in family.get_metric() {
        data.message(1, &number(metric, metric.get_gauge().get_value(), span));
    }
    data
}

fn number(metric: &Metric, value: f64, (start, now): (u64, u64)) -> Message {
    let mut point = Message::default();
    labels(&mut point, 7, metric);
    point.fixed(2, start);
    point.fixed(3, now);
    point.fixed(4, value.to_bits());
    point
}

fn histogram(family: &MetricFamily, (start, now): (u64, u64)) -> Message {
    let mut data = Message::default();
    for metric in family.get_metric() {
        let histogram = metric.get_histogram();
        // The last bound of OTLP is infinity, and is not written.
        let buckets = histogram.get_bucket().iter().filter(|it| it.upper_bound().is_finite());
        let bounds: Vec<f64> = buckets.clone().map(|it| it.upper_bound()).collect();
        let total = histogram.get_sample_count();
        let up_to = buckets.map(|it| it.cumulative_count()).chain([total]);
        let counts: Vec<u64> = up_to
            .scan(0, |below, count| {
                // A count that is read while others are added may be behind the one before.
                let between = count.saturating_sub(*below);
                *below = count.max(*below);
                Some(between)
            })
            .collect();
        let mut point = Message::default();
        labels(&mut point, 9, metric);
        point.fixed(2, start);
        point.fixed(3, now);
        point.fixed(4, counts.iter().sum());
        point.fixed(5, histogram.get_sample_sum().to_bits());
        point.packed(6, counts.into_iter());
        point.packed(7, bounds.into_iter().map(f64::to_bits).collect::<Vec<_>>().into_iter());
        data.message(1, &point);
    }
    data.number(2, CUMULATIVE);
    data
}

fn labels(point: &mut Message, field: u64, metric: &Metric) {
    for label in metric.get_label() {
        attribute(point, field, label.name(), &label.value().into());
    }
}
