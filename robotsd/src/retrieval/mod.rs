//! Documents that commands fetch: a robots.txt, a sitemap, a fragment of rules.
//!
//! A [`Retriever`] makes requests with the client of the library, one at a time, and shows every step: each [`Hop`] of a
//! redirect chain has its URL, the address that answered, and what came of it. Everything is bounded: hops, octets as sent and
//! as decoded, time, and requests in one run. Proxies that the environment names (`HTTPS_PROXY` …) are not used: what a crawler
//! meets is what the server itself answers. What an answer to a request for a robots.txt means to crawlers is an
//! [`AnswerKind`].
//!
//! This room writes nothing and reads no rules.

mod answer_kind;
mod coding;
mod connect_to;
mod document;
mod retrieval_chain;
mod retriever;
mod robots_url;

pub(crate) use self::answer_kind::{AnswerKind, CrawlerAccess};
pub(crate) use self::coding::{DecodedBody, codings, decode};
pub(crate) use self::connect_to::ConnectTo;
pub(crate) use self::document::DocumentError;
pub(crate) use self::retrieval_chain::{ChainEnd, RetrievalChain};
pub(crate) use self::retriever::{RequestedCodings, RetrievalRequest, RetrievalSettings, Retriever};
pub(crate) use self::robots_url::{is_url, robots_url, shown_url, site_hint};
