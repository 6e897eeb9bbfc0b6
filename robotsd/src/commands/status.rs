//! `robotsd status`: the state of a running robotsd. One site is described whole; of several those that need a hand, and each other on
//! a line.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use http::Method;

use super::agents::CheckedShare;
use super::arguments::{owners, patterns};
use super::fleet::{self, FleetArg, WaitArg};
use super::output::{Page, say_report};
use super::running::{Running, asked, refusal};
use crate::exit;
use crate::render::{plural, short_hash};
use crate::report::{
    ConfigReport, FetchReport, FleetReport, IdentityReport, KindCount, ListenerReport as Listener, NextStep,
    PublishedRegistryReport, RateStoreReport, RefusedFileReport, RegistryReport, ReplicaState, RequestsReport,
    SettingChange, SiteReport, SiteTraffic, StatusReport, SuspectReport, UpstreamReport, WatchedPagesReport, is_of,
};
use crate::sites::unknown;

/// Settings of a rejected config that the text shows.
const HELD_BACK: usize = 8;

/// Sites that need a hand of which a summary says everything.
const DESCRIBED: usize = 12;

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    running: Running,

    /// Only this site, by its name or one of its hosts, with everything about it
    #[arg(long, value_name = "HOST")]
    site: Option<String>,

    /// Only the sites that need a hand, with everything about each
    #[arg(long, conflicts_with_all = ["site", "json"])]
    problems: bool,

    /// Write nothing, and end with 0 if it serves, whatever its sites need: for health checks that restart or take out of rotation
    #[arg(long, conflicts_with_all = ["site", "problems", "json"])]
    ready: bool,

    #[command(flatten)]
    fleet: FleetArg,

    #[command(flatten)]
    wait: WaitArg,
}

/// Exit status: 0 when it serves what the config file says, 1 when it starts or drains, the config or a file that it includes was
/// rejected, a site is switched off or counts as off because a kill switch cannot be read, a site serves anything else than what its source holds (a version waits at the gate, the last good one
/// is in force, or there is none) or the state directory cannot be written, 2 when it cannot be reached.
pub(crate) fn run(args: &StatusArgs) -> io::Result<ExitCode> {
    let running = &args.running;
    if args.fleet.fleet {
        if args.site.is_some() || args.problems || args.ready {
            return Err(refusal("--fleet has a line for each replica: leave --site, --problems and --ready out"));
        }
        return fleet::status(running, |report| (is_well(report), summary(report)), args.wait);
    }
    let mut report: StatusReport = asked(running, (&Method::GET, "/status"))?;
    if args.ready {
        return Ok(exit::answer(report.state == "serving"));
    }
    if let Some(wanted) = &args.site {
        select(&mut report, wanted).map_err(refusal)?;
    }
    let code = exit::answer(is_well(&report));
    say_report(&report, running.json, |page| text(page, &report, args), code)
}

fn is_well(report: &StatusReport) -> bool {
    let is_rejected = report.config.as_ref().is_some_and(|config| config.rejected.is_some());
    let of_sites = report.sites.iter().map(|site| &site.switch_trouble);
    let is_switch_unread = of_sites.chain([&report.switch_trouble]).any(Option::is_some);
    let are_current = report.sites.iter().all(is_current);
    let is_refused = report.config.as_ref().is_some_and(|config| !config.refused.is_empty());
    let is_served = report.state == "serving" && are_current && report.state_writable != Some(false);
    let is_enforced = report.sites.iter().all(|site| site.enforcement != "off");
    is_served && is_enforced && !is_rejected && !is_refused && !is_switch_unread && report.stalled.is_empty()
}

/// Whether a site serves what its source holds.
fn is_current(site: &SiteReport) -> bool {
    site.state == "live" && site.pending.is_none()
}

/// A running robotsd in a line, with what it does not serve as it should.
pub(super) fn summary(report: &StatusReport) -> String {
    let StatusReport { version, state, sites, .. } = report;
    let mut line = format!("robotsd {version} is {state}, {}", plural(sites.len(), "site"));
    if report.enforcement == "off" {
        line.push_str(", ENFORCEMENT IS OFF FOR EVERY SITE");
    }
    let config = report.config.as_ref();
    if let Some(rejected) = config.and_then(|config| config.rejected.as_ref()) {
        let _ = write!(line, ", CONFIG REJECTED since {}: {}", rejected.since, rejected.why);
    }
    config.iter().flat_map(|config| &config.refused).for_each(|refused| {
        let _ = write!(line, ", FILE REFUSED: {}", refused.why);
    });
    for site in sites.iter().filter(|site| !is_current(site) || site.switch == "off") {
        let waits = site.pending.as_ref().map(|pending| format!(", {} waits", short_hash(&pending.hash)));
        let off = if site.switch == "off" { ", OFF" } else { "" };
        let _ = write!(line, "; site {}: {}{off}{}", site.name, site.state, waits.unwrap_or_default());
    }
    report.troubles.iter().chain(&report.switch_trouble).for_each(|trouble| {
        let _ = write!(line, "; {trouble}");
    });
    line
}

/// Leaves the site of this name or of this host alone, with every file of one that has a folder of them.
fn select(report: &mut StatusReport, wanted: &str) -> Result<(), String> {
    let of_site = |site: &SiteReport| (site.hosts.clone(), site.name.clone());
    let all: Vec<_> = report.sites.iter().map(of_site).collect();
    let hosts = owners(all.iter().flat_map(|(hosts, name)| patterns(hosts).map(move |pattern| (pattern, name))));
    let is_name = report.sites.iter().any(|site| is_of(wanted, &site.name));
    // A word without a dot that is no host of its own is a name with a slip in it, which a site with every host would answer for.
    let is_listed = || all.iter().any(|(hosts, _)| hosts.iter().any(|host| host.eq_ignore_ascii_case(wanted)));
    let host = hosts.get(wanted).filter(|_| !is_name && (wanted.contains(['.', ':']) || is_listed()));
    if !is_name && host.is_none() {
        return Err(unknown(wanted, report.sites.iter().map(|site| &site.name)));
    }
    report.sites.retain(|site| host.map_or_else(|| is_of(wanted, &site.name), |name| **name == site.name));
    Ok(())
}

/// Whether an operator has something to do, or to know.
pub(super) fn needs_an_operator(report: &StatusReport) -> bool {
    !is_well(report) || !report.troubles.is_empty() || report.sites.iter().any(|site| needs_a_hand(report, site))
}

/// Whether an operator has something to do about a site, or to know.
fn needs_a_hand(report: &StatusReport, site: &SiteReport) -> bool {
    let is_out = |upstream: &UpstreamReport| upstream.state != "up";
    let is_failing = site.fetch.as_ref().is_some_and(|fetch| fetch.failing_since.is_some());
    let has_ended = site.overrides.iter().any(|exception| exception.ended);
    let of_site = !site.next.is_empty() || !site.troubles.is_empty() || site.state != "live" || is_failing || has_ended;
    let is_off = site.enforcement == "off";
    of_site || is_off || traffic_of(report, site).is_some_and(|traffic| traffic.upstreams.iter().any(is_out))
}

fn text(page: &mut Page, report: &StatusReport, args: &StatusArgs) {
    let running = &args.running;
    let StatusReport { version, state, pid, sites, .. } = report;
    page.title(&format!("robotsd {version} is {state} for {}, process {pid}", for_people(report.uptime_seconds)));
    let (mut described, mut others): (Vec<_>, Vec<_>) = sites.iter().partition(|site| needs_a_hand(report, site));
    if sites.len() > 1 || args.problems {
        page.title(&format!("{} of {} sites need a hand", described.len(), sites.len()));
    }
    if args.problems {
        others.clear();
    } else if args.site.is_some() || sites.len() == 1 {
        described.append(&mut others);
    } else {
        others = [described.split_off(described.len().min(DESCRIBED)), others].concat();
    }
    for listener in &report.listeners {
        let name = listener.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let Listener { scheme, address, kind, socket, .. } = listener;
        page.title(&format!("listener {scheme}://{address}{name}: {kind}, {socket}"));
    }
    report.config.iter().for_each(|config| describe_config(page, config, running));
    if let Some(upgrade) = &report.upgrade {
        page.line("upgrade", &format!("{}, {}", upgrade.state, upgrade.at));
        page.line("", &upgrade.message);
    }
    if let Some(RegistryReport { crawlers, checked, last_checked, published }) = &report.registry {
        let share = CheckedShare { rows: *crawlers, checked: *checked, last: last_checked.as_deref() };
        page.line("registry", &format!("{crawlers} crawlers, {share}"));
        published.iter().for_each(|published| describe_published(page, published));
    }
    report.identity.iter().for_each(|identity| describe_identity(page, identity));
    report.rate_store.iter().for_each(|store| describe_rate_store(page, store));
    for hook in &report.notify {
        let event = hook.version.as_ref().map(|event| format!(", {event}")).unwrap_or_default();
        page.line("notify", &format!("{}: {}{event}", hook.target, hook.state));
    }
    report.fleet.iter().for_each(|fleet| describe_fleet(page, fleet));
    describe_traffic(page, report);
    if report.enforcement == "off" {
        page.title("ENFORCEMENT IS OFF FOR EVERY SITE: no request is refused, tagged or recorded");
    }
    report.troubles.iter().for_each(|trouble| page.line("trouble", trouble));
    advise(page, &report.next, running);
    for site in described {
        page.blank();
        describe(page, report, site, running);
    }
    if !others.is_empty() {
        page.blank();
    }
    others.into_iter().for_each(|site| page.title(&in_a_line(report, site)));
}

/// A site of which there is nothing to do, or one of too many.
fn in_a_line(report: &StatusReport, site: &SiteReport) -> String {
    let more = if site.hosts.len() > 1 { ", …" } else { "" };
    let host = site.hosts.first().map_or("every host", String::as_str);
    let version = site.hash.as_deref().map_or("no version", short_hash);
    let mut line = format!("site {} ({host}{more}): {}, {}, {version}", site.name, site.state, site.mode);
    if let Some(SiteTraffic { requests: RequestsReport { total, refused, .. }, .. }) = traffic_of(report, site) {
        let _ = write!(line, ", {total} requests, {refused} refused");
    }
    let first = site.troubles.first().or(site.next.first().map(|step| &step.what));
    line + &first.map(|first| format!(": {first}")).unwrap_or_default()
}

/// The store in which processes share what they count of crawlers.
fn describe_rate_store(page: &mut Page, store: &RateStoreReport) {
    let RateStoreReport { place, state, unasked, trouble, trouble_at, outages, calls, requests } = store;
    let said = match state.as_str() {
        "used" => "used",
        "partly" => "PARTLY OUT, this process counts alone what is there",
        _ => "OUT, this process counts alone",
    };
    page.line("rate store", &format!("{place} {said}"));
    page.lines("", unasked);
    let list = |counts: &[KindCount]| {
        counts.iter().map(|KindCount { kind, count }| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
    };
    page.lines("", [format!("calls: {}", list(calls)), format!("requests: {}", list(requests))]);
    if let (Some(trouble), Some(at)) = (trouble, trouble_at) {
        page.line("", &format!("outages: {outages}; the last trouble, {at}: {trouble}"));
    }
}

/// The fleet that it is of, as it was seen last.
fn describe_fleet(page: &mut Page, fleet: &FleetReport) {
    let synced = fleet.replicas.iter().filter(|replica| replica.state == ReplicaState::Synced).count();
    let replicas = plural(fleet.replicas.len(), "replica");
    page.line("fleet", &format!("{} is {}, {synced} of {replicas} synced", fleet.name, fleet.state.as_str()));
    page.lines("", fleet.read.iter().map(|read| format!("the document was read last {read}")));
    page.lines("", &fleet.troubles);
}

/// The registry that is published at a URL.
fn describe_published(page: &mut Page, published: &PublishedRegistryReport) {
    let version = match (&published.hash, &published.confirmed) {
        (None, _) => "none yet, so the built-in rows are in force".to_owned(),
        (Some(hash), None) => short_hash(hash).to_owned(),
        (Some(hash), Some(confirmed)) => format!("{}, confirmed {confirmed}", short_hash(hash)),
    };
    page.line("", &format!("from {}: {version}", published.url));
    if let Some(waiting) = &published.waiting {
        page.line("REGISTRY WAITS", &waiting.why);
    }
    published.trouble.iter().for_each(|trouble| page.line("trouble", trouble));
}

fn describe_config(page: &mut Page, config: &ConfigReport, running: &Running) {
    for RefusedFileReport { path, since, why, .. } in &config.refused {
        page.title(&format!("FILE REFUSED since {since}: {path}"));
        page.line("why", why);
    }
    if let Some(rejected) = &config.rejected {
        page.title(&format!("CONFIG REJECTED since {}: the next start would fail", rejected.since));
        page.line("why", &rejected.why);
        page.line("running", &format!("the config accepted {}", config.accepted));
        match rejected.held_back.as_deref() {
            None => page.line("", "its settings cannot be compared with those of the file"),
            Some([]) => page.line("", "its settings are those of the file"),
            Some(settings) => describe_settings(page, settings),
        }
    } else {
        page.line("config", &config.path);
        page.line("", &format!("accepted {}", config.accepted));
    }
    if !config.next_start.is_empty() {
        page.line("next start", "these settings have effect once robotsd is started again:");
        describe_settings(page, &config.next_start);
    }
    config.rejected.iter().for_each(|rejected| advise(page, &rejected.next, running));
}

fn describe_settings(page: &mut Page, settings: &[SettingChange]) {
    for setting in settings.iter().take(HELD_BACK) {
        page.line("", &held_back(setting));
    }
    let more = settings.len().saturating_sub(HELD_BACK);
    if more > 0 {
        page.line("", &format!("and {more} settings more: `--json` has them"));
    }
}

fn held_back(setting: &SettingChange) -> String {
    let site = setting.site.as_ref().map(|site| format!("site {site:?}: ")).unwrap_or_default();
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    format!("{site}{} is {}, in the file {}", setting.setting, shown(&setting.before), shown(&setting.after))
}

/// Connections and responses of all listeners.
fn describe_traffic(page: &mut Page, report: &StatusReport) {
    let most = report.connections.map(|most| format!("at most {most}"));
    let Some(traffic) = &report.traffic else {
        return most.iter().for_each(|most| page.title(&format!("connections: {most}")));
    };
    let most = most.map(|most| format!(", {most}")).unwrap_or_default();
    let (open, accepted) = (traffic.open_connections, traffic.accepted_connections);
    page.title(&format!("connections: {open} open{most}; {accepted} since the start"));
    let responses = traffic.responses.iter().map(|class| (&*class.kind, class.count));
    let responses = responses.chain([("left before an answer", traffic.unanswered)]).filter(|(_, count)| *count > 0);
    page.line("responses", &format!("since the start: {}", counts(responses)));
    let errors = traffic.connection_errors.iter().map(|error| (&*error.kind, error.count));
    if !traffic.connection_errors.is_empty() {
        page.line("trouble", &format!("with connections since the start: {}", counts(errors)));
    }
}

/// The traffic of a site; of one with a directory of files at the first of them.
fn traffic_of<'r>(report: &'r StatusReport, site: &SiteReport) -> Option<&'r SiteTraffic> {
    let traffic = report.traffic.as_ref()?.sites.iter().find(|traffic| is_of(&traffic.name, &site.name))?;
    let first = report.sites.iter().find(|other| is_of(&traffic.name, &other.name))?;
    (first.name == site.name).then_some(traffic)
}

/// `7 2xx, 1 5xx`.
fn counts<'c>(counts: impl Iterator<Item = (&'c str, u64)>) -> String {
    let counts: Vec<_> = counts.map(|(kind, count)| format!("{count} {kind}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

fn describe_site_traffic(page: &mut Page, traffic: &SiteTraffic) {
    let RequestsReport { total, robots_txt, allowed, refused, tagged, observed, passed, limited } = traffic.requests;
    let kinds = [
        ("for robots.txt", robots_txt),
        ("allowed", allowed),
        ("refused", refused),
        ("tagged", tagged),
        ("observed", observed),
        ("passed although disallowed", passed),
        ("limited", limited),
    ];
    let kinds = kinds.into_iter().filter(|(_, count)| *count > 0);
    let what = if total == 0 { String::new() } else { format!(": {}", counts(kinds)) };
    page.line("requests", &format!("{total} since the start{what}"));
    if !traffic.failures.is_empty() {
        let failures = traffic.failures.iter().map(|failure| (&*failure.kind, failure.count));
        page.line("unanswered", &format!("by its upstreams: {}", counts(failures)));
    }
    page.lines("upstreams", traffic.upstreams.iter().map(describe_upstream));
}

fn describe_upstream(upstream: &UpstreamReport) -> String {
    let UpstreamReport { server, state, connections, .. } = upstream;
    let connections = plural(*connections, "connection");
    let (Some(since), Some(check), Some(why)) = (&upstream.since, &upstream.check, &upstream.why) else {
        return format!("{server}: {state}, {connections}");
    };
    let again = match (&**state, upstream.again_seconds) {
        ("out", Some(0)) => ", tried with the next request".to_owned(),
        ("out", Some(seconds)) => format!(", tried again in {}", for_people(seconds)),
        _ => String::new(),
    };
    format!("{server}: {} since {since}, {check}: {why}{again}", state.to_uppercase())
}

fn describe(page: &mut Page, report: &StatusReport, site: &SiteReport, running: &Running) {
    let hosts = if site.hosts.is_empty() { "every host".to_owned() } else { site.hosts.join(", ") };
    page.title(&format!("site {} ({hosts}): {}", site.name, site.state));
    page.line("robots.txt", &site.origin);
    for part in &site.append {
        let version = shown_version(part.hash.as_deref());
        let left_out = part.left_out.as_ref().map(|what| format!("; {what}")).unwrap_or_default();
        page.line("appended", &format!("{}: {}{version}{left_out}", part.source, part.state));
    }
    for hook in &site.on_publish {
        let version = shown_version(hook.version.as_deref());
        page.line("on publish", &format!("{}: {}{version}", hook.target, hook.state));
    }
    let live = site.hash.as_deref().zip(site.age_seconds);
    let live = live.map(|(hash, age)| format!("{}, live for {}", short_hash(hash), for_people(age)));
    page.line("version", live.as_deref().unwrap_or("none, so nothing is enforced"));
    if let Some(decided) = &site.decided {
        let done = if decided.cause == "rollback" { "rolled back" } else { "accepted" };
        page.line("", &format!("{done} {}{}", decided.when, decided.attribution()));
    }
    page.lines("before it", site.before.as_deref().map(short_hash));
    if site.enforcement == "off" {
        let whose = if site.switch == "off" { "the switch of this site" } else { "the switch of every site" };
        page.line("enforced", &format!("OFF, by {whose}: every request passes"));
    }
    match &*site.mode {
        "observe" => page.line("mode", "observe: disallowed requests pass, and are logged"),
        "off" => page.line("mode", "off: disallowed requests pass, and are not logged"),
        mode => page.line("mode", mode),
    }
    for over in &site.overrides {
        let end = match (&over.until, over.ended) {
            (Some(until), false) => format!(" until {until}"),
            (Some(until), true) => format!(", but that ended {until}"),
            (None, _) => String::new(),
        };
        page.line("override", &format!("{}: {}{end}", over.of, over.mode));
    }
    let grace = |end| {
        format!(
            "newly disallowed requests are only observed, until {end} at the latest; `would` in the log says what comes then"
        )
    };
    page.lines("grace", site.grace_end.as_ref().map(grace));
    traffic_of(report, site).iter().for_each(|traffic| describe_site_traffic(page, traffic));
    match (&site.findings_summary, site.findings.notes) {
        (Some(summary), _) => page.line("findings", summary),
        (None, 0) => page.line("findings", "none"),
        (None, notes) => {
            page.line("findings", &plural(notes, "note"));
            if let Some(config) = report.config.as_ref().filter(|_| Path::new(&site.origin).is_absolute()) {
                page.line("", "to see what the check notes:");
                let command = ["robotsd", "check", "--config", &config.path, "--site", &site.name];
                page.command(&command.map(str::to_owned));
            }
        }
    }
    if let Some(reload) = site.last_reload.as_ref().filter(|reload| reload.outcome == "kept") {
        page.line("not taken", &reload.message);
        page.lines("", site.not_taken_since.as_ref().map(|since| format!("since {since}")));
    }
    if let Some(pending) = &site.pending {
        page.line("waiting", &format!("{} since {}", short_hash(&pending.hash), pending.since));
        page.lines("", &pending.objections);
        page.lines("", report.shown_meanwhile(pending));
    }
    if let Some([]) = site.watched_pages.as_deref() {
        let why = "watches no pages: no sitemap was read, and neither urls nor requests of search engines are known";
        page.line("gate", why);
    }
    let watched = |WatchedPagesReport { of, count }: &WatchedPagesReport| {
        format!("watches {count} {} {of}", if *count == 1 { "page" } else { "pages" })
    };
    page.lines("gate", site.watched_pages.iter().flatten().map(watched));
    site.fetch.iter().for_each(|fetch| describe_fetch(page, fetch));
    if site.faults > 0 {
        page.line("faults", &format!("{} requests passed because judging them failed", site.faults));
    }
    if site.callback_faults > 0 {
        let why = "lines are missing from the log because writing them failed; the decisions stood";
        page.line("faults", &format!("{} {why}", site.callback_faults));
    }
    site.troubles.iter().for_each(|trouble| page.line("trouble", trouble));
    advise(page, &site.next, running);
}

fn shown_version(hash: Option<&str>) -> String {
    hash.map(|hash| format!(", version {}", short_hash(hash))).unwrap_or_default()
}

fn describe_fetch(page: &mut Page, fetch: &FetchReport) {
    let confirmed = fetch.confirmed.as_ref().map(|at| format!("confirmed {at}"));
    let confirmed = confirmed.as_deref().unwrap_or("not yet confirmed since the start");
    page.line("fetched", &format!("{confirmed}, again at {}", fetch.next));
    let failing = |since| format!("failing since {since}, {} times in a row", fetch.failures);
    page.lines("", fetch.failing_since.as_ref().map(failing));
    let held = |until| format!("missing at its source; the live version stays in force until {until}");
    page.lines("", fetch.held_until.as_ref().map(held));
}

fn advise(page: &mut Page, steps: &[NextStep], running: &Running) {
    for (number, step) in steps.iter().enumerate() {
        let label = if number == 0 { "next" } else { "" };
        if step.command.is_empty() {
            page.line(label, &step.what);
        } else {
            page.line(label, &format!("{}:", step.what));
            let command = if step.is_for_running() { running.command(&step.command) } else { step.command.clone() };
            page.command(&command);
        }
    }
}

fn for_people(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

/// The evidence about senders: how much there is, the missing parts, and the paths on which claims are not believed.
fn describe_identity(page: &mut Page, identity: &IdentityReport) {
    let fresh = identity.confirmed_lists();
    let keys = identity.directories.iter().filter(|directory| directory.keys.is_some()).count();
    let mut text = format!("{fresh} of {} lists confirmed within a day", identity.lists.len());
    let _ = write!(text, ", {keys} of {} key directories loaded", identity.directories.len());
    let _ = write!(text, ", names of {} addresses known", identity.names_known);
    if identity.names_waiting > 0 {
        let _ = write!(text, ", {} wait", identity.names_waiting);
    }
    page.line("identity", &text);
    // `--json` has the lists and directories one by one.
    page.lines("", identity.troubles.iter().chain(&identity.paths_trouble));
    for SuspectReport { site, listener, crawler, method, networks, last_verified } in &identity.suspects {
        let since = last_verified.as_ref().map_or("never".to_owned(), |at| format!("last {at}"));
        let who = if crawler.is_empty() { "a signature without a crawler's name" } else { crawler };
        page.title(&format!(
            "SUSPECT PATH to site {site:?} at {listener}: {who} was {since} verified by {method}, so no request is refuted by it"
        ));
        if method == "signature" {
            page.line("hint", "a proxy in front may change Host or the path, or the clock may be wrong");
        } else if !networks.is_empty() {
            let networks = networks.join(", ");
            let add = "if that is your proxy, add it to trusted_proxies";
            page.line("addresses", &format!("most are in {networks}: {add}"));
        }
    }
}
