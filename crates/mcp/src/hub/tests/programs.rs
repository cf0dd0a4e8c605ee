//! Servers that are programs.

use tidegate_core::time::Millis;

use super::bed::Bed;
use crate::hub::ServerAccess;

fn child(is_shared: bool) -> Bed {
    let mut bed = Bed::new(&["a"]);
    bed.settings.servers[0].access = ServerAccess::Child { is_shared };
    bed.start()
}

#[test]
fn every_session_has_a_program_of_its_own_or_all_share_one() {
    let mut bed = child(false);
    assert_eq!(bed.hub.sizes().connections, 0, "the one for the lists is gone");
    let (one, two) = (bed.open(), bed.open());
    assert_eq!((bed.tools(&one).len(), bed.tools(&two).len()), (4, 4));
    assert_eq!(bed.hub.sizes().connections, 2);
    let mut bed = child(true);
    let (one, two) = (bed.open(), bed.open());
    assert_eq!((bed.tools(&one).len(), bed.tools(&two).len()), (4, 4));
    assert_eq!(bed.hub.sizes().connections, 1);
}

#[test]
fn a_shared_program_that_ended_is_started_again_after_a_pause() {
    let mut bed = child(true);
    let session = bed.open();
    let before = bed.opened;
    bed.break_connections(0);
    bed.pass(Millis(100));
    assert_eq!(bed.opened, before, "not at once");
    bed.pass(Millis(500));
    assert_eq!(bed.opened, before + 1);
    let token = bed.call(&session, 1, "read");
    assert_eq!(bed.last(token)["id"], 1);
}
