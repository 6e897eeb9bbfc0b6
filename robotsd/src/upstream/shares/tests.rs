use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::server::{Health, HealthPolicy};
use super::*;
use crate::upstream::endpoint::{HttpVersions, ServerAddress};

const NOW: u64 = 100_000;

struct Site {
    server: Arc<Server>,
    shares: Shares,
}

impl Site {
    fn new() -> Self {
        let health = Health::new(HealthPolicy::default(), Instant::now());
        Self {
            server: Arc::new(Server::new(ServerAddress::Loopback(1), None, HttpVersions::Http1, health)),
            shares: Shares::default(),
        }
    }

    /// Opens a connection for a client that has stalled for `stalled` seconds; `None` for no stall.
    fn open(&mut self, client: (u64, u64), stalled: Option<u64>) -> Arc<Usage> {
        let usage = Arc::new(Usage::new(Arc::clone(&self.server), Instant::now(), by(client)));
        if let Some(seconds) = stalled {
            usage.stalled.store(NOW - seconds * 1000, Ordering::Relaxed);
        }
        self.shares.add(Arc::clone(&usage));
        usage
    }

    /// Returns the transfer that is aborted for a request of this client.
    fn victim(&mut self, client: (u64, u64)) -> Option<Arc<Usage>> {
        let capacity = self.shares.usages.len();
        self.shares.victim(by(client), capacity, NOW, |_| true).map(|(usage, _)| usage)
    }
}

fn by((address, connection): (u64, u64)) -> ClientKey {
    ClientKey { address, connection }
}

#[test]
fn a_waiting_client_reduces_the_share_of_the_others() {
    let mut site = Site::new();
    let _open: Vec<_> = (1..16).map(|at| site.open((1, 1 + at % 4), None)).collect();
    // If five clients share 16 connections, each share is three. With four clients, each share is
    // four.
    assert_eq!(site.shares.share_use(by((1, 1)), 16, NOW), ShareUse::Within);
    site.shares.wait(by((1, 9)));
    assert_eq!(site.shares.share_use(by((1, 1)), 16, NOW), ShareUse::Beyond);
    assert_eq!(site.shares.share_use(by((1, 9)), 16, NOW), ShareUse::Within);
    site.shares.stop_waiting(by((1, 9)));
    assert_eq!(site.shares.share_use(by((1, 1)), 16, NOW), ShareUse::Within);
}

#[test]
fn the_longest_stalled_transfer_of_a_client_beyond_its_share_is_aborted_first() {
    let mut site = Site::new();
    // The client that has stalled for longest is within its share.
    site.open((2, 2), Some(9));
    site.open((1, 1), Some(2));
    let longest = site.open((1, 1), Some(3));
    site.open((1, 1), None);
    assert!(Arc::ptr_eq(&site.victim((3, 3)).unwrap(), &longest));
    // A transfer cannot be aborted twice.
    assert!(longest.abort_transfer(longest.stalled().unwrap()));
    let next = site.victim((3, 3)).unwrap().stalled().unwrap();
    assert_eq!(next.duration(NOW), Duration::from_secs(2));
}

#[test]
fn a_client_that_exceeds_its_share_by_address_and_by_connection_is_aborted_first() {
    let mut site = Site::new();
    site.open((2, 2), Some(4));
    let both = [site.open((1, 1), Some(3)), site.open((1, 1), Some(2))];
    site.open((1, 3), Some(3));
    site.open((1, 4), Some(3));
    assert!(Arc::ptr_eq(&site.victim((2, 5)).unwrap(), &both[0]));
}

#[test]
fn a_client_that_moves_data_or_has_just_stalled_keeps_its_connection() {
    let mut site = Site::new();
    for stalled in [None, Some(0), None] {
        site.open((1, 1), stalled);
    }
    assert!(site.victim((2, 2)).is_none());
    // The stall of a client beyond its share does not affect a client within its share.
    site.open((2, 2), Some(60));
    assert!(site.victim((3, 3)).is_none());
}

#[test]
fn a_client_within_an_equal_share_is_aborted_only_after_a_longer_stall() {
    let mut site = Site::new();
    site.open((1, 1), Some(4));
    let long = site.open((2, 2), Some(6));
    assert!(Arc::ptr_eq(&site.victim((2, 2)).unwrap(), &long));
    long.moved();
    assert!(site.victim((2, 2)).is_none());
}

#[test]
fn a_tunnel_is_aborted_only_if_its_address_exceeds_its_share() {
    let mut site = Site::new();
    let tunnels = [(1, 1), (1, 2), (1, 3), (2, 4)].map(|client| {
        let tunnel = site.open(client, None);
        tunnel.tunnel();
        tunnel.stalled.store(NOW - 60_000, Ordering::Relaxed);
        tunnel
    });
    assert!(site.victim((1, 5)).is_some_and(|given_up| !Arc::ptr_eq(&given_up, &tunnels[3])));
    tunnels[..3].iter().for_each(|tunnel| tunnel.stalled.store(NOW - 4_000, Ordering::Relaxed));
    assert!(site.victim((2, 5)).is_none());
}

#[test]
fn no_transfer_is_aborted_while_a_connection_is_idle() {
    let mut site = Site::new();
    site.open((1, 1), Some(9));
    site.open((1, 1), Some(9)).rest();
    assert!(site.victim((2, 2)).is_none());
}

#[test]
fn open_and_awaited_connections_count_towards_the_share_of_a_client() {
    let mut site = Site::new();
    for _ in 0..6 {
        site.open((1, 1), None);
    }
    let mut stands = |client| site.shares.share_use(by(client), 6, NOW);
    assert_eq!(stands((1, 1)), ShareUse::Within, "alone");
    site.open((2, 2), None);
    let mut stands = |client| site.shares.share_use(by(client), 6, NOW + FRESH);
    assert_eq!((stands((1, 1)), stands((2, 2))), (ShareUse::Beyond, ShareUse::Within));
    // The address exceeds its share, whatever the connection's own count is.
    assert_eq!((stands((1, 7)), stands((3, 3))), (ShareUse::Beyond, ShareUse::Within));
    site.shares.wait(by((2, 2)));
    site.shares.wait(by((2, 2)));
    let mut stands = |client| site.shares.share_use(by(client), 6, NOW + FRESH);
    assert_eq!(stands((2, 2)), ShareUse::Beyond);
    site.shares.stop_waiting(by((2, 2)));
    assert_eq!(site.shares.share_use(by((2, 2)), 6, NOW + FRESH), ShareUse::Within);
}

#[test]
fn clients_that_share_a_connection_are_counted_by_address_only() {
    let mut site = Site::new();
    for address in [1, 1, 1, 2] {
        site.open((address, 0), None);
    }
    let mut stands = |address| site.shares.share_use(by((address, 0)), 4, NOW);
    assert_eq!([1, 2, 3].map(&mut stands), [ShareUse::Beyond, ShareUse::Within, ShareUse::Within]);
}
