//! Web Bot Auth: a signature on the request (RFC 9421) by a key that the crawler's operator
//! publishes.
//!
//! Only the algorithm Ed25519 is supported. `parameters` checks the parameter `alg`, and `key_set`
//! reads the keys and verifies signatures.
//!
//! Older drafts define `Signature-Agent` as a String, later drafts as a Dictionary. In both forms,
//! the field contains a URL. [`DirectoryUrl::parse`] interprets an origin as the directory at the
//! origin's well-known path, and any other URL as the URL of a JWK Set.
//!
//! 1. Only the first two members of `Signature-Input` with the `tag` `web-bot-auth` are used. A
//!    request without such a member is treated as not signed.
//! 2. The parameters, the algorithm, the time and the covered components are checked first, because
//!    these checks need no key.
//! 3. The signature base is built (RFC 9421, section 2.5).
//! 4. The key is looked up by directory and `keyid`, never by `keyid` alone, and the signature is
//!    checked.

mod check;
mod components;
mod directory_url;
pub(crate) mod kept_checks;
mod key_set;
mod message_head;
mod parameters;
mod structured_field;

#[cfg(any(test, fuzzing))]
pub(super) mod test_any_input;
#[cfg(test)]
mod tests;

pub use self::check::{SignatureCandidate, SignatureCheck};
pub use self::components::RequiredComponent;
pub use self::directory_url::{DirectoryUrl, DirectoryUrlError};
pub use self::key_set::KeySet;
pub use self::message_head::{FieldLines, MessageHead};
