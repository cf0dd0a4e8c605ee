//! Signing in and out, as requests and answers.

use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use serde_json::json;
use tidegate_gateway::{admin_token::AdminToken, live::Live};
use tidegate_net::{client_body::ClientBody, connection::scheme};

use super::{
    Admin, Answer, error,
    login::{CookieUse, Credentials, SignIn, status_of},
    respond,
    view::question,
};

impl Admin {
    /// `POST /api/login`.
    pub(super) fn sign_in(&self, live: &Live, head: &Parts, body: &[u8]) -> Response<ClientBody> {
        let gateway = &self.worker.gateway;
        let credentials: Credentials = match question(body) {
            Ok(credentials) => credentials,
            Err(answer) => return response(answer),
        };
        let is_tls = scheme(&head.extensions) == "https";
        let now = gateway.now();
        let signed = self.logins.sign_in(now, &live.admin_token, &credentials, is_tls);
        let status = status_of(&signed);
        match signed {
            SignIn::Done(cookie, expires) => {
                let expires = gateway.clock.unix_ms_of(expires);
                let body = json!({ "ok": true, "expires_unix_ms": expires });
                let mut response = response((status, body));
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                response
            }
            SignIn::Wrong => {
                self.tell_refusal(Some("wrong_admin_token"), head.uri.path());
                response(error(status, "this is not the admin token"))
            }
            SignIn::TooMany(wait) => {
                let mut response = response(error(status, "too many wrong tokens: wait a little"));
                let seconds = wait.0.div_ceil(1000).max(1);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                response
            }
            SignIn::Impossible(why) => response(error(status, why)),
        }
    }

    /// `POST /api/logout`.
    pub(super) fn sign_out(&self, head: &Parts) -> Response<ClientBody> {
        let is_tls = scheme(&head.extensions) == "https";
        let cookie = self.logins.sign_out(&head.headers, is_tls);
        let mut response = response((StatusCode::OK, json!({ "ok": true })));
        response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
        response
    }

    /// `GET /api/session`: what a page may offer.
    pub(super) fn session(&self, live: &Live, head: &Parts) -> Answer {
        let now = self.worker.gateway.now();
        let is_known = matches!(live.admin_token, AdminToken::Known(_));
        let by_cookie = self.logins.check(now, &live.admin_token, &head.headers, false);
        let is_signed_in = by_cookie == CookieUse::Good;
        let body = json!({
            "logged_in": is_signed_in,
            "token_configured": is_known,
            "read_only": !is_signed_in,
        });
        (StatusCode::OK, body)
    }
}

fn response((status, value): Answer) -> Response<ClientBody> {
    respond(status, "application/json", value.to_string())
}
