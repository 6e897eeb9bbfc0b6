//! What every page of robotsd looks like: one style sheet for light and dark, text that cannot leave its place, and numbers as
//! people read them. `commands::replay` and the board write their own pages with it.

pub(crate) mod escaped;
pub(crate) mod figures;

/// The style sheet of every page.
pub(crate) const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::STYLE;

    /// The colours of a theme by name; the first is the light one.
    fn themes() -> Vec<HashMap<&'static str, &'static str>> {
        let blocks = STYLE.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
        let colours = |block: &'static str| block.split(';').filter_map(|line| line.trim().split_once(": "));
        blocks.map(|block| colours(block).collect()).collect()
    }

    /// Relative luminance, as WCAG 2.2 defines it.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("two digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// WCAG 2.2, 1.4.3 for text and 1.4.11 for what is drawn.
    #[test]
    fn colours_can_be_distinguished_in_the_light_and_in_the_dark() {
        let themes = themes();
        assert_eq!((themes.len(), STYLE.matches("prefers-color-scheme: dark").count()), (2, 1));
        for theme in themes {
            for text in ["--ink", "--soft", "--link"] {
                for ground in ["--paper", "--card", "--warn"] {
                    let contrast = contrast(theme[text], theme[ground]);
                    assert!(contrast >= 4.5, "{text} on {ground}: {contrast:.2}");
                }
            }
            for drawn in ["--allowed", "--disallowed", "--opened", "--engine", "--early", "--warn-line"] {
                let contrast = contrast(theme[drawn], theme["--paper"]);
                assert!(contrast >= 3.0, "{drawn}: {contrast:.2}");
            }
        }
    }

    /// A fixed width wider than a telephone makes a page scroll sideways.
    #[test]
    fn nothing_is_wider_than_a_narrow_window() {
        assert!(
            !STYLE.contains("min-width: 4") && !STYLE.contains("overflow-x") && !STYLE.contains("nowrap;\n  width")
        );
        let narrow = STYLE.split_once("@media (max-width:").expect("a style for narrow windows").1;
        for rule in [".stacked td::before { content: attr(data-label)", ".bars li { grid-template-columns: 1fr auto"] {
            assert!(narrow.contains(rule), "{rule}");
        }
    }
}
