//! Names: unique, legal, and the same whatever else is known.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_mcp::{
    catalogue::{Catalogue, ConflictReason},
    names::{NAME_MAX, Naming, NamingSettings},
};

use crate::support::{cases, listing, servers, settings, tool};

/// Servers, and the tools of each, all different.
fn world() -> impl Strategy<Value = (Vec<String>, Vec<Vec<String>>)> {
    servers().prop_flat_map(|servers| {
        let tools = prop::collection::btree_set(tool(), 0..8)
            .prop_map(|tools| tools.into_iter().collect::<Vec<_>>());
        let count = servers.len();
        (Just(servers), prop::collection::vec(tools, count))
    })
}

/// Adds to each server every tool that would look like an offered one of another.
fn forge(settings: &NamingSettings, tools: &mut [Vec<String>]) {
    let offered: Vec<String> = tools
        .iter()
        .enumerate()
        .flat_map(|(server, tools)| tools.iter().filter_map(move |own| settings.tool(server, own)))
        .collect();
    for (server, tools) in tools.iter_mut().enumerate() {
        let start = format!("{}_", settings.servers[server].name);
        let forged = offered.iter().filter_map(|name| name.strip_prefix(&start));
        tools.extend(forged.filter(|own| !own.is_empty()).map(str::to_owned));
        tools.sort();
        tools.dedup();
    }
}

fn is_legal(name: &str) -> bool {
    name.len() <= NAME_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Names by server and own name.
fn offered(catalogue: &Catalogue) -> BTreeMap<(usize, String), String> {
    let pair = |tool: &tidegate_mcp::catalogue::Offered| {
        ((tool.server, tool.own.to_string()), tool.name.to_string())
    };
    catalogue.tools().iter().map(pair).collect()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn prefixed_names_are_unique_legal_and_independent_of_what_is_known(
        (servers, mut tools) in world(), known in any::<u8>(),
    ) {
        let settings = settings(Naming::Prefix, &servers);
        forge(&settings, &mut tools);
        let all: Vec<_> = tools.iter().map(|tools| Some(listing(tools, 100))).collect();
        let full = Catalogue::new(&settings, &all);
        prop_assert_eq!(full.conflicts(), []);
        prop_assert_eq!(full.tools().len(), tools.iter().map(Vec::len).sum::<usize>());
        prop_assert!(full.tools().windows(2).all(|pair| pair[0].name < pair[1].name));
        for tool in full.tools() {
            prop_assert!(is_legal(&tool.name), "{}", tool.name);
            prop_assert_eq!(full.tool(&tool.name), Some(tool));
        }
        let some: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(server, listing)| listing.clone().filter(|_| known >> server & 1 == 1))
            .collect();
        let whole = offered(&full);
        for (key, name) in offered(&Catalogue::new(&settings, &some)) {
            prop_assert_eq!(whole.get(&key), Some(&name), "{:?}", key);
        }
    }

    #[test]
    fn every_tool_is_offered_or_reported(
        (servers, mut tools) in world(), is_manual in any::<bool>(), with_twins in any::<bool>(),
    ) {
        let naming = if is_manual { Naming::Manual } else { Naming::Priority };
        if with_twins {
            tools.iter_mut().for_each(|tools| tools.extend(tools.first().cloned()));
        }
        let all: Vec<_> = tools.iter().map(|tools| Some(listing(tools, 100))).collect();
        let catalogue = Catalogue::new(&settings(naming, &servers), &all);
        let wanted: usize = tools.iter().map(Vec::len).sum();
        prop_assert_eq!(catalogue.tools().len() + catalogue.conflicts().len(), wanted);
        prop_assert!(catalogue.tools().windows(2).all(|pair| pair[0].name < pair[1].name));
        for conflict in catalogue.conflicts() {
            let is_left_out = catalogue.tool(&conflict.name).is_none();
            prop_assert_eq!(is_left_out, conflict.winner.is_none());
            prop_assert!(conflict.reason != ConflictReason::SameDigits);
        }
        for tool in catalogue.tools() {
            let first = tools.iter().position(|tools| tools.contains(&tool.own.to_string()));
            prop_assert_eq!(first, Some(tool.server));
        }
    }
}
