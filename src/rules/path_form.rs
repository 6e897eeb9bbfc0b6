//! The kinds of forms that a path has, and sets of them.

use std::fmt;

use super::keyword::keywords;

/// A way to read a request target. Of several things done to a path, the last in this list names the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PathForm {
    /// The octets as they came, as the reference parser takes them.
    Verbatim,
    /// Escapes made alike, structure as sent.
    Standard,
    /// Dot segments removed (RFC 3986, section 5.2.4), with and without the slash that a final one leaves.
    Resolved,
    /// Empty segments merged, before or after dot segments are removed.
    Merged,
    /// `%2F` decoded, or `%2F` and `%5C`, which stands for a raw backslash as well.
    Decoded,
    /// Path parameters cut: what follows a `;` in a segment (RFC 3986, section 3.3).
    Parameters,
    /// `%uXXXX` read as the character of that code point.
    Unicode,
    /// What follows the authority, of a path that begins with `//`.
    Authority,
}

impl PathForm {
    /// The forms that a site can leave out.
    pub const OPTIONAL: [Self; 6] =
        [Self::Resolved, Self::Merged, Self::Decoded, Self::Parameters, Self::Unicode, Self::Authority];
}

keywords!(PathForm, "a form of a path", {
    Verbatim = "verbatim",
    Standard = "standard",
    Resolved = "resolved",
    Merged = "merged",
    Decoded = "decoded",
    Parameters = "parameters",
    Unicode = "unicode",
    Authority = "authority",
});

/// Which forms of a path are judged besides the one it was sent in. Default: all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathForms(u8);

impl PathForms {
    /// Every form.
    pub const ALL: Self = Self::NONE
        .with(PathForm::Resolved)
        .with(PathForm::Merged)
        .with(PathForm::Decoded)
        .with(PathForm::Parameters)
        .with(PathForm::Unicode)
        .with(PathForm::Authority);

    /// No form but the one as sent.
    pub const NONE: Self = Self(0);

    /// These forms and one more. [`PathForm::Verbatim`] and [`PathForm::Standard`] say how a path was sent, which is judged in
    /// any case: they add nothing.
    #[must_use]
    pub const fn with(self, form: PathForm) -> Self {
        Self(self.0 | Self::bit(form))
    }

    /// These forms but for those that need a thing done: without [`PathForm::Decoded`], nothing is decoded in any form.
    #[must_use]
    pub const fn without(self, form: PathForm) -> Self {
        Self(self.0 & !Self::bit(form))
    }

    /// Whether a form is among these.
    #[must_use]
    pub const fn contains(self, form: PathForm) -> bool {
        self.0 & Self::bit(form) != 0
    }

    const fn bit(form: PathForm) -> u8 {
        match form {
            PathForm::Verbatim | PathForm::Standard => 0,
            form => 1 << form as u8,
        }
    }
}

impl Default for PathForms {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<PathForm> for PathForms {
    fn from_iter<I: IntoIterator<Item = PathForm>>(forms: I) -> Self {
        forms.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for PathForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(PathForm::OPTIONAL.iter().filter(|form| self.contains(**form))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_added_and_not_removed() {
        let some = PathForms::NONE.with(PathForm::Merged).with(PathForm::Unicode).with(PathForm::Merged);
        for form in PathForm::OPTIONAL {
            assert_eq!(some.contains(form), [PathForm::Merged, PathForm::Unicode].contains(&form), "{form}");
            assert!(PathForms::ALL.contains(form) && !PathForms::ALL.without(form).contains(form), "{form}");
            assert_eq!(PathForms::ALL.without(form).with(form), PathForms::ALL, "{form}");
            assert_eq!(PathForms::NONE.without(form), PathForms::NONE, "{form}");
        }
        assert_eq!(PathForm::OPTIONAL.into_iter().collect::<PathForms>(), PathForms::ALL);
        assert_eq!(format!("{some:?}"), "{Merged, Unicode}");
    }

    #[test]
    fn how_a_path_was_sent_is_no_choice() {
        for form in [PathForm::Verbatim, PathForm::Standard] {
            assert_eq!(PathForms::NONE.with(form), PathForms::NONE);
            assert_eq!(PathForms::ALL.without(form), PathForms::ALL);
        }
    }
}
