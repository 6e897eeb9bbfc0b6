//! Tests `robotsd config`, which reports about a config before it is served.

use crate::harness::*;

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

/// Returns exit status, standard output and standard error of `robotsd config WHAT`.
fn said(what: &str, config: &str, robots: &str) -> (Option<i32>, String, String) {
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", robots)]);
    let Ended { code, out, error } = folder.configured(["config", what]);
    let text = |text: String| text.replace(folder.path().to_str().unwrap(), "");
    (code, text(out), text(error))
}

#[test]
fn a_good_config_with_good_files_can_be_served() {
    let (code, out, error) = said("check", CONFIG, "# open\n");
    assert_eq!((code, &*error), (Some(0), ""));
    assert_eq!(out, "/robotsd.toml: can be served; listeners: 1, sites: 1\n");
}

#[test]
fn a_file_that_cannot_be_served_or_has_errors_is_named() {
    let (code, _, error) = said("check", CONFIG, "<html>");
    assert_eq!(code, Some(1));
    let want = "error: site \"a\": /./robots.txt: the file is an HTML page, not a robots.txt\n --> /robotsd.toml:5:8\n";
    assert!(error.starts_with(want), "{error}");
    let (code, _, error) = said("check", CONFIG, "Disallow: /x\n");
    assert_eq!(code, Some(1));
    assert!(error.starts_with("robotsd: site \"a\": /./robots.txt:1:1: "), "{error}");
}

#[test]
fn a_config_mistake_is_reported_with_its_place() {
    let (code, out, error) = said("check", "mode = \"strict\"\n", "");
    assert_eq!((code, &*out), (Some(2), ""));
    let want = "error: \"strict\" is not a value of \"mode\": write \"off\", \"observe\", \"tag\" or \"refuse\"\n \
                --> /robotsd.toml:1:8\n  |\n1 | mode = \"strict\"\n  |        ^^^^^^^^\n";
    assert!(error.starts_with(want), "{error}");
}

#[test]
fn a_config_is_shown_with_its_defaults() {
    let (code, out, error) = said("show", CONFIG, "# open\n");
    assert_eq!((code, &*error), (Some(0), ""));
    for line in ["mode = \"observe\"", "name = \"a\"", "paths = []", "drain = \"30s\""] {
        assert!(out.lines().any(|shown| shown == line), "{line}: {out}");
    }
}

#[test]
fn the_schema_of_the_config_is_printed_for_editors() {
    let schema = folder(&[]).run(["config", "schema"]).ends_with(0).json();
    assert_eq!(schema["properties"]["mode"]["enum"][3], "refuse");
    assert_eq!(schema["properties"]["listener"]["items"]["required"][0], "address");
    let schema = |of: &str| folder(&[]).run(["config", "schema", of]).ends_with(0).json();
    let expectation = &schema("expectations")["properties"]["disallow"]["items"];
    assert_eq!(expectation["required"], json!(["agents", "paths"]));
    assert_eq!(expectation["properties"]["paths"]["items"]["type"], "string");
    assert_eq!(schema("check")["properties"]["deny"]["enum"], json!(["errors", "warnings", "notes"]));
}

#[test]
fn a_value_that_is_probably_unintended_is_a_warning() {
    let listener = |more: &str| CONFIG.replace("127.0.0.1:0\"", more);
    let user = |sites: &str| format!("{CONFIG}[[admin.user]]\nuid = 1000\nrole = \"operate\"\nsites = [{sites}]\n");
    let token = |sites: &str| {
        let hash = "0".repeat(64);
        format!(
            "{CONFIG}[[admin.token]]\nname = \"t\"\nhash = \"sha256:{hash}\"\nrole = \"operate\"\nsites = {sites}\n"
        )
    };
    for (config, want) in [
        (listener("192.0.2.7:80\""), "2:11: this machine has no address 192.0.2.7, so listening on it fails"),
        (
            format!("{CONFIG}[admin]\naddress = \"[2001:db8::7]:80\"\nreach = \"network\"\n"),
            "7:11: this machine has no address 2001:db8::7, so listening on it fails",
        ),
        (
            format!("{CONFIG}[[admin.listener]]\naddress = \"192.0.2.8:80\"\n"),
            "7:11: this machine has no address 192.0.2.8, so listening on it fails",
        ),
        (listener("127.0.0.1:0\"\ntrusted_proxies = [\"0.0.0.0/0\"]"), "3:20: \"0.0.0.0/0\" contains public networks"),
        (listener("127.0.0.1:0\"\ntrusted_proxies = [\"128.0.0.0/1\"]"), "3:20: \"128.0.0.0/1\" contains public"),
        (listener("127.0.0.1:0\"\ntrusted_proxies = [\"::/0\"]"), "3:20: \"::/0\" contains public networks"),
        (
            listener("127.0.0.1:0\"\nkind = \"decision\"")
                .replace("name = \"a\"", "name = \"a\"\nhosts = [\"a.test\"]"),
            "2:11: every site has \"hosts\", so clients can bypass all rules with another Host",
        ),
        (format!("{CONFIG}[exempt]\npaths = [\"/\"]\n"), "7:10: \"/\" exempts every path"),
        (format!("{CONFIG}[exempt]\npaths = [\"/*\"]\n"), "7:10: \"/*\" exempts every path"),
        (format!("{CONFIG}[exempt]\ncidrs = [\"0.0.0.0/0\"]\n"), "7:10: \"0.0.0.0/0\" exempts every address"),
        (user("\"gone\""), "9:10: no site is called \"gone\", so this has no effect"),
        (user("\"a\", \"gone-*\""), "9:15: no site is called \"gone-*\", so this has no effect"),
        (user("\"gone/a.test\""), "9:10: no site is called \"gone/a.test\", so this has no effect"),
        (token("[\"*\", \"b\"]"), "10:15: no site is called \"b\", so this has no effect"),
    ] {
        let (code, out, error) = said("check", &config, "# open\n");
        let (place, message) = want.split_once(": ").unwrap();
        assert!(error.starts_with(&format!("warning: {message}")), "{config}\n{error}");
        assert!(error.contains(&format!(" --> /robotsd.toml:{place}\n")), "{config}\n{error}");
        assert_eq!((code, out.contains("warnings: 1\n")), (Some(0), true), "{out}");
    }
    for config in [
        listener("0.0.0.0:0\"\ntrusted_proxies = [\"10.0.0.0/8\", \"fc00::/7\", \"192.0.2.1\"]"),
        format!("{CONFIG}[exempt]\npaths = [\"/.well-known/\", \"/$\"]\ncidrs = [\"10.0.0.0/8\"]\n"),
        user("\"a\", \"*\", \"a*\", \"a/a.test\""),
        token("[\"a\"]"),
    ] {
        assert_eq!(said("check", &config, "# open\n").2, "", "{config}");
    }
}

#[test]
fn an_admin_socket_that_cannot_be_created_is_an_error() {
    let long = "a".repeat(120);
    for (socket, want) in [
        ("none/admin.sock", "/none/admin.sock cannot be created: the folder /none does not exist"),
        (".", "/. is a folder: write the path of a socket in it, such as \"admin.sock\""),
        ("robots.txt", "/robots.txt exists and is not a socket: write another path"),
        (&*long, &*format!("/{long} is too long for the path of a socket")),
    ] {
        let config = format!("{CONFIG}[admin]\nsocket = \"{socket}\"\n");
        let (code, _, error) = said("check", &config, "# open\n");
        assert_eq!(code, Some(2), "{socket}");
        assert!(error.starts_with(&format!("error: {want}")), "{error}");
        assert_has(&error, &[" --> /robotsd.toml:7:10\n"]);
        // The setting `enabled` is off.
        let (code, _, error) = said("check", &config.replace("socket", "enabled = false\nsocket"), "# open\n");
        assert_eq!((code, &*error), (Some(0), ""), "{socket}");
    }
}

/// After a site has moved, its robots.txt often still names the old host.
#[test]
fn a_sitemap_on_another_host_than_the_sites_is_a_warning() {
    let config = format!("{CONFIG}hosts = [\"shop.test\", \"*.shop.test\"]\n");
    for (address, shown) in [
        ("http://shop.test/s.xml", None),
        ("https://www.shop.test/s.xml", None),
        ("/s.xml", None),
        ("http://shop.old.test/s.xml", Some("http://shop.old.test/s.xml")),
        ("https://cdn.test/s.xml", Some("https://cdn.test/s.xml")),
    ] {
        let robots = format!("User-agent: *\nDisallow: /x\n\nSitemap: {address}\n");
        let warning = shown.map(|url| format!("the sitemap {url} is not on a host of the site"));
        let is_said = |error: &str| match &warning {
            Some(warning) => error.contains(warning),
            None => !error.contains("is not on a host"),
        };
        let (code, _, error) = said("check", &config, &robots);
        assert_eq!((code, is_said(&error)), (Some(0), true), "{address}: {error}");
        let (_, _, elsewhere) = said("check", &format!("{config}[gate]\nsitemaps = false\n"), &robots);
        assert_lacks(elsewhere, &["is not on a host"]);
        let folder = folder(&[("robotsd.toml", &config), ("robots.txt", &robots)]);
        let ended = folder.with_config(&["check", "--site", "a"]);
        assert_eq!((ended.code, is_said(&ended.error)), (Some(0), true), "{address}: {}", ended.error);
    }
    let robots = "User-agent: *\nDisallow: /x\n\nSitemap: https://cdn.test/s.xml\n";
    assert_lacks(said("check", CONFIG, robots).2, &["is not on a host"]);
}

#[test]
fn a_file_in_place_of_the_state_directory_is_an_error() {
    for state_dir in ["robots.txt", "robots.txt/state"] {
        let config = format!("state_dir = \"{state_dir}\"\n{CONFIG}");
        let (code, out, error) = said("check", &config, "# open\n");
        assert_eq!((code, error.matches("error: ").count()), (Some(2), 1), "{error}");
        assert!(error.starts_with("error: /robots.txt is not a folder: write the path of a folder"), "{error}");
        assert_has(&error, &[" --> /robotsd.toml:1:13\n"]);
        assert_lacks(&error, &["warning: "]);
        assert_has(&out, &["cannot be served as it is written"]);
        let folder = folder(&[("robotsd.toml", &*config), ("robots.txt", "# open\n")]);
        let error = folder.configured(["serve", "--config"]).failed(2);
        assert_has(&error, &["/robots.txt is not a folder: write the path of a folder"]);
    }
}

/// The error must be reported for root, too, although root can create folders without permissions.
#[test]
fn a_state_directory_that_cannot_be_created_is_an_error() {
    let files = folder(&[("robots.txt", "# open\n")]);
    std::os::unix::fs::symlink("nowhere", files.at("leads-nowhere")).unwrap();
    std::os::unix::fs::symlink("circle", files.at("circle")).unwrap();
    let too_long = "x".repeat(300);
    let nowhere = files.at("leads-nowhere/state");
    let circle = files.at("circle");
    for (state_dir, why) in [
        ("/proc/nope", "/proc is on a kernel file system"),
        ("/proc/self/a/b", "/proc/self is on a kernel file system"),
        ("/proc/self", "/proc/self is on a kernel file system"),
        ("/sys/kernel/nope", "/sys/kernel is on a kernel file system"),
        (&too_long, "File name too long"),
        (nowhere.to_str().unwrap(), "leads-nowhere is a symbolic link whose target does not exist"),
        (circle.to_str().unwrap(), "Too many levels of symbolic links"),
    ] {
        files.configure(format!("state_dir = {state_dir:?}\n{CONFIG}"));
        let checked = files.configured(["config", "check"]).ends_with(2);
        assert_has(&checked.error, &[" cannot be a state_dir, because ", why, "robotsd.toml:1:13\n"]);
        assert_lacks(&checked.error, &["warning: "]);
        assert_has(files.configured(["serve", "--config"]).failed(2), &[" cannot be a state_dir, because ", why]);
    }
    for state_dir in ["state", "a/b/state", "."] {
        files.configure(format!("state_dir = {state_dir:?}\n{CONFIG}"));
        assert_lacks(files.configured(["config", "check"]).ends_with(0).error, &["state_dir"]);
    }
}

/// The audit file, and its folder, are created when they are needed.
#[test]
fn an_unwritable_audit_file_is_a_warning() {
    for (audit, why) in [
        ("/proc/nope/audit.jsonl", "/proc is on a kernel file system"),
        ("robots.txt/audit.jsonl", "this user cannot create a file in "),
        (".", "it is a folder"),
        ("audit.jsonl", ""),
        ("made/then/audit.jsonl", ""),
        ("robots.txt", ""),
    ] {
        let (code, _, error) = said("check", &format!("{CONFIG}[admin]\naudit = {audit:?}\n"), "# open\n");
        let is_warned = !why.is_empty();
        assert_eq!((code, error.contains("warning: ")), (Some(0), is_warned), "{audit}{error}");
        assert_eq!(error.contains(": the audit cannot be written: ") && error.contains(why), is_warned, "{error}");
    }
}

#[test]
fn a_kill_switch_lost_at_a_restart_is_a_note_if_a_site_refuses() {
    let note = "note: a site refuses requests, and \"state_dir\" is not set: a restart forgets the kill switch";
    let rate = "[site.rate]\nmode = \"refuse\"\n";
    let exception = "[site.modes]\n\"agent:GPTBot\" = \"refuse\"\n";
    for (keys, tables, is_noted) in [
        ("mode = \"refuse\"\n", "", true),
        ("mode = \"observe\"\n", "", false),
        ("mode = \"observe\"\n", "enforcement.mode = \"refuse\"\n", true),
        ("mode = \"refuse\"\n", "enforcement.mode = \"observe\"\n", false),
        ("mode = \"observe\"\n", exception, true),
        ("mode = \"refuse\"\nstate_dir = \"state\"\n", rate, false),
    ] {
        let (code, out, error) = said("check", &format!("{keys}{CONFIG}{tables}"), "# open\n");
        assert_eq!((code, error.contains(note)), (Some(0), is_noted), "{keys}{tables}{error}");
        // Warnings are only counted here. They are logged at each start.
        assert_lacks(&out, &["warnings"]);
        if is_noted {
            assert_has(&error, &["robotsd.toml:", "name = \"a\"", "= help: write state_dir = \"/var/lib/robotsd\""]);
        }
    }
}

#[test]
fn a_switch_of_an_unknown_site_is_a_warning() {
    let config = format!("state_dir = \"state\"\n{CONFIG}");
    let off = "off\n";
    let files = [
        ("robotsd.toml", &*config),
        ("robots.txt", "# open\n"),
        ("state/sites/old%20shop/enforcement", off),
        ("state/sites/on/enforcement", "on\n"),
        ("state/sites/a%2fhost.test/enforcement", off),
    ];
    let folder = folder(&files);
    let Ended { code, error, .. } = folder.configured(["config", "check"]);
    let want = "robotsd: \"old shop\" is switched off in the state directory, but no site has this name";
    assert!(error.starts_with(want), "{error}");
    assert_eq!((code, error.lines().count()), (Some(0), 1), "{error}");
    let running = folder.start();
    let line = running.event("enforcement");
    assert!(message(&line).starts_with("\"old shop\" is switched off"), "{line}");
}

/// Every part that can be checked must be checked, even if other parts have errors. If each stage
/// stopped at its first error, the errors of later stages would be hidden.
#[test]
fn all_errors_are_found_in_one_run() {
    let config = "graec = \"24h\"\nstate_dir = \"state\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
        [[listener.certificate]]\nchain = \"none.pem\"\nkey = \"none.key\"\n\
        [[site]]\nname = \"a\"\nhosts = [\"a.test\"]\nroot = \".\"\nrobots.pathh = \"a.txt\"\nrobots.max_aeg = \"soon\"\n\
        [[site]]\nname = \"b\"\nhosts = \"b.test\"\nroot = \".\"\nrobots.path = \"b.txt\"\n\
        [[site]]\nname = \"c\"\nhosts = [\"c.test\"]\nupstreams = [\"ftp://127.0.0.1\"]\nrobots.path = \"c.txt\"\n\
        [[site]]\nname = \"d\"\nhosts = [\"d.test\"]\nroot = \".\"\nrobots.path = \"none.txt\"\n\
        [site.refusal]\nfile = \"none.html\"\n\
        [site.rate]\nmode = \"refsue\"\nburst = 99999\n\
        [limits]\nfields = 0\ndrain = 5\n[exempt]\npaths = [\"/\"]\n";
    let folder = folder(&[
        ("robotsd.toml", config),
        ("a.txt", "Disallow: /x\n"),
        ("b.txt", "Disallow: /y\n"),
        ("c.txt", "<html>"),
    ]);
    let Ended { code, out, error } = folder.configured(["config", "check"]);
    assert_eq!((code, &*out), (Some(2), ""), "{error}");
    let wants = [
        "the config has no key \"graec\"",
        "did you mean \"grace\"?",
        "none.pem: No such file",
        "none.key: No such file",
        "has no key \"pathh\"",
        "has no key \"max_aeg\"",
        "\"hosts\" must be a list, not a string",
        "\"ftp://127.0.0.1\"",
        "none.html",
        "\"refsue\" is not a value of \"mode\"",
        "\"burst\" is 99999: write a number from 1 to 10000",
        "robotsd.toml:35:",
        "5 is a duration without a unit",
        "\"/\" exempts every path",
        // This site has a value that cannot be read.
        "b.txt:1:1: ",
        "c.txt: the file is an HTML page",
        "none.txt",
    ];
    assert_has(&error, &wants);
    // No error may be a mere consequence of another error. If a file is unknown, no other file may
    // be checked instead.
    assert_lacks(&error, &["matches every host", "has no backend", "there is no [[", "a.txt:1:1: "]);
    assert_eq!(error.matches("error: ").count(), 14, "{error}");

    // The value that cannot be read may name the source, so no other source may be checked instead.
    let unknown = CONFIG.replace("root = \".\"", "root = \".\"\nrobots.path = 7");
    let (code, _, error) = said("check", &unknown, "Disallow: /x\n");
    assert_eq!((code, error.matches("error").count()), (Some(2), 1), "{error}");
    // The error must not hide that the name is already used, because no value depends on that.
    for slip in ["root = 7", "root = \"none\"\nfoobar = 1"] {
        let two = format!("{CONFIG}hosts = [\"a.test\"]\n[[site]]\nname = \"a\"\nhosts = [\"b.test\"]\n{slip}\n");
        let (code, _, error) = said("check", &two, "User-agent: *\nDisallow:\n");
        assert_eq!(code, Some(2));
        assert_has(&error, &["another site has the name \"a\" already"]);
    }
    // An unusable file of crawlers must not hide it either.
    let extra = format!("agents.registry_extra = \"crawlers.toml\"\n{CONFIG}");
    let files = [("robotsd.toml", &*extra), ("robots.txt", "Disallow: /x\n"), ("crawlers.toml", "[[\n")];
    let error = crate::harness::folder(&files).configured(["config", "check"]).failed(1);
    assert_has(&error, &["crawlers.toml:1:", "robots.txt:1:1: "]);
}

/// After a syntax error, the rest of the file may mean something else than the author intended.
#[test]
fn a_syntax_error_is_reported_alone() {
    let limits = "[limits]\nfields = 0\n";
    let cases =
        ["mode \"refuse\"", "mode = refuse", "name = [\"a\"", "[gate", "[[listener]", "[[site", "[site.rate", "["];
    for case in cases {
        let config = CONFIG.replace("[[site]]", &format!("{case}\n[[site]]")) + limits;
        for command in [&["config", "check"][..], &["serve"]] {
            let folder = folder(&[("robotsd.toml", &*config), ("robots.txt", "Disallow: /x\n")]);
            let error = folder.configured(command).failed(2);
            assert_eq!((error.matches("error: ").count(), error.matches(".toml:").count()), (1, 1), "{case}: {error}");
            let line = if case.contains("= [") { " --> /robotsd.toml:4:" } else { " --> /robotsd.toml:3:" };
            assert_has(error.replace(folder.path().to_str().unwrap(), ""), &[line, "^"]);
        }
    }
    // Once the syntax is correct, all other problems must be reported together.
    let config = format!("{CONFIG}{limits}drain = 5\n");
    for command in [&["config", "check"][..], &["serve"]] {
        let folder = folder(&[("robotsd.toml", &*config), ("robots.txt", "# open\n")]);
        assert_has(folder.configured(command).failed(2), &["robotsd.toml:7:", "robotsd.toml:8:"]);
    }
}

/// If there are errors, a warning is reported only if the errors do not make it uncertain.
#[test]
fn warnings_are_reported_together_with_errors() {
    let hash = "0".repeat(64);
    let token = format!(
        "[[admin.token]]\nname = \"t\"\nhash = \"sha256:{hash}\"\nrole = \"operate\"\nsites = [\"a\", \"gone\"]\n\
         until = 2020-01-01\n"
    );
    let (ended, gone) = ("warning: this token has expired", "warning: no site is called \"gone\"");
    let misspelled = "warning: no crawler is called \"Gogglebot\"";
    for (slip, warnings, not) in [
        // The error is in a value of the site itself, in a key of the site, or elsewhere.
        ("hosts = 7\n", &[ended, gone][..], &[misspelled][..]),
        ("robots.pathh = \"robots.txt\"\n[site.enforcement]\nmodus = \"tag\"\n", &[ended, gone], &[misspelled]),
        ("upstreams = [\"ftp://127.0.0.1\"]\n", &[ended, gone], &[misspelled]),
        ("[limits]\nfields = 0\nconfigs = 1\n", &[ended, gone, misspelled], &[]),
        // The name of the site cannot be read, so it may be this one.
        ("[[site]]\nname = 7\nroot = \".\"\nhosts = [\"b.test\"]\n", &[ended], &[gone, misspelled]),
        ("[[host]]\nname = \"gone\"\n", &[ended], &[gone, misspelled]),
    ] {
        let config = format!("{CONFIG}{slip}{token}[agents]\nignore = [\"Gogglebot\"]\n");
        let (code, _, error) = said("check", &config, "# open\n");
        assert_eq!(code, Some(2), "{slip}");
        assert_has(&error, &[warnings, &["error: "]].concat());
        assert_lacks(&error, &[not, &["called \"a\""]].concat());
    }
}

/// A version that was never live must not be called live.
#[test]
fn a_baseline_served_instead_of_a_file_is_called_a_baseline() {
    for state in ["", "state_dir = \"state\"\n"] {
        let config = format!("{state}{CONFIG}").replace("root = \".\"", "root = \".\"\nrobots.baseline = \"base.txt\"");
        let files =
            [("robotsd.toml", &*config), ("robots.txt", "<html>"), ("base.txt", "User-agent: *\nDisallow: /x\n")];
        let error = folder(&files).configured(["config", "check"]).failed(1);
        assert_has(&error, &["it is the baseline of the gate, and no version that was live before is recorded"]);
        assert_lacks(&error, &["was accepted", "may be older"]);
    }
}
