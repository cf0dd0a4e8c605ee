//! One request over a connection whose other side is a script, and what came of it.

mod against_hyper;
mod answers;
mod requests;

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::H1;
use crate::upstream::{Io, SendError, SplicedBody, UpstreamError};

/// Larger than any request or answer of these tests, so that neither side waits for the other.
const ROOM: usize = 1024 * 1024;

/// What came of a request.
#[derive(Debug)]
struct Exchange {
    response: Response<()>,
    body: Result<Vec<u8>, UpstreamError>,
    /// How many pieces the body came in.
    pieces: usize,
    h1: H1,
    /// The other side, where it stays open.
    _server: Option<DuplexStream>,
}

/// Sends a request to a server that says these parts, one after the other, and then ends.
async fn exchange(request: Request<SplicedBody>, parts: &[&[u8]]) -> Result<Exchange, SendError> {
    exchange_with(request, parts, Ending::Close).await
}

/// What the server does after its last word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Close,
    StayOpen,
}

async fn exchange_with(
    request: Request<SplicedBody>,
    parts: &[&[u8]],
    ending: Ending,
) -> Result<Exchange, SendError> {
    let (ours, theirs) = duplex(ROOM);
    let mut h1 = H1::new(Io::Inside(ours));
    let script = say(theirs, parts, ending);
    let asked = async {
        let response = h1.send(request).await?;
        let mut body = Vec::new();
        let mut pieces = 0;
        loop {
            match std::future::poll_fn(|cx| h1.poll_data(cx)).await {
                None => break Ok::<_, SendError>((response, Ok(body), pieces)),
                Some(Err(error)) => break Ok((response, Err(error), pieces)),
                Some(Ok(data)) => {
                    pieces += 1;
                    body.extend_from_slice(&data);
                }
            }
        }
    };
    let (theirs, asked) = tokio::join!(script, asked);
    let (response, body, pieces) = asked?;
    Ok(Exchange { response, body, pieces, h1, _server: theirs })
}

/// Plays the server, which hears the request first: each part is its own read for the other side.
async fn say(mut theirs: DuplexStream, parts: &[&[u8]], ending: Ending) -> Option<DuplexStream> {
    let mut heard = [0; 4096];
    let len = theirs.read(&mut heard).await.unwrap_or_default();
    assert!(heard[..len].windows(4).any(|it| it == b"\r\n\r\n"), "requests are one write");
    for part in parts {
        if theirs.write_all(part).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    (ending == Ending::StayOpen).then_some(theirs)
}

fn get() -> Request<SplicedBody> {
    let request = Request::get("/v1/models").header("host", "example.test");
    request.body(SplicedBody::default()).expect("a request")
}

fn post(body: &'static str) -> Request<SplicedBody> {
    let body = SplicedBody::new([body.into(), Bytes::new(), Bytes::new()]);
    Request::post("/v1/chat?x=1").header("host", "example.test").body(body).expect("a request")
}

/// Everything that a request puts on the wire.
async fn on_the_wire(request: Request<SplicedBody>) -> String {
    let (ours, mut theirs) = duplex(ROOM);
    let mut h1 = H1::new(Io::Inside(ours));
    let mut seen = vec![0; ROOM];
    let answered = async {
        let len = theirs.read(&mut seen).await.expect("a request comes");
        theirs.write_all(b"HTTP/1.1 204 No\r\n\r\n").await.expect("room for the answer");
        len
    };
    let (len, response) = tokio::join!(answered, h1.send(request));
    assert_eq!(response.expect("an answer").status(), 204);
    String::from_utf8(seen[..len].to_vec()).expect("text")
}
