//! The dashboard's files: all of them are served, with the right headers, and nothing else is.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use http_body_util::BodyExt;
use tidegate_config::secret::FixedEnvironment;

use super::*;

/// Files of `web/` that no page loads.
const NOT_SERVED: [&str; 4] = [".md", ".yaml", ".d.mts", "SHA256SUMS"];

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

/// Every file below `web/`, by its path from there.
fn on_disk() -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![web()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(web()).expect("it is below").to_string_lossy();
            let name = name.into_owned();
            found.insert(name, fs::read(&path).expect("it can be read"));
        }
    }
    found
}

fn with_folder(folder: &str) -> FixedEnvironment {
    let variables = vec![(FOLDER.to_owned(), folder.to_owned())];
    FixedEnvironment { variables, ..FixedEnvironment::default() }
}

fn get(path: &str, tag: Option<&str>, environment: &FixedEnvironment) -> Response<ClientBody> {
    let mut headers = HeaderMap::new();
    if let Some(tag) = tag {
        headers.insert(header::IF_NONE_MATCH, tag.parse().expect("a header"));
    }
    asset(&Method::GET, path, &headers, environment).expect("a path of the dashboard")
}

fn header_of<'a>(response: &'a Response<ClientBody>, name: &str) -> &'a str {
    response.headers().get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
}

async fn body_of(response: Response<ClientBody>) -> Bytes {
    response.into_body().collect().await.expect("a body").to_bytes()
}

#[tokio::test]
async fn every_file_of_the_folder_is_served_as_it_is() {
    let files = on_disk();
    let served: Vec<&String> =
        files.keys().filter(|name| !NOT_SERVED.iter().any(|end| name.ends_with(end))).collect();
    let table: Vec<&str> = FILES.iter().map(|file| file.path).collect();
    assert_eq!(table, served, "crates/operator/src/admin/page/files.rs lists the files of web/");
    for name in served {
        let answer = get(&format!("/web/{name}"), None, &FixedEnvironment::default());
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
        assert_eq!(body_of(answer).await, files[name], "{name}");
    }
}

#[test]
fn third_party_files_are_those_of_their_packages() {
    let files = on_disk();
    let sums = String::from_utf8(files["vendor/SHA256SUMS"].clone()).expect("text");
    let mut hashed = Vec::new();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").expect("a sum and a name");
        let digest = Sha256::digest(&files[&format!("vendor/{name}")]);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, sum, "vendor/{name} was changed");
        hashed.push(format!("vendor/{name}"));
    }
    let vendored = FILES.iter().map(|file| file.path).filter(|path| path.starts_with("vendor/"));
    for path in vendored {
        assert!(hashed.iter().any(|it| it == path), "{path} has no hash in SHA256SUMS");
    }
}

#[test]
fn files_come_with_their_type_and_a_strict_policy() {
    let environment = FixedEnvironment::default();
    for (path, kind) in [
        ("/web/main.js", "text/javascript; charset=utf-8"),
        ("/web/vendor/preact.mjs", "text/javascript; charset=utf-8"),
        ("/web/style/page.css", "text/css; charset=utf-8"),
        ("/web/icon.svg", "image/svg+xml"),
        ("/web/demo/recording.json", "application/json"),
    ] {
        let answer = get(path, None, &environment);
        assert_eq!(header_of(&answer, "content-type"), kind, "{path}");
        assert_eq!(header_of(&answer, "x-content-type-options"), "nosniff", "{path}");
    }
    let page = index(StatusCode::OK, &environment);
    assert_eq!(header_of(&page, "content-type"), "text/html; charset=utf-8");
    let policy = header_of(&page, "content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(header_of(&page, "x-frame-options"), "DENY");
}

#[test]
fn no_page_names_another_host() {
    for (name, bytes) in on_disk() {
        let is_page = name.ends_with(".html") || name.ends_with(".css");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!is_page || !text.contains("//"), "{name} loads something from outside");
    }
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_not_sent_again() {
    let environment = FixedEnvironment::default();
    let first = get("/web/main.js", None, &environment);
    let tag = header_of(&first, "etag").to_owned();
    assert_eq!(tag.len(), 34);
    let again = get("/web/main.js", Some(&tag), &environment);
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(body_of(again).await.is_empty());
    let other = get("/web/main.js", Some("\"0\""), &environment);
    assert_eq!(other.status(), StatusCode::OK);
}

#[test]
fn what_is_not_in_the_table_is_not_found() {
    let folder = web().to_string_lossy().into_owned();
    let environment = with_folder(&folder);
    for path in [
        "/web/",
        "/web/no.js",
        "/web/../Cargo.toml",
        "/web/%2e%2e/Cargo.toml",
        "/web//etc/passwd",
        "/web/vendor/SHA256SUMS",
        "/web/demo/outage.yaml",
    ] {
        assert_eq!(get(path, None, &environment).status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert!(asset(&Method::GET, "/metrics", &HeaderMap::new(), &environment).is_none());
    let posted = asset(&Method::POST, "/web/main.js", &HeaderMap::new(), &environment);
    assert_eq!(posted.map(|it| it.status()), Some(StatusCode::NOT_FOUND));
}

#[tokio::test]
async fn files_are_read_from_disk_where_the_environment_names_a_folder() {
    let folder = std::env::temp_dir().join(format!("tidegate-web-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("main.js"), "// changed\n").expect("a file");
    let named = folder.to_string_lossy().into_owned();
    let environment = with_folder(&named);
    let changed = body_of(get("/web/main.js", None, &environment)).await;
    // What the folder does not have comes from the binary.
    let kept = get("/web/icon.svg", None, &environment).status();
    drop(fs::remove_dir_all(&folder));
    assert_eq!(changed, Bytes::from_static(b"// changed\n"));
    assert_eq!(kept, StatusCode::OK);
}
