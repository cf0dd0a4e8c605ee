//! The hidden `tidegate __fake`, as tests in other languages use it.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use support::{folder, program, run};

#[test]
fn a_fake_prints_its_url_answers_there_and_ends_with_its_stdin() {
    let folder = folder("fake-answers");
    fs::write(folder.join("script.json"), r#"{"name": "ebb"}"#).expect("the folder takes files");
    let mut command = program(&folder);
    command.args(["__fake", "--script", "script.json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let stdin = child.stdin.take().expect("it was piped");
    let mut url = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("it was piped"));
    stdout.read_line(&mut url).expect("it prints UTF-8");

    let address = url.trim_end().strip_prefix("http://").expect("a url");
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}]}"#;
    let length = body.len();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: fake\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    assert!(answer.contains("ebb as m heard: hi"), "{answer}");

    drop(stdin);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_script_that_is_missing_or_wrong_is_3_and_a_taken_address_5() {
    let folder = folder("fake-refuses");
    fs::write(folder.join("wrong.json"), r#"{"step": []}"#).expect("the folder takes files");
    for (script, words) in [("none.json", "cannot be read"), ("wrong.json", "unknown field `step`")]
    {
        let refused = run(program(&folder).args(["__fake", "--script", script]));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""), "{script}");
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let taken = listener.local_addr().expect("it is bound").to_string();
    let refused = run(program(&folder).args(["__fake", "--listen", &taken]));
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("cannot listen on"), "{}", refused.stderr);
}
