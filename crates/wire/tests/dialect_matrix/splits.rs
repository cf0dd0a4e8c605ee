//! Splitting a stream anywhere changes nothing of what the client gets.

use tidegate_wire::convert::context::ReplyContext;

use crate::drive::Exchange;
use crate::spoken::Spoken;

const STREAMS: [&str; 9] = [
    "text",
    "tool-call",
    "parallel-tools",
    "thinking",
    "json-schema",
    "stop",
    "length",
    "refusal",
    "broken",
];

fn each(check: impl Fn(Exchange, &str, &[u8])) {
    for client in Spoken::ALL {
        for upstream in Spoken::ALL {
            for name in STREAMS {
                let stream = upstream.sample(&format!("{name}.stream.sse"));
                check(Exchange { client, upstream }, name, &stream);
            }
        }
    }
}

fn context() -> ReplyContext {
    ReplyContext { created_unix_s: 7, includes_usage: true, ..ReplyContext::default() }
}

#[test]
fn a_stream_in_single_bytes_is_the_same_stream() {
    each(|exchange, name, stream| {
        let whole = exchange.stream(stream, &context(), usize::MAX);
        for step in [1, 2, 7, 64] {
            assert_eq!(exchange.stream(stream, &context(), step), whole, "{name} {exchange:?}");
        }
    });
}

#[test]
fn a_stream_in_two_pieces_is_the_same_stream_wherever_it_is_split() {
    for (at, upstream) in Spoken::ALL.into_iter().enumerate() {
        let exchange = Exchange { client: Spoken::ALL[(at + 1) % 4], upstream };
        let stream = upstream.sample("tool-call.stream.sse");
        let whole = exchange.stream(&stream, &context(), usize::MAX);
        for at in 1..stream.len() {
            let found = exchange.stream_in_two(&stream, &context(), at);
            assert!(found == whole, "{exchange:?} split after {at} bytes");
        }
    }
}
