//! The codes of problems that only timelines can have, with their pages.

use tidegate_config::codes::Code;

/// A backend that the file does not have.
pub static UNKNOWN_BACKEND: Code = Code {
    id: "TG150",
    title: "a backend that does not exist",
    text: "Tiers, weights and expectations name backends as they are written under `backends`, and \
           none has this name. It is an error because a misspelt name would quietly test nothing.",
};

/// A phase that cannot be played.
pub static BAD_PHASE: Code = Code {
    id: "TG151",
    title: "a phase that makes no sense",
    text: "Phases are written in the order of time, each with `at` and `do`. `slow` needs a \
           `factor`, `status` needs a `status` from 300 to 599, and every other key belongs to \
           some of the words of `do` only.",
};

/// A run that would not end in reasonable time.
pub static TOO_LONG: Code = Code {
    id: "TG152",
    title: "the timeline is too long",
    text: "The number of requests (rate × `for` × client retries) and of probes is bounded, so \
           that a misspelt rate does not run for hours. Lower the rate or shorten `for`: a day \
           at one request per minute says as much about recovery as a year at a thousand per \
           second.",
};

/// Tiers that leave somebody out or name somebody twice.
pub static BAD_TIERS: Code = Code {
    id: "TG153",
    title: "tiers that do not fit the backends",
    text: "Every backend with a script stands in exactly one tier. Without `tiers` each backend is \
           a tier of its own, in file order.",
};

/// A config file that a timeline cannot run with.
pub static UNUSABLE_CONFIG: Code = Code {
    id: "TG154",
    title: "a config that the timeline cannot use",
    text: "`config` names a tidegate.yaml, relative to the scenario file, that can be read, has no \
           problem and has a route: `default_route`, or else the first one. `tidegate check FILE` \
           shows what is wrong with it.",
};

/// A fleet that makes no sense.
pub static BAD_FLEET: Code = Code {
    id: "TG155",
    title: "a fleet that does not fit the timeline",
    text: "With `replicas: 3` the requests of a timeline are spread over three gateways, and `bus` \
           says how what one learns reaches the others. Replicas are numbered from 1. `bus` and \
           `spread` need at least two replicas, and `spread: session` needs sessions.",
};

/// A recording that cannot be played.
pub static BAD_RECORDING: Code = Code {
    id: "TG156",
    title: "a recording that cannot be played",
    text: "`recording` is written by `tidegate sim --from-live` or `--from-history` and holds \
           every request with its moments, draws and outcomes, in the order of arrival. This one \
           was changed by hand in a way that cannot be played, or another version of tidegate \
           wrote it. Write a new one, or use that version.",
};
