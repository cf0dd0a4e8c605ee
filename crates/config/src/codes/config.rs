//! The codes of the config file's own rules.

use super::Code;

/// The codes of this module, in order.
pub(super) static ALL: &[&Code] = &[
    &UNKNOWN_TARGET,
    &BAD_URL,
    &BAD_GLOB,
    &BAD_NAME,
    &EMPTY_ROUTE,
    &DUPLICATE_TARGET,
    &SINGLE_TARGET,
    &UNKNOWN_ROUTE,
    &UNKNOWN_SERVER,
    &UNKNOWN_WEIGHT,
    &SERVER_TRANSPORT,
    &KEEPALIVE_WITHOUT_TOOL,
    &EXPOSED,
    &KEY_AND_KEYS,
    &BAD_SETTING,
    &LITERAL_SECRET,
    &UNRESOLVED_SECRET,
    &OVERLAPPING_MATCH,
    &MANY_HOPS,
    &NO_EFFECT,
    &SAME_ADDRESS,
    &TWICE_NAMED,
    &UNSENDABLE_SECRET,
    &READABLE_BY_OTHERS,
    &SHARED_KEY,
    &SHORT_KEY,
    &FOREIGN_REFERENCE,
    &NOTHING_TO_SERVE,
    &UNUSABLE_CERTIFICATE,
    &CLEAR_TEXT,
    &FLEET_SECRET,
    &STORE_URL,
    &PEER_URL,
    &SEARCH_MODEL,
];

/// A tier names a provider that is not configured.
pub static UNKNOWN_TARGET: Code = Code {
    id: "TG011",
    title: "a target that does not exist",
    text: "A target is written `provider/model`, split at the first slash. The part before it has \
           to be the name of a provider under `providers`; the model is taken as it is, because \
           only the provider knows its models.",
};

/// A url that cannot be used.
pub static BAD_URL: Code = Code {
    id: "TG018",
    title: "not a usable url",
    text: "A url starts with `http://` or `https://`, has a host, and carries no user name \
           or fragment: keys belong into `key`. The query parameters of a provider belong into \
           `query`; the url of an MCP server may carry them itself.",
};

/// A pattern that cannot be used.
pub static BAD_GLOB: Code = Code {
    id: "TG019",
    title: "not a usable pattern",
    text: "In `match`, `include` and `exclude`, `*` stands for any text and `?` for any one \
           character. Brackets and braces, which mean something in other pattern languages, are \
           refused, so that nobody relies on them.",
};

/// A name that could not be used.
pub static BAD_NAME: Code = Code {
    id: "TG020",
    title: "not a usable name",
    text: "Names of providers and servers are written in other places (`provider/model`, \
           `mcp:NAME`, `server_tool`), so they hold letters, digits, `-`, `_` and `.` only, and at \
           most 64 of them. A route's name may also hold `/`, `:` and the like, but no space.",
};

/// A route that leads nowhere.
pub static EMPTY_ROUTE: Code = Code {
    id: "TG021",
    title: "an empty route or tier",
    text: "A route needs at least one tier, and a tier at least one target: nothing could ever \
           answer a request for it.",
};

/// A target that stands twice in a route.
pub static DUPLICATE_TARGET: Code = Code {
    id: "TG022",
    title: "a target stands twice in a route",
    text: "A request visits a target at most once, so a second mention never does anything. Remove \
           one; to send a target more traffic, use `pick: weighted` and `weights`.",
};

/// A route with one target.
pub static SINGLE_TARGET: Code = Code {
    id: "TG023",
    title: "a route with a single target",
    text: "When the only target of a route is down, nothing can answer. Add a tier with a target \
           of another provider.",
};

/// A route that is not configured.
pub static UNKNOWN_ROUTE: Code = Code {
    id: "TG024",
    title: "a route that does not exist",
    text: "`default_route`, a caller's `routes` and `mcp.search.embeddings.route` name routes \
           under `routes`, by their exact name and not by a pattern.",
};

/// A server that is not configured.
pub static UNKNOWN_SERVER: Code = Code {
    id: "TG025",
    title: "a server that does not exist",
    text: "A caller's `servers` and the groups under `mcp.replicas` name servers under \
           `mcp.servers`; a caller may also name a group.",
};

/// A weight of a target that the route does not have.
pub static UNKNOWN_WEIGHT: Code = Code {
    id: "TG026",
    title: "a weight for a target that the route does not have",
    text: "`weights` names targets of the route's own tiers, written exactly as there.",
};

/// A server with two transports or none.
pub static SERVER_TRANSPORT: Code = Code {
    id: "TG027",
    title: "a server needs either a url or a command",
    text: "An MCP server is reached over HTTP (`url`) or started as a program (`command`); write \
           exactly one of them.",
};

/// `method: tool` without a tool.
pub static KEEPALIVE_WITHOUT_TOOL: Code = Code {
    id: "TG028",
    title: "a keepalive by tool needs a tool",
    text: "`method: tool` calls a tool to keep the connection alive, so the file has to say which: \
           `tool: {name: get_me}`. Choose one that is cheap and changes nothing.",
};

/// A listener that the network can reach and nothing protects.
pub static EXPOSED: Code = Code {
    id: "TG029",
    title: "a listener is open to the network",
    text: "A listener on an address other than loopback can be reached by others. The data plane \
           then needs `keys`, the admin listener a `token`; without them everybody who reaches \
           the port could spend your credit or change what the gateway does.",
};

/// `key` and `keys`.
pub static KEY_AND_KEYS: Code = Code {
    id: "TG030",
    title: "both key and keys",
    text: "A provider has one `key`, or a pool of `keys`. With both it would not be clear whether \
           the one belongs to the pool.",
};

/// A health value that makes no sense.
pub static BAD_SETTING: Code = Code {
    id: "TG031",
    title: "a setting that makes no sense",
    text: "The value has the right form but could not work: a threshold below 1, a share outside 0 \
           to 1, a growth below 1, an `open_max` shorter than `open_for`, a timeout of zero, a \
           probe every few milliseconds. The message names the rule.",
};

/// A secret in the file.
pub static LITERAL_SECRET: Code = Code {
    id: "TG032",
    title: "a secret is written into the file",
    text: "The file holds a key itself. It works, but files are copied, committed and pasted into \
           chats. Put the key into an environment variable or a file and refer to it with \
           `env:NAME` or `file:path`.",
};

/// A secret that is not there.
pub static UNRESOLVED_SECRET: Code = Code {
    id: "TG033",
    title: "a secret cannot be found",
    text: "The environment variable or file that a reference names is not there. The gateway still \
           starts: a provider without any usable key is `unconfigured`, and its targets are \
           skipped until the key is there and the file is read again.",
};

/// A name that two routes want.
pub static OVERLAPPING_MATCH: Code = Code {
    id: "TG036",
    title: "a pattern that another route overrides",
    text: "A model name leads to the route of exactly that name, and otherwise to the first route \
           in the file with a pattern that fits. The pattern shown can never, or not always, do \
           what it seems to say.",
};

/// More hops than a request could make.
pub static MANY_HOPS: Code = Code {
    id: "TG037",
    title: "very many hops",
    text: "`max_hops` is how often one request may move on to another target. Beyond a hundred it \
           bounds nothing.",
};

/// A key that changes nothing here.
pub static NO_EFFECT: Code = Code {
    id: "TG038",
    title: "a key without an effect",
    text: "The key is known and its value is fine, but with the rest of the file as it is, it \
           changes nothing.",
};

/// One address for two listeners.
pub static SAME_ADDRESS: Code = Code {
    id: "TG039",
    title: "two listeners with one address",
    text: "The data plane and the admin listener need an address each; only one of them could be \
           bound.",
};

/// One name for two things.
pub static TWICE_NAMED: Code = Code {
    id: "TG040",
    title: "one name for two things",
    text: "Two callers, or a server and a group of servers, have the same name, so that decisions \
           and tool names could not tell them apart; or a server is named as a member twice: it \
           belongs to one group at most, and once.",
};

/// A value that no header can carry.
pub static UNSENDABLE_SECRET: Code = Code {
    id: "TG050",
    title: "a secret that cannot be sent",
    text: "The value of a key, token or header holds a line break or another control character, so \
           no HTTP request can carry it. Usually the file or variable holds more than the key: a \
           second line, or a Windows line ending in the middle. One line break at the end is \
           ignored.",
};

/// A file of secrets that is open to everybody.
pub static READABLE_BY_OTHERS: Code = Code {
    id: "TG051",
    title: "a file with secrets that every user can read",
    text: "The permissions of the file let every user of this machine read it, and it holds a key. \
           Run `chmod o-rwx FILE`, or move the keys of a config file into the environment and \
           write `env:NAME`.",
};

/// Two callers that cannot be told apart.
pub static SHARED_KEY: Code = Code {
    id: "TG052",
    title: "one key for two callers",
    text: "Callers are told apart by the key that they send. Two callers with the same key are one \
           caller: the routes and servers of the first one apply to both, and logs show its name.",
};

/// A key that can be guessed.
pub static SHORT_KEY: Code = Code {
    id: "TG053",
    title: "a short key on a listener that the network can reach",
    text: "Whoever can reach a listener can try keys. A key of fewer than 16 characters may be \
           found that way. Use a long random one, such as the output of `openssl rand -hex 32`.",
};

/// A reference in the spelling of another program.
pub static FOREIGN_REFERENCE: Code = Code {
    id: "TG054",
    title: "a variable in the spelling of another program",
    text: "`$NAME`, `${NAME}` and `os.environ/NAME` are not read here: the text itself would be \
           sent as the key. Write `env:NAME` for an environment variable, or `file:path` for a \
           file.",
};

/// A file that leaves nothing to do.
pub static NOTHING_TO_SERVE: Code = Code {
    id: "TG055",
    title: "nothing to serve",
    text: "The file is empty, or it has neither `routes` nor `mcp.servers`, so no request could be \
           answered. `tidegate help config` shows a whole file; `tidegate serve --demo` serves the \
           built-in demo.",
};

/// A certificate, or its key, that no listener can present.
pub static UNUSABLE_CERTIFICATE: Code = Code {
    id: "TG060",
    title: "a certificate or key that cannot be used",
    text: "`cert` holds the listener's certificate and those that lead to its authority, `key` its \
           private key without a passphrase, `client_ca` the authorities of clients; all are PEM. \
           The file is missing, holds something else, or the key belongs to another certificate. \
           A gateway does not start with it; a running one keeps the certificate it has.",
};

/// Keys that everybody on the way can read.
pub static CLEAR_TEXT: Code = Code {
    id: "TG061",
    title: "keys are sent in clear text",
    text: "A listener on an address other than loopback speaks plain HTTP, so everybody on the way \
           can read the keys and tokens that are sent to it, and the answers. Give it a `tls` \
           section. The warning can stay if something in front of it speaks TLS for it and nobody \
           else can reach the port.",
};

/// A fleet's secret that cannot be used.
pub static FLEET_SECRET: Code = Code {
    id: "TG062",
    title: "a fleet's secret that is missing or short",
    text: "Everything that replicas put into their store is sealed with keys derived from \
           `state.secret`, and so is what they tell each other. It has at least 32 bytes and is \
           the same at every replica; make one with `openssl rand -hex 32`. A list replaces a \
           secret without a pause: the first one writes, all of them read.",
};

/// A store's url that cannot be used.
pub static STORE_URL: Code = Code {
    id: "TG063",
    title: "a store's url that cannot be used",
    text: "`state.redis` is the url of a Redis 7 or Valkey 8: `redis://host:6379`, or `rediss://` \
           for TLS, with `user:password@` and `/database` where they are needed; \
           `redis+sentinel://host:26379,host:26379/service` (`rediss+sentinel://` for TLS) for \
           one behind Sentinel; a list of several urls, or one text with commas between them, \
           for a Cluster.",
};

/// A url under which no other replica could reach this one.
pub static PEER_URL: Code = Code {
    id: "TG064",
    title: "a peer url that cannot be used",
    text: "`state.peer_url` is how other replicas reach this one's `peer_listen`: `http://`, a \
           host and a port, and nothing else. What goes over it is encrypted and authenticated \
           with the fleet's secret, so it is not `https`.",
};

/// A sentence model that cannot be used.
pub static SEARCH_MODEL: Code = Code {
    id: "TG070",
    title: "a sentence model that cannot be used",
    text: "`mcp.search.model` names an ONNX file with `tokenizer.json` beside it: a BERT that \
           gives a vector per piece of a text, such as all-MiniLM-L6-v2. It takes a build with \
           the feature `model`: `cargo build --release --features model`. A gateway starts \
           without it too: it finds tools by its embedded word model, and says `degraded` where \
           the other one would have been asked.",
};
