//! Asks a local Ollama which models it has, within two seconds.
//!
//! Only literal addresses and `localhost` are asked: resolving a name has no deadline, and a
//! server elsewhere is not local. Plain HTTP/1.0 is enough: the answer then ends with the
//! connection, and no library for clients is needed before there is a config.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tidegate_init::OllamaModels;

/// A server on the same machine connects at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one read may wait.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// More than the list of any machine's models.
const MAX_BYTES: u64 = 1024 * 1024;
/// How long the whole question may take, whatever the peer does.
const TIMEOUT: Duration = Duration::from_millis(1500);
const PORT: u16 = 11434;

/// The models of the Ollama at `OLLAMA_HOST`, else at its usual address; none if none answers.
pub(super) fn ask() -> Option<OllamaModels> {
    let host = std::env::var("OLLAMA_HOST").unwrap_or_default();
    let address = address(&host)?;
    // A peer that sends a byte now and then never lets a read time out, so the question is asked
    // in a thread that ends with the process.
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(fetch(address)));
    let models = models(&receiver.recv_timeout(TIMEOUT).ok()?.ok()?)?;
    Some(OllamaModels { url: format!("http://{address}"), models })
}

/// `127.0.0.1`, `127.0.0.1:11434`, `http://localhost:11434`, `:11434`, `0.0.0.0`, or nothing.
fn address(host: &str) -> Option<SocketAddr> {
    let host = host.trim().strip_prefix("http://").unwrap_or(host.trim()).trim_end_matches('/');
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Some(local(address));
    }
    if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(local(SocketAddr::new(ip, PORT)));
    }
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let port = if port.is_empty() { PORT } else { port.parse().ok()? };
    let is_local = name.is_empty() || name == "localhost";
    is_local.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// What a server that listens everywhere is reached by.
fn local(address: SocketAddr) -> SocketAddr {
    let ip = if address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { address.ip() };
    SocketAddr::new(ip, address.port())
}

fn fetch(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(READ_TIMEOUT))?;
    // In one piece: a server that reads once must get it all.
    let request =
        format!("GET /api/tags HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The names in Ollama's list; none if the answer is none of Ollama's.
fn models(answer: &str) -> Option<Vec<String>> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_ok = head.lines().next()?.split(' ').nth(1) == Some("200");
    let body: Value = serde_json::from_str(body).ok().filter(|_| is_ok)?;
    let names = body["models"].as_array()?.iter().filter_map(|model| model["name"].as_str());
    Some(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{address, models};

    #[test]
    fn the_ways_to_write_ollamas_address_are_known_and_other_hosts_are_not_asked() {
        for (host, expected) in [
            ("", Some("127.0.0.1:11434")),
            ("0.0.0.0", Some("127.0.0.1:11434")),
            (":9", Some("127.0.0.1:9")),
            ("localhost", Some("127.0.0.1:11434")),
            ("http://localhost:9/", Some("127.0.0.1:9")),
            ("10.0.0.7:9", Some("10.0.0.7:9")),
            ("[::1]", Some("[::1]:11434")),
            ("gpu.example.com:9", None),
            ("https://localhost", None),
        ] {
            let found = address(host).map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{host}");
        }
    }

    #[test]
    fn only_a_list_of_models_is_taken_for_ollamas() {
        let list = "HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"models\":[{\"name\":\"qwen3:8b\"},{}]}";
        assert_eq!(models(list), Some(vec!["qwen3:8b".to_owned()]));
        for other in ["", "HTTP/1.0 404 Not Found\r\n\r\n{\"models\":[]}", "x\r\n\r\n{}", "SSH-2.0"]
        {
            assert_eq!(models(other), None, "{other}");
        }
    }
}
