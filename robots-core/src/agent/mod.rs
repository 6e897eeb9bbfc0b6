//! Recognises the agent that sent a `User-Agent` header, and the groups of a robots.txt that it
//! obeys. For servers, and for tools that read their logs.
//!
//! RFC 9309 lets the *crawler* choose its group by its own product token. The server sees only a
//! header, and that token is only one word in it, next to platforms, addresses and the *costume* of
//! browsers: words such as `Mozilla/5.0` and `like Gecko`, which most headers share. A
//! [`Recognizer`] finds it. It looks first for the crawlers of the [`Registry`], then for other
//! names in the file, then for declarations in the header itself.
//!
//! 1. Words about another agent are ignored: in URLs, e-mail addresses, versions and bracketed
//!    in-app markers, after "like" and "compatible with", and in the model of an Android device.
//! 2. A registered crawler is found if its name appears in the header between boundaries. If two
//!    names begin at the same word, the longer one counts. Names that are also ordinary words need
//!    further text in the header. If a header names several crawlers, all of them are [`Agents`] of
//!    the header, and the first one gives it its name.
//! 3. The [`Agent::tokens`] of a registered crawler are the chain documented by its operator
//!    (`Googlebot-Image`, then `Googlebot`). The rest of the header is one more agent if it
//!    contains a name of the file or declares a crawler. A framework (`Nutch`, `Heritrix`,
//!    `Scrapy`) is not the crawler if a product precedes its name or a registered crawler is named:
//!    `FooBot/Nutch-1.10` obeys a group of `FooBot`, or else one of `Nutch`.
//! 4. Otherwise, the longest name of the file that equals a product of the header is chosen, or
//!    else the longest one that is followed by a version (`FooBot2`, `FooBot-1.0`; but
//!    `FooBot-Image` is another crawler's name). Everyday words and very short names count only if
//!    they are the whole leading product; words of the browsers' costume never count.
//! 5. In a header shaped like a browser's, only declared parts count: after `compatible;`, segments
//!    that contain or precede a contact address, and products that call themselves a crawler.
//! 6. Telephones, televisions, applications, players and readers contain the address of their
//!    maker. So an address alone does not declare a crawler in them, and neither does a syllable
//!    (`CUBOT`, `BOTECH`). A word alone does not declare one in an application's web view or a
//!    desktop program (`Archive Viewer/2.0 (Mac OS X)`). A client whose address belongs to a player
//!    or station fetches what people subscribe to. Programs that the owner of a machine runs are
//!    not crawlers either. Such a program is known by name, states its runtime or machine
//!    (`go1.20.5`, `linux/amd64`), or gives only the address of its source code or of the home page
//!    named after it (`Terraform/1.9.0 (+https://www.terraform.io)`). An agent that declares itself
//!    is named after the leading product, not after the words next to its contact.
//! 7. A comment with `MSIE` or `Konqueror` declares only products that call themselves a crawler.
//! 8. The agent's [`Class`] tells how it is known, independent of its name; the policy decides
//!    whether `*` applies to it.
//!
//! A header may lie; recognition believes it.

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
