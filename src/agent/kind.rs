//! The three scales an agent is placed on: how it is known, what it is for, and whether it obeys.

use crate::rules::keyword_enum;

keyword_enum! {
    /// How an agent is known.
    Class, "a class of agents", {
        /// A crawler of the [`Registry`](super::Registry).
        Registered = "registered",
        /// Not in the registry, but it says that it is a robot: a crawler word, a contact address, or a
        /// `compatible; Product` that names no platform.
        Declared = "declared",
        /// Not in the registry, but it calls itself a health probe, a validator or a webhook.
        Infrastructure = "infrastructure",
        /// A browser that runs without a person in front of it, and says so.
        Headless = "headless",
        /// An HTTP library or command line client that says nothing of who uses it.
        Library = "library",
        /// An application on a person's device.
        App = "app",
        /// Neither shaped like a browser nor anything of the above.
        NonBrowser = "non-browser",
        /// A browser, or what looks like one.
        Browser = "browser",
        /// Nothing but blanks, or no field at all.
        Empty = "empty",
    }
}

keyword_enum! {
    /// The purpose an agent fetches pages for.
    Category, "a category of crawlers", {
        /// A search engine.
        Search = "search",
        /// Collecting material to train models on.
        AiTraining = "ai-training",
        /// An index that answers are made from.
        AiSearch = "ai-search",
        /// One page at a person's request.
        UserFetch = "user-fetch",
        /// Links and rankings, for site owners and their rivals.
        Seo = "seo",
        /// Keeping pages for later.
        Archive = "archive",
        /// A card or picture for a link that a person shared.
        Preview = "preview",
        /// Uptime, speed or validity, mostly for the site's own people.
        Monitoring = "monitoring",
        /// Feeds and podcasts that people subscribed to.
        Feed = "feed",
        /// Surveys of what is reachable or vulnerable.
        Security = "security",
        /// Advertisements and where they stand.
        Ads = "ads",
        /// Health probes, certificate validators, webhooks, load balancers.
        Infrastructure = "infrastructure",
        /// Anything else.
        Other = "other",
    }
}

keyword_enum! {
    /// Whether an agent obeys robots.txt, or the groups of `*` in it.
    Obeys, "an answer to whether an agent obeys", {
        /// Its operator says so.
        Yes = "yes",
        /// Its operator says it does not.
        No = "no",
        /// In part, or only for some of its requests.
        Partial = "partial",
        /// Not documented, or not checked.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_forms_read_back() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(*class));
        }
        for category in Category::ALL {
            assert_eq!(category.as_str().parse(), Ok(*category));
        }
        for obeys in Obeys::ALL {
            assert_eq!(obeys.as_str().parse(), Ok(*obeys));
        }
        let error = "ai-user".parse::<Obeys>().expect_err("unknown").to_string();
        let message =
            "\"ai-user\" is not an answer to whether an agent obeys: write \"yes\", \"no\", \"partial\" or \"unknown\"";
        assert_eq!(error, message);
        assert!("Search".parse::<Category>().is_err() && "".parse::<Class>().is_err());
    }
}
