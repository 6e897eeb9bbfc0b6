//! Tests that a new process loads the times when crawlers were last verified on each path.

use hickory_resolver::proto::op::ResponseCode;

use super::played_dns::{Played, PlayedDns};
use super::played_http::{PlayedHttp, answer};
use super::*;
use crate::agent::{Agent, Identity, Recognizer, Refutation, UndecidedReason};
use crate::rules::RobotsTxt;

const GENUINE: &str = "8.8.8.8";
const IMPOSTOR: &str = "9.9.9.9";
const REFUTED: Identity = Identity::Refuted(Refutation::NotListed);
const SUSPECT: Identity = Identity::Undecided(UndecidedReason::SuspectPath);

struct Installed {
    folder: tempfile::TempDir,
    clock: TestClock,
    registry: Arc<Registry>,
    _list: PlayedHttp,
}

impl Installed {
    fn new() -> Self {
        let list = PlayedHttp::start(answer("200 OK", "", "8.8.8.0/24"));
        let registry = registry(|row| Crawler { ranges: vec![list.url.clone()], ..row });
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, clock: TestClock::new(), registry, _list: list }
    }

    /// Starts a process that has fetched its list.
    fn start(&self) -> Verifier {
        let builder = Verifier::builder(&self.registry).clock(self.clock.read()).without_names();
        let verifier = builder.saved_in(self.folder.path()).start().expect("a verifier");
        let now = self.clock.now();
        until("the list", || (verifier.status().lists[0].confirmed == Some(now)).then_some(()));
        verifier
    }

    fn identity(&self, verifier: &Verifier, address: &str) -> Identity {
        let recognizer = Recognizer::new(self.registry.clone(), &RobotsTxt::parse(*b""));
        let agents: [Agent; 1] = [recognizer.identify(b"Playbot/1.0")];
        let path = ClaimPath { site: "example.com", listener: "0.0.0.0:443" };
        verifier.identify_unsigned(&agents, address.parse().ok(), path, self.clock.now())
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("claim-paths.json")
    }

    /// Runs a process that verifies the crawler and saves the result.
    fn learned() -> Self {
        let installed = Self::new();
        let verifier = installed.start();
        assert!(matches!(installed.identity(&verifier, GENUINE), Identity::Verified(_)));
        until("the file", || installed.file().exists().then_some(()));
        installed
    }
}

#[test]
fn claims_on_a_verified_path_are_refuted_for_a_day_even_after_restarts() {
    let installed = Installed::learned();
    installed.clock.pass(HOUR);
    let verifier = installed.start();
    assert_eq!(installed.identity(&verifier, IMPOSTOR), REFUTED);
    assert_eq!(verifier.status().paths_problem, None);
    drop(verifier);
    // A saved result is valid for a day, even if the process is restarted several times.
    for _ in 0..3 {
        installed.clock.pass(10 * HOUR);
        drop(installed.start());
    }
    assert_eq!(installed.identity(&installed.start(), IMPOSTOR), SUSPECT);
}

#[test]
fn no_request_is_refuted_if_the_clock_was_wrong_before_a_restart() {
    for is_ahead in [true, false] {
        let installed = Installed::learned();
        if is_ahead {
            installed.clock.go_back(25 * HOUR)
        } else {
            installed.clock.pass(25 * HOUR)
        }
        let verifier = installed.start();
        assert_eq!(installed.identity(&verifier, IMPOSTOR), SUSPECT, "ahead: {is_ahead}");
        // After the wrong time has passed, claims are still not refuted.
        drop(verifier);
        installed.clock.pass(25 * HOUR);
        assert_eq!(installed.identity(&installed.start(), IMPOSTOR), SUSPECT, "ahead: {is_ahead}");
    }
}

#[test]
fn an_invalid_claim_paths_file_refutes_no_request_and_is_replaced() {
    let path = r#"{"site":"example.com","listener":"0.0.0.0:443","crawler":"Playbot","verified":"#;
    for (text, is_problem) in [
        ("", true),
        ("{\"paths\":[", true),
        ("[]", true),
        ("{\"paths\":7}", true),
        ("{\"paths\":[]}", false),
        ("{\"paths\":[7,{},{\"site\":\"a\"}]}", false),
        (&*format!("{{\"paths\":[{path}-1}}]}}"), false),
        (&*format!("{{\"paths\":[{path}18446744073709551615}}]}}"), false),
        (&*format!("{{\"paths\":[{path}\"now\"}}]}}"), false),
        (&*format!("{{\"paths\":[{path}null}}]}}"), false),
    ] {
        let installed = Installed::new();
        std::fs::write(installed.file(), text).expect("a file");
        let verifier = installed.start();
        assert_eq!(installed.identity(&verifier, IMPOSTOR), SUSPECT, "{text}");
        assert_eq!(verifier.status().paths_problem.is_some(), is_problem, "{text}: {:?}", verifier.status());
        assert!(matches!(installed.identity(&verifier, GENUINE), Identity::Verified(_)));
        until("a file that can be read", || {
            let text = std::fs::read_to_string(installed.file()).ok()?;
            text.contains("\"crawler\":\"Playbot\"").then_some(())
        });
        until("no problem", || verifier.status().paths_problem.is_none().then_some(()));
    }
}

#[test]
fn a_claim_paths_file_that_cannot_be_written_is_reported() {
    let installed = Installed::new();
    std::fs::create_dir(installed.file()).expect("a folder in its place");
    let verifier = installed.start();
    assert!(matches!(installed.identity(&verifier, GENUINE), Identity::Verified(_)));
    let problem = until("problem", || verifier.status().paths_problem);
    assert!(problem.contains("claim-paths.json"), "{problem}");
    assert_eq!(installed.identity(&verifier, IMPOSTOR), REFUTED);
}

/// The resolver is queried again, because its answer to the previous process proves nothing now.
#[test]
fn after_a_restart_the_resolver_is_tested_with_a_saved_verified_address() {
    let (dns, clock) = (PlayedDns::start(), TestClock::new());
    dns.confirmed(GENUINE, "crawl.googlebot.com");
    let registry = registry(|row| Crawler { reverse_dns: vec![".googlebot.com".into()], ..row });
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let builder = Verifier::builder(&registry).clock(clock.read()).resolvers([dns.address]);
        let builder = builder.question_times(PACE, LONG);
        builder.saved_in(folder.path()).start().expect("a verifier")
    };
    let rdns = |verifier: &Verifier, address| {
        let pending = MethodOutcome::Undecided(UndecidedReason::Pending);
        until("an outcome", || {
            let outcome = verifier.rdns(playbot(&registry), public(address), clock.now()).expect("host patterns");
            (outcome != pending).then_some(outcome)
        })
    };
    let no_name = MethodOutcome::Failed(Refutation::NoName);
    let verifier = start();
    assert_eq!(rdns(&verifier, GENUINE), MethodOutcome::Verified);
    let file = folder.path().join("claim-paths.json");
    until("the file", || std::fs::read_to_string(&file).ok()?.contains(GENUINE).then_some(()));
    drop(verifier);
    let verifier = start();
    assert_eq!(rdns(&verifier, IMPOSTOR), MethodOutcome::Undecided(UndecidedReason::UnprovenResolver));
    until("a refutation", || (rdns(&verifier, IMPOSTOR) == no_name).then_some(()));
    drop(verifier);
    // If the resolver does not answer any more, claims are not refuted.
    dns.names(GENUINE, Played::Code(ResponseCode::NXDomain));
    let verifier = start();
    let asked = dns.asked().len();
    assert_eq!(rdns(&verifier, IMPOSTOR), MethodOutcome::Undecided(UndecidedReason::UnprovenResolver));
    until("the questions", || (dns.asked().len() >= asked + 2).then_some(()));
    assert_eq!(rdns(&verifier, IMPOSTOR), MethodOutcome::Undecided(UndecidedReason::UnprovenResolver));
}
