//! Requests that come round in a loop: every gateway adds its mark to what it sends upstream, and
//! refuses what carries its own (S58).

use http::{HeaderMap, HeaderName, HeaderValue};

/// Where gateways say that a request has passed them.
pub const PASSED: HeaderName = HeaderName::from_static("x-tidegate-passed");
/// More gateways in a row than anybody sets up on purpose, at 18 bytes each.
const PASSED_MAX: usize = 160;

/// The gateways that a request has passed, and this one; `None` if it is among them already, or if
/// there are too many (S58).
pub fn passed(headers: &HeaderMap, own: &HeaderValue) -> Option<HeaderValue> {
    if !headers.contains_key(PASSED) {
        return Some(own.clone());
    }
    let mut marks = Vec::new();
    for before in headers.get_all(PASSED) {
        let is_ours = memchr::memmem::find(before.as_bytes(), own.as_bytes()).is_some();
        if is_ours || marks.len() + before.len() > PASSED_MAX {
            return None;
        }
        marks.extend_from_slice(before.as_bytes());
        marks.extend_from_slice(b", ");
    }
    marks.extend_from_slice(own.as_bytes());
    HeaderValue::try_from(marks).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s58_a_request_that_was_here_before_is_known() {
        let own = HeaderValue::from_static("00000000000000aa");
        let sent =
            |text: &'static str| HeaderMap::from_iter([(PASSED, HeaderValue::from_static(text))]);
        assert_eq!(passed(&HeaderMap::new(), &own), Some(own.clone()));
        let both = HeaderValue::from_static("00000000000000bb, 00000000000000aa");
        assert_eq!(passed(&sent("00000000000000bb"), &own), Some(both));
        assert_eq!(passed(&sent("00000000000000aa, 00000000000000bb"), &own), None);
        let mut two = sent("00000000000000bb");
        two.append(PASSED, HeaderValue::from_static("00000000000000cc"));
        let all = "00000000000000bb, 00000000000000cc, 00000000000000aa";
        assert_eq!(passed(&two, &own), Some(HeaderValue::from_static(all)));
        two.append(PASSED, own.clone());
        assert_eq!(passed(&two, &own), None, "every mark is read");
        let mut many = HeaderMap::new();
        for _ in 0..20 {
            many.append(PASSED, HeaderValue::from_static("00000000000000bb"));
        }
        assert_eq!(passed(&many, &own), None, "their number is bounded");
    }
}
