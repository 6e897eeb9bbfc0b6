//! The document of a fleet (a hash in a Redis store), and the writes that change it.
//!
//! ```text
//! format       1
//! epoch        128 random bits in hex: the identity of this document
//! rev          number of the last write; each write increases it
//! tag          random for each write, to detect a store that used a rev twice
//! off:SCOPE:ID {"rev":41,"by":"alice","at":1795867200,"why":"…"}
//!              a mark (off switch): nothing is enforced for SCOPE, which is "*" or a site
//! lifted:SCOPE:ID {"rev":43,"by":"bob",…}
//!              a tombstone: the off switch SCOPE:ID no longer counts
//! accept:SITE  {"rev":42,"id":"…","hash":"…","by":…,"at":…}
//!              permission for a version, by its hash
//! ```
//!
//! Each field is parsed separately. An off switch or a tombstone takes effect if the name of its
//! field is valid, even if the value is damaged. Damage to values or to other fields therefore
//! cannot turn enforcement on. The scope is part of the field's name, so a user with rights for one
//! site cannot affect another site, even by using the ID of the other site's off switch. Numbers
//! have an upper bound, because a huge number in a damaged field would make later writes fail.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, de};
use tower_robots::live::VersionHashPrefix;

use crate::render::truncated;

pub(crate) const EVERY_SITE: &str = "*";

const FORMAT: u64 = 1;

/// Upper bound of a rev and of a format. No fleet needs higher numbers, and Lua scripts support
/// exact numbers only up to 2^53.
pub(super) const MAX_NUMBER: u64 = 1 << 48;

/// Upper bound of a time: the end of the year 9999, as Unix time in seconds.
const MAX_TIME: u64 = 253_402_300_799;

/// Maximum length of an epoch, in bytes.
const MAX_EPOCH: usize = 64;

/// Maximum number of characters that a message quotes from a damaged field, which can have any
/// length.
const MAX_SHOWN: usize = 40;

pub(super) type Field = (Vec<u8>, Vec<u8>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// Identity of the document; empty if the field is damaged.
    pub(crate) epoch: String,
    /// Number of the last write to the document; 0 if the field is damaged.
    pub(crate) rev: u64,
    pub(crate) tag: String,
    pub(crate) marks: BTreeMap<String, OffSwitch>,
    /// Tombstones, by the name of the lifted off switch.
    pub(crate) lifted: BTreeMap<String, Stamp>,
    pub(crate) accepts: BTreeMap<String, Accept>,
    pub(crate) damaged: BTreeMap<Vec<u8>, Damage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Value of the field; `None` if the field is missing.
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) why: String,
}

/// Who wrote an entry, when and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stamp {
    /// Number of the write that added the entry; 0 until the entry is in the store.
    #[serde(deserialize_with = "rev")]
    pub(crate) rev: u64,
    pub(crate) by: String,
    /// Time of the entry, as Unix time in seconds. Only for display: entries are ordered by `rev`.
    #[serde(deserialize_with = "time")]
    pub(crate) at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// An off switch. While an off switch is in force, nothing is enforced for its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OffSwitch {
    pub(crate) scope: String,
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
}

impl OffSwitch {
    /// Returns the name of the off switch, which consists of the scope and the ID. Off switches
    /// with different scopes may have the same ID.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.scope, self.id)
    }
}

/// An operator's permission for a site to serve the version with this hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accept {
    pub(crate) id: String,
    pub(crate) hash: String,
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
}

impl Accept {
    /// Reports whether this permission is for the version with the given hash. The stored hash may
    /// be a prefix of at least [`VersionHashPrefix::MIN_DIGITS`] digits.
    pub(crate) fn is_for_hash(&self, hash: &str) -> bool {
        let digits = |hash: &str| hash.trim_start_matches("sha256:").to_owned();
        let (own, hash) = (digits(&self.hash), digits(hash));
        own == hash || (own.len() >= VersionHashPrefix::MIN_DIGITS && hash.starts_with(&own))
    }
}

impl Document {
    /// Parses the fields of the document. Returns `None` if there are no fields.
    ///
    /// # Errors
    ///
    /// Returns an error if a later version of robotsd has written the document in a newer format.
    pub(crate) fn read(fields: impl IntoIterator<Item = Field>) -> Result<Option<Self>, String> {
        let (mut document, mut known, mut format) = (Self::default(), Vec::new(), FORMAT);
        for (field, value) in fields {
            let Err(why) = document.take(&field, &value, &mut format) else {
                known.push(field);
                continue;
            };
            document.damaged.insert(field, Damage { value: Some(value), why });
        }
        if known.is_empty() && document.damaged.is_empty() {
            return Ok(None);
        }
        if format > FORMAT {
            return Err(format!(
                "the fleet's document has format {format}, but this robotsd can only read format {FORMAT}: \
                 update robotsd"
            ));
        }
        for field in ["epoch", "rev"].map(str::as_bytes).into_iter().filter(|field| !known.iter().any(|it| it == field))
        {
            let missing = || Damage { value: None, why: "the field is missing".to_owned() };
            document.damaged.entry(field.to_owned()).or_insert_with(missing);
        }
        document.remove_lifted();
        Ok(Some(document))
    }

    /// Removes the off switches that have a tombstone, including damaged off switches.
    pub(super) fn remove_lifted(&mut self) {
        let Self { marks, lifted, damaged, .. } = self;
        let is_lifted = |name: &String| lifted.contains_key(name);
        let belongs_to_lifted =
            |field: &[u8]| marks.keys().any(|name| is_lifted(name) && field == format!("off:{name}").as_bytes());
        damaged.retain(|field, _| !belongs_to_lifted(field));
        marks.retain(|name, _| !is_lifted(name));
    }

    /// Returns a damaged document without entries. This document is used if the key in the store
    /// does not have the Redis type hash.
    pub(super) fn unreadable(key: &str, why: &str) -> Self {
        let damage = Damage { value: None, why: format!("the key in the store must have the type hash ({why})") };
        Self { damaged: [(key.as_bytes().to_owned(), damage)].into(), ..Self::default() }
    }

    /// Parses one field. Ignores fields that were added by later versions of robotsd.
    fn take(&mut self, field: &[u8], value: &[u8], format: &mut u64) -> Result<(), String> {
        let field = str::from_utf8(field).map_err(|_| "the name of the field is not UTF-8".to_owned())?;
        match field.split_once(':') {
            None if field == "epoch" => self.epoch = text(value).and_then(epoch)?,
            None if field == "rev" => self.rev = text(value).and_then(number)?,
            None if field == "tag" => text(value)?.clone_into(&mut self.tag),
            None if field == "format" => *format = text(value).and_then(number)?,
            Some(("off", name)) => {
                let named = name.rsplit_once(':').filter(|(scope, id)| !scope.is_empty() && !id.is_empty());
                let (scope, id) = named.ok_or("the name of the field does not have the form off:SCOPE:ID")?;
                let (stamp, readable) = stamp(value);
                self.marks.insert(name.to_owned(), OffSwitch { scope: scope.to_owned(), id: id.to_owned(), stamp });
                readable?;
            }
            Some(("lifted", name)) => {
                let (stamp, readable) = stamp(value);
                self.lifted.insert(name.to_owned(), stamp);
                readable?;
            }
            Some(("accept", site)) => {
                let accept = serde_json::from_slice(value).map_err(|error| error.to_string())?;
                self.accepts.insert(site.to_owned(), accept);
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn damages(&self) -> impl Iterator<Item = String> {
        self.damaged.iter().map(|(field, damage)| format!("{:?}: {}", String::from_utf8_lossy(field), damage.why))
    }

    /// Returns repairs for the damaged fields. If an off switch is damaged, its stamp (who, when
    /// and why) is copied from the off switch in `known`. If `known` does not contain the off
    /// switch, the off switch gets `stamp`. A damaged tombstone also gets `stamp`. All other
    /// damaged fields are removed.
    pub(super) fn repairs(&self, known: &BTreeMap<String, OffSwitch>, stamp: &Stamp) -> Vec<Repair> {
        let repair = |(field, Damage { value, .. }): (&Vec<u8>, &Damage)| {
            let stamp = match str::from_utf8(field).ok().and_then(|field| field.split_once(':')) {
                Some(("off", name)) if self.marks.contains_key(name) => {
                    Some(known.get(name).map_or(stamp, |mark| &mark.stamp))
                }
                Some(("lifted", name)) if self.lifted.contains_key(name) => Some(stamp),
                _ => None,
            };
            let to = stamp.map(|stamp| serde_json::to_vec(stamp).unwrap_or_default());
            Repair { field: field.clone(), from: value.clone().unwrap_or_default(), to }
        };
        self.damaged.iter().map(repair).collect()
    }

    /// Returns a digest of the off switches and accepted versions. Replicas with equal digests know
    /// the same off switches and accepted versions.
    pub(crate) fn digest(&self) -> String {
        digest(&self.marks, &self.accepts)
    }
}

pub(super) fn digest(marks: &BTreeMap<String, OffSwitch>, accepts: &BTreeMap<String, Accept>) -> String {
    let mut hash = hmac_sha256::Hash::new();
    let mut add = |words: [&str; 3]| words.iter().for_each(|word| hash.update([word.as_bytes(), b"\n"].concat()));
    marks.values().for_each(|mark| add(["off", &mark.scope, &mark.id]));
    accepts.iter().for_each(|(site, accept)| add([site, &accept.id, &accept.stamp.rev.to_string()]));
    HEXLOWER.encode(&hash.finalize()[..8])
}

fn text(value: &[u8]) -> Result<&str, String> {
    str::from_utf8(value).map_err(|_| "the value of the field is not UTF-8".to_owned())
}

fn number(text: &str) -> Result<u64, String> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_decimal && *number <= MAX_NUMBER);
    number
        .ok_or_else(|| format!("{value:?} is not a number from 0 to {MAX_NUMBER}", value = truncated(text, MAX_SHOWN)))
}

/// Parses the stamp of an entry. If the value is damaged, returns an empty stamp and the error,
/// because the entry still takes effect.
fn stamp(value: &[u8]) -> (Stamp, Result<(), String>) {
    match serde_json::from_slice(value) {
        Ok(stamp) => (stamp, Ok(())),
        Err(error) => (Stamp::default(), Err(error.to_string())),
    }
}

fn epoch(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && text.len() <= MAX_EPOCH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let why = || {
        format!(
            "{value:?} is not a valid epoch, which has 1 to {MAX_EPOCH} letters and digits",
            value = truncated(text, MAX_SHOWN)
        )
    };
    is_plain.then(|| text.to_owned()).ok_or_else(why)
}

/// Deserializes a rev, which must be at most [`MAX_NUMBER`].
pub(super) fn rev<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(from, MAX_NUMBER)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(from, MAX_TIME)
}

fn within<'de, D: Deserializer<'de>>(from: D, max: u64) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if number <= max { Ok(number) } else { Err(de::Error::custom(format!("{number} exceeds the maximum of {max}"))) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Creates the document if the store has none.
    Begin,
    OffSwitch(OffSwitch),
    Lift(String, Stamp),
    /// Accepts a site's version. The number is the rev of the site's current entry, which the write
    /// replaces; 0 if the site has no entry.
    Accept(String, Accept, u64),
    Repair(Vec<Repair>),
}

/// Repair of one field. The repair is applied only if the field still has the damaged value `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) field: Vec<u8>,
    pub(crate) from: Vec<u8>,
    /// New value of the field; `None` if the field is removed.
    pub(crate) to: Option<Vec<u8>>,
}

/// A write, with the other arguments of the script that executes the write in the store. If the
/// store has lost the document, the script creates a new document with the same epoch (`epoch`), so
/// that the replicas keep their entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteCall {
    pub(crate) epoch: String,
    /// Highest rev that the writer has seen. The write must get a higher rev, even if the store was
    /// reset to an earlier state.
    pub(crate) floor: u64,
    pub(crate) tag: String,
    pub(crate) write: Write,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    Written(u64),
    /// The script wrote nothing, because the document already contains the entry, or because the
    /// off switch was lifted before.
    NotNeeded,
    /// The script wrote nothing, because the current entry has this rev and not the expected rev.
    Conflict(u64),
    /// The script wrote nothing, because the document has this epoch and not the expected epoch.
    Foreign(String),
}

impl WriteCall {
    /// Returns the arguments of the script `write.lua`, in this order:
    ///
    /// - epoch, floor, tag and format;
    /// - the name of the field to write, and its value without rev;
    /// - the name of a field whose presence makes the write unnecessary;
    /// - the name of a field to remove;
    /// - the expected rev;
    /// - for each repaired field: its name, damaged value and new value.
    pub(crate) fn arguments(&self) -> Vec<Vec<u8>> {
        let Self { epoch, floor, tag, write } = self;
        let none = String::new;
        let [field, value, unless, removed, expected] = match write {
            Write::Begin | Write::Repair(_) => [(); 5].map(|()| none()),
            Write::OffSwitch(mark) => {
                [format!("off:{}", mark.name()), json(&mark.stamp), format!("lifted:{}", mark.name()), none(), none()]
            }
            Write::Lift(name, stamp) => [format!("lifted:{name}"), json(stamp), none(), format!("off:{name}"), none()],
            Write::Accept(site, accept, expected) => {
                [format!("accept:{site}"), json(accept), none(), none(), expected.to_string()]
            }
        };
        let (floor, format) = (floor.to_string(), FORMAT.to_string());
        let texts = [epoch.clone(), floor, tag.clone(), format, field, value, unless, removed, expected];
        let repairs = if let Write::Repair(repairs) = write { &**repairs } else { &[] };
        let repairs = repairs
            .iter()
            .flat_map(|repair| [repair.field.clone(), repair.from.clone(), repair.to.clone().unwrap_or_default()]);
        texts.into_iter().map(String::into_bytes).chain(repairs).collect()
    }
}

/// Serializes a value without its rev. The script in the store adds the rev.
fn json(value: &impl Serialize) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("rev");
    }
    value.to_string()
}
