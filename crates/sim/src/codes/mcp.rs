//! The codes of problems that only MCP scenarios can have, with their pages.

use tidegate_config::codes::Code;

/// A server that the file does not have.
pub static UNKNOWN_SERVER: Code = Code {
    id: "TG180",
    title: "a server that does not exist",
    text: "Steps and expectations name servers as they are written under `servers`, or under the \
           latest `reload` before them, and none has this name. It is an error because a misspelt \
           name would quietly test nothing.",
};

/// A session that is not open.
pub static UNKNOWN_SESSION: Code = Code {
    id: "TG181",
    title: "a session that is not open",
    text: "A session is opened by a step `{ open: NAME }` before it lists, finds, calls or is \
           closed. A name can be opened again after it was closed, not before.",
};

/// A tool that no server has.
pub static UNKNOWN_TOOL: Code = Code {
    id: "TG182",
    title: "a tool that no server has",
    text: "A call names a tool as clients see it: `server_tool`, or its own name if there is one \
           server only. `idempotent`, `read_only` and `keepalive.tool` use its own name. Tools are \
           written under `servers`, and in steps `tools`.",
};

/// A step without an action, or with several.
pub static BAD_STEP: Code = Code {
    id: "TG183",
    title: "not a step",
    text: "A step has exactly one of `open`, `stateless`, `call`, `answer`, `retry`, `list`, \
           `find`, `close`, `crash`, `hang`, `lose_session`, `slow`, `tools`, `era`, `heal`, \
           `probe`, `advance` and `reload`. `after` goes with what happens to a server; `expect` \
           with `open`, `stateless`, `list` and `find` (`tools`) and with `call`, `answer` and \
           `retry` (the rest). `answer` is a session's and `retry` that of a client without one; \
           both come after a call.",
};
