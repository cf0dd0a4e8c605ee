//! Attributes of spans, metrics and the process: a name and what it says.

use crate::protobuf::Message;

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name or a word.
    Text(String),
    /// A count or a status.
    Number(i64),
    /// A measurement.
    Double(f64),
    /// A claim.
    Bool(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// `KeyValue`, which is field `field` of `message`.
pub(crate) fn attribute(message: &mut Message, field: u64, key: &str, value: &Value) {
    let mut any = Message::default();
    match value {
        Value::Text(text) => any.bytes(1, text.as_bytes()),
        Value::Bool(is_so) => any.present(2, u64::from(*is_so)),
        Value::Number(number) => any.present(3, number.cast_unsigned()),
        Value::Double(number) => any.fixed(4, number.to_bits()),
    }
    let mut pair = Message::default();
    pair.text(1, key);
    pair.message(2, &any);
    message.message(field, &pair);
}
