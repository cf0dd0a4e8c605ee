//! `replicas`, `bus` and `spread` into a fleet.

use tidegate_config::{codes::BAD_VALUE, diagnostic::Diagnostic, path::KeyPath};
use tidegate_core::{
    draw::mix,
    names::Fingerprint,
    settings::Settings,
    time::{Millis, Now},
};

use super::ProblemCollector;
use crate::{
    codes::timeline as codes,
    timeline::{
        file::{BusFile, CutFile, SpreadWord, TimelineFile},
        plot::{Cut, Fleet},
    },
};

/// Each replica has a core of its own, and every message reaches all the others.
const REPLICAS_MAX: u32 = 1_000;
/// A store in the same data centre.
const DELAY: Millis = Millis(5);

impl ProblemCollector<'_> {
    /// A replica that the file has, counted from 0.
    pub(super) fn replica(&mut self, path: &KeyPath, number: u32) -> Option<u32> {
        let replicas = self.replicas;
        if (1..=replicas).contains(&number) {
            return Some(number - 1);
        }
        let message = format!("`{path}`: there is no replica {number}");
        let help = match replicas {
            0 | 1 => "write `replicas: 3` at the top of the file".to_owned(),
            count => format!("replicas are numbered from 1 to {count}"),
        };
        self.refuse(path, Diagnostic::error(&codes::BAD_FLEET, message).help(help));
        None
    }
}

/// The fleet of a file, if it has one.
pub(super) fn fleet(file: &TimelineFile, collector: &mut ProblemCollector<'_>) -> Option<Fleet> {
    let replicas = file.replicas.unwrap_or(1);
    if !(1..=REPLICAS_MAX).contains(&replicas) {
        let message = format!("`replicas`: `{replicas}` is not between 1 and {REPLICAS_MAX}");
        collector.refuse(&KeyPath::from("replicas"), Diagnostic::error(&BAD_VALUE, message));
        return None;
    }
    let written = [("bus", file.bus.is_some()), ("spread", file.spread.is_some())];
    for (key, _) in written.iter().filter(|(_, is_written)| *is_written && replicas == 1) {
        let message = format!("`{key}` means nothing for one replica");
        let diagnostic = Diagnostic::error(&codes::BAD_FLEET, message)
            .help("write `replicas: 3` at the top of the file, or remove it");
        collector.refuse_key(&KeyPath::from(*key), diagnostic);
    }
    if replicas == 1 {
        return None;
    }
    if file.spread == Some(SpreadWord::Session) && file.traffic.sessions == 0 {
        let message = "`spread: session` needs sessions";
        let diagnostic = Diagnostic::error(&codes::BAD_FLEET, message)
            .help("write `traffic: { sessions: 200, … }`");
        collector.refuse(&KeyPath::from("spread"), diagnostic);
    }
    let bus = file.bus.clone().unwrap_or_default();
    Some(Fleet {
        replicas,
        is_by_session: file.spread == Some(SpreadWord::Session),
        delay: bus.delay.as_ref().map_or(DELAY, |it| it.millis()),
        loss: bus.loss.map_or(0.0, |it| it.fraction()),
        cuts: cuts(&bus, file.lasts.millis(), collector),
    })
}

fn cuts(bus: &BusFile, lasts: Millis, collector: &mut ProblemCollector<'_>) -> Vec<Cut> {
    let here = KeyPath::from("bus").key("cut");
    let mut cuts = Vec::new();
    for (index, CutFile { at, lasts: span, replica }) in bus.cut.iter().enumerate() {
        let path = here.index(index);
        if at.millis() > lasts {
            let message = format!("`{path}.at` is after the end of the timeline");
            collector.refuse(&path.key("at"), Diagnostic::warning(&codes::BAD_FLEET, message));
        }
        let Some(replica) = collector.replica(&path.key("replica"), *replica) else { continue };
        let from = Now(at.millis().0);
        cuts.push(Cut { replica, from, to: from.after(span.millis()) });
    }
    cuts
}

/// Gives everything that replicas share the name that they have for it; `is_shared` says whether a
/// provider's (or server's) things are.
pub(super) fn name_all(settings: &mut Settings, is_shared: impl Fn(&str) -> bool) {
    let names = |kind: &str, id: &str, provider: &str| {
        if is_shared(provider) { vec![name(kind, id)] } else { Vec::new() }
    };
    for it in &mut settings.endpoints {
        it.fleet_names = names("endpoint", &it.id, &it.id);
    }
    for it in &mut settings.keys {
        let provider = it.id.split('#').next().unwrap_or_default();
        it.fleet_names = names("key", &it.id, provider);
    }
    for it in &mut settings.backends {
        let provider = it.id.split('/').next().unwrap_or_default();
        it.fleet_names = names("backend", &it.id, provider);
    }
}

/// Nothing is secret here: a name only has to be another one for everything.
fn name(kind: &str, id: &str) -> Fingerprint {
    let bytes = kind.bytes().chain([b':']).chain(id.bytes());
    let half = |seed: u64| bytes.clone().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
    let [first, second] = [half(1), half(2)].map(u64::to_be_bytes);
    Fingerprint(std::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] }))
}
