//! What the store does in one step, in its own language.
//!
//! Each script compares before it writes, so that a late writer never takes a newer value's place.
//! Values are compared by a prefix of hexadecimal digits, which every locale orders alike.

use redis::Cmd;

use crate::link::{Link, StoreError};

/// The digits that a value begins with: what decides between two of them.
pub(crate) const ORDER_DIGITS: usize = 64;

/// Puts an entry on the stream, and values under their keys unless newer ones are there.
/// KEYS: stream, index, index of pins, then a key per value. ARGV: the stream's length, the entry,
/// how long stream and indexes are kept, then per value its order, the value, how long it is kept,
/// its name in the index, when it ends, and which index that is.
const TELL: &str = r"
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'e', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local at = 4
local members = {[2] = {}, [3] = {}}
for i = 4, #KEYS do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, 63)
  if type(held) ~= 'string' then
    redis.call('DEL', KEYS[i])
    held = ''
  end
  if held <= ARGV[at] then
    redis.call('SET', KEYS[i], ARGV[at] .. ARGV[at + 1], 'PX', ARGV[at + 2])
    local list = members[tonumber(ARGV[at + 5])]
    list[#list + 1] = ARGV[at + 4]
    list[#list + 1] = ARGV[at + 3]
  end
  at = at + 6
end
for index, list in pairs(members) do
  if #list > 0 then redis.call('ZADD', KEYS[index], unpack(list)) end
  redis.call('PEXPIRE', KEYS[index], ARGV[3])
end
return 1
";

/// Writes a session's record unless one of a higher epoch is there. KEYS: the record. ARGV: epoch,
/// value, how long it is kept.
const PUT: &str = r"
local held = redis.pcall('HGET', KEYS[1], 'e')
if type(held) == 'table' then redis.call('DEL', KEYS[1]) held = false end
if held and tonumber(held) and tonumber(held) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'e', ARGV[1], 'v', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
";

/// Takes a session over if its epoch is still the one that was seen. KEYS: the record. ARGV: the
/// epoch that was seen, the new one, value, how long it is kept. 1 = done, 0 = another epoch,
/// -1 = there is no record.
const CLAIM: &str = r"
local held = redis.pcall('HGET', KEYS[1], 'e')
if type(held) ~= 'string' then return -1 end
if held ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'e', ARGV[2], 'v', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
";

/// Ends a session's record unless it has a higher epoch: for a while an empty one stands in its
/// place, which says that there is none and that nothing late may be written there. KEYS: the
/// record. ARGV: epoch, the next one, how long that is said.
const DELETE: &str = r"
local held = redis.pcall('HGET', KEYS[1], 'e')
local epoch = type(held) == 'string' and tonumber(held)
if epoch and epoch > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'e', ARGV[2], 'v', '')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
";

/// One of the scripts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Script {
    Tell,
    Put,
    Claim,
    Delete,
}

/// The scripts as the store knows them.
#[derive(Clone, Debug)]
pub(crate) struct Scripts([String; 4]);

impl Scripts {
    /// Gives the scripts to the store.
    pub(crate) async fn load(link: &mut Link) -> Result<Self, StoreError> {
        let mut known: [String; 4] = Default::default();
        for (at, text) in [TELL, PUT, CLAIM, DELETE].into_iter().enumerate() {
            let mut command = Cmd::new();
            command.arg("SCRIPT").arg("LOAD").arg(text);
            known[at] = link.ask(&command).await?;
        }
        Ok(Self(known))
    }

    /// A command that runs a script over these keys; its arguments are added by the caller.
    pub(crate) fn command(&self, script: Script, keys: &[&str]) -> Cmd {
        let mut command = Cmd::new();
        command.arg("EVALSHA").arg(&self.0[script as usize]).arg(keys.len());
        for key in keys {
            command.arg(*key);
        }
        command
    }
}
