//! Which of a listener's certificates a client gets.
//!
//! By the name it sends (SNI): a certificate for exactly this name before one with a wildcard, and of several, such
//! as one with an ECDSA and one with an RSA key, the first whose signatures the client understands. A name without a
//! certificate, and a client without a name, get the first: a refused handshake would show a person less than a
//! certificate for another name does, and health checks by address go on working.

use std::collections::HashMap;
use std::sync::Arc;

use super::pair::CertificatePair;

/// The certificates of a listener, by name; at least one.
#[derive(Debug)]
pub(super) struct CertificatesByName<P = Arc<CertificatePair>> {
    certificates: Vec<P>,
    exact: HashMap<String, Vec<usize>>,
    /// By the name after `*.`.
    wildcard: HashMap<String, Vec<usize>>,
}

impl<P> CertificatesByName<P> {
    /// The first is the default.
    pub(super) fn new(certificates: Vec<P>, names: impl Fn(&P) -> &[String]) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut wildcard: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, certificate) in certificates.iter().enumerate() {
            for name in names(certificate) {
                let places = match name.strip_prefix("*.") {
                    Some(parent) => wildcard.entry(parent.to_owned()).or_default(),
                    None => exact.entry(name.clone()).or_default(),
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        Self { certificates, exact, wildcard }
    }

    /// The certificate for a name, and its place.
    pub(super) fn choose(&self, name: Option<&str>, suits: impl Fn(&P) -> bool) -> Option<(usize, &P)> {
        let candidates = || name.into_iter().flat_map(|name| self.candidates(name));
        let suitable = candidates().find(|place| self.certificates.get(*place).is_some_and(&suits));
        let place = suitable.or_else(|| candidates().next()).unwrap_or(DEFAULT);
        Some((place, self.certificates.get(place)?))
    }

    /// Whether a client that names a host may get the certificate at a place.
    pub(super) fn may_choose(&self, place: usize, name: &str) -> bool {
        let mut candidates = self.candidates(name).peekable();
        if candidates.peek().is_none() { place == DEFAULT } else { candidates.any(|candidate| candidate == place) }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &P> {
        self.certificates.iter()
    }

    /// The places of the certificates for a name, the best first.
    fn candidates(&self, name: &str) -> impl Iterator<Item = usize> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let exact = self.exact.get(&name);
        // A wildcard stands for exactly one label (RFC 9525, section 6.3).
        let wildcard = name.split_once('.').and_then(|(_, parent)| self.wildcard.get(parent));
        exact.into_iter().chain(wildcard).flatten().copied()
    }
}

const DEFAULT: usize = 0;

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate, and whether the client understands its signatures.
    type Made = (Vec<String>, bool);

    fn certificates(of: &[(&[&str], bool)]) -> CertificatesByName<Made> {
        let made = |(names, suits): &(&[&str], bool)| (names.iter().map(ToString::to_string).collect(), *suits);
        CertificatesByName::new(of.iter().map(made).collect(), |made: &Made| &made.0)
    }

    fn chosen(certificates: &CertificatesByName<Made>, name: Option<&str>) -> usize {
        certificates.choose(name, |made| made.1).unwrap().0
    }

    #[test]
    fn exact_comes_before_wildcard_and_the_first_is_the_default() {
        let certificates = certificates(&[
            (&["default.test"], true),
            (&["*.shop.test", "shop.test"], true),
            (&["img.shop.test"], true),
        ]);
        for (name, place) in [
            (None, 0),
            (Some("default.test"), 0),
            (Some("shop.test"), 1),
            (Some("WWW.shop.TEST."), 1),
            (Some("img.shop.test"), 2),
            (Some("a.b.shop.test"), 0),
            (Some("other.test"), 0),
            (Some(".shop.test"), 1),
            (Some(""), 0),
            (Some("."), 0),
        ] {
            assert_eq!(chosen(&certificates, name), place, "{name:?}");
        }
    }

    #[test]
    fn of_several_for_a_name_the_first_that_the_client_understands() {
        let certificates = certificates(&[
            (&["a.test"], true),
            (&["b.test"], false),
            (&["b.test"], true),
            (&["*.c.test"], true),
            (&["x.c.test"], false),
            (&["d.test"], false),
        ]);
        assert_eq!(chosen(&certificates, Some("b.test")), 2);
        assert_eq!(chosen(&certificates, Some("x.c.test")), 3);
        // Understood or not, it is the one for the name.
        assert_eq!(chosen(&certificates, Some("d.test")), 5);
    }

    #[test]
    fn a_host_belongs_to_the_certificates_it_could_get() {
        let certificates = certificates(&[(&["a.test"], true), (&["b.test"], true), (&["b.test"], true)]);
        for (place, host, may) in [
            (0, "a.test", true),
            (0, "nowhere.test", true),
            (0, "b.test", false),
            (1, "B.test", true),
            (2, "b.test", true),
            (1, "a.test", false),
            (1, "nowhere.test", false),
        ] {
            assert_eq!(certificates.may_choose(place, host), may, "{place} {host}");
        }
    }
}
