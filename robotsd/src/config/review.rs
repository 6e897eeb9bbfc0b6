//! Finds settings of a valid config that are probably mistakes, such as unknown crawler names,
//! expired exceptions and folders that cannot be written. These mistakes do not affect a running
//! process. Mistakes that would prevent a start are reported as errors, all others as warnings or
//! notes.

mod refusal_modes;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check::Severity;
use tower_robots::policy::{Impostors, Network};
use tower_robots::rules::{ProductToken, RobotsTxt};

use self::refusal_modes::{unused_store, weakened_impostors, weakened_rate, without_grace, without_state};
use super::file::Reviewable;
use super::included::is_inside;
use super::log::creation_error;
use super::site::{RawCase, RawHook, end, unseen_noindex, vary_notes};
use super::state_dir::{unwritable_state_dir, write_problem};
use super::{
    Config, Fault, IncludePattern, ListenerKind, Placed, RawAdmin, RawConfig, RawSite, RobotsSource, SiteConfig,
    host_patterns, load_registry, matches_pattern, uncovered,
};
use crate::edge::objections;
use crate::files;
use crate::input;
use crate::names::{crawler_hint, did_you_mean};
use crate::render::FoundProblem;
use crate::selector::Selector;
use crate::webhooks::{HookHeader, HookSettings, signing_key};

pub(super) use self::refusal_modes::unused_store_reason;

impl Config {
    /// Returns probable mistakes in the order of the file: warnings, notes, and errors that would
    /// prevent a start. Blocks, because it reads files.
    pub(crate) fn review(&self) -> Vec<FoundProblem> {
        let Some(Reviewable { file, names, unread }) = self.reviewable.as_deref() else { return Vec::new() };
        let (mut found, now) = (Vec::new(), SystemTime::now());
        // The path `?` represents an unknown key at the top of the file, which may be a misspelling
        // of any key.
        let is_part = |path: &str, key: &str| path == "?" || path.starts_with(key) || key.starts_with(path);
        let mut note = |severity, keys: &[&str], faults: Vec<Fault>| {
            if !unread.iter().any(|path| keys.iter().any(|key| is_part(path, key))) {
                found.extend(faults.into_iter().map(|fault| (severity, fault)));
            }
        };
        // Each call of `note` lists the keys that its findings depend on. If one of these keys
        // could not be read, the findings are left out, because they may be wrong.
        note(Severity::Warning, &["agents", "site"], unknown_crawlers(file, self));
        note(Severity::Warning, &["agents", "identity"], ineffective_identity(file, self));
        note(Severity::Warning, &["identity", "listener"], unused_dns_settings(file));
        note(Severity::Warning, &["agents", "identity", "listener", "site"], ineffective_cases(file, self));
        note(Severity::Note, &["listener", "site"], unrelayed_case(file).into_iter().collect());
        note(Severity::Warning, &["listener", "site"], open_hosts(file).collect());
        note(Severity::Warning, &["site.name"], unknown_sites(file, self, names));
        note(Severity::Warning, &["fleet", "mode", "rate", "site"], unused_store(file).into_iter().collect());
        note(Severity::Warning, &["listener", "site"], uncovered_hosts(file, self).into_iter().collect());
        let sites = || file.site.iter().map(Spanned::get_ref);
        let without_grace = sites().filter_map(|site| without_grace(file, site));
        note(Severity::Note, &["grace", "mode", "site"], without_grace.collect());
        note(Severity::Note, &["mode", "site"], sites().filter_map(|site| weakened_rate(file, site)).collect());
        note(Severity::Note, &["site"], sites().flat_map(|site| vary_notes(&site.signals, &site.field)).collect());
        note(Severity::Warning, &["site"], unseen_fields(file, self));
        note(Severity::Note, &["identity", "mode", "site"], weakened_impostors(file).into_iter().collect());
        note(Severity::Warning, &[], expired_entries(file, now));
        note(Severity::Warning, &[], certificates(file, self, now));
        note(Severity::Warning, &[], unmatched_includes(file, self).collect());
        note(Severity::Warning, &[], doubtful_roots(file, self).collect());
        let misplaced = self.state_dir_problem().map(|fault| Fault::new(self.state_dir_span.clone(), fault));
        note(Severity::Error, &[], misplaced.into_iter().collect());
        note(Severity::Warning, &[], unwritable_state_dir(file, self).into_iter().collect());
        note(Severity::Note, &["state_dir", "mode", "rate", "site"], without_state(file).into_iter().collect());
        note(Severity::Error, &[], admin_socket(file, self).into_iter().collect());
        note(Severity::Warning, &[], unwritable_audit(file, self).into_iter().collect());
        note(Severity::Warning, &[], foreign_addresses(file).collect());
        note(Severity::Warning, &[], open_networks(file).collect());
        note(Severity::Warning, &[], everything_exempt(file).collect());
        note(Severity::Warning, &[], secrets(file, self));
        note(Severity::Error, &[], unusable_secrets(file, self).collect());
        note(Severity::Error, &["admin", "fleet", "hook_hosts", "include"], forbidden_hooks(file, self).collect());
        found.sort_by_key(|(_, fault)| fault.span.start);
        found.iter().map(|(severity, fault)| self.parts.diagnostic(*severity, &self.text, fault)).collect()
    }
}

/// Finds local copies of address lists whose URLs are not in the registry. Also finds an action for
/// impostors that has no effect because impostors cannot be recognised. Does nothing if the
/// registry is fetched from a URL, because the content of a fetched registry is not known here.
fn ineffective_identity(file: &RawConfig, config: &Config) -> Vec<Fault> {
    let Some(identity) = file.identity.as_ref().filter(|_| config.registry.published.is_none()) else {
        return Vec::new();
    };
    let Ok(registry) = load_registry(&config.registry) else { return Vec::new() };
    let lists: Vec<&str> = registry.crawlers().flat_map(|crawler| &crawler.ranges).map(String::as_str).collect();
    let unnamed = identity.list.iter().filter(|list| !lists.contains(&list.url.get_ref().as_str()));
    let mut faults: Vec<_> = unnamed
        .map(|list| {
            let url = list.url.get_ref();
            let message = format!(
                "no crawler in the registry has the address list {url:?}, so this copy of the list has no effect"
            );
            let help = did_you_mean(url, lists.iter().copied());
            list.url.fault(message).help(help.unwrap_or_else(|| {
                "`robotsd status --json` shows the URL of every list, under \"identity\"".to_owned()
            }))
        })
        .collect();
    let has_names = identity.rdns && registry.crawlers().any(|crawler| !crawler.reverse_dns.is_empty());
    if *identity.impostors.get_ref() != Impostors::Observe && lists.is_empty() && !has_names {
        let message = "impostors cannot be recognised: no crawler in the registry has a list of addresses, and host \
            names are not looked up";
        faults.push(identity.impostors.fault(message));
    }
    faults
}

/// Finds ineffective settings for the look-up of host names.
fn unused_dns_settings(file: &RawConfig) -> Vec<Fault> {
    let Some(identity) = &file.identity else { return Vec::new() };
    let is_forwarding = file.listener.iter().any(|listener| listener.kind == ListenerKind::Proxy);
    let idle_wait = match (identity.rdns, is_forwarding) {
        (false, _) => Some("\"wait\" has no effect, because rdns = false disables the look-up of host names"),
        (_, false) => Some("\"wait\" has no effect, because a proxy's request for a decision never waits"),
        _ => None,
    };
    let idle_wait = idle_wait.filter(|_| !identity.wait.get_ref().0.is_zero());
    let mut faults: Vec<_> = idle_wait.map(|message| identity.wait.fault(message)).into_iter().collect();
    if let (false, Some(resolver)) = (identity.rdns, identity.resolvers.first()) {
        let message = "\"resolvers\" is used only by commands, not for requests, because rdns = false disables the \
            look-up of host names";
        faults.push(resolver.fault(message));
    }
    faults
}

/// Finds crawler names in the config that appear neither in the registry nor in a robots.txt.
/// Entries with unknown names only affect requests that contain exactly these names.
fn unknown_crawlers(file: &RawConfig, config: &Config) -> Vec<Fault> {
    // A missing registry file is not reported here, but when the sites are opened.
    if config.registry.extra.as_deref().is_some_and(|extra| !extra.is_file()) {
        return Vec::new();
    }
    let Ok(registry) = load_registry(&config.registry) else { return Vec::new() };
    let of_sites = file.site.iter().zip(&config.sites).flat_map(|(site, settings)| {
        site.get_ref()
            .modes
            .0
            .iter()
            .filter_map(move |exception| Some((exception.agent()?, std::slice::from_ref(settings))))
    });
    let of_responses = file.site.iter().zip(&config.sites).flat_map(|(site, settings)| {
        site.get_ref().crawlers().filter_map(move |crawler| match crawler.get_ref().parse() {
            Ok(Selector::Agent(name)) => Some((Spanned::new(crawler.span(), name), std::slice::from_ref(settings))),
            _ => None,
        })
    });
    let of_all = file.agents.ignore.iter().map(|name| (name.clone(), &*config.sites));
    let is_unknown = |(name, sites): &(Spanned<String>, &[_])| {
        let name = name.get_ref();
        // `name` may be the name of a crawler, or a product token that some crawler obeys.
        let is_registered = registry.crawler(name).is_some() || registry.knows(&ProductToken::new(name));
        !is_registered && !sites.iter().any(|site| may_have_group(site, name))
    };
    let fault = |(name, _): (Spanned<String>, _)| {
        let help = crawler_hint(name.get_ref(), &registry, std::iter::empty());
        let help = help.unwrap_or_else(|| "`robotsd agents` lists the crawlers".to_owned());
        let message = format!(
            "no crawler is called {name:?}, so this entry only affects requests that contain exactly this name",
            name = name.get_ref()
        );
        name.fault(message).help(help)
    };
    of_all.chain(of_sites).chain(of_responses).filter(is_unknown).map(fault).collect()
}

fn cases(file: &RawConfig) -> impl Iterator<Item = &RawCase> {
    file.site.iter().flat_map(|site| &site.get_ref().refusal.case).map(Spanned::get_ref)
}

/// Finds unknown operators in refusal cases and in `[[site.field]]` tables. Also finds keys of
/// refusal cases that have no effect: `identity` if senders are not verified, and `upstream` if no
/// listener forwards requests.
fn ineffective_cases(file: &RawConfig, config: &Config) -> Vec<Fault> {
    let mut faults = Vec::new();
    let registry = load_registry(&config.registry).ok();
    let is_forwarding = file.listener.iter().any(|listener| listener.kind == ListenerKind::Proxy);
    for crawlers in file.site.iter().flat_map(|site| site.get_ref().crawlers()) {
        let selector: Option<Selector> = crawlers.get_ref().parse().ok();
        let unknown = selector.zip(registry.as_ref()).and_then(|(selector, registry)| selector.of(registry).err());
        faults.extend(unknown.map(|unknown| crawlers.fault(format!("this has no effect: {unknown}"))));
    }
    for case in cases(file) {
        if let (Some(identity), None) = (case.identity.first(), &file.identity) {
            let message = "the senders of requests are not checked, so their identity is always \"claimed\"";
            faults.push(identity.fault(message).help("add [identity], or remove this key".to_owned()));
        }
        if let (Some(upstream), false) = (&case.upstream, is_forwarding) {
            let message = "no listener forwards requests, so clients get the status and page of the refusal case, not \
                           the answer of this upstream";
            faults.push(upstream.fault(message));
        }
    }
    faults
}

/// Finds the first refusal case with a status other than 403. If nginx uses only `auth_request`,
/// nginx does not relay such a status.
fn unrelayed_case(file: &RawConfig) -> Option<Fault> {
    let is_asked = file.listener.iter().any(|listener| listener.kind == ListenerKind::Decision);
    let mut statuses = cases(file).filter_map(|case| case.status.as_ref()).filter(|status| *status.get_ref() != 403);
    let message = "if nginx uses only auth_request, as ingress-nginx does, clients get 403 without header fields, not \
                   this status";
    let help =
        "use the shipped files for nginx, which fetch the refusal separately, with its status and fields".to_owned();
    Some(statuses.next().filter(|_| is_asked)?.fault(message).help(help))
}

fn hooks<'c>(
    file: &'c RawConfig,
    config: &'c Config,
) -> impl Iterator<Item = (&'c Spanned<RawHook>, &'c Arc<HookSettings>)> {
    let sites = file.site.iter().zip(&config.sites);
    let hooks = sites.flat_map(|(site, settings)| site.get_ref().robots.on_publish.iter().zip(&settings.on_publish));
    hooks.chain(file.notify.iter().zip(&config.notify))
}

/// Finds hooks with a forbidden destination. A host name that resolves to a forbidden address is
/// not found, because names are resolved only when a request is sent.
fn forbidden_hooks<'c>(file: &'c RawConfig, config: &'c Config) -> impl Iterator<Item = Fault> + 'c {
    hooks(file, config).filter_map(|(written, hook)| Some(written.get_ref().url.fault(hook.objection()?)))
}

/// Finds hook secrets that every user of the machine, or everyone on the network path, can read.
/// Also finds secret files that cannot be read. The findings are only warnings, because the file
/// may be created or protected before a request is sent.
fn secrets(file: &RawConfig, config: &Config) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (written, hook) in hooks(file, config) {
        if let (Some(written), Some(path)) = (&written.get_ref().secret, &hook.secret) {
            faults.extend(secret_file(written, path, "a signature"));
        }
        // Both header maps are sorted by name, so they can be zipped.
        for (written, (name, header)) in written.get_ref().headers.values().zip(&hook.headers) {
            let HookHeader::File(path) = header else { continue };
            if hook.target.is_open() {
                let message = format!(
                    "the header {name} is sent to {target} without TLS, so everyone on the network path can read its \
                     value",
                    target = hook.target
                );
                faults.push(written.fault(message).help("use https".to_owned()));
            }
            faults.extend(secret_file(written, path, &format!("the header {name}")));
        }
    }
    faults
}

fn secret_file<T>(written: &Spanned<T>, path: &Path, what: &str) -> Option<Fault> {
    let shown = path.display();
    match files::open(path) {
        Ok((_, found)) if found.mode() & 0o004 != 0 => {
            let message = format!("{shown}: every user of this machine can read this secret");
            Some(written.fault(message).help(format!("chmod o= {shown}")))
        }
        Ok(_) => None,
        Err(why) => Some(written.fault(format!(
            "{shown}: {why}; robotsd needs this file for {what}, and does not send the request without it"
        ))),
    }
}

/// Finds listener certificates that clients refuse or will soon refuse: certificates that have
/// expired, expire soon or are not valid yet, and CA certificates. By default, `openssl req -x509`
/// creates CA certificates.
fn certificates(file: &RawConfig, config: &Config, now: SystemTime) -> Vec<Fault> {
    let of_admin = file.admin.iter().flat_map(|admin| &admin.listener).flat_map(|listener| &listener.certificate);
    let all = file.listener.iter().flat_map(|listener| &listener.certificate).chain(of_admin).map(|pair| &pair.chain);
    let of_chain = |chain: &Spanned<PathBuf>| {
        let path = config.parts.folder(0).join(chain.get_ref());
        let (is_of_authority, dates) = objections(&path, now);
        let message = "this is the certificate of a certificate authority, not of a server: strict clients, \
            including the commands of robotsd, refuse it";
        let authority =
            || chain.fault(message).help("create a server certificate with basicConstraints=CA:FALSE".to_owned());
        let dates = dates.map(|warning| chain.fault(format!("{}: {warning}", path.display())));
        is_of_authority.then(authority).into_iter().chain(dates)
    };
    all.flat_map(of_chain).collect()
}

fn uncovered_hosts(file: &RawConfig, config: &Config) -> Option<Fault> {
    let fault = uncovered(&config.listeners, config.sites.iter().flat_map(|site| host_patterns(&site.hosts)))?;
    let mut of_clients = file.listener.iter().filter(|listener| listener.kind == ListenerKind::Proxy);
    Some(of_clients.find_map(|listener| listener.certificate.first())?.chain.fault(fault))
}

fn unknown_sites(file: &RawConfig, config: &Config, names: &[String]) -> Vec<Fault> {
    // If an included file was refused, tokens and users are not checked, because the refused file
    // may contain their sites.
    let admin = || file.admin.iter().filter(|_| config.included.refused.is_empty());
    let of_tokens = admin().flat_map(|admin| &admin.token).flat_map(|token| &token.sites);
    let of_users = admin().flat_map(|admin| &admin.user).flat_map(|user| &user.sites);
    let names = || names.iter().map(String::as_str);
    let is_unknown = |pattern: &&Spanned<String>| {
        // `SITE/HOST` is the robots.txt of one host, so only the text before `/` is compared with
        // the names of sites.
        let site = pattern.get_ref().split('/').next().unwrap_or_default();
        site != "*" && !names().any(|name| matches_pattern(site, name))
    };
    let fault = |pattern: &Spanned<String>| {
        let message = format!("no site is called {name:?}, so this entry has no effect", name = pattern.get_ref());
        pattern.fault(message).help(did_you_mean(pattern.get_ref(), names()))
    };
    of_tokens.chain(of_users).filter(is_unknown).map(fault).collect()
}

/// Finds secrets that cannot be used to sign notifications, so that the notifications are never
/// sent.
fn unusable_secrets<'a>(file: &'a RawConfig, config: &'a Config) -> impl Iterator<Item = Fault> {
    let hooks = file.notify.iter().zip(&config.notify);
    hooks.filter_map(|(written, hook)| {
        let written = written.get_ref().secret.as_ref()?;
        signing_key(hook.secret.as_deref()?).err().map(|why| written.fault(why))
    })
}

/// Reports whether the site's robots.txt has a group for this crawler. A missing or unreadable file
/// counts as empty. If the robots.txt is not a regular file or not known here, it may have this
/// group, so the function returns `true`, unless the name is probably misspelled.
fn may_have_group(site: &SiteConfig, name: &str) -> bool {
    let robots = match local_robots(site) {
        Ok(Some(robots)) => robots,
        // If `name` is similar to the name of a registered crawler, it is probably misspelled, and
        // not in the robots.txt.
        Ok(None) => return crawler_hint(name, Registry::builtin(), std::iter::empty()).is_none(),
        Err(error) if error.kind() == ErrorKind::InvalidInput => return true,
        Err(_) => RobotsTxt::parse(""),
    };
    robots.groups().any(|group| group.names().any(|named| named.value().eq_ignore_ascii_case(name.as_bytes())))
}

/// Returns the robots.txt of a site; `None` if it is fetched, or if each host has its own file.
fn local_robots(site: &SiteConfig) -> io::Result<Option<RobotsTxt>> {
    Ok(match &site.robots {
        RobotsSource::File(path) => Some(RobotsTxt::parse(input::read_configured(path)?)),
        RobotsSource::Inline(text) => Some(RobotsTxt::parse(text)),
        RobotsSource::Directory { .. } | RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => None,
    })
}

/// Finds header fields with `noindex` that no crawler can see, because robots.txt disallows the
/// pages that have the field.
fn unseen_fields(file: &RawConfig, config: &Config) -> Vec<Fault> {
    let Ok(registry) = load_registry(&config.registry) else { return Vec::new() };
    let sites = file.site.iter().zip(&config.sites).filter(|(site, _)| !site.get_ref().field.is_empty());
    let robots = sites.filter_map(|(site, settings)| Some((site, local_robots(settings).ok()??)));
    robots.flat_map(|(site, robots)| unseen_noindex(&site.get_ref().field, &robots, &registry)).collect()
}

/// Finds expired overrides, and expired tokens and users of the admin interface.
fn expired_entries(file: &RawConfig, now: SystemTime) -> Vec<Fault> {
    let exceptions = file.site.iter().flat_map(|site| &site.get_ref().modes.0);
    let overrides = exceptions.map(|exception| ("override", &exception.modes.get_ref().until));
    let tokens = file.admin.iter().flat_map(|admin| &admin.token).map(|token| ("token", &token.until));
    let users = file.admin.iter().flat_map(|admin| &admin.user).map(|user| ("user", &user.until));
    let untils = overrides.chain(tokens).chain(users).filter_map(|(what, until)| Some((what, until.as_ref()?)));
    let fault = |(what, until): (&str, &Spanned<_>)| {
        let message = format!("this {what} has expired and no longer has any effect");
        until.fault(message).help("remove this entry, or write a later day".to_owned())
    };
    untils.filter(|(_, until)| end(until).is_ok_and(|end| end <= now)).map(fault).collect()
}

/// Finds `include` patterns that match no file.
fn unmatched_includes(file: &RawConfig, config: &Config) -> impl Iterator<Item = Fault> {
    let is_without = |(_, pattern): &(&Spanned<PathBuf>, &IncludePattern)| {
        !config.included.paths.iter().any(|path| path.parent() == Some(&pattern.folder))
    };
    let patterns = file.include.iter().zip(&config.included.patterns).filter(is_without);
    patterns.map(|(written, pattern)| written.fault(format!("no file matches {}", pattern.path().display())))
}

/// Finds folders in `include_roots` that do not exist. Also finds folders that contain the config,
/// because an included file could then use the config's secrets.
fn doubtful_roots(file: &RawConfig, config: &Config) -> impl Iterator<Item = Fault> {
    let (folder, of_config) = (config.parts.folder(0), config.parts.path(0));
    file.include_roots.iter().filter_map(move |root| {
        let path = folder.join(root.get_ref());
        let shown = path.display();
        if !path.is_dir() {
            return Some(root.fault(format!("the folder {shown} does not exist")));
        }
        let help = "list only folders whose files may all be published".to_owned();
        let fault = || {
            root.fault(format!(
                "{shown} contains this config, so every included file could use the secrets of the config"
            ))
            .help(help)
        };
        is_inside(&path, of_config).then(fault)
    })
}

/// Returns an error if the socket of the admin interface cannot be created at its path, because
/// robotsd would then fail at its next start. A running process keeps its current socket.
fn admin_socket(file: &RawConfig, config: &Config) -> Option<Fault> {
    use std::os::unix::fs::FileTypeExt;
    let written = file.admin.as_ref()?.socket.as_ref()?;
    let path = config.admin.as_ref()?.socket.as_ref()?;
    let shown = path.display();
    let wrong = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            format!("{shown} is a folder: write the path of a socket in it, such as \"admin.sock\"")
        }
        Ok(found) if !found.file_type().is_socket() => {
            format!("{shown} exists and is not a socket: write another path")
        }
        _ if socket2::SockAddr::unix(super::staging_socket(path)).is_err() => {
            format!(
                "{shown} is too long for the path of a socket, which may have about 100 bytes: write a shorter path, \
                 for example in /run"
            )
        }
        Ok(_) => return None,
        Err(_) => creation_error(path)?,
    };
    Some(written.fault(wrong))
}

fn unwritable_audit(file: &RawConfig, config: &Config) -> Option<Fault> {
    let written = file.admin.as_ref()?.audit.as_ref()?;
    let path = config.admin.as_ref()?.audit.as_ref()?;
    let why = write_problem(path)?;
    let message = format!("{file}: the audit file cannot be written: {why}", file = path.display());
    Some(
        written
            .fault(message)
            .help("without the audit file, `accept`, `rollback` and `enforce on` are refused".to_owned()),
    )
}

/// Finds listener addresses that do not belong to this machine. An address of another machine is
/// not always a mistake: a supervisor may pass the socket, or the address may be moved to this
/// machine later.
fn foreign_addresses(file: &RawConfig) -> impl Iterator<Item = Fault> {
    let listeners = file.listener.iter().map(|listener| &listener.address);
    let admin = file.admin.iter().flat_map(RawAdmin::addresses);
    let is_foreign = |address: &&Spanned<SocketAddr>| {
        // The test uses any free port, because the configured port may be in use, most likely by a
        // running robotsd.
        let ip = address.get_ref().ip();
        std::net::UdpSocket::bind((ip, 0)).is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
    };
    listeners.chain(admin).filter(is_foreign).map(|address| {
        let ip = address.get_ref().ip();
        let all = if ip.is_ipv4() { "0.0.0.0" } else { "::" };
        let message = format!("this machine does not have the address {ip}, so the listener cannot be opened");
        address.fault(message).help(format!("write an address of this machine, or {all:?} for all of its addresses"))
    })
}

/// Finds networks in `trusted_proxies` that contain a large part of the internet.
fn open_networks(file: &RawConfig) -> impl Iterator<Item = Fault> {
    let networks = file.listener.iter().flat_map(|listener| &listener.trusted_proxies);
    networks.filter(|network| is_open(network.get_ref())).map(|network| {
        let message = format!(
            "{network:?} contains public networks, so every client in these networks can pretend to be a proxy, and \
             claim any client address, scheme and host",
            network = network.get_ref()
        );
        network.fault(message).help("list only the addresses of your own proxies".to_owned())
    })
}

/// Finds decision listeners whose clients can evade all rules by sending an unknown `Host`, because
/// no site serves every host.
fn open_hosts(file: &RawConfig) -> impl Iterator<Item = Fault> {
    let is_named = |site: &Spanned<RawSite>| {
        let hosts = &site.get_ref().hosts;
        !hosts.is_empty() && hosts.iter().all(|host| host.get_ref() != "*")
    };
    let are_all_named = !file.site.is_empty() && file.site.iter().all(is_named);
    let asked = file.listener.iter().filter(|listener| listener.kind == ListenerKind::Decision);
    asked.filter(move |listener| are_all_named && listener.unknown_host.is_none()).map(|listener| {
        let message = "every site has \"hosts\", so a client can bypass all rules by sending an unknown Host, unless \
            the proxy names the site";
        let help = "write unknown_host = \"strictest\", so that the strictest site decides about unknown hosts; or \
            leave \"hosts\" of one site empty; or let the proxy reject unknown hosts, and write unknown_host = \"pass\"";
        listener.address.fault(message).help(help.to_owned())
    })
}

/// Reports whether a network is larger than the largest private networks, `10.0.0.0/8` and
/// `fc00::/7`.
fn is_open(network: &str) -> bool {
    let widest = |network: &Network| if network.first().is_ipv4() { 8 } else { 7 };
    network.parse::<Network>().is_ok_and(|network| network.length() < widest(&network))
}

/// Finds exemptions that disable all rules, because they apply to every path or to every address.
fn everything_exempt(file: &RawConfig) -> impl Iterator<Item = Fault> {
    let is_every_path = |path: &&Spanned<String>| matches!(path.get_ref().trim_end_matches('*'), "" | "/");
    let paths = file.exempt.paths.iter().filter(is_every_path).map(|path| (path, "every path"));
    let is_every_address =
        |network: &&Spanned<String>| network.get_ref().parse::<Network>().is_ok_and(|network| network.length() == 0);
    let networks = file.exempt.cidrs.iter().filter(is_every_address).map(|network| (network, "every address"));
    paths.chain(networks).map(|(written, what)| {
        let message =
            format!("{pattern:?} exempts {what}, so no rule of a robots.txt is enforced", pattern = written.get_ref());
        written.fault(message).help("to enforce nothing, write mode = \"observe\" or \"off\"".to_owned())
    })
}
