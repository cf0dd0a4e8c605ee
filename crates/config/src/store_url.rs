//! Urls of a fleet's store, as `state.redis` writes them.
//!
//! | written | what it is |
//! |---|---|
//! | `redis://user:password@host:6379/0` | one server; `rediss://` over TLS |
//! | `redis+sentinel://password@host:26379,host:26379/service/0` | one behind Sentinel |
//! | several urls | nodes of a Cluster |
//!
//! No message repeats a url: it may hold a password.

use tidegate_text::percent;

/// The port of a Redis.
const PORT: u16 = 6379;
/// The port of a Sentinel.
const SENTINEL_PORT: u16 = 26379;
/// More nodes than anybody lists.
const NODES_MAX: usize = 64;

/// Where a fleet's store is, and how it is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    /// What stands behind the nodes.
    pub kind: StoreKind,
    /// Host and port of each node.
    pub nodes: Vec<(String, u16)>,
    /// Whether connections are TLS.
    pub is_tls: bool,
    /// Who asks, where the store knows users.
    pub user: Option<String>,
    /// The password of the store.
    pub password: Option<String>,
}

/// How a store is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// One server, and the number of its database.
    Single {
        /// The database.
        database: i64,
    },
    /// One server that Sentinels know.
    Sentinel {
        /// What they call it.
        service: String,
        /// The database.
        database: i64,
    },
    /// A Cluster.
    Cluster,
}

impl std::fmt::Debug for StoreUrl {
    /// Without user and password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl std::fmt::Display for StoreUrl {
    /// For people: without user and password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match (&self.kind, self.is_tls) {
            (StoreKind::Sentinel { .. }, false) => "redis+sentinel",
            (StoreKind::Sentinel { .. }, true) => "rediss+sentinel",
            (_, false) => "redis",
            (_, true) => "rediss",
        };
        let nodes: Vec<String> =
            self.nodes.iter().map(|(host, port)| format!("{}:{port}", bracketed(host))).collect();
        write!(f, "{scheme}://{}", nodes.join(","))
    }
}

/// An IPv6 address as urls write it.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl StoreUrl {
    /// Understands the texts of `state.redis`.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong and never repeats a url.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut parts = Vec::new();
        for text in texts {
            // A Sentinel's url has commas of its own.
            if text.contains("+sentinel://") {
                parts.push(text.trim());
            } else {
                parts.extend(text.split(',').map(str::trim).filter(|part| !part.is_empty()));
            }
        }
        let mut urls = parts.iter().map(|part| parse_one(part)).collect::<Result<Vec<_>, _>>()?;
        let Some(mut first) = urls.pop() else { return Err("there is no url".to_owned()) };
        for other in urls.into_iter().rev() {
            first = joined(other, first)?;
        }
        if first.nodes.len() > NODES_MAX {
            return Err(format!("there are more than {NODES_MAX} nodes"));
        }
        Ok(first)
    }
}

/// Two nodes of a Cluster.
fn joined(one: StoreUrl, other: StoreUrl) -> Result<StoreUrl, String> {
    let is_node =
        |url: &StoreUrl| matches!(url.kind, StoreKind::Single { database: 0 } | StoreKind::Cluster);
    if !is_node(&one) || !is_node(&other) {
        let what = "several urls are a Cluster, which has neither Sentinels nor database numbers";
        return Err(what.to_owned());
    }
    let same = |url: &StoreUrl| (url.is_tls, url.user.clone(), url.password.clone());
    if same(&one) != same(&other) {
        let what = "the nodes of a Cluster have one scheme, one user and one password";
        return Err(what.to_owned());
    }
    let nodes = one.nodes.into_iter().chain(other.nodes).collect();
    Ok(StoreUrl { kind: StoreKind::Cluster, nodes, ..other })
}

fn parse_one(text: &str) -> Result<StoreUrl, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err("it does not start with `redis://`".to_owned());
    };
    let (is_tls, is_sentinel) = match scheme {
        "redis" => (false, false),
        "rediss" => (true, false),
        "redis+sentinel" => (false, true),
        "rediss+sentinel" => (true, true),
        _ => {
            let known = "`redis://`, `rediss://`, `redis+sentinel://` or `rediss+sentinel://`";
            return Err(format!("it does not start with {known}"));
        }
    };
    if rest.contains(['?', '#']) {
        return Err("it has a query or a fragment, and nothing there is read".to_owned());
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login))) {
        Some((user, password)) => (decoded(user)?, decoded(password)?),
        None => (None, None),
    };
    let port = if is_sentinel { SENTINEL_PORT } else { PORT };
    let nodes = hosts.split(',').map(|host| node(host, port)).collect::<Result<Vec<_>, _>>()?;
    let kind = if is_sentinel {
        let (service, database) = path.split_once('/').unwrap_or((path, ""));
        if service.is_empty() {
            return Err("it names no service behind its hosts: `…/service`".to_owned());
        }
        StoreKind::Sentinel { service: service.to_owned(), database: number(database)? }
    } else {
        StoreKind::Single { database: number(path)? }
    };
    Ok(StoreUrl { kind, nodes, is_tls, user, password })
}

fn number(text: &str) -> Result<i64, String> {
    let wrong = "what stands behind its host is not the number of a database";
    if text.is_empty() {
        return Ok(0);
    }
    text.parse::<u16>().map(i64::from).map_err(|_| wrong.to_owned())
}

fn decoded(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || "its user or password has an escape that is none".to_owned();
    percent::decoded(text).map(Some).ok_or_else(wrong)
}

fn node(text: &str, port: u16) -> Result<(String, u16), String> {
    let wrong = || "it has no usable host and port".to_owned();
    let (host, written) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("?")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(wrong());
    }
    let port = written.map_or(Ok(port), |port| port.parse().map_err(|_| wrong()))?;
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StoreUrl, String> {
        StoreUrl::parse([text])
    }

    #[test]
    fn one_server_has_host_port_login_and_database() {
        let url = parse("rediss://ops:p%40ss@cache.example:6390/3").expect("a url");
        assert_eq!(url.kind, StoreKind::Single { database: 3 });
        assert_eq!(url.nodes, [("cache.example".to_owned(), 6390)]);
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("ops"), Some("p@ss")));
        assert!(url.is_tls);
        let plain = parse("redis://[::1]").expect("a url");
        assert_eq!(plain.nodes, [("::1".to_owned(), 6379)]);
        assert_eq!(parse("redis://secret@h").expect("a url").password.as_deref(), Some("secret"));
    }

    #[test]
    fn sentinels_name_a_service() {
        let url = parse("redis+sentinel://:pw@a,b:7/main/2").expect("a url");
        assert_eq!(url.kind, StoreKind::Sentinel { service: "main".into(), database: 2 });
        assert_eq!(url.nodes, [("a".to_owned(), 26379), ("b".to_owned(), 7)]);
        assert!(parse("redis+sentinel://a").is_err_and(|it| it.contains("service")));
    }

    #[test]
    fn several_urls_are_a_cluster_of_one_kind() {
        let listed = StoreUrl::parse(["redis://a", "redis://b:7"]).expect("a cluster");
        let comma = parse("redis://a, redis://b:7").expect("a cluster");
        assert_eq!(listed, comma);
        assert_eq!(listed.kind, StoreKind::Cluster);
        assert_eq!(listed.nodes, [("a".to_owned(), 6379), ("b".to_owned(), 7)]);
        assert!(StoreUrl::parse(["redis://a", "rediss://b"]).is_err());
        assert!(StoreUrl::parse(["redis://a/1", "redis://b"]).is_err());
        assert!(StoreUrl::parse(["redis+sentinel://a/m", "redis://b"]).is_err());
    }

    #[test]
    fn nothing_else_is_taken_and_no_password_is_repeated() {
        for text in [
            "",
            "host:6379",
            "http://x",
            "redis://",
            "redis://a:x",
            "redis://a/x",
            "redis://a b",
            "redis://u:secret%zz@a",
            "redis://u:secret@a?x=y",
            "redis://u:secret@[::1",
            "redis://a:1:2",
        ] {
            let said = parse(text).expect_err(text);
            assert!(!said.contains("secret"), "{said}");
        }
        let shown = parse("redis://u:secret@a").expect("a url");
        assert_eq!(format!("{shown} {shown:?}"), "redis://a:6379 StoreUrl(redis://a:6379)");
    }
}
