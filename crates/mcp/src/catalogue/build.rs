//! Making a catalogue: who gets a name that several want.
//!
//! | wanted twice | by one server | by several |
//! |---|---|---|
//! | `prefix`, and every uri | the first listed | the first server in the config |
//! | `priority` | the first listed | the first server in the config |
//! | `manual` | the first listed | nobody |
//!
//! With `prefix` several servers want one name only if two hashes of 32 bits meet; the rest of the
//! rules of [`crate::names`] sees to that.

use std::{collections::BTreeMap, sync::Arc};

use super::{Catalogue, Conflict, ConflictReason, Offered, greeting::Greeting, template::Template};
use crate::{
    listing::{Item, Kind, Listing, fingerprint},
    names::{Naming, NamingSettings},
    raw::{quoted, splice},
};

/// A definition that wants a name.
struct Wish<'a> {
    server: usize,
    item: &'a Item,
}

/// Wishes by name; those of one name in the order of the config and of the server's list.
type Wishes<'a> = BTreeMap<String, Vec<Wish<'a>>>;

impl Catalogue {
    /// The union of the last known listings, one place per configured server.
    #[must_use]
    pub fn new(settings: &NamingSettings, listings: &[Option<Arc<Listing>>]) -> Self {
        debug_assert_eq!(settings.servers.len(), listings.len(), "one place per server");
        let mut catalogue = Self::default();
        for kind in Kind::ALL {
            for (name, wishes) in wishes(settings, listings, kind) {
                catalogue.decide(settings, kind, name, wishes);
            }
            catalogue.versions[kind as usize] = version(catalogue.offers(kind));
        }
        let templates = catalogue.templates().iter().map(|offered| Template::new(&offered.name));
        catalogue.templates = templates.collect();
        let greetings = settings.servers.iter().enumerate().map(|(at, server)| {
            Greeting::new(&server.name, listings.get(at).and_then(Option::as_deref))
        });
        catalogue.greetings = greetings.collect();
        catalogue.naming = settings.clone();
        catalogue.unreached = listings.iter().map(Option::is_none).collect();
        catalogue
    }

    /// Gives a name to one of those who want it, or to nobody, and notes who goes without.
    fn decide(
        &mut self,
        settings: &NamingSettings,
        kind: Kind,
        name: String,
        wishes: Vec<Wish<'_>>,
    ) {
        let winner = wishes.first().expect("a name is wanted by somebody").server;
        let is_uri = matches!(kind, Kind::Resources | Kind::Templates);
        let is_contested = wishes.iter().any(|wish| wish.server != winner);
        let is_dropped = is_contested && !is_uri && settings.naming == Naming::Manual;
        let name: Arc<str> = name.into();
        let server_name = |server: usize| Arc::from(settings.servers[server].name.as_str());
        let mut last = None;
        for (at, wish) in wishes.iter().enumerate() {
            let is_again = last.replace(wish.server) == Some(wish.server);
            let reason = match settings.naming {
                _ if is_again => ConflictReason::Twice,
                _ if is_dropped => ConflictReason::Unresolved,
                _ if at == 0 => continue,
                _ if is_uri => ConflictReason::SameUri,
                Naming::Prefix => ConflictReason::SameDigits,
                Naming::Priority | Naming::Manual => ConflictReason::Shadowed,
            };
            self.conflicts.push(Conflict {
                kind,
                name: name.clone(),
                server: server_name(wish.server),
                own: wish.item.key.clone(),
                winner: (!is_dropped).then(|| server_name(winner)),
                reason,
            });
        }
        if !is_dropped {
            let offered = offered(kind, name, &wishes[0]);
            self.offers[kind as usize].push(offered);
        }
    }
}

fn wishes<'a>(
    settings: &NamingSettings,
    listings: &'a [Option<Arc<Listing>>],
    kind: Kind,
) -> Wishes<'a> {
    let mut wishes = Wishes::new();
    let known = listings.iter().zip(&settings.servers).enumerate();
    for (server, (listing, _)) in known {
        for item in listing.iter().flat_map(|listing| listing.items(kind)) {
            let name = match kind {
                Kind::Tools => settings.tool(server, &item.key),
                Kind::Prompts => Some(settings.prompt(server, &item.key)),
                Kind::Resources | Kind::Templates => Some(item.key.to_string()),
            };
            if let Some(name) = name {
                wishes.entry(name).or_default().push(Wish { server, item });
            }
        }
    }
    wishes
}

fn offered(kind: Kind, name: Arc<str>, wish: &Wish<'_>) -> Offered {
    let item = wish.item;
    let raw = if name == item.key {
        item.raw.clone()
    } else {
        let spliced = splice(&item.raw, kind.key(), &quoted(&name));
        spliced.expect("an item was read from an object with this field").into()
    };
    Offered {
        name,
        server: wish.server,
        own: item.key.clone(),
        raw,
        hints: item.hints,
        fingerprint: item.fingerprint,
        has_hidden_text: item.has_hidden_text,
    }
}

fn version(offers: &[Offered]) -> u64 {
    let digest = |offered: &Offered| format!("{} {:x}", offered.server, offered.fingerprint);
    let parts: Vec<String> = offers.iter().map(digest).collect();
    let names = offers.iter().map(|offered| offered.name.as_ref());
    let parts: Vec<&str> = parts.iter().map(String::as_str).chain(names).collect();
    fingerprint(&parts)
}
