//! Bytes of a `User-Agent` header to the agent that sent it, and the groups of a robots.txt it obeys: for servers, and for what
//! reads their logs.
//!
//! RFC 9309 lets the *crawler* choose its group by its own product token. The server sees a header, in which that token
//! is one word among the costume of browsers, platforms and addresses. A [`Recognizer`] finds it: first the crawlers of
//! the [`Registry`], then the names the file holds besides, then what the header says of itself.
//!
//! 1. Words about another agent are muted: in URLs, e-mail addresses, versions, in-app markers in brackets,
//!    after "like" and "compatible with", in the model of an Android device.
//! 2. A registered crawler is a product of its header whose name stands between boundaries; of two that begin there, the
//!    longer. Names that are also words need further text in the header. If there are several, all of them are
//!    [`Agents`] of the header, and the first is the one to call it by.
//! 3. The [`Agent::tokens`] of each are the chain its operator gives (`Googlebot-Image`, then `Googlebot`). Beside them,
//!    the rest of the header is one more agent where it holds a name of the file or declares a crawler.
//!    A framework (`Nutch`, `Heritrix`, `Scrapy`) is not the crawler where a product stands in front of its name, nor beside
//!    a registered one: `FooBot/Nutch-1.10` obeys a group of `FooBot`, else one of `Nutch`.
//! 4. Otherwise, of the file's names, the longest that a product *is*; else the longest that a version is glued to
//!    (`FooBot2`, `FooBot-1.0`; but `FooBot-Image` is another crawler's name). Everyday words and very short names count
//!    only as the whole of the leading product; words of the browsers' costume never.
//! 5. In a header shaped as a browser's only declared parts are looked at: after `compatible;`, segments with or
//!    before a contact address, products that call themselves a crawler.
//! 6. Telephones, televisions, applications, players and readers carry the address of their maker: an address alone does
//!    not declare them, nor a syllable of a crawler's (`CUBOT`, `BOTECH`). Nor does a word alone declare an application's
//!    view of a page, or a program on a desk (`Archive Viewer/2.0 (Mac OS X)`); what plays or is heard at its address is
//!    what people subscribe with. A program that the owner of a machine runs is no crawler either: it is known by name,
//!    states its runtime or its machine (`go1.20.5`, `linux/amd64`), or gives only the address of its source code or of the home page
//!    that is named after it (`Terraform/1.9.0 (+https://www.terraform.io)`). An agent that declares itself is called by the
//!    product that leads, not by the words beside its contact.
//! 7. A comment with `MSIE` or `Konqueror` declares only what calls itself a crawler.
//! 8. Its [`Class`] says how it is known, not its name; the policy decides whether `*` applies to it.
//!
//! A header may lie: recognition takes it at its word.

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

pub use self::agent_rules::AgentRules;
pub use self::agents::{Agent, Agents};
pub use self::crawler::{Category, Class, Crawler, Obeys, RegistryError, RegistryRow};
pub use self::identity::{Identity, IdentityMethod, Refutation, UndecidedReason};
pub use self::network::{IntoNetwork, Network};
pub use self::recognizer::{NamedAs, Recognizer};
pub use self::referrer::Referrer;
pub use self::registry::Registry;
