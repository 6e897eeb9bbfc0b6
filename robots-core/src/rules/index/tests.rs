//! Compares the index with a simple search that compares every pattern with the path.

use crate::rules::{Access, Fallback, PathForms, PathPattern, ProductToken, Reading, RequestPath, RobotsTxt};

/// Pseudo-random numbers that are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    /// Generates a path whose segments often begin with the same bytes. Some segments are longer
    /// than the label that a node of the trie can store.
    fn path(&mut self) -> String {
        let segment = |numbers: &mut Self| {
            let letter = char::from(b'a' + u8::try_from(numbers.below(20)).unwrap());
            let stem = ["", "x", "catalogue-of-", "a-name-longer-than-sixteen-octets-"][numbers.below(4)];
            format!("/{stem}{letter}")
        };
        (0..=self.below(4)).map(|_| segment(self)).collect()
    }

    fn pattern(&mut self) -> String {
        let mut pattern = self.path();
        for _ in 0..[0, 0, 1, 3][self.below(4)] {
            let at = 1 + self.below(pattern.len());
            pattern.replace_range(at.., &format!("*{}", &pattern[at..]));
        }
        pattern.truncate(pattern.len() - self.below(2).min(pattern.len() - 1));
        if self.below(8) == 0 { pattern + "$" } else { pattern }
    }
}

/// Returns the access of the longest pattern that matches. If two are equally long, allow wins.
fn compared(rules: &[(Access, PathPattern)], path: &[u8]) -> Access {
    let matching = rules.iter().filter(|(_, pattern)| pattern.matches(path));
    let best = matching.max_by_key(|(access, pattern)| (pattern.priority(), *access == Access::Allow));
    best.map_or(Access::Allow, |(access, _)| *access)
}

#[test]
fn the_index_gives_the_same_verdicts_as_comparing_every_pattern() {
    let numbers = &mut Numbers(1);
    for size in [1, 2, 7, 30, 200, 1000] {
        for _ in 0..4 {
            // The file has two groups for one token, so merged and separate groups are searched.
            let mut file = String::new();
            let (mut rules, mut second) = (Vec::new(), Vec::new());
            for (token, of_group) in [("a", &mut rules), ("a\nUser-agent: b", &mut second)] {
                file += &format!("User-agent: {token}\n");
                for _ in 0..size {
                    let (access, word) = [(Access::Allow, "Allow"), (Access::Disallow, "Disallow")][numbers.below(2)];
                    let pattern = numbers.pattern();
                    file += &format!("{word}: {pattern}\n");
                    of_group.push((access, PathPattern::new(pattern.as_bytes(), Reading::Standard)));
                }
            }
            rules.extend(second.iter().cloned());
            let set = RobotsTxt::parse(file.into_bytes()).compile(Reading::Standard);
            for _ in 0..200 {
                let target = if numbers.below(2) == 0 { numbers.path() } else { numbers.pattern().replace('*', "/x") };
                let path = RequestPath::with_forms(target.as_bytes(), PathForms::NONE);
                for (token, of_token) in [("a", &rules), ("b", &second)] {
                    let verdict = set.select(&[ProductToken::new(token)], Fallback::Nothing).verdict(&path);
                    assert_eq!(verdict.access(), compared(of_token, path.as_bytes()), "{token} {target}");
                    let rule = verdict.rule();
                    assert_eq!(verdict.line(), rule.map(|rule| rule.line()), "{target}");
                    assert!(rule.is_none_or(|rule| rule.access() == verdict.access()), "{target}");
                }
            }
        }
    }
}
