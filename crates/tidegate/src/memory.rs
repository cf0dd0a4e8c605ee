//! Where memory comes from, and where it goes when a burst is over.
//!
//! The C library's allocator keeps what a burst of streams has freed: a gateway that once carried
//! two thousand of them would hold their memory for ever. jemalloc gives unused pages back to the
//! system after a second, from a thread of its own, so that no request pays for it.
//!
//! A build without the feature `jemalloc` uses the C library's allocator.
//!
//! Its settings are fixed when it is built (`.cargo/config.toml`): naming them here would take an
//! exported symbol, which is unsafe code.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;
