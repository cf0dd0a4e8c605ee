//! Catalogues: pages make up the whole, and definitions are the servers' own.

use proptest::prelude::*;
use tidegate_mcp::{
    catalogue::Catalogue,
    listing::Kind,
    names::Naming,
    raw::{quoted, splice},
};

use crate::support::{cases, listing, settings, tool};

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn pages_of_any_size_make_up_the_whole(
        tools in prop::collection::vec(prop::collection::btree_set(tool(), 0..12), 3),
        size in 0_usize..200, seen in 0_u8..8,
    ) {
        let servers = ["a", "b", "c"].map(str::to_owned);
        let tools = tools.into_iter().map(|tools| tools.into_iter().collect::<Vec<_>>());
        let listings: Vec<_> = tools.map(|tools| Some(listing(&tools, 3))).collect();
        let catalogue = Catalogue::new(&settings(Naming::Prefix, &servers), &listings);
        let is_visible = |server: usize| seen >> server & 1 == 1;
        let (mut items, mut cursor) = (Vec::new(), None);
        for turn in 0.. {
            prop_assert!(turn <= catalogue.tools().len(), "the pages go round");
            let page = catalogue.page(Kind::Tools, is_visible, cursor.as_deref(), size);
            let page = page.expect("a cursor of its own");
            prop_assert!(serde_json::from_str::<serde_json::Value>(&page.to_result()).is_ok());
            items.extend((!page.items.is_empty()).then_some(page.items));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let visible = catalogue.tools().iter().filter(|tool| is_visible(tool.server));
        let whole: Vec<&str> = visible.map(|tool| tool.raw.as_ref()).collect();
        prop_assert_eq!(items.join(","), whole.join(","));
    }

    #[test]
    fn a_definition_is_the_servers_own_apart_from_its_name(
        tools in prop::collection::btree_set(tool(), 1..6), size in 1_usize..4,
    ) {
        let tools: Vec<String> = tools.into_iter().collect();
        let listing = listing(&tools, size);
        let servers = ["a", "b"].map(str::to_owned);
        let both = [Some(listing.clone()), None];
        let catalogue = Catalogue::new(&settings(Naming::Prefix, &servers), &both);
        for item in listing.items(Kind::Tools) {
            let found = catalogue.tools().iter().find(|tool| tool.own == item.key);
            let found = found.expect("every tool is offered");
            let back = splice(&found.raw, "name", &quoted(&item.key));
            prop_assert_eq!(back.as_deref(), Ok(item.raw.as_ref()));
        }
    }
}
