//! A fleet whose store is behind TLS and a login: it works with what the documentation says, and
//! whatever is wrong with it is said in words while the gateway serves on.

mod support;

use std::fs;
use std::path::PathBuf;

use support::{Run, folder, program, run, served::Served};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{mcp::McpClient, store::Store, time::eventually};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const PASSWORD: &str = "a-password-of-the-store";

/// What docs/fleet.md says that a user of the store may do, and nothing else.
const RIGHTS: &str = "get set mget del pexpire time xadd xread xrevrange zadd \
    zrevrange zrem zremrangebyscore getrange hget hmget hset script|load evalsha @connection";

/// An authority, and the files of a certificate that it signed for `localhost`.
struct Certificates {
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificates {
    fn make(folder: &std::path::Path, name: &str) -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names to get wrong");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority {name}"));
        let key = rcgen::KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("a certificate").pem();
        let issuer = rcgen::Issuer::new(params, key);
        let params = rcgen::CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let key = rcgen::KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &issuer).expect("a certificate").pem();
        let write = |kind: &str, text: String| {
            let path = folder.join(format!("{name}-{kind}.pem"));
            fs::write(&path, text).expect("the folder takes files");
            path
        };
        Self {
            authority: write("authority", authority),
            certificate: write("certificate", signed),
            key: write("key", key.serialize_pem()),
        }
    }
}

/// A store that speaks TLS only, and knows one user.
fn secure_store(files: &Certificates) -> Store {
    let path = |path: &PathBuf| path.to_str().expect("a path of the build").to_owned();
    let (certificate, key) = (path(&files.certificate), path(&files.key));
    let authority = path(&files.authority);
    let port = tidegate_testkit::store::free_address().port().to_string();
    let password = format!(">{PASSWORD}");
    let rights: Vec<String> = RIGHTS.split(' ').map(|it| format!("+{it}")).collect();
    let mut options = vec!["--tls-port", &port, "--tls-auth-clients", "no"];
    options.extend(["--tls-cert-file", &certificate, "--tls-key-file", &key]);
    options.extend(["--tls-ca-cert-file", &authority, "--user", "default", "off"]);
    options.extend(["--user", "tide", "on", &password, "resetchannels", "-@all"]);
    options.extend(["~{tidegate:prod}:*", "~tidegate:prod:*"]);
    options.extend(rights.iter().map(String::as_str));
    Store::start_secure(&options, port.parse().expect("a port"))
}

struct TlsBed {
    folder: PathBuf,
    fake: FakeMcpServer,
}

impl TlsBed {
    fn new(test: &str) -> Self {
        let script = McpScript::of(vec![Tool::new("count", ToolAct::Count)]);
        Self { folder: folder(&format!("fleet-tls-{test}")), fake: FakeMcpServer::start(script) }
    }

    fn command(&self, url: &str, authority: &PathBuf, name: &str) -> std::process::Command {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).expect("the folder takes folders");
        let yaml = format!(
            "mcp: {{servers: {{a: {{url: '{}'}}}}}}\nstate: {{redis: env:STORE, secret: env:FLEET, \
             fleet: prod, replica: {name}, timeout: 2s, peer_listen: '127.0.0.1:0'}}\n",
            self.fake.url()
        );
        fs::write(folder.join("tidegate.yaml"), yaml).expect("the folder takes files");
        let mut command = program(&folder);
        command.env("FLEET", SECRET).env("STORE", url).env("SSL_CERT_FILE", authority);
        command
    }

    fn check(&self, url: &str, authority: &PathBuf) -> Run {
        let done = run(self.command(url, authority, "checked").args(["check", "--connect"]));
        assert!(!format!("{done:?}").contains(PASSWORD), "a password is shown: {done:?}");
        done
    }

    fn serve(&self, url: &str, authority: &PathBuf, name: &str) -> Served {
        let mut command = self.command(url, authority, name);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        Served::spawn(&mut command)
    }

    fn status(&self, served: &Served) -> String {
        let url = format!("http://{}", served.admin);
        run(program(&self.folder).args(["status", "--admin", &url])).stdout
    }
}

fn at(served: &Served) -> std::net::SocketAddr {
    served.address.parse().expect("an address")
}

#[test]
fn replicas_share_over_tls_and_a_login_with_the_rights_that_the_documentation_lists() {
    let bed = TlsBed::new("good");
    let files = Certificates::make(&bed.folder, "own");
    let store = secure_store(&files);
    let url = format!("rediss://tide:{PASSWORD}@localhost:{}", store.port());
    let checked = bed.check(&url, &files.authority);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let mut first = bed.serve(&url, &files.authority, "one");
    let mut second = bed.serve(&url, &files.authority, "two");
    for replica in [&mut first, &mut second] {
        replica.until("other replicas reach this one");
    }
    let client = McpClient::open(at(&first));
    assert!(client.text("count").ends_with("call 1"));
    assert!(client.at(at(&second)).text("count").ends_with("call 2"), "found through the store");
    eventually("both are known", || bed.status(&first).contains("2 replicas"));
    for said in [first.stop(), second.stop()] {
        let said = said.join("\n");
        assert!(!said.contains("NOPERM") && !said.contains("is away"), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
}

#[test]
fn what_is_wrong_with_tls_or_the_login_is_said_and_the_gateway_serves_on() {
    let bed = TlsBed::new("bad");
    let (files, others) =
        (Certificates::make(&bed.folder, "own"), Certificates::make(&bed.folder, "other"));
    let (store, plain) = (secure_store(&files), Store::start());
    let at_host =
        |host: &str, password: &str, port: u16| format!("rediss://tide:{password}@{host}:{port}");
    let port = store.port();
    let cases = [
        (at_host("localhost", PASSWORD, port), &others, "signed by no authority"),
        (at_host("127.0.0.1", PASSWORD, port), &files, "for another host"),
        (at_host("localhost", "wrong", port), &files, "it refuses the login"),
        (at_host("localhost", PASSWORD, plain.port()), &files, "does it speak TLS?"),
    ];
    for (number, (url, files, words)) in cases.iter().enumerate() {
        let checked = bed.check(url, &files.authority);
        assert_ne!(checked.code, Some(0), "{words}: {checked:?}");
        assert!(checked.stdout.contains(words), "{words}: {checked:?}");
        let mut served = bed.serve(url, &files.authority, &format!("replica-{number}"));
        let line = served.until("the fleet's store is away: going on alone");
        assert!(line.contains(words), "{words}: {line}");
        let client = McpClient::open(at(&served));
        assert!(client.text("count").contains("call 1"), "it serves alone");
        assert!(bed.status(&served).contains(words), "{}", bed.status(&served));
    }
}
