//! Answers of the store, taken apart: whatever has another shape is nothing.

use redis::Value;

/// A list.
pub(crate) fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// Bytes.
pub(crate) fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

/// Text.
pub(crate) fn text(value: Value) -> Option<String> {
    bytes(value).and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Two values that are both there.
pub(crate) fn pair(value: Value) -> Option<(Vec<u8>, Vec<u8>)> {
    let [one, other] = <[Value; 2]>::try_from(list(value)?).ok()?;
    Some((bytes(one)?, bytes(other)?))
}

/// One entry of a stream: its id, and what stands under its one field.
#[derive(Debug, PartialEq)]
pub(crate) struct StreamEntry {
    pub(crate) id: String,
    /// `None` = it is nothing that a replica writes.
    pub(crate) value: Option<Vec<u8>>,
}

/// Entries by stream, as `XREAD` answers; nothing if there was none in time.
pub(crate) fn streams(value: Value) -> Option<Vec<(String, Vec<StreamEntry>)>> {
    if value == Value::Nil {
        return Some(Vec::new());
    }
    let streams: Vec<(Value, Value)> = match value {
        Value::Map(streams) => streams,
        other => list(other)?
            .into_iter()
            .map(|stream| <[Value; 2]>::try_from(list(stream)?).ok().map(<(Value, Value)>::from))
            .collect::<Option<_>>()?,
    };
    let stream = |(name, entries): (Value, Value)| Some((text(name)?, self::entries(entries)?));
    streams.into_iter().map(stream).collect()
}

/// Entries of one stream, as `XREVRANGE` answers.
pub(crate) fn entries(value: Value) -> Option<Vec<StreamEntry>> {
    let entry = |entry: Value| {
        let [id, fields] = <[Value; 2]>::try_from(list(entry)?).ok()?;
        let value = list(fields).and_then(|fields| {
            let [_, value] = <[Value; 2]>::try_from(fields).ok()?;
            bytes(value)
        });
        Some(StreamEntry { id: text(id)?, value })
    };
    list(value)?.into_iter().map(entry).collect()
}
