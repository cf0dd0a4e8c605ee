//! What a collector is sent, read by the numbers that OpenTelemetry's messages give their fields.

use std::collections::BTreeMap;

/// Attributes by their names, each value as text.
pub type Told = BTreeMap<String, String>;

/// A span, as far as tests look at it.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    /// 2: server, 3: client.
    pub kind: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub told: Told,
    pub is_error: bool,
}

/// A metric, as far as tests look at it.
#[derive(Clone, Debug)]
pub struct Metric {
    pub name: String,
    /// 5: gauge, 7: sum, 9: histogram.
    pub kind: u64,
    pub is_cumulative: bool,
    pub is_monotonic: bool,
    pub points: Vec<Point>,
}

/// A point of a metric.
#[derive(Clone, Debug)]
pub struct Point {
    pub told: Told,
    /// Of a gauge or a sum.
    pub value: f64,
    /// Of a histogram.
    pub count: u64,
    pub buckets: Vec<u64>,
    pub bounds: Vec<f64>,
}

/// The spans of a request to export traces.
pub fn spans_of(message: &[u8]) -> Vec<Span> {
    inside(message, &[1, 2, 2])
        .into_iter()
        .map(|span| {
            let fields = Fields::read(span);
            Span {
                trace: hex(fields.bytes(1)),
                id: hex(fields.bytes(2)),
                parent: hex(fields.bytes(4)),
                name: fields.text(5),
                kind: fields.number(6),
                start_ns: fields.number(7),
                end_ns: fields.number(8),
                told: told(&fields, 9),
                is_error: Fields::read(fields.bytes(15)).number(3) == 2,
            }
        })
        .collect()
}

/// The metrics of a request to export metrics.
pub fn metrics_of(message: &[u8]) -> Vec<Metric> {
    inside(message, &[1, 2, 2])
        .into_iter()
        .map(|metric| {
            let fields = Fields::read(metric);
            let kind = [5, 7, 9].into_iter().find(|kind| !fields.bytes(*kind).is_empty());
            let kind = kind.expect("a metric has data");
            let data = Fields::read(fields.bytes(kind));
            Metric {
                name: fields.text(1),
                kind,
                is_cumulative: data.number(2) == 2,
                is_monotonic: data.number(3) == 1,
                points: data.all(1).into_iter().map(|it| point(it, kind == 9)).collect(),
            }
        })
        .collect()
}

/// The attributes of the process that sent a request.
pub fn resource_of(message: &[u8]) -> Told {
    let resource = inside(message, &[1, 1]);
    resource.first().map(|it| told(&Fields::read(it), 1)).unwrap_or_default()
}

fn point(bytes: &[u8], is_histogram: bool) -> Point {
    let fields = Fields::read(bytes);
    let word = |it: &[u8]| u64::from_le_bytes(it.try_into().expect("eight bytes"));
    let words = |field| -> Vec<u64> {
        let bytes = if is_histogram { fields.bytes(field) } else { &[] };
        bytes.chunks(8).map(word).collect()
    };
    let is_timed = fields.number(2) > 0 && fields.number(3) >= fields.number(2);
    assert!(is_timed, "a point has a time and begins before it");
    Point {
        told: told(&fields, if is_histogram { 9 } else { 7 }),
        value: f64::from_bits(fields.number(4)),
        count: fields.number(4),
        buckets: words(6),
        bounds: words(7).into_iter().map(f64::from_bits).collect(),
    }
}

/// The messages that one gets to by these fields.
fn inside<'a>(message: &'a [u8], path: &[u64]) -> Vec<&'a [u8]> {
    let step = |found: Vec<&'a [u8]>, field: &u64| -> Vec<&'a [u8]> {
        found.into_iter().flat_map(|it| Fields::read(it).all(*field)).collect()
    };
    path.iter().fold(vec![message], step)
}

fn told(fields: &Fields<'_>, field: u64) -> Told {
    let pair = |bytes: &[u8]| {
        let pair = Fields::read(bytes);
        let any = Fields::read(pair.bytes(2));
        let value = match any.0.first() {
            Some((1, Value::Bytes(text))) => String::from_utf8_lossy(text).into_owned(),
            Some((2, Value::Number(is_so))) => (*is_so == 1).to_string(),
            Some((3, Value::Number(number))) => number.to_string(),
            Some((4, Value::Number(bits))) => f64::from_bits(*bits).to_string(),
            other => panic!("no value: {other:?}"),
        };
        (pair.text(1), value)
    };
    fields.all(field).into_iter().map(pair).collect()
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in their order.
struct Fields<'a>(Vec<(u64, Value<'a>)>);

impl<'a> Fields<'a> {
    fn read(mut rest: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let tag = varint(&mut rest);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut rest)),
                1 => Value::Number(little_endian(take(&mut rest, 8))),
                5 => Value::Number(little_endian(take(&mut rest, 4))),
                2 => {
                    let length = varint(&mut rest) as usize;
                    Value::Bytes(take(&mut rest, length))
                }
                kind => panic!("no kind of field: {kind}"),
            };
            fields.push((tag >> 3, value));
        }
        Self(fields)
    }

    fn all(&self, field: u64) -> Vec<&'a [u8]> {
        let of = |it: &(u64, Value<'a>)| match it {
            (number, Value::Bytes(bytes)) if *number == field => Some(*bytes),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    fn bytes(&self, field: u64) -> &'a [u8] {
        self.all(field).first().copied().unwrap_or_default()
    }

    fn text(&self, field: u64) -> String {
        String::from_utf8(self.bytes(field).to_vec()).expect("text is UTF-8")
    }

    fn number(&self, field: u64) -> u64 {
        let of = |it: &(u64, Value<'a>)| match it {
            (number, Value::Number(value)) if *number == field => Some(*value),
            _ => None,
        };
        self.0.iter().find_map(of).unwrap_or_default()
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at_checked(length).expect("a field is as long as it says");
    *rest = left;
    taken
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0..10 {
        let byte = take(rest, 1)[0];
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number is too long")
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
