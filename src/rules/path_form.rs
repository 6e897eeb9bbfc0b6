//! The kinds of forms that a path has, and sets of them.

use std::fmt;

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

    /// The form's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Standard => "standard",
            Self::Resolved => "resolved",
            Self::Merged => "merged",
            Self::Decoded => "decoded",
            Self::Parameters => "parameters",
            Self::Unicode => "unicode",
            Self::Authority => "authority",
        }
    }
}

impl fmt::Display for PathForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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

    /// These forms and one more.
    #[must_use]
    pub const fn with(self, form: PathForm) -> Self {
        Self(self.0 | 1 << form as u8)
    }

    /// These forms but for those that need a thing done: without [`PathForm::Decoded`], nothing is decoded in any form.
    #[must_use]
    pub const fn without(self, form: PathForm) -> Self {
        Self(self.0 & !(1 << form as u8))
    }

    /// Whether a form is among these.
    #[must_use]
    pub const fn contains(self, form: PathForm) -> bool {
        self.0 & (1 << form as u8) != 0
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
