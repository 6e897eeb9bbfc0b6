//! Tests that claims are not refuted in broken networks, and that the status reports missing
//! evidence.

use hickory_resolver::proto::op::ResponseCode;

use super::played_dns::{Played, PlayedDns, address_records, ptr};
use super::played_http::{PlayedHttp, answer};
use super::*;
use crate::agent::{Agent, Identity, Recognizer, UndecidedReason};
use crate::identity::IdentityRequest;
use crate::rules::RobotsTxt;

/// The address of the crawler. It is in the crawler's list and has the crawler's reverse DNS name.
const GENUINE: &str = "8.8.8.8";
const IMPOSTOR: &str = "9.9.9.9";
const PATH: ClaimPath<'_> = ClaimPath { site: "example.com", listener: "0.0.0.0:443" };

struct Network {
    list: PlayedHttp,
    dns: PlayedDns,
    clock: TestClock,
    registry: Arc<Registry>,
    verifier: Verifier,
}

fn list() -> String {
    answer("200 OK", "", r#"{"prefixes":[{"ipv4Prefix":"8.8.8.0/24"},{"ipv6Prefix":"2001:4860:4801::/48"}]}"#)
}

impl Network {
    /// Starts a network whose list server sends `list`; `set` configures its DNS server.
    fn start(list: impl Into<Vec<u8>>, set: impl FnOnce(&PlayedDns)) -> Self {
        let network = Self::start_with(list, LONG, set, |row, list| Crawler {
            ranges: vec![list],
            reverse_dns: vec![".googlebot.com".into()],
            ..row
        });
        until("the first outcome of the list", || {
            let status = network.verifier.status().lists.remove(0);
            (status.confirmed.is_some() || status.problem.is_some()).then_some(())
        });
        network
    }

    /// Starts a network whose crawler is verified only by reverse DNS names.
    fn of_names(timeout: Duration, set: impl FnOnce(&PlayedDns)) -> Self {
        Self::start_with(nothing(), timeout, set, |row, _| Crawler {
            reverse_dns: vec![".googlebot.com".into()],
            ..row
        })
    }

    fn start_with(
        list: impl Into<Vec<u8>>,
        timeout: Duration,
        set: impl FnOnce(&PlayedDns),
        change: impl FnOnce(Crawler, String) -> Crawler,
    ) -> Self {
        let (list, dns, clock) = (PlayedHttp::start(list), PlayedDns::start(), TestClock::new());
        set(&dns);
        let registry = registry(|row| change(row, list.url.clone()));
        let builder = Verifier::builder(&registry).clock(clock.read()).resolvers([dns.address]);
        let verifier = builder.question_times(PACE, timeout).start().expect("a verifier");
        Self { list, dns, clock, registry, verifier }
    }

    /// Returns why the list cannot be fetched.
    fn problem(&self) -> String {
        until("problem", || self.verifier.status().lists.remove(0).problem).to_string()
    }

    /// Starts a network in which everything works.
    fn sound() -> Self {
        Self::start(list(), |dns| {
            dns.confirmed(GENUINE, "crawl.googlebot.com");
        })
    }

    /// Waits until no lookup is pending, and returns the identity.
    fn identity(&self, address: Option<&str>) -> Identity {
        let recognizer = Recognizer::new(self.registry.clone(), &RobotsTxt::parse(*b""));
        let agents: [Agent; 1] = [recognizer.identify(b"Playbot/1.0")];
        let address = address.and_then(|address| address.parse().ok());
        let pending = Identity::Undecided(UndecidedReason::Pending);
        until("an identity", || {
            let identity = self.verifier.identify_unsigned(&agents, address, PATH, self.clock.now());
            (identity != pending).then_some(identity)
        })
    }

    fn is_refuted(&self, address: &str) -> bool {
        matches!(self.identity(Some(address)), Identity::Refuted(_))
    }
}

fn nothing() -> String {
    answer("502 Oh", "", "")
}

#[test]
fn in_a_working_network_an_impostor_is_refuted_after_the_crawler_was_verified() {
    let network = Network::sound();
    assert_eq!(network.identity(Some(IMPOSTOR)), Identity::Undecided(UndecidedReason::SuspectPath));
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    assert!(network.is_refuted(IMPOSTOR));
    assert_eq!(network.verifier.status().suspects, []);
}

#[test]
fn no_request_behind_an_unconfigured_proxy_is_refuted_and_the_proxy_is_reported() {
    let network = Network::sound();
    for byte in 1..=250 {
        assert!(!network.is_refuted(&format!("198.41.128.{byte}")));
    }
    let suspects = network.verifier.status().suspects;
    assert_eq!((suspects.len(), &*suspects[0].site, &*suspects[0].crawler), (1, "example.com", "Playbot"));
    assert_eq!(suspects[0].networks, ["198.41.128.0/24".parse().expect("a network")]);
}

#[test]
fn fewer_than_ten_requests_are_refuted_after_a_proxy_takes_over_all_requests() {
    let network = Network::sound();
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    let mut refuted = 0;
    for byte in 1..=250 {
        refuted += usize::from(network.is_refuted(&format!("198.41.{byte}.7")));
    }
    assert!(refuted < 10, "{refuted} requests were refuted before the path was suspected");
    assert!(!network.verifier.status().suspects.is_empty());
}

#[test]
fn a_request_without_a_public_client_address_is_undecided() {
    let network = Network::sound();
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    // Such an address comes from a wrong X-Real-IP, a container's gateway or a carrier's network.
    for address in ["10.0.0.1", "172.17.0.1", "100.64.3.4", "127.0.0.1", "fe80::1", "fd00::1", "::ffff:192.168.0.1"] {
        assert_eq!(network.identity(Some(address)), Identity::Undecided(UndecidedReason::Address), "{address}");
    }
    assert_eq!(network.identity(None), Identity::Undecided(UndecidedReason::Address));
}

#[test]
fn the_address_of_a_trusted_proxy_is_not_used_as_the_client_address() {
    let network = Network::sound();
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    let judged = |address: &str| network.verifier.public_address(address.parse().ok()).map(PublicAddress::get);
    assert_eq!(judged(IMPOSTOR), IMPOSTOR.parse().ok());
    network.verifier.set_trusted_proxies(["9.9.0.0/16".parse().expect("a network")]);
    for address in [IMPOSTOR, "::ffff:9.9.9.9", "10.0.0.1"] {
        assert_eq!(judged(address), None, "{address}");
    }
    assert_eq!(judged("::ffff:8.8.8.8"), GENUINE.parse().ok());
    assert_eq!(network.verifier.public_address(None), None);
    network.verifier.set_trusted_proxies([]);
    assert_eq!(judged(IMPOSTOR), IMPOSTOR.parse().ok());
    let registry = registry(|row| row);
    let builder = Verifier::builder(&registry).without_names();
    let verifier = builder.trusted_proxies(["2600::/32".parse().expect("a network")]).start().expect("a verifier");
    assert_eq!(verifier.public_address("2600::1".parse().ok()), None);
    assert!(verifier.public_address("2601::1".parse().ok()).is_some());
}

#[test]
fn without_a_network_from_the_start_no_request_is_refuted() {
    let network = Network::start(nothing(), |dns| {
        dns.names(GENUINE, Played::Code(ResponseCode::ServFail)).names(IMPOSTOR, Played::Silence);
    });
    for address in [GENUINE, IMPOSTOR] {
        assert!(matches!(network.identity(Some(address)), Identity::Undecided(_)), "{address}");
    }
    let problem = network.verifier.status().lists.remove(0).problem;
    assert!(problem.is_some_and(|problem| problem.contains("502")));
}

#[test]
fn no_request_is_refuted_if_every_dns_query_gets_nxdomain_and_the_list_is_unavailable() {
    // With split DNS, or without the internet, the list cannot be fetched, either.
    let network = Network::start(nothing(), |_| {});
    for address in [GENUINE, IMPOSTOR] {
        assert!(matches!(network.identity(Some(address)), Identity::Undecided(_)), "{address}");
    }
    until("a question", || (!network.dns.asked().is_empty()).then_some(()));
}

#[test]
fn a_list_that_could_not_be_updated_for_a_day_refutes_no_address() {
    let network = Network::sound();
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    network.list.answers(answer("200 OK", "", r#"{"Action needed":"update the location"}"#));
    network.clock.pass(25 * HOUR);
    assert!(!network.is_refuted(IMPOSTOR));
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
}

#[test]
fn no_request_is_refuted_if_the_clock_is_off_by_a_day() {
    for is_ahead in [false, true] {
        let network = Network::sound();
        assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
        if is_ahead {
            network.clock.pass(25 * HOUR)
        } else {
            network.clock.go_back(25 * HOUR)
        }
        network.list.answers(nothing());
        assert!(!network.is_refuted(IMPOSTOR), "ahead: {is_ahead}");
    }
}

#[test]
fn no_request_is_refuted_if_all_requests_have_one_address_and_the_network_is_reported() {
    let network = Network::sound();
    // Every request has the address of a load balancer, even a request of the crawler.
    for _ in 0..500 {
        assert_eq!(network.identity(Some("198.41.128.9")), Identity::Undecided(UndecidedReason::SuspectPath));
    }
    let suspects = network.verifier.status().suspects;
    assert_eq!(suspects[0].networks, ["198.41.128.0/24".parse().expect("a network")]);
    assert_eq!(suspects[0].last_verified, None);
}

#[test]
fn no_request_is_refuted_behind_a_captive_portal() {
    let page = answer("200 OK", "Content-Type: text/html; charset=utf-8\r\n", "<!doctype html><title>Sign in</title>");
    let portal = |dns: &PlayedDns| {
        for address in [GENUINE, IMPOSTOR] {
            dns.names(address, ptr(&["portal.example"]));
        }
        dns.addresses("portal.example", address_records(&["10.0.0.1"]));
    };
    let network = Network::start(page.clone(), portal);
    for address in [GENUINE, IMPOSTOR] {
        assert!(matches!(network.identity(Some(address)), Identity::Undecided(_)), "{address}");
    }
    assert!(network.problem().contains("list"), "{}", network.problem());
    // If a captive portal appears later, evidence that was fetched before stays valid.
    let network = Network::sound();
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    portal(&network.dns);
    network.list.answers(page);
    network.clock.pass(25 * HOUR);
    assert!(!network.is_refuted(IMPOSTOR));
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    assert!(network.problem().contains("list"), "{}", network.problem());
}

#[test]
fn a_list_that_shrinks_by_more_than_half_is_rejected_and_refutes_no_request() {
    let all = ["8.8.8.0/24", "11.0.1.0/24", "11.0.3.0/24", "11.0.5.0/24", "11.0.7.0/24"];
    let list = |prefixes: &[&str]| answer("200 OK", "", &prefixes.join("\n"));
    let network = Network::start(list(&all), |_| {});
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    network.list.answers(list(&all[3..]));
    network.clock.pass(2 * HOUR);
    network.verifier.refresh();
    assert!(network.problem().contains("more than half"), "{}", network.problem());
    assert!(matches!(network.identity(Some(GENUINE)), Identity::Verified(_)));
    network.clock.pass(25 * HOUR);
    assert!(!network.is_refuted(IMPOSTOR) && !network.is_refuted(GENUINE));
}

#[test]
fn no_request_is_refuted_if_the_resolver_fails_or_does_not_answer() {
    let set = |dns: &PlayedDns| {
        dns.names(GENUINE, Played::Code(ResponseCode::ServFail)).names(IMPOSTOR, Played::Silence);
    };
    let network = Network::of_names(LONG, set);
    assert_eq!(network.identity(Some(GENUINE)), Identity::Undecided(UndecidedReason::ResolverFailure));
    let network = Network::of_names(SHORT, set);
    // The claim is checked before the lookup times out, and again afterwards.
    let recognizer = Recognizer::new(network.registry.clone(), &RobotsTxt::parse(*b""));
    let agents: [Agent; 1] = [recognizer.identify(b"Playbot/1.0")];
    let request = IdentityRequest::new(&agents, Some(public(IMPOSTOR)));
    let at_once = network.verifier.identify(&request, PATH, network.clock.now()).identity;
    assert_eq!(at_once, Identity::Undecided(UndecidedReason::Pending));
    assert_eq!(network.identity(Some(IMPOSTOR)), Identity::Undecided(UndecidedReason::Timeout));
}

#[test]
fn no_request_is_refuted_if_the_resolver_has_an_internal_view() {
    // The resolver returns names of its own network for all addresses, or has no names for other
    // networks.
    for view in [ptr(&["gateway.corp.example"]), Played::Code(ResponseCode::NXDomain), Played::Records(Vec::new())] {
        let network = Network::of_names(LONG, |dns| {
            dns.names(GENUINE, view.clone()).names(IMPOSTOR, view.clone());
        });
        for address in [GENUINE, IMPOSTOR] {
            let identity = network.identity(Some(address));
            assert_eq!(identity, Identity::Undecided(UndecidedReason::UnprovenResolver), "{address}");
        }
        let status = network.verifier.status();
        assert_eq!((status.known_names, status.suspects.len()), (Some(2), 0));
    }
}

#[test]
fn crawlers_with_ipv6_addresses_are_verified_and_impostors_are_refuted() {
    let network = Network::start(list(), |dns| {
        dns.confirmed("2001:4860:4802::1", "six.googlebot.com");
    });
    assert!(matches!(network.identity(Some("2001:4860:4801::1")), Identity::Verified(_)));
    assert!(matches!(network.identity(Some("2001:4860:4802::1")), Identity::Verified(_)));
    assert!(network.is_refuted("2600::1"));
}
