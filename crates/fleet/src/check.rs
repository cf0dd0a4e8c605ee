//! The store asked once, for `check --connect`.

use tidegate_config::store_url::StoreUrl;

use crate::{
    link::{Link, StoreError},
    scripts::Scripts,
};

/// Reaches the store, and has it take the scripts that a replica runs there.
///
/// # Errors
/// Why it cannot be used; never with a password.
pub async fn store(url: &StoreUrl) -> Result<(), StoreError> {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let mut link = Link::open(url).await?;
    Scripts::load(&mut link).await.map(drop)
}
