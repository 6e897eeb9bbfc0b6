//! The mode: what the layer does with disallowed requests.

use crate::rules::keyword_enum;

keyword_enum! {
    /// How a request that robots.txt disallows is handled; the later ones are stricter.
    #[derive(Default, PartialOrd, Ord)]
    Mode, "a mode", {
        /// It passes, and nothing is recorded.
        Off = "off",
        /// It is recorded and passes unchanged. The default.
        #[default]
        Observe = "observe",
        /// It passes with a field for the application behind.
        Tag = "tag",
        /// It is answered with a refusal.
        Refuse = "refuse",
    }
}
