//! The known word that a misspelled one probably means.

/// The nearest of the known words, without case; none where all of them are another word.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A URL is the longest that a person types as one word, and the distance costs the product of both lengths.
    const LONGEST: usize = 128;
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let distance = |known: &'k str| (strsim::damerau_levenshtein(&word, &known.to_lowercase()), known);
    // A third of the letters may be wrong, and one of them in a short word.
    let is_near = |(distance, known): &(usize, &str)| *distance <= (known.len().min(word.len()) / 3).max(1);
    known.into_iter().filter(|known| known.len() <= LONGEST).map(distance).filter(is_near).min().map(|(_, known)| known)
}

/// As in `did you mean "tag"?`.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|known| format!("did you mean {known:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended_and_another_word_is_not() {
        let known = ["Googlebot", "GPTBot", "tag", "bytespider"];
        for (word, want) in [
            ("Gogglebot", Some("Googlebot")),
            ("gptbot", Some("GPTBot")),
            ("GTPBot", Some("GPTBot")),
            ("tga", Some("tag")),
            ("strict", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(nearest(word, known), want, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
