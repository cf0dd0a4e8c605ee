//! A gateway of one client's own: inside the client's process, closed to everybody else.
//!
//! It serves the same config with the same code as any other; only where it listens and who may
//! call are its own business.
//!
//! Rules kept here:
//! - It listens on loopback ports that the system picks, so it is in nobody's way.
//! - Whoever has no key is refused, also where the config asks for none: other users of the
//!   machine can reach a loopback port. A caller of the config's own stays what it is there.
//! - It ends within `DRAIN_MAX`: its one client has said all it had to say.

use std::net::{Ipv4Addr, SocketAddr};

use tidegate_config::{
    address::Address,
    file::{CallerFile, ConfigFile},
    percent::Percent,
    secret::{Secret, SecretRef},
};
use tidegate_core::time::Millis;
use tidegate_net::secret::random_hex;

/// The client's name in logs and decisions.
const NAME: &str = "stdio";
/// How long the end may take.
const DRAIN_MAX: Millis = Millis::seconds(5);
const ANY_PORT: Address = Address(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0));

/// What makes a gateway private: the key of its client.
#[derive(Clone, Debug)]
pub struct Private {
    key: Secret,
    /// The client came with it, so the config may know it.
    is_given: bool,
}

impl Private {
    /// With the key that the client has, if it has one, and else with one that nobody knows.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(given: Option<&str>) -> Result<Self, &'static str> {
        let key = match given {
            Some(key) => key.to_owned(),
            None => random_hex::<32>().ok_or("the system gives no random numbers")?,
        };
        match SecretRef::parse(&key) {
            Ok(SecretRef::Literal(key)) => Ok(Self { key, is_given: given.is_some() }),
            _ => Err("the key cannot be used"),
        }
    }

    /// The key to send.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.expose()
    }

    /// Changes what a config says.
    pub fn apply(&self, file: &mut ConfigFile) {
        file.listen = ANY_PORT;
        file.admin.listen = ANY_PORT;
        // Nothing leaves the process but over loopback, to a client that knows no authority.
        (file.tls, file.admin.tls) = (None, None);
        // One client's gateway is nobody's replica.
        file.state = None;
        let drain = file.shutdown.drain.millis();
        file.shutdown.drain = drain.min(DRAIN_MAX).into();
        if self.is_given && file.keys.is_some() {
            return;
        }
        let caller = CallerFile {
            name: NAME.to_owned(),
            key: SecretRef::Literal(self.key.clone()),
            routes: None,
            servers: None,
            // Everything is for this client.
            share: Some(Percent::of(1.0)),
        };
        file.keys.get_or_insert_default().push(caller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_on_ports_of_its_own_and_nobody_else_has_the_key() {
        let mut file = ConfigFile::default();
        let (one, two) = (Private::new(None).expect("a key"), Private::new(None).expect("a key"));
        one.apply(&mut file);
        assert_eq!((file.listen, file.admin.listen), (ANY_PORT, ANY_PORT));
        assert_eq!(file.keys.as_ref().map(Vec::len), Some(1));
        assert_ne!(one.key(), two.key());
        assert!(one.key().len() == 64 && !format!("{one:?}").contains(one.key()));
    }

    #[test]
    fn a_key_of_the_config_keeps_its_limits_and_any_other_client_gets_one_of_its_own() {
        let known = CallerFile {
            name: "ci".into(),
            key: SecretRef::parse("known").expect("a key"),
            routes: None,
            servers: Some(vec!["a".into()]),
            share: None,
        };
        let with_keys = || ConfigFile { keys: Some(vec![known.clone()]), ..Default::default() };
        let names = |given: Option<&str>, mut file: ConfigFile| -> Vec<String> {
            Private::new(given).expect("a key").apply(&mut file);
            file.keys.unwrap_or_default().into_iter().map(|it| it.name).collect()
        };
        assert_eq!(names(Some("known"), with_keys()), ["ci"]);
        assert_eq!(names(None, with_keys()), ["ci", "stdio"]);
        assert_eq!(names(Some("mine"), ConfigFile::default()), ["stdio"]);
        assert!(Private::new(Some("")).is_err());
    }
}
