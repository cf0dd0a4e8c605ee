//! The Hub with a tiny driver in memory: no sockets, no clock, no tasks.

mod bed;
mod callers;
mod calls;
mod eras;
mod messages;
mod programs;
mod random;
mod servers;
mod sessions;
