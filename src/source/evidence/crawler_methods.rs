//! The ways in which the claims of one crawler can be checked.

use std::collections::HashMap;
use std::sync::Arc;

use super::follower::Follower;
use super::lookups::OperatorNames;
use crate::identity::RangeList;

/// The ways in which the claims of one crawler can be checked, with the evidence for them.
#[derive(Debug)]
pub(super) struct CrawlerMethods {
    pub(super) lists: Box<[Arc<Follower<RangeList>>]>,
    pub(super) names: Option<Arc<OperatorNames>>,
}

/// The methods of every crawler that has one, by its name in the registry.
pub(super) type MethodTable = HashMap<Box<str>, CrawlerMethods, foldhash::fast::RandomState>;
