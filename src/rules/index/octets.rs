//! Which octets a path or a pattern holds: what a pattern needs and the path lacks rules it out without a search.

/// A set of octets in 64 classes: digits and the punctuation of paths stand alone, letters with their other case, and
/// what is left together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OctetSet(u64);

/// The octets with a class of their own, behind the letters.
const ALONE: &[u8; 37] = b"0123456789/?&=-_.%+~:;,!@$*#'()|[]{} ";

impl OctetSet {
    pub(super) fn of(octets: &[u8]) -> Self {
        const CLASSES: [u64; 256] = classes();
        Self(octets.iter().fold(0, |set, octet| set | CLASSES[usize::from(*octet)]))
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether an octet of every class in `needed` is here.
    pub(super) const fn holds(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }
}

const fn classes() -> [u64; 256] {
    let mut classes = [1 << 63; 256];
    let mut at = 0;
    while at < 26 {
        classes[b'a' as usize + at] = 1 << at;
        classes[b'A' as usize + at] = 1 << at;
        at += 1;
    }
    while at < 26 + ALONE.len() {
        classes[ALONE[at - 26] as usize] = 1 << at;
        at += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_it_was_made_of() {
        let path = OctetSet::of(b"/shop/?sort=price");
        for held in ["/", "?sort=", "SHOP", ""] {
            assert!(path.holds(OctetSet::of(held.as_bytes())), "{held}");
        }
        for missing in ["/shop/1", "&", ".", "\u{7f}"] {
            assert!(!path.holds(OctetSet::of(missing.as_bytes())), "{missing}");
        }
    }
}
