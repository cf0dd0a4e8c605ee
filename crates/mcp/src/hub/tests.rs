//! The Hub with a tiny driver in memory: no sockets, no clock, no tasks.

mod bed;
mod callers;
mod calls;
mod eras;
mod fleet;
mod fleet_random;
mod messages;
mod programs;
mod random;
mod servers;
mod sessions;
mod world;
