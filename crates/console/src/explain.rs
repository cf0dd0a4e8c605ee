//! Why? The answers of the gateway to the three questions of `tidegate explain`, as text.
//!
//! - [`backend`]: why is it in this state, and when is it asked again?
//! - [`request`]: why did this request go where it went?
//! - [`what_if`]: where would the next one go, and why not elsewhere?

mod backend;
mod request;
mod what_if;

pub use self::{
    backend::{Setting, backend},
    request::request,
    what_if::what_if,
};
