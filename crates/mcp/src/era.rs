//! Which era of the protocol a server speaks: found out by asking, remembered while it holds.
//!
//! Rules kept here:
//! - What was remembered is forgotten when it turns out wrong.
//! - An era that a server is known not to speak is tried last, in case it has learned it since.
//!
//! Left to others: what an answer says of an era ([`crate::greeting`]), and the asking (the Hub).

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize`, then a session.
    Sessions,
    /// 2026-07-28: every request for itself.
    Stateless,
}

/// What is known of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eras {
    sessions: Option<bool>,
    stateless: Option<bool>,
}

impl Eras {
    /// Whether it speaks an era, if that is known.
    #[must_use]
    pub const fn speaks(self, era: Era) -> Option<bool> {
        match era {
            Era::Sessions => self.sessions,
            Era::Stateless => self.stateless,
        }
    }

    /// It was found out.
    pub fn learn(&mut self, era: Era, speaks: bool) {
        match era {
            Era::Sessions => self.sessions = Some(speaks),
            Era::Stateless => self.stateless = Some(speaks),
        }
    }

    /// What was believed of an era turned out wrong.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The eras to try, in the order of `wishes`; those that it is known not to speak come last, in
    /// case it has learned them since.
    #[must_use]
    pub fn in_order(self, wishes: &[Era]) -> Vec<Era> {
        let mut eras = wishes.to_vec();
        eras.sort_by_key(|era| self.speaks(*era) == Some(false));
        eras
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_that_a_server_does_not_speak_is_tried_last() {
        let mut eras = Eras::default();
        let both = [Era::Stateless, Era::Sessions];
        assert_eq!(eras.in_order(&both), both);
        eras.learn(Era::Stateless, false);
        assert_eq!(eras.in_order(&both), [Era::Sessions, Era::Stateless]);
        assert_eq!(eras.in_order(&[Era::Stateless]), [Era::Stateless]);
        eras.forget();
        assert_eq!(eras.in_order(&both), both);
    }
}
