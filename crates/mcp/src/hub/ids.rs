//! Names of what the Hub keeps, and the table that hands them out.
//!
//! Rules kept here:
//! - An id is an index and a generation. An id of something that has gone finds nothing, also after
//!   its index was used again: whoever speaks of it late changes nothing.
//! - Ids are handed out in the same order in every run with the same events.

use std::fmt;
use std::marker::PhantomData;

/// What an id of a table looks like to the table.
pub trait TableId: Copy {
    /// An id with this index and generation.
    fn new(index: u32, generation: u32) -> Self;
    /// Its index.
    fn index(self) -> u32;
    /// Its generation.
    fn generation(self) -> u32;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name { index: u32, generation: u32 }

        impl TableId for $name {
            fn new(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            fn index(self) -> u32 {
                self.index
            }

            fn generation(self) -> u32 {
                self.generation
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({}.{})", stringify!($name), self.index, self.generation)
            }
        }
    )*};
}

ids! {
    /// One configured server, for as long as its part of the config stays the same.
    ServerId;
    /// One kept connection to a server, over all its re-initialisations.
    LinkId;
    /// One conversation with a server: the shell's transport of this id carries it.
    ConnectionId;
    /// One client: a session, or all requests of one caller that introduce themselves alike.
    ClientId;
    /// One request of a client's that is under way.
    CallId;
    /// One request to a server, from its turn to its answer.
    ExchangeId;
    /// A server on its way into a session.
    JoinId;
    /// A stream of events that belongs to one request without a session.
    StreamId;
    /// One client connection that reads a stream of events.
    ReaderId;
}

/// Whatever is kept, by id.
pub(crate) struct Table<I, T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    len: usize,
    ids: PhantomData<I>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), len: 0, ids: PhantomData }
    }
}

impl<I: TableId, T> Table<I, T> {
    /// Keeps something; its id.
    pub(crate) fn insert(&mut self, value: T) -> I {
        self.len += 1;
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            return I::new(index, slot.generation);
        }
        let index = u32::try_from(self.slots.len()).expect("every table has a bound below 2^32");
        self.slots.push(Slot { generation: 1, value: Some(value) });
        I::new(index, 1)
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        let slot = self.slots.get(id.index() as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == id.generation())
    }

    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index() as usize)?;
        slot.value.as_mut().filter(|_| slot.generation == id.generation())
    }

    /// Takes something out. Its id finds nothing from here on.
    pub(crate) fn remove(&mut self, id: I) -> Option<T> {
        let slot = self.slots.get_mut(id.index() as usize)?;
        if slot.generation != id.generation() {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.free.push(id.index());
        self.len -= 1;
        Some(value)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Everything, in the order of the indexes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let index = u32::try_from(index).ok()?;
            Some((I::new(index, slot.generation), slot.value.as_ref()?))
        })
    }

    /// The ids of everything, in the order of the indexes.
    pub(crate) fn ids(&self) -> Vec<I> {
        self.iter().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_finds_nothing_after_its_place_was_used_again() {
        let mut table: Table<CallId, &str> = Table::default();
        let first = table.insert("first");
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert("second");
        assert_eq!(second.index(), first.index());
        assert_eq!((table.get(first), table.get(second)), (None, Some(&"second")));
        assert_eq!((table.remove(first), table.len()), (None, 1));
        assert_eq!(table.ids(), [second]);
    }
}
