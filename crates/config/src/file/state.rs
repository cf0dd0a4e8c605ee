//! `state`: what several gateways share, through which store, and how they reach each other.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, SeqAccess, Visitor},
};
use serde_json::json;
use tidegate_core::time::Millis;

use crate::{address::Address, duration::Duration, secret::SecretRef};

/// The name space of a fleet that does not say another one.
const FLEET: &str = "tidegate";

/// What several gateways share: through which store, under which name, with which secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateFile {
    /// The url of a Redis or Valkey: `redis://`, `rediss://` (TLS), or `redis+sentinel://`. Several
    /// urls, as a list or with commas between them, are nodes of a Cluster.
    #[schemars(example = &"env:REDIS_URL")]
    pub redis: SecretList,
    /// What seals everything in the store, at least 32 bytes. A list replaces a secret without a
    /// pause: the first one writes, all of them read.
    #[schemars(example = json!(["env:TIDEGATE_FLEET_KEY", "env:TIDEGATE_FLEET_KEY_OLD"]))]
    pub secret: SecretList,
    /// The name space in the store: replicas of one name share.
    #[serde(default = "default_fleet")]
    #[schemars(example = &"prod")]
    pub fleet: String,
    /// This replica's name, for people. Empty: the host's name.
    #[serde(default)]
    #[schemars(example = &"gate-1")]
    pub replica: String,
    /// Where other replicas reach this one, for MCP sessions. Absent: requests for sessions that
    /// are here and reach another replica get a 503, and clients need a balancer that is sticky.
    #[schemars(example = &"0.0.0.0:8702")]
    pub peer_listen: Option<Address>,
    /// How they reach it. Absent: the port of `peer_listen` at the local address of the connection
    /// to the store.
    #[schemars(example = &"http://10.0.0.7:8702")]
    pub peer_url: Option<String>,
    /// How long a client may wait for the store, where it waits for it at all.
    #[serde(default = "default_timeout")]
    #[schemars(example = &"250ms")]
    pub timeout: Duration,
}

fn default_fleet() -> String {
    FLEET.to_owned()
}

fn default_timeout() -> Duration {
    Millis(250).into()
}

/// One secret, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretList(pub Vec<SecretRef>);

impl Serialize for SecretList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SecretList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = SecretList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret or a list of secrets")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SecretList, E> {
                let one = SecretRef::parse(text).map_err(E::custom)?;
                Ok(SecretList(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SecretList, A::Error> {
                let mut several = Vec::new();
                while let Some(one) = list.next_element()? {
                    several.push(one);
                }
                Ok(SecretList(several))
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}

impl JsonSchema for SecretList {
    fn schema_name() -> Cow<'static, str> {
        "SecretList".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<SecretRef>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
