//! Protocol buffers, as far as OTLP needs them written.
//!
//! Fields are given by their number. A field that is zero or empty is left out, as the format
//! allows, unless it belongs to a `oneof`, where being there is the news.

/// Varints, and numbers of 64 bits that are not.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// A message under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// What has been written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// How many bytes have been written.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A number, an enum's value or a bool.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.present(field, value);
        }
    }

    /// The same in a `oneof`.
    pub(crate) fn present(&mut self, field: u64, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// A number of 64 bits: an unsigned one, a signed one, or the bits of a double.
    pub(crate) fn fixed(&mut self, field: u64, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    /// A number of 32 bits.
    pub(crate) fn fixed32(&mut self, field: u64, value: u32) {
        self.tag(field, FIXED32);
        self.0.extend(value.to_le_bytes());
    }

    /// A list of numbers of 64 bits.
    pub(crate) fn packed(&mut self, field: u64, values: impl ExactSizeIterator<Item = u64>) {
        if values.len() > 0 {
            self.tag(field, BYTES);
            self.varint(8 * values.len() as u64);
            values.for_each(|value| self.0.extend(value.to_le_bytes()));
        }
    }

    /// Bytes.
    pub(crate) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.tag(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// Text.
    pub(crate) fn text(&mut self, field: u64, value: &str) {
        if !value.is_empty() {
            self.bytes(field, value.as_bytes());
        }
    }

    /// A message inside.
    pub(crate) fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// The fields of another message, after these.
    pub(crate) fn append(&mut self, fields: Self) {
        self.0.extend(fields.0);
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.text(2, "testing");
        message.text(3, "");
        message.fixed32(4, 1);
        message.packed(5, [1_u64].into_iter());
        message.packed(6, [].into_iter());
        let mut expected = vec![0x08, 0x96, 0x01, 0x12, 0x07];
        expected.extend(b"testing");
        expected.extend([0x25, 1, 0, 0, 0, 0x2a, 8, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.into_bytes(), expected);
    }
}
