//! Web Bot Auth: a signature on the request (RFC 9421) by a key that the crawler's operator publishes.
//!
//! All four forms of `Signature-Agent` on the wire are read by one rule ([`DirectoryUrl::parse`]): a String is the oldest, a
//! Dictionary the others; what names an origin stands for the directory at its well-known path, any other URL for a JWK Set.
//!
//! 1. `Signature-Input` is read, and of it the first two members whose `tag` is `web-bot-auth`. A request without one is
//!    not signed, whatever else it carries.
//! 2. Checks that need nothing but the request come first: parameters, algorithm, time, and which components are signed.
//! 3. The signature base is put together (RFC 9421, section 2.5).
//! 4. The key is looked up by directory and `keyid`, never by `keyid` alone, and the signature is checked.

mod check;
mod components;
mod directory_url;
pub(crate) mod kept_checks;
mod key_set;
mod message_head;
mod parameters;
mod structured_field;

#[cfg(any(test, fuzzing))]
pub(super) mod test_octets;
#[cfg(test)]
mod tests;

pub use self::check::{SignatureCandidate, SignatureCheck};
pub use self::components::RequiredComponent;
pub use self::directory_url::{DirectoryUrl, DirectoryUrlError};
pub use self::key_set::KeySet;
pub use self::message_head::{FieldLines, MessageHead};
