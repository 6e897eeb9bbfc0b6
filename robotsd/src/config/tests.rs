use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::file::RawConfig;
use super::keys::Keys;
use super::*;
use crate::edge;
use crate::render::Colour;
use crate::render::test_cases::check_cases;
use crate::upstream;

/// Writes a config file to a temporary folder. Returns the folder and the path of the file.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("robotsd.toml");
    std::fs::write(&path, text).expect("written");
    (folder, path)
}

fn load(text: &str) -> Config {
    let (_folder, path) = file(text);
    let config = Config::load(&path).expect("a valid config");
    // Paths are relative to the folder, which differs in every test.
    Config {
        text: "".into(),
        sites: config
            .sites
            .into_iter()
            .map(|site| SiteConfig { robots: RobotsSource::File("robots.txt".into()), robots_span: 0..0, ..site })
            .collect(),
        // The path of the default socket differs in every test, too.
        admin: config.admin.filter(|admin| !admin.is_default_socket),
        ..config
    }
}

const KEYS: Keys = Keys { top: RawConfig::KEYS, name: RawConfig::NAME };

const SHIPPED: &str = include_str!("../../../config/robotsd.toml");

#[test]
fn the_shipped_config_has_the_defaults() {
    let least = r#"
        [[listener]]
        address = "127.0.0.1:8080"
        [[site]]
        name = "shop"
        upstreams = ["http://127.0.0.1:3000"]
        robots.path = "robots.txt"
    "#;
    assert_eq!(format!("{:#?}", load(SHIPPED)), format!("{:#?}", load(least)));
}

#[test]
fn the_shipped_config_names_every_key() {
    for table in KEYS.tables() {
        for key in table.keys.iter().map(|key| key.name) {
            let named = SHIPPED.lines().any(|line| {
                let line = line.trim_start_matches("# ");
                line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
                    || line.contains(&format!(" {key} = "))
                    || line
                        .split(']')
                        .next()
                        .is_some_and(|table| table.trim_start_matches('[').split('.').any(|part| part == key))
            });
            assert!(named, "config/robotsd.toml does not mention {key} ({})", table.path);
        }
    }
}

#[test]
fn a_config_that_is_shown_resolves_to_the_same_settings() {
    let (_folder, path) = file(SHIPPED);
    let shown = Config::show(&path).expect("a config that can be shown");
    assert!(shown.contains("wildcard_scope = \"declared\""), "{shown}");
    assert!(shown.contains("header_read = \"10s\""), "{shown}");
    assert_eq!(format!("{:#?}", load(&shown)), format!("{:#?}", load(SHIPPED)));
}

const MINIMAL: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nrobots.path = \"r\"\n\
                     upstreams = [\"http://127.0.0.1:1\"]\n";

#[test]
fn every_limit_has_a_config_key() {
    let upstream = upstream::UpstreamLimits::default();
    let config = load(&format!(
        "{MINIMAL}[limits]\nconnections = 7\nhandshakes = 9\ntls_handshake = \"9s\"\nfirst_byte = \"1s\"\nheader_read = \"2s\"\nkeep_alive = \"3s\"\n\
         body_idle = \"4s\"\ntunnel_idle = \"5s\"\nhead_size = \"16KiB\"\ntarget_size = 1000\nfields = 20\n\
         buffer = \"32KiB\"\nbuffer_total = 0\nstreams = 8\nwindow = \"1MiB\"\nconnect = \"6s\"\nresponse = \"7s\"\ngreeting = \"8s\"\ndrain = \"0s\"\nupgrade = \"9s\"\n"
    ));
    let seconds = Duration::from_secs;
    let want = edge::EdgeLimits {
        callers: edge::Callers::Clients,
        connections: 7,
        handshakes: NonZeroUsize::new(9).unwrap(),
        tls_handshake: seconds(9),
        first_byte: seconds(1),
        header_read: seconds(2),
        keep_alive: seconds(3),
        body_idle: seconds(4),
        tunnel_idle: seconds(5),
        head_bytes: 16 * 1024,
        target_bytes: 1000,
        fields: 20,
        streams: 8,
        window_bytes: 1024 * 1024,
        greeting: seconds(8),
        drain: seconds(0),
    };
    assert_eq!(format!("{:?}", config.edge), format!("{want:?}"));
    assert_eq!(config.connections, Some(7));
    assert_eq!(config.upgrade, seconds(9));
    let want = upstream::UpstreamLimits {
        connect: seconds(6),
        response_header: seconds(7),
        body_idle: seconds(4),
        buffer: 32 * 1024,
        buffer_total: 0,
        ..upstream
    };
    assert_eq!(format!("{:?}", config.upstream), format!("{want:?}"));
}

#[test]
fn the_config_sets_the_place_of_the_admin_interface_or_disables_it() {
    let admin = |text: &str| load(&format!("{MINIMAL}{text}")).admin;
    assert_eq!(admin(""), None, "the default interface is used");
    assert_eq!(admin("[admin]\nenabled = false\nsocket = \"a.sock\"\n"), None);
    let usual = Some(AdminSettings::default_address());
    assert_eq!(admin("[admin]\n").map(|admin| (admin.address, admin.socket)), Some((usual, None)));
    let socket = admin("[admin]\nsocket = \"/run/a.sock\"\n").unwrap();
    assert_eq!((socket.address, socket.socket), (None, Some("/run/a.sock".into())));
    let open = "[admin]\naddress = \"0.0.0.0:1\"\nreach = \"network\"\nhosts = [\"Admin.Internal\"]\n";
    let open = admin(open).unwrap();
    assert_eq!((open.address, open.hosts), (Some(([0, 0, 0, 0], 1).into()), vec!["admin.internal".to_owned()]));
}

#[test]
fn a_listener_that_others_can_reach_is_read_only_unless_configured_otherwise() {
    for (listener, access) in [
        ("address = \"127.0.0.1:1\"", AdminAccess::TokenForChanges),
        ("address = \"[::1]:1\"", AdminAccess::TokenForChanges),
        ("address = \"127.0.0.1:1\"\naccess = \"full\"", AdminAccess::Full),
        ("address = \"127.0.0.1:1\"\naccess = \"read\"", AdminAccess::Read),
        ("address = \"0.0.0.0:1\"", AdminAccess::Read),
        ("address = \"[::]:1\"", AdminAccess::Read),
        ("address = \"0.0.0.0:1\"\naccess = \"full\"", AdminAccess::Full),
    ] {
        let text = format!("{MINIMAL}[admin]\nsocket = \"a.sock\"\n[[admin.listener]]\n{listener}\n");
        let admin = load(&text).admin.unwrap();
        assert_eq!(admin.listeners[0].access(&admin.rights), access, "{listener}");
    }
    // A listener that the config opens to the network with `reach` is allowed.
    let text = format!("{MINIMAL}[admin]\naddress = \"0.0.0.0:1\"\nreach = \"network\"\n");
    let admin = load(&text).admin.unwrap();
    assert_eq!(admin.command_listener().map(|listener| listener.access(&admin.rights)), Some(AdminAccess::Full));
    // A config is rejected if clients would send tokens unencrypted.
    for access in ["token", "token-for-changes"] {
        let text = format!("{MINIMAL}[[admin.listener]]\naddress = \"0.0.0.0:1\"\naccess = {access:?}\n");
        let (_folder, path) = file(&text);
        let error = Config::load(&path).unwrap_err().to_string();
        assert!(error.contains("tokens would be sent unencrypted"), "{access}: {error}");
    }
}

#[test]
fn a_loopback_listener_requires_a_token_by_default_if_tokens_are_configured() {
    let token = format!("[[admin.token]]\nname = \"a\"\nhash = \"sha256:{}\"\nrole = \"admin\"\n", "0".repeat(64));
    for (listener, access) in [
        ("address = \"127.0.0.1:1\"", AdminAccess::Token),
        ("address = \"127.0.0.1:1\"\naccess = \"full\"", AdminAccess::Full),
        ("address = \"0.0.0.0:1\"", AdminAccess::Read),
    ] {
        let text = format!("{MINIMAL}[admin]\naddress = \"127.0.0.1:2\"\n[[admin.listener]]\n{listener}\n{token}");
        let admin = load(&text).admin.unwrap();
        assert_eq!(admin.listeners[0].access(&admin.rights), access, "{listener}");
        assert_eq!(admin.command_listener().map(|listener| listener.access(&admin.rights)), Some(AdminAccess::Token));
    }
}

#[test]
fn commands_use_the_default_place_if_only_further_admin_listeners_are_set() {
    let (_folder, path) = file(&format!("{MINIMAL}[[admin.listener]]\naddress = \"0.0.0.0:1\"\n"));
    let served = Config::load(&path).unwrap().admin.unwrap();
    let usual = AdminSettings::usual(&path);
    assert_eq!(served.listeners.len(), 1);
    assert_eq!(served.is_default_socket, usual.is_some());
    assert_eq!(served.socket, usual.and_then(|usual| usual.socket));
}

#[test]
fn the_state_directory_is_found_in_a_config_with_errors_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robotsd.toml");
    let of = |text: &str| {
        std::fs::write(&path, text).unwrap();
        StateSettings::load(&path).map(|place| (place.folder, place.sites))
    };
    let state = Some(folder.path().join("state"));
    let text =
        "state_dir = \"state\"\nmode = refuse\n[[site]]\nname = \"a\"\n[[site]]\nname = 1\n[[site]]\nname = \"c\"\n";
    assert_eq!(of(text).unwrap(), (state, vec!["a".to_owned(), "c".to_owned()]));
    assert_eq!(of("[[site]]\nname = \"a\"\n").unwrap(), (None, vec!["a".to_owned()]));
    assert!(of("state_dir = 1\n").is_err(), "the value that cannot be read may be the state directory");
}

#[test]
fn every_config_error_contains_its_position_and_the_correction() {
    check_cases("config_mistakes.txt", answers);
}

#[test]
fn no_config_error_shows_the_password_of_a_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("robotsd.toml");
    let (url, site) = ("redis://user:hunter2@cache", "[[site]]\nname = \"b\"\nroot = \".\"\n");
    let mut texts = vec![
        format!("rate = \"{url}\"\n{MINIMAL}"),
        format!("rate = [\"{url}\"]\n{MINIMAL}"),
        format!("{MINIMAL}{site}rate = \"{url}\"\n"),
        format!("{MINIMAL}{site}rate = [\"{url}\"]\n"),
        format!("{MINIMAL}[rate]\nstore = [\"{url}\"]\n"),
        format!("{MINIMAL}[rate]\nstore = [\n  \"{url}\",\n]\n"),
        format!("{MINIMAL}[rate]\nstore = {{ url = \"{url}\" }}\n"),
        format!("{MINIMAL}[rate]\nstore = {url}\n"),
        format!("{MINIMAL}[rate]\nstore: {url}\n"),
        format!("{MINIMAL}[rate]\nstore = \"{url}\n"),
        format!("{MINIMAL}[rate]\nstore = '{url}\n"),
        format!("{MINIMAL}[rate]\nstore = \"\"\"{url}\n"),
        format!("{MINIMAL}[rate]\nstore = \"redis://user:hunter2\"\n"),
        format!("{MINIMAL}[rate]\nstore = \"redis://user:hunter2@\"\n"),
        format!("{MINIMAL}[rate]\n\"{url}\" = 1\n"),
        format!("{MINIMAL}[rate.store]\n\"{url}\" = 1\n"),
        format!("[\"{url}\"]\n{MINIMAL}"),
        format!("{MINIMAL}[[rate]]\nstore = \"{url}\"\n"),
        format!("{MINIMAL}{site}[site.rate]\nmode = \"{url}\"\n"),
        format!("{MINIMAL}{site}[site.rate]\nburst = \"{url}\"\n"),
        format!("{MINIMAL}{site}[site.modes]\n\"agent:a\" = {{ rate = \"{url}\" }}\n"),
        format!("mode = \"{url}\"\n{MINIMAL}"),
    ];
    let tables = KEYS.tables();
    let keys = tables.iter().find(|table| table.path == "rate").expect("a table").keys;
    texts.extend(
        keys.iter().map(|key| key.name).map(|key| format!("{MINIMAL}[rate]\n{key} = \"{url}\"\nunknown = 1\n")),
    );
    for text in texts {
        std::fs::write(&path, &text).expect("written");
        // Some tables accept any key, so a config with a wrong key in such a table is valid and is
        // skipped.
        let Err(error) = Config::load(&path) else { continue };
        let shown = error.problems.iter().map(|problem| problem.snippet(Colour::Plain)).collect::<String>();
        let shown = format!("{error} {shown}");
        assert!(!shown.contains("hunter2"), "{text}: {shown}");
    }
}

/// Returns the messages about a config, one per line. The snippet of each message must contain a
/// caret.
fn answers(text: &str) -> String {
    let (folder, path) = file(text);
    let error = Config::load(&path).expect_err(text);
    let answer = |problem: &crate::render::FoundProblem| {
        let snippet = problem.snippet(Colour::Plain);
        assert!(text.is_empty() || snippet.contains('^'), "{snippet}");
        let line = problem.to_string().replace(&format!("{}/", folder.path().display()), "");
        format!("{}\n", line.strip_prefix("robotsd.toml:").expect("the place comes first"))
    };
    error.problems.iter().map(answer).collect()
}
