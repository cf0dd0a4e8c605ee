//! The codes of problems that only scenario files can have, with their pages.
//!
//! Codes of form 1 and of all forms start at TG100, those of form 2 at TG150, those of form 3 at
//! TG180. What any YAML file can have (unknown keys, wrong types, bad durations) has the codes of
//! the config crate, and so have settings that make no sense.

pub mod mcp;
pub mod timeline;

use tidegate_config::codes::Code;

/// Those of all forms, in order.
pub static ALL: &[&Code] = &[
    &UNKNOWN_FORM,
    &DUPLICATE_SERVICE,
    &UNKNOWN_SERVICE,
    &EMPTY_LIST,
    &BAD_STATUS,
    &STATUS_AND_ERROR,
    &UNKNOWN_TACTIC,
    &RETIRED_TACTIC,
    &TWO_NAMES,
    &TOO_MUCH_WORK,
    &EMPTY_NAME,
    &timeline::UNKNOWN_BACKEND,
    &timeline::BAD_PHASE,
    &timeline::TOO_LONG,
    &timeline::BAD_TIERS,
    &timeline::UNUSABLE_CONFIG,
    &timeline::BAD_FLEET,
    &timeline::BAD_RECORDING,
    &mcp::UNKNOWN_SERVER,
    &mcp::UNKNOWN_SESSION,
    &mcp::UNKNOWN_TOOL,
    &mcp::BAD_STEP,
];

/// The file has the keys of none of the forms.
pub static UNKNOWN_FORM: Code = Code {
    id: "TG100",
    title: "not a scenario file",
    text: "A scenario file has one of three forms, told by its keys: a sequence of requests has \
           `services` and `program`, a timeline of traffic has `backends` and `traffic`, an MCP \
           scenario has `servers` and `program`. `tidegate help scenarios` shows each.",
};

/// A service stands twice.
pub static DUPLICATE_SERVICE: Code = Code {
    id: "TG102",
    title: "a service stands twice",
    text: "Two services have the same `provider` and `model`, so faults and expectations could not \
           tell them apart. Give one of them another model name, or remove it.",
};

/// An id that no service has.
pub static UNKNOWN_SERVICE: Code = Code {
    id: "TG103",
    title: "a service that does not exist",
    text: "Faults, `seed_pin` and expectations name services by `provider/model`, and no service \
           has this id. It is an error because a misspelt id would quietly test nothing.",
};

/// A list that needs at least one item.
pub static EMPTY_LIST: Code = Code {
    id: "TG104",
    title: "a list that must not be empty",
    text: "A scenario needs at least one service or server, and a fault script at least one step. \
           A service without an entry under `faults` always answers 200.",
};

/// A status that no backend can give.
pub static BAD_STATUS: Code = Code {
    id: "TG105",
    title: "not a usable HTTP status",
    text: "A final HTTP status is a number from 200 to 599. In a fault script 0 stands for 200. \
           For an attempt without an answer write `error: connect`, `reset` or `timeout` instead.",
};

/// A step that is both an answer and a failure.
pub static STATUS_AND_ERROR: Code = Code {
    id: "TG106",
    title: "both status and error",
    text: "A step of a fault script either answers with a `status` or fails with an `error`. Keep \
           one of the two.",
};

/// A layout that does not exist.
pub static UNKNOWN_TACTIC: Code = Code {
    id: "TG107",
    title: "an unknown tactic",
    text: "`tactic` is `tier` (tiers in ascending order) or `random` (one tier of all services). \
           How one service of a tier is picked is said by `within_tier_tactic`.",
};

/// A tactic that is not known (any more).
pub static RETIRED_TACTIC: Code = Code {
    id: "TG108",
    title: "a tactic that falls back to random",
    text: "`within_tier_tactic` takes `random`, `round_robin`, `weighted`, `least_latency` and \
           `least_busy`. Other names, among them some that other programs knew, are taken as \
           `random`, so that old files still run.",
};

/// Two names for one scenario.
pub static TWO_NAMES: Code = Code {
    id: "TG109",
    title: "both rule_uuid and name",
    text: "`rule_uuid` and `name` are two spellings of the scenario's name. Keep one of them, or \
           neither: then it is called by its file.",
};

/// A program whose trace would not fit into memory.
pub static TOO_MUCH_WORK: Code = Code {
    id: "TG110",
    title: "the scenario is too large",
    text: "A trace holds the state of every service or server after every step, and is bounded; so \
           are the keepalives that an MCP scenario can play. A question about load is better asked \
           with a timeline of traffic.",
};

/// A name that is empty.
pub static EMPTY_NAME: Code = Code {
    id: "TG111",
    title: "an empty provider or model",
    text: "A service is called `provider/model`, so both have to be written.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_none_is_used_by_another_crate() {
        assert!(ALL.is_sorted_by(|one, next| one.id < next.id));
        for code in ALL {
            assert!(tidegate_config::codes::find(code.id).is_none(), "{}", code.id);
        }
    }
}
