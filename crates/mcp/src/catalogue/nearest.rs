//! Did you mean …? The offered tool that an unknown name may mean.

use super::Catalogue;

/// Names longer than this are not compared: the comparison is quadratic.
const MAX_CHARS: usize = 80;
/// Tools that are compared: a wrong name costs a bounded time, whatever is offered.
const MAX_COMPARED: usize = 2000;

impl Catalogue {
    /// The tool that is meant by a name that is not offered, among those a session sees: one
    /// whose own name it is, or else the nearest with at most a third of the letters wrong.
    #[must_use]
    pub fn nearest_tool(&self, written: &str, is_visible: impl Fn(usize) -> bool) -> Option<&str> {
        let length = written.chars().count();
        if length == 0 || length > MAX_CHARS {
            return None;
        }
        let visible = || self.tools().iter().filter(|offered| is_visible(offered.server));
        if let Some(offered) = visible().find(|offered| offered.own.as_ref() == written) {
            return Some(&offered.name);
        }
        let allowed = (length / 3).max(1);
        visible()
            .map(|offered| offered.name.as_ref())
            .filter(|name| name.chars().count().abs_diff(length) <= allowed)
            .take(MAX_COMPARED)
            .map(|name| (strsim::osa_distance(written, name), name))
            .filter(|(distance, _)| *distance <= allowed)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    }
}
