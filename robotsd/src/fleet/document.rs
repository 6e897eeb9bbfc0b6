//! The document of a fleet: the fields of one hash in the store, and the writes that change it.
//!
//! ```text
//! format       1
//! epoch        128 random bits in hex: which document this is
//! rev          counts writes, and is raised by each
//! tag          random with each write, so that a store that used a rev twice is noticed
//! off:SCOPE:ID {"rev":41,"by":"alice","at":1795867200,"why":"…"}    a mark: nothing is enforced for SCOPE, "*" or a site
//! lifted:SCOPE:ID {"rev":43,"by":"bob",…}                        a tombstone: that mark no longer counts
//! accept:SITE  {"rev":42,"id":"…","hash":"…","by":…,"at":…}         permission for a version, by its hash
//! ```
//!
//! Each field is read by itself. A mark and a tombstone count by their names alone, so no damage, to their own value or to another field,
//! turns anything on or hides a mark. The scope is a part of the name: a client that may switch one site can use the id of any mark, and
//! reaches only marks of that site. Numbers have a bound when they are read and when they are written: a damaged one spoils no later write.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, de};
use tower_robots::live::VersionHashPrefix;

/// The scope of a mark that is about every site.
pub(crate) const EVERY_SITE: &str = "*";

/// The format that this program reads and writes.
const FORMAT: u64 = 1;

/// The largest rev and format: no fleet writes so often, and the script counts exactly up to 2^53.
pub(super) const MAX_NUMBER: u64 = 1 << 48;

/// The end of the year 9999, in seconds since 1970.
const MAX_TIME: u64 = 253_402_300_799;

/// Maximum length of an epoch, in bytes.
const MAX_EPOCH: usize = 64;

/// The name and the value of a field of a hash in the store.
pub(super) type Field = (Vec<u8>, Vec<u8>);

/// The document, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// Empty if it cannot be read.
    pub(crate) epoch: String,
    /// 0 if it cannot be read.
    pub(crate) rev: u64,
    pub(crate) tag: String,
    /// By their names.
    pub(crate) marks: BTreeMap<String, Mark>,
    /// By the names of the marks.
    pub(crate) lifted: BTreeMap<String, Stamp>,
    /// By their sites.
    pub(crate) accepts: BTreeMap<String, Accept>,
    /// The fields that cannot be read, by their names.
    pub(crate) damaged: BTreeMap<Vec<u8>, Damage>,
}

/// A field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Its value; `None` if the field is missing.
    pub(crate) value: Option<Vec<u8>>,
    /// What is wrong with it, for the operator.
    pub(crate) why: String,
}

/// Who wrote an entry, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stamp {
    /// The rev of the write; 0 before it is in the store.
    #[serde(deserialize_with = "rev")]
    pub(crate) rev: u64,
    pub(crate) by: String,
    /// Seconds since 1970, for people: order is rev alone.
    #[serde(deserialize_with = "time")]
    pub(crate) at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// Nothing is enforced for a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) scope: String,
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
}

impl Mark {
    /// Its scope and its id: two operators may choose one id for different scopes, and both marks count.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.scope, self.id)
    }
}

/// A version may go live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accept {
    pub(crate) id: String,
    pub(crate) hash: String,
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
}

impl Accept {
    /// Whether it is for this version: its hash may be the beginning of one, of as many digits as an operator may write.
    pub(crate) fn is_of(&self, hash: &str) -> bool {
        let digits = |hash: &str| hash.trim_start_matches("sha256:").to_owned();
        let (own, hash) = (digits(&self.hash), digits(hash));
        own == hash || (own.len() >= VersionHashPrefix::SHORTEST && hash.starts_with(&own))
    }
}

impl Document {
    /// Reads the fields of the hash; `None` if there is no document.
    ///
    /// # Errors
    ///
    /// The document is of a later version of this program.
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
            return Err(format!("the document has format {format}, and this robotsd reads {FORMAT}: update it"));
        }
        for field in ["epoch", "rev"].map(str::as_bytes).into_iter().filter(|field| !known.iter().any(|it| it == field))
        {
            let missing = || Damage { value: None, why: "it is missing".to_owned() };
            document.damaged.entry(field.to_owned()).or_insert_with(missing);
        }
        document.leave_out_lifted();
        Ok(Some(document))
    }

    /// Marks that are lifted no longer count, whatever stands in their fields.
    pub(super) fn leave_out_lifted(&mut self) {
        let Self { marks, lifted, damaged, .. } = self;
        let is_lifted = |name: &String| lifted.contains_key(name);
        let of_lifted =
            |field: &[u8]| marks.keys().any(|name| is_lifted(name) && field == format!("off:{name}").as_bytes());
        damaged.retain(|field, _| !of_lifted(field));
        marks.retain(|name, _| !is_lifted(name));
    }

    /// The document in a key that is not a hash, which nothing of it can be read from.
    pub(super) fn unreadable(key: &str, why: &str) -> Self {
        let damage = Damage { value: None, why: format!("the key has another type than hash ({why})") };
        Self { damaged: [(key.as_bytes().to_owned(), damage)].into(), ..Self::default() }
    }

    /// Takes one field. Fields of later versions are passed over.
    fn take(&mut self, field: &[u8], value: &[u8], format: &mut u64) -> Result<(), String> {
        let field = str::from_utf8(field).map_err(|_| "its name is not UTF-8".to_owned())?;
        match field.split_once(':') {
            None if field == "epoch" => self.epoch = text(value).and_then(epoch)?,
            None if field == "rev" => self.rev = text(value).and_then(number)?,
            None if field == "tag" => text(value)?.clone_into(&mut self.tag),
            None if field == "format" => *format = text(value).and_then(number)?,
            Some(("off", name)) => {
                let named = name.rsplit_once(':').filter(|(scope, id)| !scope.is_empty() && !id.is_empty());
                let (scope, id) = named.ok_or("its name is not off:SCOPE:ID")?;
                let (stamp, readable) = stamp(value);
                self.marks.insert(name.to_owned(), Mark { scope: scope.to_owned(), id: id.to_owned(), stamp });
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

    /// The fields that cannot be read, each with what is wrong.
    pub(crate) fn damages(&self) -> impl Iterator<Item = String> {
        self.damaged.iter().map(|(field, damage)| format!("{:?}: {}", String::from_utf8_lossy(field), damage.why))
    }

    /// What mends the fields that cannot be read: the stamp of a mark is the one that it has in `known`, or this one, as is that of a
    /// tombstone; another field is removed.
    pub(super) fn mends(&self, known: &BTreeMap<String, Mark>, stamp: &Stamp) -> Vec<Mend> {
        let mend = |(field, Damage { value, .. }): (&Vec<u8>, &Damage)| {
            let stamp = match str::from_utf8(field).ok().and_then(|field| field.split_once(':')) {
                Some(("off", name)) if self.marks.contains_key(name) => {
                    Some(known.get(name).map_or(stamp, |mark| &mark.stamp))
                }
                Some(("lifted", name)) if self.lifted.contains_key(name) => Some(stamp),
                _ => None,
            };
            let to = stamp.map(|stamp| serde_json::to_vec(stamp).unwrap_or_default());
            Mend { field: field.clone(), from: value.clone().unwrap_or_default(), to }
        };
        self.damaged.iter().map(mend).collect()
    }

    /// The same for documents, and replicas, that have the same marks and accepts.
    pub(crate) fn digest(&self) -> String {
        digest(&self.marks, &self.accepts)
    }
}

pub(super) fn digest(marks: &BTreeMap<String, Mark>, accepts: &BTreeMap<String, Accept>) -> String {
    let mut hash = hmac_sha256::Hash::new();
    let mut add = |words: [&str; 3]| words.iter().for_each(|word| hash.update([word.as_bytes(), b"\n"].concat()));
    marks.values().for_each(|mark| add(["off", &mark.scope, &mark.id]));
    accepts.iter().for_each(|(site, accept)| add([site, &accept.id, &accept.stamp.rev.to_string()]));
    HEXLOWER.encode(&hash.finalize()[..8])
}

fn text(value: &[u8]) -> Result<&str, String> {
    str::from_utf8(value).map_err(|_| "its value is not UTF-8".to_owned())
}

fn number(text: &str) -> Result<u64, String> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_decimal && *number <= MAX_NUMBER);
    number.ok_or_else(|| format!("{:?} is not a number from 0 to {MAX_NUMBER}", shortened(text)))
}

/// The stamp of an entry that counts by its name, and whether it can be read.
fn stamp(value: &[u8]) -> (Stamp, Result<(), String>) {
    match serde_json::from_slice(value) {
        Ok(stamp) => (stamp, Ok(())),
        Err(error) => (Stamp::default(), Err(error.to_string())),
    }
}

fn epoch(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && text.len() <= MAX_EPOCH && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let why = || format!("{:?} is not 1 to {MAX_EPOCH} letters and digits", shortened(text));
    is_plain.then(|| text.to_owned()).ok_or_else(why)
}

/// The beginning of a text that anybody may have written.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Reads a rev within its bound.
pub(super) fn rev<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(from, MAX_NUMBER)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    within(from, MAX_TIME)
}

fn within<'de, D: Deserializer<'de>>(from: D, max: u64) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if number <= max { Ok(number) } else { Err(de::Error::custom(format!("{number} is above {max}"))) }
}

/// A change to one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// The document itself, if there is none.
    Begin,
    Mark(Mark),
    /// The mark of this name is lifted; the stamp is that of lifting it.
    Lift(String, Stamp),
    /// For a site. The last is the rev of the entry that it takes the place of, 0 where there is none.
    Accept(String, Accept, u64),
    /// Fields that cannot be read; and the document itself, if there is none.
    Mend(Vec<Mend>),
}

/// How one field is mended, if it still has the value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mend {
    pub(crate) field: Vec<u8>,
    pub(crate) from: Vec<u8>,
    /// `None` removes the field.
    pub(crate) to: Option<Vec<u8>>,
}

/// A write as the store gets it. A store without a document gets one with this epoch: what a replica remembers outlives the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteCall {
    pub(crate) epoch: String,
    /// A rev that the writer has seen: the new one is above it, whatever the store remembers.
    pub(crate) floor: u64,
    pub(crate) tag: String,
    pub(crate) write: Write,
}

/// What the store makes of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    /// It is in the document, with this rev.
    Written(u64),
    /// The document had it already, or the mark is lifted.
    Kept,
    /// The entry has another rev than was expected.
    Conflict(u64),
    /// The document is of another epoch.
    Foreign(String),
}

impl WriteCall {
    /// The arguments of the script: epoch, floor, tag, format; the field and its value without rev; a field that makes the write
    /// superfluous, one that is removed by it, and the rev that is expected; then field, value and new value of each that is mended.
    pub(crate) fn arguments(&self) -> Vec<Vec<u8>> {
        let Self { epoch, floor, tag, write } = self;
        let none = String::new;
        let [field, value, unless, removed, expected] = match write {
            Write::Begin | Write::Mend(_) => [(); 5].map(|()| none()),
            Write::Mark(mark) => {
                [format!("off:{}", mark.name()), json(&mark.stamp), format!("lifted:{}", mark.name()), none(), none()]
            }
            Write::Lift(name, stamp) => [format!("lifted:{name}"), json(stamp), none(), format!("off:{name}"), none()],
            Write::Accept(site, accept, expected) => {
                [format!("accept:{site}"), json(accept), none(), none(), expected.to_string()]
            }
        };
        let (floor, format) = (floor.to_string(), FORMAT.to_string());
        let texts = [epoch.clone(), floor, tag.clone(), format, field, value, unless, removed, expected];
        let mends = if let Write::Mend(mends) = write { &**mends } else { &[] };
        let mends =
            mends.iter().flat_map(|mend| [mend.field.clone(), mend.from.clone(), mend.to.clone().unwrap_or_default()]);
        texts.into_iter().map(String::into_bytes).chain(mends).collect()
    }
}

/// Without the rev, which the script knows.
fn json(value: &impl Serialize) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("rev");
    }
    value.to_string()
}
