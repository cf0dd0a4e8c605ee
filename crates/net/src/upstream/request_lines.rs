//! A request to an upstream as lines: each header is written once, from where it stands.
//!
//! Why it exists: a map of headers is made to be searched. A request of the data plane is put
//! together and sent, and nobody looks anything up in it; its headers are the client's, the
//! provider's and a few constants, all of which outlive it. So it borrows them.
//!
//! Over HTTP/1.1 it becomes bytes at once; over HTTP/2 it becomes a request of the library's.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, uri::PathAndQuery};

use super::SplicedBody;

/// Room for the headers of a usual request.
const USUAL: usize = 16;

/// A POST on its way out. Its length follows from its body.
#[derive(Debug)]
pub struct RequestLines<'a> {
    path: PathAndQuery,
    headers: Vec<(&'a HeaderName, &'a HeaderValue)>,
    body: SplicedBody,
}

impl<'a> RequestLines<'a> {
    /// A request without headers; `None` if the path is none.
    pub fn post(path: String, body: SplicedBody) -> Option<Self> {
        let path = PathAndQuery::from_maybe_shared(Bytes::from(path)).ok()?;
        Some(Self { path, headers: Vec::with_capacity(USUAL), body })
    }

    /// Adds a header, beside others of its name.
    pub fn add(&mut self, name: &'a HeaderName, value: &'a HeaderValue) {
        self.headers.push((name, value));
    }

    /// Puts a header in the place of all others of its name.
    pub fn set(&mut self, name: &'a HeaderName, value: &'a HeaderValue) {
        let Some(first) = self.headers.iter().position(|(known, _)| *known == name) else {
            return self.headers.push((name, value));
        };
        self.headers[first].1 = value;
        let mut at = 0;
        self.headers.retain(|(known, _)| {
            at += 1;
            at - 1 <= first || *known != name
        });
    }

    /// Takes headers out.
    pub fn remove(&mut self, is_out: impl Fn(&HeaderName) -> bool) {
        self.headers.retain(|(name, _)| !is_out(name));
    }

    pub fn contains(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|(known, _)| *known == name)
    }

    /// The names and values, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.headers.iter().map(|(name, value)| (*name, *value))
    }

    /// The path with its query.
    pub fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// Its bytes up to the body, and the body.
    pub(super) fn written(self) -> (Bytes, SplicedBody) {
        let lines = self.headers.iter().map(|(name, value)| (*name, *value));
        let length = Some(self.body.len());
        (super::h1::written(&Method::POST, &self.path, lines, length), self.body)
    }

    /// The same as a request of the library's.
    pub(super) fn into_request(self) -> Request<SplicedBody> {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 1);
        for (name, value) in self.headers {
            headers.append(name.clone(), value.clone());
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        let mut request = Request::new(self.body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from(self.path);
        *request.headers_mut() = headers;
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(values: &[HeaderValue]) -> RequestLines<'_> {
        static OTHER: HeaderName = HeaderName::from_static("x-other");
        static ACCEPT: HeaderName = header::ACCEPT;
        let body = SplicedBody::new([Bytes::from_static(b"{}"), Bytes::new(), Bytes::new()]);
        let mut lines = RequestLines::post("/v1/x?a=b".to_owned(), body).expect("a path");
        lines.add(&ACCEPT, &values[0]);
        lines.add(&OTHER, &values[1]);
        lines.add(&ACCEPT, &values[2]);
        lines
    }

    #[test]
    fn a_header_that_is_set_takes_the_place_of_all_of_its_name() {
        let values = ["0", "1", "2", "3"].map(HeaderValue::from_static);
        let names = [header::ACCEPT, header::HOST];
        let mut lines = lines(&values);
        lines.set(&names[0], &values[3]);
        lines.set(&names[1], &values[0]);
        let (written, body) = lines.written();
        let expected = "POST /v1/x?a=b HTTP/1.1\r\naccept: 3\r\nx-other: 1\r\nhost: 0\r\n\
                        content-length: 2\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&written), expected);
        assert_eq!(body.len(), 2);
    }

    #[test]
    fn both_protocols_get_the_same() {
        let values = ["0", "1", "2"].map(HeaderValue::from_static);
        let request = lines(&values).into_request();
        assert_eq!(
            (request.method(), request.uri().to_string().as_str()),
            (&Method::POST, "/v1/x?a=b")
        );
        let told: Vec<_> = request.headers().get_all(header::ACCEPT).iter().collect();
        assert_eq!(told, [&values[0], &values[2]]);
        assert_eq!(request.headers()[header::CONTENT_LENGTH], "2");
        let (written, _) = lines(&values).written();
        for (name, value) in request.headers() {
            let line = format!("{name}: {}\r\n", value.to_str().expect("text"));
            assert!(String::from_utf8_lossy(&written).contains(&line), "{line}");
        }
    }

    #[test]
    fn what_is_no_path_is_not_sent() {
        for path in ["/a b", "/a\r\nx: y", "/\u{0}"] {
            assert!(
                RequestLines::post(path.to_owned(), SplicedBody::default()).is_none(),
                "{path:?}"
            );
        }
    }
}
