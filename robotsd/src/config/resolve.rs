//! Resolves a config file: converts its tables to the settings that the program uses.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;

use super::file::Reviewable;
use super::included::{ChosenText, Included, IncludedFile};
use super::joined_text::Parts;
use super::reader::ReadText;
use super::{
    AdminListenerConfig, AdminSettings, Config, ConfigError, Fault, Faults, FleetSettings, GoodCopies, RawAdmin,
    RawConfig, RawSite, RegistrySources, Value as _, admin, board, fleet, identity, included, listener, log, parsed,
    rate_store, reader, registry, review, site,
};
use crate::audit;
use crate::webhooks::{HookHost, HookScope};

/// A config file and the files that it includes. The files are read only once, because all
/// functions must use the same content.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    text: Arc<str>,
    included: Vec<IncludedFile>,
}

impl ConfigFile {
    /// Reads a config file and its included files. The last good copies of the included files come
    /// from `served` or, if `served` is `None`, from the state directory.
    pub(crate) fn read(path: &Path, served: Option<&GoodCopies>) -> Result<Self, ConfigError> {
        let text: Arc<str> = reader::read_text(path)?.into();
        let included = included::find(path, &text, served);
        Ok(Self { path: path.to_owned(), text, included })
    }

    /// Returns the content of the config, joined with the last good copies of its included files.
    /// The result can be compared with another config even if this config is invalid.
    pub(crate) fn text(&self) -> Arc<str> {
        included::join_copies(&self.path, &self.text, &self.included)
    }

    /// Returns the settings, or an error if the config is invalid. Relative paths are resolved
    /// against the folder of the file that contains them.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        match self.resolve_valid() {
            (Some(config), None) => Ok(config),
            (_, error) => Err(error.unwrap_or_default()),
        }
    }

    /// Returns the settings of the valid tables, and all problems. With these settings, `config
    /// check` can continue after an error.
    ///
    /// Refuses each included file that has a problem, and uses the file's last good copy instead.
    /// Repeats this until no included file has a problem.
    fn resolve_valid(&self) -> (Option<Config>, Option<ConfigError>) {
        // Nothing is appended to a config with a syntax error, such as an unclosed string, because
        // the appended text could become part of the unclosed string.
        let is_alone = self.included.is_empty() || reader::parse(&self.text).is_err();
        let files = if is_alone { &[] } else { &*self.included };
        let mut chosen: Vec<_> = files.iter().map(ChosenText::of).collect();
        loop {
            chosen.iter_mut().for_each(|chosen| chosen.examine(&self.path));
            let (text, parts) = included::join(&self.path, &self.text, &chosen);
            let ReadText { document, faults, unread, .. } = reader::read_with_faults::<RawConfig>(&text);
            let disputes = document.as_ref().map(|file| included::disputes(&file.site, &parts, files));
            let disputes = disputes.unwrap_or_default();
            let (config, mut errors) = match document {
                None => (None, parts.errors(&text, faults)),
                Some(file) => {
                    let (config, errors) = self.resolved((&text, &parts), file, faults, &unread, &disputes.places);
                    (Some(config), errors)
                }
            };
            let mut own = errors.remove(&0);
            if errors.is_empty() {
                errors = parts.errors(&text, disputes.faults);
                own = own.or(errors.remove(&0));
            }
            if errors.is_empty() {
                let config = config.map(|mut config| {
                    let patterns = std::mem::take(&mut config.included.patterns);
                    Config { included: Included::of(patterns, chosen), ..config }
                });
                return (config, own);
            }
            for (part, error) in errors {
                chosen[part - 1].refuse(&self.path, error);
            }
        }
    }

    /// Returns the settings, and the problems grouped by the index of their file. Settings with
    /// problems get their default values. Listeners with problems, and sites whose robots.txt is
    /// unknown, are left out. `faults` contains the problems that were found while reading. A
    /// problem is not returned if it is a consequence of another problem, or if its position is in
    /// `known`.
    fn resolved(
        &self,
        (text, parts): (&Arc<str>, &Parts),
        mut file: RawConfig,
        mut faults: Vec<Fault>,
        unread: &[(String, usize)],
        known: &HashSet<Range<usize>>,
    ) -> (Config, BTreeMap<usize, ConfigError>) {
        let path = &*self.path;
        let (mut found, mut bounds) = (Faults::default(), Faults::default());
        file.check_bounds(&mut bounds);
        // A site is in `file` only if its name could be read. Problems with names therefore never
        // result from unreadable keys.
        site::names(&file.site, &mut bounds);
        let of_sites: Vec<_> = file.site.iter().map(|site| [site.span(), site.get_ref().name.span()]).collect();
        let names = file.site.iter().map(|site| site.get_ref().name.get_ref().clone()).collect();
        let table_of = table_finder(text);
        let names_source = |key: &str| matches!(key, "" | ".path" | ".text" | ".url" | ".source" | ".?");
        let of_robots = unread.iter().filter(|(key, _)| key.strip_prefix("site.robots").is_some_and(names_source));
        let without_source: BTreeSet<usize> = of_robots.map(|(_, at)| table_of(*at)).collect();
        let is_source_unknown = |site: Range<usize>| without_source.contains(&table_of(site.start));
        let mut config = collect(&mut file, parts, &mut found, is_source_unknown);
        // The positions are in a hash set, because a file may have ten thousand sites, each with a
        // problem.
        let places: HashSet<_> = of_sites.as_flattened().iter().collect();
        let (mut unread_tables, mut hides_absence) = (HashMap::<_, bool>::new(), false);
        for (key, at) in unread {
            *unread_tables.entry(table_of(*at)).or_default() |= !key.ends_with('?');
            hides_absence |= key.starts_with("listener") || matches!(&**key, "site" | "site.hosts");
        }
        // A fleet without its own store uses the store of `[rate]`. If a key of `[rate]` could not
        // be read, problems with the fleet may result from this key.
        if let Some(name) = file.fleet.name.as_ref().filter(|_| unread.iter().any(|(key, _)| key.starts_with("rate"))) {
            unread_tables.insert(table_of(name.span().start), true);
        }
        found.0.retain(|fault| {
            // An unreadable key may cause an error about a missing key or table.
            let is_absence = fault.span == (0..0) || places.contains(&fault.span);
            let is_hidden =
                unread_tables.get(&table_of(fault.span.start)).is_some_and(|is_known| *is_known || is_absence);
            !(is_hidden || is_absence && hides_absence)
        });
        faults.extend(found.0.into_iter().chain(bounds.0).filter(|fault| !known.contains(&fault.span)));
        let mut errors = parts.errors(text, faults);
        for (site, raw) in config.sites.iter_mut().zip(&file.site) {
            let at = raw.span().start;
            let in_config = |fault: Fault| parts.error(text, vec![fault]);
            match site::resolve_refusal(&raw.get_ref().refusal, &file.listener, parts.folder(at), in_config) {
                Ok(refusal) => site.refusal = refusal,
                Err(of_page) => match errors.entry(parts.of(at)) {
                    Entry::Occupied(mut error) => error.get_mut().problems.extend(of_page.problems),
                    Entry::Vacant(error) => drop(error.insert(of_page)),
                },
            }
        }
        let admin = match config.admin {
            None if file.admin.is_none() => AdminSettings::usual(path),
            admin => admin.map(|admin| admin.with_default_place(path)),
        };
        let mut unread: Vec<_> = unread.iter().map(|(path, _)| path.clone()).collect();
        unread.extend((config.sites.len() < of_sites.len()).then(|| "site.?".to_owned()));
        unread.extend((config.listeners.len() < file.listener.len()).then(|| "listener.?".to_owned()));
        let reviewable = Some(Arc::new(Reviewable { file, names, unread }));
        (Config { admin, text: Arc::clone(text), reviewable, ..config }, errors)
    }
}

impl Config {
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        ConfigFile::read(path, None)?.config()
    }

    pub(crate) fn examine(path: &Path) -> (Option<Self>, Option<ConfigError>) {
        ConfigFile::read(path, None).map_or_else(|error| (None, Some(error)), |file| file.resolve_valid())
    }

    pub(crate) fn audit_place(&self) -> Option<PathBuf> {
        audit::audit_path(self.admin.as_ref().and_then(|admin| admin.audit.clone()), self.state_dir.as_deref())
    }

    /// Returns the name of this process in the audit log and in notifications.
    pub(crate) fn replica(&self) -> String {
        self.fleet.as_ref().map_or_else(audit::host_name, |fleet| fleet.replica.clone())
    }

    /// Returns the content of a valid config file with all defaults written out.
    pub(crate) fn show(path: &Path) -> Result<String, ConfigError> {
        let file = ConfigFile::read(path, None)?;
        file.config()?;
        let raw: RawConfig = reader::read(&file.text).map_err(|faults| ConfigError::at(path, &file.text, faults))?;
        toml::to_string(&raw).map_err(|error| {
            ConfigError::without_place(format!("{}: the config cannot be shown: {error}", path.display()))
        })
    }
}

/// Returns a function that finds the top-level table that contains a byte offset. The table is
/// identified by the offset after its header. A site and its subtables count as one table.
fn table_finder(text: &str) -> impl Fn(usize) -> usize + use<> {
    let is_first = |line: &str| line.starts_with('[') && line.split(']').next().is_some_and(|name| !name.contains('.'));
    let (mut end, mut headers) = (0, Vec::new());
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if is_first(line.trim_start()) {
            headers.push((start, end));
        }
    }
    move |byte| headers[..headers.partition_point(|(start, _)| *start <= byte)].last().map_or(0, |(_, end)| *end)
}

/// Resolves every table of the config, even if an earlier table has a problem.
fn collect(
    file: &mut RawConfig,
    parts: &Parts,
    faults: &mut Faults,
    is_source_unknown: impl Fn(Range<usize>) -> bool,
) -> Config {
    require_listener_and_site(file, faults);
    let folder = parts.folder(0);
    let patterns = included::patterns(&file.include, parts.path(0), faults);
    let of_admin: Vec<_> = file.admin.iter().flat_map(RawAdmin::addresses).collect();
    listener::conflicts(&file.listener, &of_admin, faults);
    let listeners = file.listener.iter().filter_map(|listener| faults.keep(listener::resolve(listener, folder)));
    let listeners: Vec<_> = listeners.collect();
    site::hosts(&file.site, faults);
    let state_dir = file.state_dir.as_ref().map(|path| folder.join(path.get_ref()));
    let admin = faults
        .keep(file.admin.as_ref().map_or(Ok(None), |settings| admin::resolve_with_certificates(settings, folder)));
    let of_admin = admin.iter().flatten().flat_map(AdminSettings::all_listeners);
    let proxy_trusting_admin: Vec<_> =
        of_admin.filter(AdminListenerConfig::trusts_itself).map(|own| own.address).collect();
    let all = site::CommonSettings {
        mode: file.mode,
        grace: file.grace.get_ref().0,
        agents: &file.agents,
        exempt: &file.exempt,
        identity: file.identity_rules(),
        check: &file.check,
        gate: &file.gate,
        listeners: &file.listener,
        proxy_trusting_admin: &proxy_trusting_admin,
        state_dir: state_dir.as_deref(),
    };
    let own = admin.iter().flatten().flat_map(AdminSettings::addresses).map(|own| (own.ip().to_string(), own.port()));
    let of_admin = own.chain(fleet::hosts(&file.fleet, faults)).collect();
    let scopes = hook_scopes(&file.hook_hosts, parts, of_admin, faults);
    let roots = included::roots(&file.include_roots, parts.path(0));
    let resolve = |site: &Spanned<RawSite>| {
        let at = site.span().start;
        let resolved = site::resolve(all, site, &scopes[parts.of(at)], faults)?;
        faults.0.extend(included::outside_robots_error(&resolved, at, parts, &roots));
        Some(resolved)
    };
    let mut sites: Vec<_> = file.site.iter().map(resolve).collect();
    let gate = faults.keep(site::resolve_gate(&file.gate));
    let identity = file.identity.as_ref().map(|identity| {
        let trusted = listeners.iter().flat_map(|listener| listener.trusted.networks.clone());
        identity::resolve(identity, trusted.collect(), folder, faults)
    });
    let notify = site::resolve_hooks(&file.notify, site::HookUse::Events, &scopes[0], faults);
    let board = faults.keep(board::resolve(&file.board));
    let rate_store = faults.keep(rate_store::resolve(&file.rate, folder));
    let of_rate = rate_store.as_ref().and_then(Option::as_ref);
    let fleet = FleetSettings::resolve(&file.fleet, of_rate, folder);
    // A fleet without its own store uses the store of `[rate]`. If there is a problem with the
    // store of `[rate]`, problems with the fleet may result from this problem.
    let is_certain = rate_store.is_some() || file.fleet.store.is_some();
    let of_fleet = if is_certain { faults.keep(fleet) } else { None };
    let limits = file.limits.resolve(faults);
    let log = faults.keep(log::resolve(&file.log, folder));
    let registry = RegistrySources::resolve(&file.agents, state_dir.as_deref(), folder, faults);
    let registry_accept = faults.keep(registry::accepted(&file.agents));
    remove_unresolved(file, &mut sites, is_source_unknown);
    Config {
        text: "".into(),
        parts: parts.clone(),
        included: Included { patterns, ..Included::default() },
        reviewable: None,
        workers: workers(file),
        state_dir,
        state_dir_span: file.state_dir.as_ref().map_or(0..0, Spanned::span),
        gate: gate.flatten(),
        listeners,
        sites: sites.into_iter().flatten().collect(),
        registry: registry.unwrap_or_default(),
        registry_accept: registry_accept.unwrap_or_default(),
        registry_extra_span: file.agents.registry_extra.as_ref().map_or(0..0, Spanned::span),
        identity: identity.flatten(),
        admin: admin.flatten(),
        notify: notify.unwrap_or_default(),
        board: board.flatten(),
        fleet: of_fleet.flatten(),
        has_replicas: !file.fleet.replicas.is_empty(),
        rate_store: rate_store.flatten(),
        unused_rate_store: review::unused_store_reason(file),
        connections: file.limits.connections(),
        edge: limits.edge,
        upgrade: file.limits.upgrade.get_ref().0,
        upstream: limits.upstream,
        log: log.unwrap_or_default(),
    }
}

fn require_listener_and_site(file: &RawConfig, faults: &mut Faults) {
    if file.listener.is_empty() {
        let fault = Fault::new(0..0, "there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\"");
        faults.push(fault);
    }
    if file.site.is_empty() && file.include.is_empty() {
        faults.push(Fault::new(
            0..0,
            "there is no [[site]]: write one with \"name\", and with \"upstreams\" or \"root\"",
        ));
    }
}

/// Removes sites from both `sites` and `file` if they have a problem or if their robots.txt is
/// unknown.
fn remove_unresolved(
    file: &mut RawConfig,
    sites: &mut [Option<site::SiteConfig>],
    is_source_unknown: impl Fn(Range<usize>) -> bool,
) {
    for (site, raw) in sites.iter_mut().zip(&file.site) {
        if is_source_unknown(raw.span()) {
            *site = None;
        }
    }
    let mut is_kept = sites.iter().map(Option::is_some);
    file.site.retain(|_| is_kept.next() == Some(true));
}

/// Returns the hosts that hooks may send requests to: one item for the hooks of the config,
/// followed by one item for the hooks of each included file.
fn hook_scopes(
    hosts: &[Spanned<String>],
    parts: &Parts,
    admin: Vec<(String, u16)>,
    faults: &mut Faults,
) -> Vec<Arc<HookScope>> {
    let listed = faults.keep_all(hosts.iter().map(parsed::<HookHost>)).unwrap_or_default();
    let scope = |(number, path): (usize, &Path)| {
        let listed = (number > 0).then(|| listed.clone());
        Arc::new(HookScope { file: path.to_owned(), listed, admin: admin.clone() })
    };
    parts.paths().enumerate().map(scope).collect()
}

fn workers(file: &RawConfig) -> NonZeroUsize {
    let usual = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    file.workers.as_ref().map_or_else(usual, |workers| *workers.get_ref())
}
