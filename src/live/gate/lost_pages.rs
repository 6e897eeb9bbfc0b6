//! Which pages a version may take from search engines without an operator.
//!
//! A version waits that newly disallows more than 1 %, or more than a hundred, of the pages of a list that were allowed, and at
//! least two, or the front page. Each list is judged by itself: a few pages that an operator wrote down are not outweighed by the
//! thousands of a sitemap.
//!
//! One page is not enough. In a list of less than a hundred it would be more than 1 %, and owners take single pages out on purpose,
//! by a rule that is written for that page. An accident is a prefix or a wildcard, and meets more than one; but a rule that meets
//! the front page and nothing else is a slip.

use std::sync::Arc;

use super::objection::{Objection, ObjectionKind};
use super::watched_pages::PageList;
use crate::agent::Registry;
use crate::check::{LostPage, PageLoss, page_losses};
use crate::rules::RobotsTxt;

/// Pages that may be lost at once, as long as they are few of many.
const MOST: usize = 100;

/// One page in this many may be lost.
const SHARE: usize = 100;

/// Fewer than this are no accident.
const LEAST: usize = 2;

/// Pages that an objection lists.
const LISTED: usize = 10;

/// The objections to a version that takes too many pages of a list: the sum, and some of the pages with the rule of each.
pub(super) fn objections(
    list: &PageList,
    accepted: &RobotsTxt,
    robots: &RobotsTxt,
    registry: &Arc<Registry>,
) -> Vec<Objection> {
    let losses = page_losses(accepted, robots, &list.pages, registry);
    let Some(loss) = losses.iter().find(|loss| is_too_much(loss)) else { return Vec::new() };
    let of_kind = |text: String| Objection::new(ObjectionKind::Pages, text);
    let share = percent(loss.lost().len(), loss.of());
    let mut objections = vec![of_kind(format!("{loss} {} ({share})", list.name))];
    objections.extend(loss.examples(LISTED).map(|lost| of_kind(lost.to_string())));
    let more = loss.lost().len().saturating_sub(LISTED);
    if more > 0 {
        objections.push(of_kind(format!("and {more} more of them")));
    }
    objections
}

fn is_too_much(loss: &PageLoss) -> bool {
    let lost = loss.lost().len();
    let is_many = lost > MOST || lost * SHARE > loss.of();
    is_many && lost >= LEAST || loss.lost().iter().map(LostPage::page).any(crate::check::Page::is_front)
}

/// A share in percent, in whole numbers where it is at least one.
fn percent(part: usize, of: usize) -> String {
    match part.saturating_mul(100) / of.max(1) {
        0 => "less than 1 %".to_owned(),
        whole => format!("{whole} %"),
    }
}
