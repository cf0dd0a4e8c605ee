//! Signing in: the admin token, once, for a cookie.
//!
//! Why it exists: a browser's event stream cannot carry an `authorization` header.
//!
//! Rules kept here:
//! - The cookie holds a random name of a login, never the token. It is `HttpOnly`, so no script
//!   reads it, and `SameSite=Strict`, so no other site makes a browser send it.
//! - With a cookie, whatever changes something also needs the header `x-tidegate-csrf`, which a
//!   page of another origin cannot send without being asked for permission first, and is not given.
//! - Logins are few, end after half a day, and with the token that they were made with.
//! - Guessing is slow: so many tries in ten seconds, over all.

use std::cell::RefCell;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_core::time::{Millis, Now};
use tidegate_gateway::admin_token::AdminToken;
use tidegate_net::secret::random_hex;

/// The cookie's name.
const COOKIE: &str = "tidegate_admin";
/// What every change by cookie carries.
const CSRF: HeaderName = HeaderName::from_static("x-tidegate-csrf");
/// A working day and a little more.
const LIFE: Millis = Millis::minutes(12 * 60);
/// More than the operators of one gateway have browsers.
const LOGINS_MAX: usize = 64;
/// Tries that may be wrong within [`TRY_WINDOW`].
const TRIES: u32 = 5;
const TRY_WINDOW: Millis = Millis::seconds(10);

/// Who is signed in.
#[derive(Debug, Default)]
pub(super) struct Logins(RefCell<LoginTable>);

#[derive(Debug, Default)]
struct LoginTable {
    logins: Vec<Login>,
    tries: (Now, u32),
}

#[derive(Debug)]
struct Login {
    /// The digest of the cookie's value.
    digest: [u8; 32],
    /// The token it was made with.
    token: AdminToken,
    expires: Now,
}

/// `POST /api/login`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Credentials {
    pub(super) token: String,
}

/// What a try to sign in comes to.
pub(super) enum SignIn {
    /// The cookie to set, and when it ends.
    Done(HeaderValue, Now),
    /// The token is wrong.
    Wrong,
    /// There were too many wrong ones just now.
    TooMany(Millis),
    /// There is no token that anybody could send, or no randomness for a cookie.
    Impossible(&'static str),
}

/// What a request's cookie opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CookieUse {
    /// There is none that is known.
    None,
    /// It is known, but what is asked for changes something and the header is missing.
    Unsafe,
    /// It is known.
    Good,
}

impl Logins {
    /// Signs in.
    pub(super) fn sign_in(
        &self,
        now: Now,
        token: &AdminToken,
        credentials: &Credentials,
        is_tls: bool,
    ) -> SignIn {
        let mut table = self.0.borrow_mut();
        if now.since(table.tries.0) >= TRY_WINDOW {
            table.tries = (now, 0);
        }
        if table.tries.1 >= TRIES {
            return SignIn::TooMany(table.tries.0.after(TRY_WINDOW).since(now));
        }
        if !matches!(token, AdminToken::Known(_)) {
            return SignIn::Impossible(
                "there is no admin token to sign in with: set `admin.token`",
            );
        }
        if !token.is(credentials.token.as_bytes()) {
            table.tries.1 += 1;
            return SignIn::Wrong;
        }
        let Some(name) = random_hex::<32>() else {
            return SignIn::Impossible("the system gives no randomness for a cookie");
        };
        table.logins.retain(|login| !now.reached(login.expires));
        if table.logins.len() >= LOGINS_MAX {
            table.logins.remove(0);
        }
        let expires = now.after(LIFE);
        table.logins.push(Login { digest: digest(name.as_bytes()), token: token.clone(), expires });
        match cookie(&name, LIFE.0 / 1000, is_tls) {
            Some(cookie) => SignIn::Done(cookie, expires),
            None => SignIn::Impossible("a cookie cannot be written"),
        }
    }

    /// Signs out; the cookie that takes the other's place.
    pub(super) fn sign_out(&self, headers: &HeaderMap, is_tls: bool) -> Option<HeaderValue> {
        if let Some(name) = presented(headers) {
            let sent = digest(name.as_bytes());
            let mut table = self.0.borrow_mut();
            table.logins.retain(|login| !bool::from(login.digest.ct_eq(&sent)));
        }
        cookie("", 0, is_tls)
    }

    /// What the cookie of a request opens.
    pub(super) fn check(
        &self,
        now: Now,
        token: &AdminToken,
        headers: &HeaderMap,
        is_change: bool,
    ) -> CookieUse {
        let Some(name) = presented(headers) else { return CookieUse::None };
        let sent = digest(name.as_bytes());
        let is_it = |login: &Login| {
            bool::from(login.digest.ct_eq(&sent))
                && login.token == *token
                && !now.reached(login.expires)
        };
        if !self.0.borrow().logins.iter().any(is_it) {
            CookieUse::None
        } else if is_change && !headers.contains_key(&CSRF) {
            CookieUse::Unsafe
        } else {
            CookieUse::Good
        }
    }
}

/// The value of our cookie among those that a browser sends.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
    let found = pairs.find(|(name, _)| name.trim() == COOKIE);
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

fn cookie(name: &str, seconds: u64, is_tls: bool) -> Option<HeaderValue> {
    let secure = if is_tls { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={name}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).ok()
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// What the status of a try is.
pub(super) const fn status_of(sign_in: &SignIn) -> StatusCode {
    match sign_in {
        SignIn::Done(..) => StatusCode::OK,
        SignIn::Wrong => StatusCode::UNAUTHORIZED,
        SignIn::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
        SignIn::Impossible(_) => StatusCode::CONFLICT,
    }
}
