//! Recognises the agent that sent a `User-Agent` header, and finds the robots.txt groups that this
//! agent obeys. This module is for servers, and for tools that analyse their logs.
//!
//! In RFC 9309, the *crawler* chooses its group by its own product token. A server sees only a
//! header, which contains that token among platforms, addresses and the *costume* of browsers:
//! words such as `Mozilla/5.0` and `like Gecko`, which most headers share. A [`Recognizer`] finds
//! the token. The recognizer looks first for the crawlers of the [`Registry`], then for other names
//! in the file, then for declarations in the header itself.
//!
//! 1. Words that do not name the agent itself are ignored: versions, the model of an Android
//!    device, words after "like" and "compatible with", and words in URLs, e-mail addresses and
//!    bracketed in-app markers.
//! 2. A registered crawler is found if its name appears in the header as a whole word or words. If
//!    two names begin at the same word, the longer name is found. If a name is also an ordinary
//!    word, the header must contain another string, too ([`Crawler::requires`]). If a header names
//!    several crawlers, all of them are [`Agents`] of the header, and logs and reports show the
//!    first name.
//! 3. The [`Agent::tokens`] of a registered crawler are the tokens that its operator documents, in
//!    order (`Googlebot-Image`, then `Googlebot`). The rest of the header is one more agent if it
//!    contains a name from the file or declares a crawler. A framework (`Nutch`, `Heritrix`,
//!    `Scrapy`) is not the agent if a product comes before its name, or if the header names another
//!    registered crawler. For example, `FooBot/Nutch-1.10` obeys the group for `FooBot` or, if the
//!    file has none, the group for `Nutch`.
//! 4. If the header names no registered crawler, the agent is the longest name of the file that
//!    equals a product of the header. If there is none, the agent is the longest name that a
//!    version follows, as in `FooBot2` and `FooBot-1.0`. `FooBot-Image` does not match `FooBot`,
//!    because it is the name of another crawler. Everyday words and very short names are found only
//!    if they are the whole leading product. Words of the browsers' costume are never found.
//! 5. In a header that looks like a browser's, only declared parts are searched: segments after
//!    `compatible;`, segments that contain or precede a contact address, and products that call
//!    themselves a crawler.
//! 6. Headers of telephones, televisions, applications, players and readers contain the address of
//!    the maker. In these headers, an address alone does not declare a crawler. The syllable "bot"
//!    alone does not declare a crawler, either (`CUBOT`, `BOTECH`). In the header of an
//!    application's web view or of a desktop program, a word alone does not declare a crawler
//!    (`Archive Viewer/2.0 (Mac OS X)`). A client whose address belongs to a player or a radio
//!    station fetches feeds that people subscribe to. Programs that the owner of a machine runs are
//!    not crawlers. The header of such a program contains a known name, the runtime or machine
//!    (`go1.20.5`, `linux/amd64`), or only the address of the source code or of the program's home
//!    page (`Terraform/1.9.0 (+https://www.terraform.io)`). If an agent declares itself, its name
//!    is the leading product, not the words next to the contact address.
//! 7. In a comment with `MSIE` or `Konqueror`, only products that call themselves a crawler are
//!    declared.
//! 8. The agent's [`Class`] tells how it was recognised. The policy decides by the class whether
//!    `*` applies to the agent.
//!
//! A header may contain a false name. Recognition believes the header; the module `identity` checks
//! claims.

mod agent_rules;
mod agents;
mod builtin;
mod claim;
mod crawler;
mod file_names;
mod header;
mod header_reader;
mod identity;
mod name_index;
pub(crate) mod network;
mod program;
mod purpose;
mod recognizer;
mod referrer;
mod registry;

pub use self::agents::{Agent, Agents};
pub use self::crawler::{Category, Class, Crawler, Obeys, RegistryError, RegistryRow};
pub use self::identity::{Identity, IdentityMethod, Refutation, UndecidedReason};
pub use self::network::{IntoNetwork, Network};
pub use self::recognizer::{NamedAs, Recognizer};
#[doc(hidden)]
pub use self::referrer::Referrer;
pub use self::registry::Registry;
