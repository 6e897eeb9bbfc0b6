//! Recognises the agent in a `User-Agent` header, and finds the robots.txt groups that this agent
//! obeys. The module is for servers and for tools that analyse server logs.
//!
//! In RFC 9309, the *crawler* chooses its group by its own product token. A server sees only the
//! crawler's header, which contains this token among names of platforms, URLs, and the *costume* of
//! browsers: the words that most headers share, such as `Mozilla/5.0` and `like Gecko`. A
//! [`Recognizer`] finds the token. The recognizer searches the header first for crawlers of the
//! [`Registry`], then for other names from the robots.txt file, and then for words that declare a
//! crawler.
//!
//! 1. Words that do not name the agent itself are ignored: versions, the model of an Android
//!    device, words after "like" and "compatible with", and words in URLs, e-mail addresses and
//!    bracketed in-app markers.
//! 2. A registered crawler is found if its name appears in the header as one or more whole words.
//!    If two names begin at the same word, only the longer name is found. If a name is also an
//!    ordinary word, the header must also contain another string ([`Crawler::requires`]). If a
//!    header names several crawlers, its [`Agents`] contain all of them, and logs and reports show
//!    the first name.
//! 3. The [`Agent::tokens`] of a registered crawler are the tokens that its operator documents, in
//!    order (`Googlebot-Image`, then `Googlebot`). The header may also contain words that belong to
//!    no registered name. If these words contain a name from the robots.txt file, or declare a
//!    crawler, the header also has one unregistered agent. A framework (`Nutch`, `Heritrix`,
//!    `Scrapy`) is the agent only if no product comes before its name and the header names no other
//!    registered crawler. For example, `FooBot/Nutch-1.10` obeys the group for `FooBot` or, if the
//!    file has no such group, the group for `Nutch`.
//! 4. If the header names no registered crawler, the agent is the longest name in the file that
//!    consists of whole words of the header. If no name consists of whole words, the agent is the
//!    longest name that is followed by a version in the same word, as in `FooBot2` and
//!    `FooBot-1.0`. The word `FooBot-Image` does not match the name `FooBot`, because
//!    `FooBot-Image` is another crawler. A name in the file that is an everyday word or has at most
//!    three bytes is found only if it is the complete name of the header's leading product. Words
//!    of the browsers' costume are never treated as names.
//! 5. In a header that looks like the header of a browser, only declared parts are searched:
//!    segments after `compatible;`, segments that contain or precede a contact (a URL or an e-mail
//!    address), and products that call themselves a crawler.
//! 6. Headers of telephones, televisions, applications, media players and feed readers may contain
//!    a URL of the product's maker. In these headers, neither a URL nor the syllable "bot"
//!    (`CUBOT`, `BOTECH`) is enough to declare a crawler. In headers of web views and desktop
//!    programs, a word such as `Archive` is not enough either (`Archive Viewer/2.0 (Mac OS X)`). If
//!    the URL in a header belongs to a media player or a radio station, the client probably fetches
//!    feeds that people subscribed to. Tools that people run on their own machines are not
//!    crawlers. A header is from such a tool if it names a known program, a runtime or a machine
//!    (`go1.20.5`, `linux/amd64`). A header is also from such a tool if every URL in it leads to
//!    the program's source code or home page (`Terraform/1.9.0 (+https://www.terraform.io)`). The
//!    name of a declared crawler is usually the leading product of its header, not the words next
//!    to the contact.
//! 7. In a comment with `MSIE` or `Konqueror`, only products that call themselves a crawler are
//!    declared parts.
//! 8. The agent's [`Class`] tells how the agent was recognised. The class and the policy decide
//!    whether `*` applies to the agent.
//!
//! A header may contain a false name. This module treats every name as true. The module `identity`
//! verifies claims.

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
#[doc(hidden)]
pub use self::recognizer::NamedAs;
pub use self::recognizer::Recognizer;
#[doc(hidden)]
pub use self::referrer::Referrer;
pub use self::registry::Registry;
