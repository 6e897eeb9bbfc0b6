//! The addresses that a store's name stands for.

use std::future::ready;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use redis::RedisFuture;
use redis::io::AsyncDNSResolver;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// How long a name may take to resolve; the addresses that it had are tried then.
const RESOLVE: Duration = Duration::from_millis(250);

/// Addresses that are tried.
const MOST: usize = 4;

/// Looks a host and port up, and may block.
pub(super) type AddressLookup = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The system's resolver.
pub(super) fn of_system() -> AddressLookup {
    Arc::new(|host: &str, port: u16| (host, port).to_socket_addrs().map(Iterator::collect))
}

/// The addresses of one name.
pub(super) struct StoreAddresses {
    lookup: AddressLookup,
    /// One that takes its time: no second one is begun.
    under_way: Option<JoinHandle<io::Result<Vec<SocketAddr>>>>,
    /// Those that were found last.
    known: Vec<SocketAddr>,
}

impl StoreAddresses {
    pub(super) const fn new(lookup: AddressLookup) -> Self {
        Self { lookup, under_way: None, known: Vec::new() }
    }

    /// The addresses, in one order for all processes. Where the name cannot be resolved now, those that it had.
    pub(super) async fn find(&mut self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let mut looking = self.under_way.take().unwrap_or_else(|| {
            let (lookup, host) = (Arc::clone(&self.lookup), host.to_owned());
            spawn_blocking(move || lookup(&host, port))
        });
        let found = match timeout(RESOLVE, &mut looking).await {
            Ok(Ok(found)) => found.map_err(|error| error.to_string()),
            Ok(Err(_)) => Err("the resolver failed".to_owned()),
            Err(_) => {
                self.under_way = Some(looking);
                Err(format!("the resolver did not answer within {} ms", RESOLVE.as_millis()))
            }
        };
        let why = match found {
            Ok(mut found) if !found.is_empty() => {
                found.sort_unstable();
                found.dedup();
                found.truncate(MOST);
                self.known = found;
                return Ok(self.known.clone());
            }
            Ok(_) => "it has no address".to_owned(),
            Err(why) => why,
        };
        if self.known.is_empty() {
            Err(format!("the name {host:?} cannot be resolved: {why}"))
        } else {
            Ok(self.known.clone())
        }
    }
}

/// Resolves one name to one address, and others as the system does.
pub(super) struct OneAddress {
    pub(super) host: String,
    pub(super) address: SocketAddr,
}

impl AsyncDNSResolver for OneAddress {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        if host == self.host && port == self.address.port() {
            let address: Box<dyn Iterator<Item = SocketAddr> + Send> = Box::new(std::iter::once(self.address));
            return Box::pin(ready(Ok(address)));
        }
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((host, port)).await?.collect();
            Ok(Box::new(found.into_iter()) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_a_name_stood_for_is_tried_while_it_cannot_be_resolved() {
        let asked = Arc::new(AtomicU32::new(0));
        let lookup: AddressLookup = Arc::new({
            let asked = Arc::clone(&asked);
            move |_: &str, port: u16| match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Err(io::Error::other("no such name")),
                1 => Ok(["127.0.0.2", "127.0.0.1", "127.0.0.2"]
                    .map(|ip| SocketAddr::new(ip.parse().unwrap(), port))
                    .into()),
                2 => Ok(Vec::new()),
                // Longer than is waited for.
                _ => {
                    std::thread::sleep(2 * RESOLVE);
                    Err(io::Error::other("no such name"))
                }
            }
        });
        let mut addresses = StoreAddresses::new(lookup);
        let error = addresses.find("cache.internal", 6379).await.unwrap_err();
        assert_eq!(error, "the name \"cache.internal\" cannot be resolved: no such name");
        for _ in 0..4 {
            let found = addresses.find("cache.internal", 6379).await.unwrap();
            assert_eq!(found, ["127.0.0.1:6379", "127.0.0.2:6379"].map(|address| address.parse().unwrap()));
        }
        // The one that takes its time was waited for twice.
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }
}
