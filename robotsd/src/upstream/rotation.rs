//! From a request to a connection: whose turn it is, and where to go when that server cannot be had.
//!
//! Servers take turns by request, not by connection. The one whose turn it is gets the request if it is in service and
//! can be reached, else the next; servers that are out are asked last, when nobody else can be reached. So the last
//! server is never out, and a site whose servers were all gone is back with the first that answers.
//!
//! The rotation and the connections in it belong to one worker.

use std::fmt;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::time::{sleep, sleep_until, timeout, timeout_at};

use super::failure::{Failure, FailureKind};
use super::health::Ticket;
use super::link::{Certainty, Link};
use super::origins::Shared;
use super::places::{Demand, Full, Place, Waiting};
use super::pool::Pool;
use super::server::{Server, Unreachable};
use super::shares::Standing;
use super::usage::Client;

/// What an address is given to answer before the next one is tried, even where many are left.
const LEAST_ATTEMPT: Duration = Duration::from_secs(1);

/// How often a request that waits for a connection looks for itself, whatever it is told.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The servers as one worker uses them.
#[derive(Debug)]
pub(super) struct Rotation {
    shared: Arc<Shared>,
    /// Idle connections to each server.
    idle: usize,
    seats: ArcSwap<Seats>,
    demand: Arc<Demand>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Seats {
    /// The list the seats were made for.
    servers: Arc<Vec<Arc<Server>>>,
    seats: Vec<Arc<Seat>>,
}

/// A server, and the worker's idle connections to it.
#[derive(Debug)]
pub(super) struct Seat {
    server: Arc<Server>,
    pool: Arc<Pool>,
    /// How often the server had been out when the connections in the pool were still good.
    ejections: AtomicU32,
}

/// A connection for one request.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) link: Box<Link>,
    seat: Arc<Seat>,
    ticket: Ticket,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct First(usize);

/// The time there is for connecting, and how many servers have to do with it.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    left: usize,
    deadline: Instant,
    client: Client,
}

/// What looking at every server has come to.
enum Tried {
    Held(Held),
    /// Nobody could be reached.
    Failed(Failure),
    /// Somebody could be asked, were there a place for a connection.
    Full,
}

impl Rotation {
    pub(super) fn new(shared: Arc<Shared>, workers: NonZeroUsize) -> Self {
        let seats = Seats { servers: Arc::default(), seats: Vec::new() };
        let demand = Arc::new(Demand::new(Arc::clone(shared.places())));
        let idle = shared.limits.idle_connections.div_ceil(workers.get());
        let rotation = Self { shared, idle, seats: ArcSwap::from_pointee(seats), demand, turn: AtomicUsize::new(0) };
        rotation.follow();
        rotation
    }

    /// A turn, and an idle connection if the server whose turn it is has one and is well: the way of nearly every
    /// request.
    pub(super) fn ready(&self, certainty: Certainty) -> Result<Held, First> {
        if self.shared.has_names() {
            self.shared.refresh();
            self.follow();
        }
        let seats = self.seats.load();
        let first = match seats.seats.len() {
            0 | 1 => 0,
            count => self.turn.fetch_add(1, Ordering::Relaxed) % count,
        };
        let held = seats.seats.get(first).filter(|_| !self.is_scarce()).and_then(|seat| {
            let ticket = seat.server.health().admit()?;
            Some(Held { link: seat.take(certainty)?, seat: Arc::clone(seat), ticket })
        });
        held.ok_or(First(first))
    }

    /// A connection, idle or new, to the server whose turn it is or to the first after it that can be reached.
    pub(super) async fn connection(&self, first: First, certainty: Certainty, client: Client) -> Result<Held, Failure> {
        self.find(first, Some(certainty), client).await
    }

    /// A new connection for a request that `failed` did not answer; to another server, if there is one.
    pub(super) async fn another(&self, failed: &Arc<Seat>, client: Client) -> Result<Held, Failure> {
        let seats = self.seats.load_full();
        let at = seats.seats.iter().position(|seat| Arc::ptr_eq(seat, failed));
        self.find(First(at.map_or(0, |at| at + 1)), None, client).await
    }

    /// The request on this connection was answered.
    pub(super) fn succeeded(&self, held: &Held) {
        self.shared.succeeded(&held.seat.server, held.ticket);
    }

    /// A new connection broke before an answer.
    pub(super) fn failed(&self, held: &Held, error: &dyn fmt::Display) {
        self.shared.failed(&held.seat.server, held.ticket, error);
    }

    /// Closes idle connections that are too old, dead, or of servers that are out.
    pub(super) fn sweep(&self) {
        self.follow();
        for seat in &self.seats.load_full().seats {
            if seat.server.health().is_in_service() { seat.pool.sweep() } else { seat.pool.clear() }
        }
    }

    /// Gives an idle connection of each server up.
    pub(super) fn give_up(&self) {
        for seat in &self.seats.load_full().seats {
            seat.pool.give_up();
        }
    }

    /// Whether a request has to find out where it stands before it takes a connection, idle or not: others wait, here or on
    /// another worker, or a transfer has just been given up for some that did.
    fn is_scarce(&self) -> bool {
        self.demand.has_parked() || self.shared.places().are_owed() || self.shared.places().are_short()
    }

    async fn find(&self, First(first): First, pooled: Option<Certainty>, client: Client) -> Result<Held, Failure> {
        let deadline = Instant::now() + self.shared.limits.connect;
        let places = self.shared.places();
        let servers = || self.seats.load().seats.len();
        // Who comes later does not overtake, unless those who wait have more than their share.
        let mut waiting = self.is_scarce().then(|| self.demand.wait(client, servers()));
        let mut is_looking = waiting
            .as_ref()
            .is_none_or(|waiting| waiting.standing() == Standing::Within && !self.demand.has_parked_within());
        loop {
            let standing = waiting.as_ref().map_or(Standing::Within, Waiting::standing);
            // Registered before looking, so that what comes free while looking is not missed.
            let mut freed = pin!(places.freed(standing));
            let mut returned = pin!(self.demand.returned(standing));
            if waiting.is_some() {
                freed.as_mut().enable();
                returned.as_mut().enable();
            }
            if is_looking && waiting.as_ref().is_none_or(Waiting::may_take) {
                let seats = self.seats(deadline).await?;
                match self.try_each(&seats, first, pooled, deadline, client).await {
                    Tried::Held(held) => return Ok(held),
                    Tried::Failed(failure) => return Err(failure),
                    Tried::Full => {}
                }
            }
            is_looking = true;
            let Some(parking) = &mut waiting else {
                waiting = Some(self.demand.wait(client, servers()));
                continue;
            };
            if standing == Standing::Within {
                self.give_up_for(client);
            }
            let free = async {
                tokio::select! {
                    // In this order, so that on a machine that lags a deadline is no reason to leave what is there.
                    biased;
                    () = returned => true,
                    () = freed => true,
                    () = sleep_until(deadline.into()) => false,
                    () = sleep(LOOK_AGAIN) => true,
                }
            };
            if !parking.park(free).await {
                return Err(Failure::new(FailureKind::Busy, "every connection that may be open is in use"));
            }
            parking.review(servers());
        }
    }

    /// Has a transfer given up whose client has stalled, if this client's request comes before it.
    fn give_up_for(&self, client: Client) {
        let seats = self.seats.load();
        let servers = seats.seats.iter().map(|seat| &seat.server);
        let in_service: Vec<_> = servers.clone().filter(|server| server.health().is_in_service()).collect();
        // Where none is, all are asked.
        let servers = if in_service.is_empty() { servers.collect() } else { in_service };
        if let Some((stalled, server)) = self.shared.places().give_up_for(client, &servers) {
            self.shared.gave_up(&server, stalled);
        }
    }

    /// The servers there are, once there are any.
    async fn seats(&self, deadline: Instant) -> Result<Arc<Seats>, Failure> {
        loop {
            let mut answered = pin!(self.shared.answered());
            answered.as_mut().enable();
            let is_looking_up = self.shared.is_looking_up();
            self.follow();
            let seats = self.seats.load_full();
            if !seats.seats.is_empty() {
                return Ok(seats);
            }
            let failure = |why| Err(Failure::new(FailureKind::Unresolved, why));
            if !is_looking_up {
                return failure("the upstream has no address");
            }
            if timeout_at(deadline.into(), answered).await.is_err() {
                return failure("the resolver does not answer");
            }
        }
    }

    async fn try_each(
        &self,
        seats: &Seats,
        first: usize,
        pooled: Option<Certainty>,
        deadline: Instant,
        client: Client,
    ) -> Tried {
        let mut is_full = false;
        let mut failure = None;
        let mut left = seats.seats.len();
        let mut out = Vec::new();
        let in_turn = (0..left).map(|at| &seats.seats[(first + at) % seats.seats.len()]);
        for seat in in_turn {
            let health = seat.server.health();
            let Some(ticket) = health.admit().or_else(|| health.admit_trial(Instant::now())) else {
                // What is idle there is of no use, and may be in the way.
                seat.pool.clear();
                out.push(seat);
                continue;
            };
            if let Some(held) = pooled.and_then(|certainty| seat.held(certainty, ticket)) {
                return Tried::Held(held);
            }
            match self.open(seats, seat, ticket, pooled, Attempt { left, deadline, client }).await {
                Ok(Some(held)) => return Tried::Held(held),
                Ok(None) => is_full = true,
                Err(error) => failure = Some(error),
            }
            left -= 1;
        }
        // Who is in service and merely busy is waited for; who is out is asked only when there is nobody else.
        if is_full {
            return Tried::Full;
        }
        for seat in out {
            let ticket = seat.server.health().admit_anyway();
            match self.open(seats, seat, ticket, pooled, Attempt { left, deadline, client }).await {
                Ok(Some(held)) => return Tried::Held(held),
                Ok(None) => is_full = true,
                Err(error) => failure = Some(error),
            }
            left -= 1;
        }
        match failure {
            Some(failure) if !is_full => Tried::Failed(failure),
            _ => Tried::Full,
        }
    }

    /// A new connection, within a fair part of the time there is; none if there is no place for it.
    async fn open(
        &self,
        seats: &Seats,
        seat: &Arc<Seat>,
        ticket: Ticket,
        pooled: Option<Certainty>,
        attempt: Attempt,
    ) -> Result<Option<Held>, Failure> {
        let Attempt { left, deadline, client } = attempt;
        let server = &seat.server;
        let place = match pooled {
            // Rather the idle connection of another server than a new one in its place.
            Some(_) => Place::take(self.shared.places(), server, client).ok(),
            None => self.room(seats, seat, client),
        };
        let Some(place) = place else { return Ok(None) };
        let time = deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            // Nothing is known of this server, so nothing is held against it.
            return Err(Failure::new(FailureKind::ConnectTimeout, format_args!("{server}: no time left to connect")));
        }
        let share = (time / u32::try_from(left).unwrap_or(u32::MAX).max(1)).max(LEAST_ATTEMPT).min(time);
        let opening = async {
            let socket = server.connect().await?;
            Ok(Link::open(socket, place, &self.shared.limits))
        };
        let (kind, why) = match timeout(share, opening).await {
            Ok(Ok(link)) => return Ok(Some(Held { link: Box::new(link), seat: Arc::clone(seat), ticket })),
            Ok(Err(Unreachable::Connect(error))) => (FailureKind::Connect, error.to_string()),
            Ok(Err(Unreachable::Tls(error))) => (FailureKind::Tls, error.to_string()),
            Err(_) => (FailureKind::ConnectTimeout, "no connection in time".to_owned()),
        };
        self.shared.failed(server, ticket, &why);
        Err(Failure::new(kind, format_args!("{server}: {why}")))
    }

    /// A place for a connection to be had in any case: where there is none, an idle connection makes room.
    fn room(&self, Seats { seats, .. }: &Seats, seat: &Seat, client: Client) -> Option<Place> {
        let take = || Place::take(self.shared.places(), &seat.server, client);
        match take() {
            Ok(place) => Some(place),
            Err(Full::Server) => seat.pool.give_up().and_then(|()| take().ok()),
            Err(Full::Site) => seats.iter().find_map(|seat| seat.pool.give_up()).and_then(|()| take().ok()),
        }
    }

    /// Takes up a new list of servers. Who stays keeps its connections.
    fn follow(&self) {
        if Arc::ptr_eq(&self.seats.load().servers, &*self.shared.servers().load()) {
            return;
        }
        self.seats.rcu(|before| {
            let servers = self.shared.servers().load_full();
            let seat = |server: &Arc<Server>| {
                let same = before.seats.iter().find(|seat| Arc::ptr_eq(&seat.server, server));
                same.cloned().unwrap_or_else(|| {
                    let (demand, timeout) = (Arc::clone(&self.demand), self.shared.limits.idle_timeout);
                    Arc::new(Seat {
                        server: Arc::clone(server),
                        pool: Arc::new(Pool::new(self.idle, timeout, demand)),
                        ejections: AtomicU32::new(server.health().ejections()),
                    })
                })
            };
            let seats = servers.iter().map(seat).collect();
            Seats { servers, seats }
        });
    }
}

impl Seat {
    /// An idle connection, made since the server was last out.
    fn take(&self, certainty: Certainty) -> Option<Box<Link>> {
        let ejections = self.server.health().ejections();
        if self.ejections.swap(ejections, Ordering::Relaxed) != ejections {
            self.pool.clear();
        }
        self.pool.take(certainty)
    }

    fn held(self: &Arc<Self>, certainty: Certainty, ticket: Ticket) -> Option<Held> {
        Some(Held { link: self.take(certainty)?, seat: Arc::clone(self), ticket })
    }
}

impl Held {
    /// The connection, and where it goes when it is free.
    pub(super) fn into_parts(self) -> (Box<Link>, Arc<Pool>) {
        (self.link, Arc::clone(&self.seat.pool))
    }

    /// Closes the connection; what is left is whose it was.
    pub(super) fn close(self) -> Arc<Seat> {
        self.seat
    }
}

impl fmt::Display for Held {
    /// The server, for whoever looks into a failure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seat.server.fmt(f)
    }
}
