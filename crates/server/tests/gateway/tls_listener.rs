//! Listeners that speak TLS: both versions of HTTP, clients with certificates, certificates that
//! change, and clients that attack with frames.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tidegate_config::secret::Environment;
use tidegate_config::source::Source;
use tidegate_gateway::prepare::StartError;
use tidegate_server::server::{Server, Start};
use tidegate_testkit::{
    gate::chat,
    time::{PATIENCE, eventually, now},
};

use crate::bed::{Setup, good, hits};

/// Files that a test can change.
#[derive(Clone, Default)]
struct Files(Arc<Mutex<Vec<(PathBuf, String)>>>);

impl Files {
    fn put(&self, path: &str, text: &str) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(known, _)| known != Path::new(path));
        files.push((path.into(), text.to_owned()));
    }
}

impl Environment for Files {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = files.iter().find(|(known, _)| known == path);
        found.map(|(_, text)| text.clone()).ok_or_else(|| "it does not exist".to_owned())
    }
}

/// A certificate for 127.0.0.1 that signs itself, and its key.
fn pair() -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).expect("a name");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn start(yaml: &str, files: &Files) -> Result<Server, StartError> {
    Server::start(Start {
        source: Source::new("test.yaml", yaml),
        path: None,
        environment: Arc::new(files.clone()),
        threads: 1,
    })
}

/// A config whose listeners both speak TLS.
fn secured(setup: &Setup<'_>, more: &str) -> String {
    let tls = format!("tls: {{cert: 'file:/cert', key: 'file:/key'{more}}}");
    let yaml = setup.yaml();
    yaml.replacen("listen: '127.0.0.1:0'", &format!("listen: '127.0.0.1:0', {tls}"), 1)
        + &tls
        + "\n"
}

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A connection that trusts one certificate, speaks one protocol, and may have a certificate.
fn connect(
    address: SocketAddr,
    trusted: &str,
    protocol: &str,
    identity: Option<(&str, &str)>,
) -> std::io::Result<Secure> {
    let parse = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(parse(trusted)).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(vec![parse(cert)], key).expect("a pair")
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let tcp = TcpStream::connect(address)?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    tcp.set_write_timeout(Some(PATIENCE))?;
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(connection, tcp);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// All that comes until the other side closes, however it does.
fn rest(stream: &mut Secure) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    all
}

/// Sends an HTTP/1.1 request that ends its connection; what comes back.
fn ask(stream: &mut Secure, line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n{headers}\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    drop(stream.write_all(request.as_bytes()));
    String::from_utf8_lossy(&rest(stream)).into_owned()
}

#[test]
fn both_listeners_speak_http_1_over_tls_with_the_same_guards() {
    let (fake, files) = (good(), Files::default());
    let (cert, key) = pair();
    files.put("/cert", &cert);
    files.put("/key", &key);
    let server = start(&secured(&Setup::of(&[&fake]), ""), &files).expect("it starts");
    let (data, admin) = (server.address(), server.admin_address());
    let open = |address| connect(address, &cert, "http/1.1", None).expect("a connection");
    let body = chat("r", true);
    let answer = ask(&mut open(data), "POST /v1/chat/completions", "", &body);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"), "{answer}");
    assert!(ask(&mut open(admin), "GET /metrics", "", "").starts_with("HTTP/1.1 200"));
    for address in [data, admin] {
        let mut stream = open(address);
        let sent = stream.write_all(b"GET /health HTTP/1.1\nhost: 127.0.0.1\r\n\r\n");
        assert!(sent.is_ok() && rest(&mut stream).starts_with(b"HTTP/1.1 400"), "a bare LF");
        let own = ask(&mut open(address), "GET /health", "origin: https://127.0.0.1\r\n", "");
        assert!(!own.starts_with("HTTP/1.1 403"), "{own}");
        let other = ask(&mut open(address), "GET /health", "origin: http://127.0.0.1\r\n", "");
        assert!(other.starts_with("HTTP/1.1 403"), "{other}");
        // Plain HTTP is answered in plain HTTP.
        let mut plain = TcpStream::connect(address).expect("somebody listens");
        plain.set_read_timeout(Some(PATIENCE)).expect("an option of a socket");
        plain.write_all(b"GET /health HTTP/1.1\r\n").expect("it is taken");
        let mut said = String::new();
        plain.read_to_string(&mut said).expect("text");
        assert!(said.starts_with("HTTP/1.1 400") && said.contains("https://"), "{said}");
    }
    assert_eq!(hits(&fake), 1);
}

#[test]
fn with_client_ca_a_client_needs_a_certificate_of_that_authority() {
    let (fake, files) = (good(), Files::default());
    let ((cert, key), known, stranger) = (pair(), pair(), pair());
    for (path, text) in [("/cert", &cert), ("/key", &key), ("/clients", &known.0)] {
        files.put(path, text);
    }
    let yaml = secured(&Setup::of(&[&fake]), ", client_ca: 'file:/clients'");
    let server = start(&yaml, &files).expect("it starts");
    for address in [server.address(), server.admin_address()] {
        let asked = |identity| {
            let stream = connect(address, &cert, "http/1.1", identity);
            stream.map_or_else(|_| String::new(), |mut it| ask(&mut it, "GET /v1/models", "", ""))
        };
        let known = asked(Some((&known.0, &known.1)));
        assert!(known.starts_with("HTTP/1.1 "), "{known}");
        assert_eq!(asked(None), "");
        assert_eq!(asked(Some((&stranger.0, &stranger.1))), "");
    }
}

#[test]
fn certificates_are_read_again_when_they_change_and_a_bad_one_is_not_taken() {
    let (fake, files) = (good(), Files::default());
    let (first, second) = (pair(), pair());
    files.put("/cert", &first.0);
    files.put("/key", &first.1);
    let server = start(&secured(&Setup::of(&[&fake]), ""), &files).expect("it starts");
    let address = server.address();
    let trusts = |cert: &str| connect(address, cert, "http/1.1", None).is_ok();
    let mut standing = connect(address, &first.0, "http/1.1", None).expect("a connection");
    // A certificate whose key has not come yet is no pair.
    files.put("/cert", &second.0);
    let began = now();
    eventually("some looks have passed", || began.elapsed() > Duration::from_secs(4));
    assert!(trusts(&first.0) && !trusts(&second.0), "the old one stays");
    files.put("/key", &second.1);
    eventually("the new one is presented", || trusts(&second.0));
    assert!(!trusts(&first.0));
    let answer = ask(&mut standing, "GET /health", "", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "a connection that stands goes on: {answer}");
}

#[test]
fn certificates_that_cannot_be_used_stop_the_start_with_a_place_in_the_file() {
    let (fake, files) = (good(), Files::default());
    files.put("/cert", &pair().0);
    files.put("/key", &pair().1);
    let error = start(&secured(&Setup::of(&[&fake]), ""), &files).err();
    let Some(StartError::Config(problems)) = error else { panic!("{error:?}") };
    let said: Vec<_> = problems.iter().map(|it| (it.code.id, it.path.to_string())).collect();
    assert_eq!(said, [("TG060", "tls.key".to_owned()), ("TG060", "admin.tls.key".to_owned())]);
    assert!(problems.iter().all(|it| it.span.is_some()));
    assert!(problems[0].message.contains("does not belong"), "{}", problems[0].message);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The fields of `GET /health`: indexed ones, and literals without indexing.
fn fields(host: &str) -> Vec<u8> {
    let literal = |name: u8, value: &str| {
        [&[name, u8::try_from(value.len()).expect("short")], value.as_bytes()].concat()
    };
    [vec![0x82, 0x87], literal(0x04, "/health"), literal(0x01, host)].concat()
}

const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 5;

/// A connection of HTTP/2 that has said hello.
fn h2(address: SocketAddr, trusted: &str) -> Secure {
    let mut stream = connect(address, trusted, "h2", None).expect("a connection");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    let hello = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &*frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&hello).expect("it is taken");
    stream
}

/// The kinds of the frames that came, as far as the last one is whole.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Some((head, payload)) = bytes.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        kinds.push(head[3]);
        bytes = payload.get(length..).unwrap_or_default();
    }
    kinds
}

#[test]
fn http_2_is_served_and_a_host_that_is_not_ours_is_refused() {
    let (fake, files) = (good(), Files::default());
    let (cert, key) = pair();
    files.put("/cert", &cert);
    files.put("/key", &key);
    let server = start(&secured(&Setup::of(&[&fake]), ""), &files).expect("it starts");
    for (host, is_served) in [("127.0.0.1", true), ("evil.test", false)] {
        let mut stream = h2(server.address(), &cert);
        let request = frame(HEADERS, WHOLE, 1, &fields(host));
        stream.write_all(&request).expect("it is taken");
        stream.sock.set_read_timeout(Some(Duration::from_secs(2))).expect("an option");
        let came = rest(&mut stream);
        assert!(kinds(&came).contains(&HEADERS), "an answer comes: {:?}", kinds(&came));
        // 200 is one byte in HPACK, and the first of the fields.
        let is_200 = came.windows(10).any(|it| it[3] == HEADERS && it[9] == 0x88);
        assert_eq!(is_200, is_served, "{host}");
    }
}

#[test]
fn s49_s50_floods_of_frames_end_their_connection_and_harm_nobody_else() {
    let (fake, files) = (good(), Files::default());
    let (cert, key) = pair();
    files.put("/cert", &cert);
    files.put("/key", &key);
    let server = start(&secured(&Setup::of(&[&fake]), ""), &files).expect("it starts");
    let address = server.address();
    let rapid_reset: Vec<u8> = (0..20_000_u32)
        .flat_map(|number| {
            let stream = 2 * number + 1;
            let request = frame(HEADERS, WHOLE, stream, &fields("127.0.0.1"));
            [request, frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
        })
        .collect();
    let mut continuation = frame(HEADERS, 1, 1, &fields("127.0.0.1"));
    (0..2000).for_each(|_| continuation.extend(frame(CONTINUATION, 0, 1, &[0; 1024])));
    for (name, flood) in [("rapid reset", rapid_reset), ("continuation", continuation)] {
        let began = now();
        let mut stream = h2(address, &cert);
        // It may be cut off while it is still sending.
        let sent = flood.chunks(16 * 1024).all(|part| stream.write_all(part).is_ok());
        let came = kinds(&rest(&mut stream));
        assert!(!sent || came.contains(&GOAWAY), "{name}: {:?}", came.len());
        assert!(began.elapsed() < Duration::from_secs(20), "{name}: {:?}", began.elapsed());
    }
    let mut pings = h2(address, &cert);
    let ping = frame(PING, 0, 0, &[7; 8]).repeat(1000);
    for _ in 0..20 {
        drop(pings.write_all(&ping));
    }
    let mut other = connect(address, &cert, "http/1.1", None).expect("a connection");
    let answer = ask(&mut other, "POST /v1/chat/completions", "", &chat("r", false));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
