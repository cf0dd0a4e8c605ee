//! The search for tools as a whole: how well it finds what is asked, and what holds for any text.

mod actions;
mod gate;
mod hostile;
mod whole;
