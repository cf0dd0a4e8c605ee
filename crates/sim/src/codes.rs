//! The codes of problems that only scenario files can have, with their pages.
//!
//! Codes of form 1 and of all forms start at TG100, those of form 2 at TG150. What any YAML file
//! can have (unknown keys, wrong types, bad durations) has the codes of the config crate.

use tidegate_config::codes::Code;

/// All of them, in order.
pub static ALL: &[&Code] = &[&UNKNOWN_FORM, &FORM_NOT_BUILT];

/// The file has the keys of none of the forms.
pub static UNKNOWN_FORM: Code = Code {
    id: "TG100",
    title: "not a scenario file",
    text: "A scenario file has one of three forms, told by its keys: a sequence of requests has \
           `services` and `program`, a timeline of traffic has `backends` and `traffic`, an MCP \
           scenario has `servers` and `program`. `tidegate help scenarios` shows each.",
};

/// A form that this version cannot run.
pub static FORM_NOT_BUILT: Code = Code {
    id: "TG101",
    title: "a form of scenario that this version cannot run",
    text: "The file is an MCP scenario (`servers` and `program`). This version runs sequences of \
           requests and timelines of traffic only.",
};
