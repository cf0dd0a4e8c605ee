//! Who sends: what every message begins with.

use crate::{attribute::attribute, protobuf::Message};

/// Who sends: attributes of the process.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The version of the program.
    pub version: &'static str,
    /// A name that is new at each start.
    pub instance: String,
}

impl Sender {
    /// `ResourceSpans` or `ResourceMetrics`, around spans or metrics that are each field 2 of
    /// `items`: both are built alike.
    pub(crate) fn wrap(&self, items: Message) -> Vec<u8> {
        let mut resource = Message::default();
        for (key, value) in [
            ("service.name", "tidegate"),
            ("service.version", self.version),
            ("service.instance.id", &self.instance),
        ] {
            attribute(&mut resource, 1, key, &value.into());
        }
        let mut scope = Message::default();
        scope.text(1, "tidegate");
        scope.text(2, self.version);
        let mut scoped = Message::default();
        scoped.message(1, &scope);
        scoped.append(items);
        let mut of_resource = Message::default();
        of_resource.message(1, &resource);
        of_resource.message(2, &scoped);
        let mut request = Message::default();
        request.message(1, &of_resource);
        request.into_bytes()
    }
}
