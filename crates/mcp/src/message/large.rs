//! Large arguments, set aside: whoever decides where a call goes does not read them.
//!
//! ```text
//!   {"method":"tools/call","params":{"name":"x","arguments":{ …megabytes… }}}
//!   {"method":"tools/call","params":{"name":"x","arguments":"TOKEN"}}   + { …megabytes… }
//! ```
//! A message is taken apart several times on its way, each time from end to end. One thread does it
//! for everybody, so the time that large arguments take there is every client's. They are set aside
//! before ([`set_aside`]), on another thread, and put back when the call is sent ([`put_back`]).
//!
//! Rules kept here:
//! - The whole message is checked before anything is set aside; a fault is told as for any other.
//! - What is put back is what came, byte for byte.
//! - The token must be one that no message can contain by chance or on purpose: random.

use super::{Fault, Message, Params, is_batch, request};
use crate::raw::quoted;

/// Messages above this are worth it.
pub const LARGE: usize = 64 * 1024;

/// A request without its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside<'a> {
    /// The message, with the token in the place of the arguments.
    pub message: String,
    /// The arguments.
    pub arguments: &'a str,
}

/// Sets the arguments of a large request aside; none if it has no large ones.
///
/// # Errors
/// What is wrong with the message.
pub fn set_aside<'a>(body: &'a [u8], token: &str) -> Result<Option<SetAside<'a>>, Fault> {
    if is_batch(body) {
        return Ok(None);
    }
    let Message::Request { id, method, params: Some(params) } = Message::parse(body)? else {
        return Ok(None);
    };
    if !matches!(&*method, "tools/call" | "prompts/get") {
        return Ok(None);
    }
    // Flawed params are told by whoever answers the request.
    let Ok(mut params) = Params::parse(Some(params)) else { return Ok(None) };
    let Some(arguments) = params.source("arguments").filter(|it| it.get().len() > LARGE / 2) else {
        return Ok(None);
    };
    params.set_text("arguments", token);
    let message = request(&id, &method, Some(&params.to_json()));
    Ok(Some(SetAside { message, arguments: arguments.get() }))
}

/// Puts arguments back in the place of their token.
#[must_use]
pub fn put_back(message: &str, token: &str, arguments: &str) -> String {
    let token = quoted(token);
    match message.split_once(token.as_str()) {
        Some((before, after)) => [before, arguments, after].concat(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "tidegate.aside.0123";

    fn call(method: &str, arguments: &str) -> String {
        let params = format!(r#"{{"name":"x","arguments":{arguments},"_meta":{{"a":1}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
    }

    #[test]
    fn what_was_set_aside_comes_back_byte_for_byte() {
        let arguments = format!(r#"{{ "b" : "{}", "a":1.0 }}"#, "x".repeat(LARGE));
        let whole = call("tools/call", &arguments);
        let aside = set_aside(whole.as_bytes(), TOKEN).expect("sound").expect("large");
        assert!(aside.message.len() < 200, "{}", aside.message);
        assert_eq!(aside.arguments, arguments);
        assert_eq!(put_back(&aside.message, TOKEN, aside.arguments), whole);
    }

    #[test]
    fn what_is_small_or_no_call_stays_as_it_is() {
        let large = format!(r#""{}""#, "x".repeat(LARGE));
        let batch = format!("[{}]", call("tools/call", &large));
        for body in [call("tools/call", "{}"), call("resources/read", &large), batch] {
            assert_eq!(set_aside(body.as_bytes(), TOKEN), Ok(None));
        }
        let two = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{large}}}"#);
        assert_eq!(set_aside(two.as_bytes(), TOKEN), Ok(None));
    }

    #[test]
    fn a_fault_is_told_and_nothing_is_set_aside() {
        let cut = &call("tools/call", &format!(r#"{{"a":"{}"}}"#, "x".repeat(LARGE)))[..LARGE];
        assert!(set_aside(cut.as_bytes(), TOKEN).is_err());
    }
}
