//! The permissions of clients of the admin interface. A client is identified by a token, whose hash
//! is in the config, or as a user of the Unix socket or of an authenticating proxy.
//!
//! A fast hash function suffices, because a token consists of 256 random bits and cannot be
//! guessed.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use data_encoding::HEXLOWER_PERMISSIVE;
use toml::Spanned;
use toml::value::Datetime;

use super::site::end;
use super::{Fault, Placed, matches_pattern, tables, words};
use crate::names::quoted_list;

tables! {
    /// A token for clients over TCP. `robotsd token new NAME` creates one.
    RawAdminToken {
        name: Spanned<String>,
        hash: Spanned<String>,
        role: AdminRole,
        sites: Vec<Spanned<String>>,
        until: Option<Spanned<Datetime>>,
    }

    /// A user of the Unix socket, or a user named by a proxy.
    RawAdminUser {
        uid: Option<Spanned<u32>>,
        /// Group ID of users of the Unix socket.
        group: Option<Spanned<u32>>,
        /// User name that the proxy sends; `*` stands for any characters.
        name: Option<Spanned<String>>,
        role: AdminRole,
        sites: Vec<Spanned<String>>,
        until: Option<Spanned<Datetime>>,
    }
}

words! {
    /// What a client may do.
    AdminRole {
        /// Read only.
        #[default]
        Read = "read",
        /// Accept, roll back and reload, and switch enforcement off and on, for the client's sites.
        Operate = "operate",
        /// Everything, for every site.
        Admin = "admin",
    }
}

/// User or group ID that the kernel reports instead of IDs that are not in this process's user
/// namespace. The number is the default of `/proc/sys/kernel/overflowuid`, which the shipped
/// systemd unit hides from robotsd.
pub(crate) const UNKNOWN_ID: u32 = 65_534;

impl AdminRole {
    pub(crate) const fn includes(self, other: Self) -> bool {
        self as u8 >= other as u8
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdminRights {
    pub(crate) tokens: Vec<AdminToken>,
    /// The local token; `None` if no address accepts a local token. See
    /// [`local_token`](Self::local_token).
    pub(crate) local: Option<LocalToken>,
    /// Whether a loopback listener that does not set `access` requires a token for all requests
    /// except probes.
    pub(crate) asks_for_token: bool,
    users: Vec<(AdminUser, Grant)>,
}

/// The token that robotsd creates for changes over a loopback address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalToken {
    /// The file with the token. Only its owner can read it.
    pub(crate) file: PathBuf,
    /// `Err` contains the reason why there is no token.
    pub(crate) token: Result<AdminToken, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminToken {
    pub(crate) name: String,
    hash: [u8; 32],
    pub(crate) grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdminUser {
    Uid(u32),
    Group(u32),
    /// A user name that a proxy sends. In the config, this may be a pattern.
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) role: AdminRole,
    sites: Arc<[String]>,
    until: Option<SystemTime>,
}

impl AdminRights {
    pub(crate) fn token(&self, hash: &[u8; 32]) -> Option<&AdminToken> {
        let local = self.local_token().and_then(|local| local.token.as_ref().ok());
        self.tokens.iter().chain(local).find(|token| token.has_hash(hash))
    }

    /// Reports whether this is the hash of a local token that is ignored because the config has
    /// tokens. Commands send the local token even if it is ignored, because they do not know the
    /// tokens in the config.
    pub(crate) fn ignores(&self, hash: &[u8; 32]) -> bool {
        let local = self.local.as_ref().filter(|_| !self.tokens.is_empty());
        local.is_some_and(|local| local.token.as_ref().is_ok_and(|token| token.has_hash(hash)))
    }

    pub(crate) fn with_local(&self, local: Option<LocalToken>) -> Self {
        Self { local, ..self.clone() }
    }

    /// Returns the local token; `None` if the config has tokens, because the local token is then
    /// not valid.
    pub(crate) fn local_token(&self) -> Option<&LocalToken> {
        self.local.as_ref().filter(|_| self.tokens.is_empty())
    }

    /// Returns the reason why no changes can be made over a loopback address; `None` if changes can
    /// be made.
    pub(crate) fn problem(&self) -> Option<String> {
        let why = self.local_token()?.token.as_ref().err()?;
        Some(format!(
            "changes over the loopback address of [admin] are refused, because robotsd has no token for them: {why}"
        ))
    }

    pub(crate) fn user(&self, users: &[AdminUser]) -> Option<&Grant> {
        let is_match = |known: &AdminUser, user: &AdminUser| match (known, user) {
            (AdminUser::Named(pattern), AdminUser::Named(name)) => matches_pattern(pattern, name),
            _ => known == user,
        };
        users.iter().find_map(|user| self.users.iter().find(|(known, _)| is_match(known, user))).map(|(_, grant)| grant)
    }

    pub(crate) fn has_local_users(&self) -> bool {
        self.users.iter().any(|(user, _)| !matches!(user, AdminUser::Named(_)))
    }
}

impl AdminToken {
    /// Compares the hash of the token with `hash` in constant time.
    fn has_hash(&self, hash: &[u8; 32]) -> bool {
        let differing = self.hash.iter().zip(hash).fold(0, |differing, (one, other)| differing | (one ^ other));
        std::hint::black_box(differing) == 0
    }
}

impl LocalToken {
    /// Creates a local token. `token` is the content of `file`.
    pub(crate) fn new(file: PathBuf, token: &str) -> Self {
        let (name, hash) = ("local".to_owned(), hmac_sha256::Hash::hash(token.as_bytes()));
        Self { file, token: Ok(AdminToken { name, hash, grant: Grant::everywhere(AdminRole::Admin) }) }
    }

    /// Creates a local token that cannot be used.
    pub(crate) fn missing(file: PathBuf, why: impl Into<String>) -> Self {
        Self { file, token: Err(why.into()) }
    }
}

impl Grant {
    pub(crate) fn everywhere(role: AdminRole) -> Self {
        Self { role, sites: ["*".to_owned()].into(), until: None }
    }

    pub(crate) fn at_most(&self, role: AdminRole) -> Self {
        let role = if role.includes(self.role) { self.role } else { role };
        Self { role, ..self.clone() }
    }

    pub(crate) fn has_ended(&self, now: SystemTime) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Reports whether the grant covers a site. If `site` is `None`, reports whether the grant
    /// covers every site.
    pub(crate) fn covers(&self, site: Option<&str>) -> bool {
        let is_covered = |pattern: &String| match site {
            None => pattern == "*",
            // `name` may be `SITE/HOST`, the name of the robots.txt of one host. A pattern without
            // `/` is compared only with the name of the site.
            Some(name) if pattern.contains('/') => matches_pattern(pattern, name),
            Some(name) => matches_pattern(pattern, name.split_once('/').map_or(name, |(site, _)| site)),
        };
        self.sites.iter().any(is_covered)
    }
}

/// Formats the grant for messages, such as `operate for "shop", "blog-*"`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.as_str())?;
        if !self.covers(None) {
            write!(f, " for {}", quoted_list(self.sites.iter()))?;
        }
        Ok(())
    }
}

pub(super) fn resolve(tokens: &[RawAdminToken], users: &[RawAdminUser]) -> Result<AdminRights, Fault> {
    let mut rights = AdminRights { asks_for_token: !tokens.is_empty(), ..AdminRights::default() };
    for token in tokens {
        let name = token.name.get_ref();
        if name.is_empty() || rights.tokens.iter().any(|other| other.name == *name) {
            let message = "the name of this token is empty, or another token has it: write a unique name, such as \
                that of its user, because the audit file shows the name";
            return Err(token.name.fault(message));
        }
        let Some(hash) = hash(token.hash.get_ref()) else {
            let message = "this is not the hash of a token: write \"sha256:\" and 64 hex digits, as `robotsd token new NAME` prints it";
            return Err(token.hash.fault(message));
        };
        let grant = grant(token.name.span(), token.role, &token.sites, token.until.as_ref())?;
        rights.tokens.push(AdminToken { name: name.clone(), hash, grant });
    }
    for RawAdminUser { uid, group, name, role, sites, until } in users {
        let uids = uid.iter().map(|uid| (AdminUser::Uid(*uid.get_ref()), uid.span()));
        let groups = group.iter().map(|group| (AdminUser::Group(*group.get_ref()), group.span()));
        let names = name.iter().map(|name| (AdminUser::Named(name.get_ref().clone()), name.span()));
        let mut of: Vec<_> = uids.chain(groups).chain(names).collect();
        let message = "an [[admin.user]] requires exactly one of these keys: \"uid\" or \"group\" for a user of the \
            Unix socket (such as uid = 1000), or \"name\" for a user that a proxy names (such as name = \"alice\")";
        let at = of.last().map_or(0..0, |(_, span)| span.clone());
        let Some((user, span)) = of.pop().filter(|_| of.is_empty()) else { return Err(Fault::new(at, message)) };
        if let AdminUser::Uid(UNKNOWN_ID) | AdminUser::Group(UNKNOWN_ID) = user {
            let message = format!(
                "{UNKNOWN_ID} stands for every user or group that robotsd cannot identify: write the ID of the actual \
                 user or group; under systemd, also set PrivateUsers=no"
            );
            return Err(Fault::new(span, message));
        }
        rights.users.push((user, grant(span, *role, sites, until.as_ref())?));
    }
    Ok(rights)
}

fn grant(
    span: Range<usize>,
    role: AdminRole,
    sites: &[Spanned<String>],
    until: Option<&Spanned<Datetime>>,
) -> Result<Grant, Fault> {
    let all = Grant { until: until.map(end).transpose()?, ..Grant::everywhere(role) };
    match (role, sites) {
        (AdminRole::Admin, []) => Ok(all),
        (AdminRole::Admin, [first, ..]) => {
            Err(first
                .fault("role = \"admin\" cannot be limited to sites: remove \"sites\", or write role = \"operate\""))
        }
        (_, []) => {
            let needs = "requires \"sites\": write the names of sites, as in sites = [\"shop\", \"blog-*\"], or \
                sites = [\"*\"] for every site";
            Err(Fault::new(span, format!("role = \"{}\" {needs}", role.as_str())))
        }
        (_, sites) => Ok(Grant { sites: sites.iter().map(|site| site.get_ref().clone()).collect(), ..all }),
    }
}

/// Decodes `sha256:` and 64 hex digits.
fn hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?;
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_pattern_matches_any_part_of_a_name() {
        for (pattern, names, others) in [
            ("shop", "shop", "shops sho  SHOP"),
            ("*", "a shop/a.test ", ""),
            ("blog-*", "blog- blog-a blog-a/b.test", "blog ablog-a"),
            ("*-eu", "a-eu -eu", "a-eu2 eu"),
            ("a*b*c", "abc axxbxxc abbcc", "ab acb abcd"),
            ("a*a", "aa aba", "a"),
        ] {
            for (names, want) in [(names, true), (others, false)] {
                for name in names.split(' ').filter(|name| !name.is_empty()) {
                    assert_eq!(matches_pattern(pattern, name), want, "{pattern} {name}");
                }
            }
        }
    }

    #[test]
    fn a_grant_for_a_site_covers_its_hosts_and_only_star_covers_every_site() {
        let of = |sites: &[&str]| Grant {
            sites: sites.iter().map(ToString::to_string).collect(),
            ..Grant::everywhere(AdminRole::Operate)
        };
        let shop = of(&["shop", "blog-*"]);
        for (site, want) in [
            (Some("shop"), true),
            (Some("shop/a.test"), true),
            (Some("blog-2"), true),
            (Some("shops"), false),
            (Some("other/shop"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(shop.covers(site), want, "{site:?}");
        }
        assert!(!of(&["*.test"]).covers(Some("other/a.test")) && of(&["shop/*"]).covers(Some("shop/a.test")));
        assert!(of(&["*"]).covers(None) && of(&["*"]).covers(Some("any")));
        assert!(!of(&["**", "s*"]).covers(None));
        assert!(!of(&[]).covers(Some("")));
    }

    #[test]
    fn a_token_hash_is_sha256_with_64_hexadecimal_digits() {
        let digits = "0123456789abcdefABCDEF0123456789".repeat(2);
        assert_eq!(hash(&format!("sha256:{digits}")).map(|hash| hash[..3].to_vec()), Some(vec![0x01, 0x23, 0x45]));
        for text in [&digits[..], "sha256:", &format!("sha256:{}", &digits[1..]), &format!("sha256:+{}", &digits[1..])]
        {
            assert_eq!(hash(text), None, "{text}");
        }
    }
}
