//! How a document is read.

use crate::keyword_enum;

pub(crate) const STANDARD_LIMIT: usize = 512_000;

keyword_enum! {
    /// How names, patterns and the size of a robots.txt are understood.
    ///
    /// | | `Reference` | `Standard` | `Legacy` |
    /// |---|---|---|---|
    /// | name in a user-agent line | its longest prefix in `[A-Za-z_-]` | whole, see [`ProductToken::from_name`](super::ProductToken::from_name) | as `Standard` |
    /// | escapes in patterns | hex digits upper-cased, octets ≥ 0x80 escaped | also decoded: unreserved octets, those that no URI may hold, and before the first `?` reserved ones but for `/`, `?`, `#` | as `Standard` |
    /// | `%` that is no escape | stays | stays; `%25` where decoding behind it would make it one | as `Standard` |
    /// | `%2A`, `%24` in a pattern | an escape | the literal `*`, `$` (RFC 9309, section 2.2.3) | as `Standard` |
    /// | octets that count | all | [`Reading::STANDARD_LIMIT`]; a line cut there is dropped | as `Standard` |
    /// | pattern without leading `/` or `*` | matches nothing | matches nothing | a leading `/` is assumed |
    ///
    /// Of a file of more than 256 MiB no reading compiles the rest. Priorities are those of `Reference` in every reading: the length of the pattern as written, an octet ≥ 0x80
    /// counting as its three-octet escape.
    #[derive(Default)]
    Reading, "a reading", {
        /// RFC 9309 as a server has to read it. The default, used for enforcement.
        #[default]
        Standard = "standard",
        /// What google/robotstxt answers, quirks included. Pair it with
        /// [`RequestPath::verbatim`](super::RequestPath::verbatim).
        Reference = "reference",
        /// `Standard` with the readings of the older specification pages.
        Legacy = "legacy",
    }
}

impl Reading {
    /// Octets of a file that count in [`Reading::Standard`] (RFC 9309, section 2.5: at least 500 KiB must be read).
    pub const STANDARD_LIMIT: usize = STANDARD_LIMIT;
}
