//! The document of a fleet: the fields of one hash in the store, and the writes that change it.
//!
//! ```text
//! format       1
//! epoch        128 random bits in hex: which document this is
//! rev          counts writes, and is raised by each
//! tag          random with each write, so that a store that used a rev twice is noticed
//! off:SCOPE:ID {"rev":41,"by":"alice","at":1795867200,"why":"…"}    a mark: nothing is enforced for SCOPE, "*" or a site
//! lifted:SCOPE:ID {"rev":43,"by":"bob",…}                           a tombstone: that mark no longer counts
//! accept:SITE  {"rev":42,"id":"…","hash":"…","by":…,"at":…}         permission for a version, by its hash
//! ```
//!
//! A mark and a tombstone count by their names alone, so that no damage to a value turns anything on. The scope is a part of the name:
//! who may switch one site can reuse the id of another mark, and changes and lifts nothing but marks of that site.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use tower_robots::live::VersionHashPrefix;

/// The scope of a mark that is about every site.
pub(crate) const EVERY_SITE: &str = "*";

/// The format that this program reads and writes.
const FORMAT: u32 = 1;

/// The document, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) epoch: String,
    pub(crate) rev: u64,
    pub(crate) tag: String,
    /// By their names, `SCOPE:ID`.
    pub(crate) marks: BTreeMap<String, Mark>,
    /// By the names of the marks.
    pub(crate) lifted: BTreeMap<String, Stamp>,
    /// By their sites.
    pub(crate) accepts: BTreeMap<String, Accept>,
}

/// Who wrote an entry, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stamp {
    /// The rev of the write; 0 before it is in the store.
    pub(crate) rev: u64,
    pub(crate) by: String,
    /// Seconds since 1970, for people: order is rev alone.
    pub(crate) at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// Nothing is enforced for a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) scope: String,
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
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
    /// Reads the fields of the hash; none where there is no document.
    ///
    /// # Errors
    ///
    /// Why this program cannot understand it.
    pub(crate) fn read(fields: impl IntoIterator<Item = (String, String)>) -> Result<Option<Self>, String> {
        let mut document = Self::default();
        for (field, value) in fields {
            let number = || value.parse().map_err(|_| format!("{field:?} of the document is no number: {value:?}"));
            match field.split_once(':') {
                None if field == "epoch" => document.epoch = value,
                None if field == "rev" => document.rev = number()?,
                None if field == "tag" => document.tag = value,
                None if field == "format" && number()? > u64::from(FORMAT) => {
                    return Err(format!("the document has format {value}, and this robotsd reads {FORMAT}: update it"));
                }
                Some(("off", of)) => {
                    let Some((scope, _)) = of.rsplit_once(':') else { continue };
                    let stamp = serde_json::from_str(&value).unwrap_or_default();
                    document.marks.insert(of.to_owned(), Mark { scope: scope.to_owned(), stamp });
                }
                Some(("lifted", of)) => {
                    document.lifted.insert(of.to_owned(), serde_json::from_str(&value).unwrap_or_default());
                }
                Some(("accept", site)) => {
                    let accept = serde_json::from_str(&value);
                    let accept = accept.map_err(|error| format!("{field:?} of the document is no accept: {error}"))?;
                    document.accepts.insert(site.to_owned(), accept);
                }
                // Of a later version.
                _ => {}
            }
        }
        let lifted = &document.lifted;
        document.marks.retain(|name, _| !lifted.contains_key(name));
        Ok(Some(document).filter(|document| !document.epoch.is_empty()))
    }

    /// The same for documents, and replicas, that have the same marks and accepts.
    pub(crate) fn digest(&self) -> String {
        digest(&self.marks, &self.accepts)
    }
}

/// The name of a mark, which no mark of another scope has.
pub(super) fn mark_name(scope: &str, id: &str) -> String {
    format!("{scope}:{id}")
}

/// The id in the name of a mark.
pub(super) fn id_of(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, id)| id)
}

pub(super) fn digest(marks: &BTreeMap<String, Mark>, accepts: &BTreeMap<String, Accept>) -> String {
    let mut hash = hmac_sha256::Hash::new();
    let mut add = |words: [&str; 3]| words.iter().for_each(|word| hash.update([word.as_bytes(), b"\n"].concat()));
    marks.keys().for_each(|name| add(["off", name, ""]));
    accepts.iter().for_each(|(site, accept)| add([site, &accept.id, &accept.stamp.rev.to_string()]));
    HEXLOWER.encode(&hash.finalize()[..8])
}

/// A change to one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// The document itself, if there is none.
    Begin,
    /// A mark of this name.
    Mark(String, Mark),
    /// The mark of this name is lifted.
    Lift(String, Stamp),
    /// For a site. The last is the rev of the entry that it takes the place of, 0 where there is none.
    Accept(String, Accept, u64),
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
    /// superfluous, one that is removed by it, and the rev that is expected.
    pub(crate) fn arguments(&self) -> [String; 9] {
        let Self { epoch, floor, tag, write } = self;
        let none = String::new;
        let [field, value, unless, removed, expected] = match write {
            Write::Begin => [(); 5].map(|()| none()),
            Write::Mark(name, Mark { stamp, .. }) => {
                [format!("off:{name}"), json(stamp), format!("lifted:{name}"), none(), none()]
            }
            Write::Lift(name, stamp) => [format!("lifted:{name}"), json(stamp), none(), format!("off:{name}"), none()],
            Write::Accept(site, accept, expected) => {
                [format!("accept:{site}"), json(accept), none(), none(), expected.to_string()]
            }
        };
        let (floor, format) = (floor.to_string(), FORMAT.to_string());
        [epoch.clone(), floor, tag.clone(), format, field, value, unless, removed, expected]
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
