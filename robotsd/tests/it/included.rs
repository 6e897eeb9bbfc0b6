//! Tests site files that a config includes. A bad file must not affect other files, a host must
//! belong to its first owner, and paths must stay in the folder of the file.

use crate::harness::*;

const HEAD: &str = "include = [\"sites.d/*.toml\"]\nmode = \"refuse\"\nstate_dir = \"state\"\n\
    [admin]\naddress = \"127.0.0.1:0\"\nsocket = \"admin.sock\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n";

/// Returns a site with a robots.txt of its own, which disallows `/private/`.
fn site(name: &str, host: &str) -> String {
    format!(
        "[[site]]\nname = {name:?}\nhosts = [{host:?}]\nroot = \".\"\nrobots.text = \"\"\"\nUser-agent: *\n\
         Disallow: /private/{name}\n\"\"\"\n"
    )
}

/// Returns a file with one site that has the same name as the file.
fn file(name: &str) -> String {
    site(name, &format!("{name}.example"))
}

/// Returns the robots.txt of a host; `None` if no site has the host.
fn served(running: &Running, host: &str) -> Option<String> {
    let answer =
        running.send(format!("GET /robots.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes());
    (answer.status == 200).then_some(answer.body)
}

fn is_of(running: &Running, host: &str, name: &str) -> bool {
    served(running, host).is_some_and(|robots| robots.contains(&format!("/private/{name}\n")))
}

fn ready(running: &Running, query: &str) -> (u16, String) {
    let answer = running.ask_admin(&format!("GET /readyz{query}"));
    (answer.status, answer.body)
}

fn refused(folder: &Folder) -> Value {
    folder.run(["status", "--json", "--config", "robotsd.toml"]).json()["config"]["refused"].take()
}

fn reload(running: &Running, code: i32) -> String {
    running.command(&["reload"]).ends_with(code).out
}

#[test]
fn included_files_are_added_changed_and_removed_without_a_restart() {
    let (folder, running) = serving(&[
        ("robotsd.toml", HEAD),
        ("sites.d/a.toml", &file("a")),
        // These two files are not read: the draft of an editor, and a file with another extension.
        ("sites.d/.b.toml", "broken ="),
        ("sites.d/b.toml~", "broken ="),
    ]);
    assert!(is_of(&running, "a.example", "a"));
    assert_eq!(served(&running, "b.example"), None);
    // The file is replaced atomically, because half a file would be rejected.
    folder.replace("sites.d/b.toml", file("b"));
    wait_until("a new file", || is_of(&running, "b.example", "b"));
    folder.replace("sites.d/a.toml", file("a").replace("/private/a", "/private/other"));
    wait_until("a changed file", || is_of(&running, "a.example", "other"));
    folder.remove("sites.d/b.toml");
    wait_until("a file that is gone", || served(&running, "b.example").is_none());
    // Even the last file may be removed, because more files may be added later.
    folder.remove("sites.d/a.toml");
    wait_until("the last file that is gone", || served(&running, "a.example").is_none());
    assert_eq!(running.events("config-rejected"), 0);
    assert_eq!(refused(&folder), Value::Null);
}

#[test]
fn an_include_pattern_does_not_include_the_config_itself() {
    let config = HEAD.replace("sites.d/*.toml", "*.toml");
    let folder = folder(&[("robotsd.toml", &config), ("a.toml", &file("a"))]);
    assert_has(folder.run(["config", "check", "robotsd.toml"]).succeeded(), &["sites: 1"]);
}

#[test]
fn a_broken_included_file_is_reported_and_the_last_good_copy_stays_in_use() {
    let (folder, mut running) =
        serving(&[("robotsd.toml", HEAD), ("sites.d/a.toml", &file("a")), ("sites.d/b.toml", &file("b"))]);
    wait_until("the copies", || folder.at("state/include.json").is_file());
    assert_eq!(ready(&running, "?require=sites,config"), (200, "ready\n".to_owned()));
    for (broken, place, why) in [
        (format!("{}oops\n", file("b")), "b.toml:9:", ""),
        (format!("{}[admin]\n", file("b")), "b.toml:9:", "a file of sites has no key \"admin\""),
        (format!("mode = \"off\"\n{}", file("b")), "b.toml:1:1", "a file of sites has no key \"mode\""),
        (file("b").replace("root = \".\"", "root = \"gone\""), "b.toml:4:8", "is not a folder"),
        (format!("{}[site.rate]\nmode = \"no\"\n", file("b")), "b.toml:10:8", "is not a value of \"mode\""),
        ("site = [{ name = \"b\", root = \".\" }]".to_owned(), "b.toml:1:", "[[site]]"),
    ] {
        folder.replace("sites.d/b.toml", &broken);
        folder.replace(
            "sites.d/a.toml",
            file("a").replace("private/a", &format!("private/a{}", place.len() + why.len())),
        );
        let said = reload(&running, 1);
        assert_has(&said, &["config: partly: ", place, why, "the last good copy of this file is used instead"]);
        assert!(is_of(&running, "b.example", "b"), "{broken}");
        assert!(is_of(&running, "a.example", &format!("a{}", place.len() + why.len())), "{broken}");
        // All reports must have the same text.
        let reports = refused(&folder);
        let report = row(&reports, "path", folder.at("sites.d/b.toml").to_str().unwrap());
        let said = report["why"].as_str().unwrap();
        assert_has(said, &[place, why, "the last good copy of this file is used instead"]);
        assert_eq!(report["is_kept"], true);
        running.wait_for_event("config-rejected", |line| message(line) == said);
        assert_has(ready(&running, "").1, &["an included file of the config has been rejected since 20", place]);
        assert_eq!(ready(&running, "?require=sites,config").0, 200);
        assert_has(unfolded(&folder.with_config(&["status"]).ends_with(1).out), &["FILE REFUSED since 20", place]);
        let checked = folder.configured(["config", "check"]).ends_with(2);
        assert_has(&checked.error, &[place, why, "the last good copy of this file is used instead"]);
        assert_has(
            &checked.out,
            &["can be served, but without the changes in included files with errors: 1 file", "sites: 2"],
        );
    }
    assert_has(running.ask_admin("GET /metrics").body, &["\nrobotsd_config_refused_files 1\n"]);

    // A new process cannot use the broken file, and uses the saved copy.
    running.end();
    let running = folder.start();
    assert!(is_of(&running, "b.example", "b"));
    assert_eq!(ready(&running, "?require=sites").0, 200);
    running.wait_for_message("config-rejected", "b.toml:1:");
    folder.replace("sites.d/b.toml", file("b").replace("private/b", "private/mended"));
    running.wait_for_message("config", "b.toml: the included file is valid again");
    wait_until("the mended file", || is_of(&running, "b.example", "mended"));
    wait_until("that all is well", || folder.with_config(&["status"]).code == Some(0));
}

#[test]
fn a_first_start_with_broken_included_files_serves_the_others_and_is_not_ready() {
    let config = HEAD.replace("state_dir = \"state\"\n", "");
    let (folder, running) = serving(&[
        ("robotsd.toml", &config),
        ("sites.d/a.toml", &file("a")),
        ("sites.d/b.toml", "[[site]]\nname = 1\n"),
        // If two files contain the same new host, neither may get it.
        ("sites.d/c.toml", &format!("{}{}", file("c"), site("c2", "Shared.example."))),
        ("sites.d/d.toml", &format!("{}{}", file("d"), site("d2", "shared.example"))),
    ]);
    assert!(is_of(&running, "a.example", "a"));
    for host in ["b.example", "c.example", "d.example", "shared.example"] {
        assert_eq!(served(&running, host), None, "{host}");
    }
    assert_eq!(ready(&running, "").0, 200);
    let (status, body) = ready(&running, "?require=sites");
    assert_eq!(status, 503);
    assert_has(
        &body,
        &[
            "b.toml:2:8",
            "c.toml:11:10",
            "d.toml:11:10",
            "the sites in this file are not served",
            "so both files are rejected",
        ],
    );
    assert_eq!(refused(&folder).as_array().unwrap().len(), 3);
    // One of the two files gives up the host.
    folder.replace("sites.d/d.toml", file("d"));
    wait_until("both", || is_of(&running, "shared.example", "c2") && is_of(&running, "d.example", "d"));
    folder.replace("sites.d/b.toml", file("b"));
    wait_until("all are there", || ready(&running, "?require=sites").0 == 200);
    // A file that a running process cannot use must not take the process out of rotation.
    folder.write("sites.d/e.toml", "broken");
    running.wait_for_message("config-rejected", "e.toml:1:");
    assert_eq!(ready(&running, "?require=sites").0, 200);
}

#[test]
fn a_site_name_or_host_belongs_to_the_file_that_contained_it_first() {
    let own = format!("{HEAD}{}", site("main", "main.example"));
    let (folder, running) = serving(&[("robotsd.toml", &own), ("sites.d/m.toml", &file("m"))]);
    wait_until("the copies", || folder.at("state/include.json").is_file());
    // Two new files claim the host. One sorts before the owner's file, and one after it.
    for (name, claims, why) in [
        ("a", site("a", "m.example"), "the host \"m.example\" belongs to"),
        ("z", site("z", "M.EXAMPLE."), "the host \"M.EXAMPLE.\" belongs to"),
        ("y", site("m", "y.example"), "the name \"m\" belongs to"),
        ("x", site("x", "main.example"), "the host \"main.example\" belongs to"),
    ] {
        folder.write(format!("sites.d/{name}.toml"), claims);
        assert_has(reload(&running, 1), &[why]);
        running.wait_for_event("config-rejected", |line| {
            message(line).contains(&format!("/{name}.toml:")) && message(line).contains(why)
        });
        assert!(is_of(&running, "m.example", "m") && is_of(&running, "main.example", "main"), "{name}");
        folder.remove(format!("sites.d/{name}.toml"));
    }
    // A new site in the config itself must not get the host either.
    folder.configure(format!("{own}{}", site("new", "m.example")));
    running.wait_for_message("config-rejected", "robotsd.toml:19:10: the host \"m.example\" belongs to");
    assert!(is_of(&running, "m.example", "m"));
    folder.configure(&own);
    // The site moves from one file to another, and keeps its name. Both files are replaced
    // atomically.
    folder.write("sites.d/n.toml", file("m").replace("private/m", "private/n"));
    running.wait_for_message("config-rejected", "n.toml:2:8");
    folder.replace("sites.d/m.toml", file("q"));
    wait_until("the move", || is_of(&running, "m.example", "n") && is_of(&running, "q.example", "q"));
    // The owner must keep the host, although its file is broken now.
    folder.replace("sites.d/n.toml", "broken");
    folder.write("sites.d/a.toml", site("a", "m.example"));
    running.wait_for_message("config-rejected", "a.toml:3:10: the host \"m.example\" belongs to");
    assert!(is_of(&running, "m.example", "n"));
}

#[test]
fn a_host_belongs_to_its_file_with_every_port_and_in_every_spelling() {
    let own = format!("{HEAD}{}{}", site("main", "main.example"), site("address", "127.0.0.1"));
    let hosts =
        ["b.example", "m\u{fc}nchen.example", "[2001:db8::1]", "*.w.example", "p.example:8080", "p.example:8081"];
    let team: String = hosts.iter().zip('a'..).map(|(host, name)| site(&format!("m{name}"), host)).collect();
    let (folder, running) = serving(&[("robotsd.toml", &own), ("sites.d/m.toml", &team)]);
    wait_until("the copies", || folder.at("state/include.json").is_file());
    for (claimed, owner, owned) in [
        ("main.example:22240", "robotsd.toml", "main.example"),
        ("MAIN.Example.:0080", "robotsd.toml", "main.example"),
        ("127.0.0.1:0022540", "robotsd.toml", "127.0.0.1"),
        ("b.example:80", "m.toml", "b.example"),
        ("xn--mnchen-3ya.example:443", "m.toml", "m\u{fc}nchen.example"),
        ("M\u{fc}nchen\u{3002}example:1", "m.toml", "m\u{fc}nchen.example"),
        ("[2001:DB8:0::0001]:8443", "m.toml", "[2001:db8::1]"),
        ("*.W.EXAMPLE.", "m.toml", "*.w.example"),
        ("p.example", "m.toml", "p.example:8080"),
        ("p.example:9090", "m.toml", "p.example:8080"),
    ] {
        // The order of the file names must not matter.
        for newcomer in ["sites.d/a.toml", "sites.d/z.toml"] {
            folder.write(newcomer, site("thief", claimed));
            let checked = folder.configured(["config", "check"]).ends_with(2);
            let owner = format!("/{owner} as {owned:?}, which contained it first");
            let claim = format!("the host {claimed:?} belongs to ");
            let place = format!("{newcomer}:3:10");
            assert_has(unfolded(&checked.error), &[&place, &claim, &owner]);
            assert_has(reload(&running, 1), &[&place, &claim, &owner]);
            folder.remove(newcomer);
        }
    }
    for host in ["main.example:22240", "127.0.0.1:22540", "b.example:80", "p.example:8080"] {
        let robots = served(&running, host).unwrap_or_default();
        assert!(robots.contains("/private/m") || robots.contains("/private/address"), "{host}: {robots}");
    }
    // Another port, or a host that nobody owns, must not be a conflict either.
    folder.write("sites.d/z.toml", [site("z1", "a.w.example:8080"), site("z2", "p.p.example")].concat());
    reload(&running, 0);
    assert!(is_of(&running, "a.w.example:8080", "z1") && is_of(&running, "p.p.example", "z2"));
    // Two new files with the same host must be rejected, even if they name different ports.
    folder.write("sites.d/x.toml", site("x", "new.example:8080"));
    folder.write("sites.d/y.toml", site("y", "new.example:9090"));
    let parts = ["x.toml:3:10", "y.toml as \"new.example:9090\", too", "y.toml:3:10", "so both files are rejected"];
    assert_has(reload(&running, 1), &parts);
    assert_eq!(served(&running, "new.example:8080"), None);
}

/// `tests/cases/config_mistakes.txt` contains all kinds of refused names.
#[test]
fn an_ambiguous_site_name_is_refused_in_every_file() {
    let (folder, running) = serving(&[("robotsd.toml", HEAD), ("sites.d/a.toml", &file("a"))]);
    for (name, why) in [("shop-*", "mean every site"), ("sh\u{7f}op", "invisible character")] {
        // A string in JSON has the same notation as in TOML.
        let named = site("x", "x.example").replacen("\"x\"", &json!(name).to_string(), 1).replace("\u{7f}", "\\u007f");
        folder.write("sites.d/x.toml", &named);
        let (place, refused) = ("sites.d/x.toml:2:8", "a site cannot be called");
        assert_has(unfolded(&folder.configured(["config", "check"]).ends_with(2).error), &[place, refused, why]);
        assert_has(reload(&running, 1), &[place, refused, why]);
        assert_eq!(served(&running, "x.example"), None, "{name:?}");
        folder.remove("sites.d/x.toml");
        folder.write("own.toml", [HEAD, &named].concat());
        let said = unfolded(&folder.run(["config", "check", "own.toml"]).ends_with(2).error);
        assert_has(said, &["own.toml:10:8", refused, why]);
    }
    for (number, name) in [
        "\u{43c}\u{430}\u{433}\u{430}\u{437}\u{438}\u{43d}",
        "\u{936}\u{949}\u{92a}\u{94d}\u{938}",
        "\u{e23}\u{e49}\u{e32}\u{e19}",
        "\u{645}\u{62a}\u{62c}\u{631}",
        "\u{5546}\u{5e97}",
        "b\u{fc}cher & b\u{e9}b\u{e9}",
        "Shop 1 (new)",
        "O'Neil's: all",
        "all-in",
    ]
    .into_iter()
    .enumerate()
    {
        let host = format!("n{number}.example");
        folder
            .write(format!("sites.d/n{number}.toml"), site("y", &host).replacen("\"y\"", &json!(name).to_string(), 1));
        reload(&running, 0);
        assert!(is_of(&running, &host, "y"), "{name}");
    }
}

#[test]
fn paths_in_an_included_file_cannot_leave_its_folder_even_through_links() {
    use std::os::unix::fs::symlink;

    let folder = folder(&[("robotsd.toml", HEAD), ("secret", "User-agent: *\n"), ("sites.d/ok.toml", &file("ok"))]);
    folder.write("sites.d/own.token", "t");
    folder.write("sites.d/root/robots.txt", "User-agent: *\nDisallow: /private/inside\n");
    folder.write("elsewhere/robots.txt", "User-agent: *\n");
    let link = |target: &str, name: &str| symlink(target, folder.at(name)).unwrap();
    link("../secret", "sites.d/out");
    link("root/robots.txt", "sites.d/in");
    link("../gone", "sites.d/dangling");
    link("../elsewhere", "sites.d/linked");
    folder.write("sites.d/leaking/.keep", "");
    link("../../secret", "sites.d/leaking/robots.txt");
    folder.write("elsewhere/whole.toml", file("whole"));
    link("../elsewhere/whole.toml", "sites.d/whole.toml");
    let hook = |file: &str| {
        format!(
            "robots.path = \"in\"\n[[site.robots.on_publish]]\nurl = \"https://h.example\"\nheaders = {{ Token = {{ file = \"{file}\" }} }}\n"
        )
    };
    let cases = [
        ("a", "robots.path = \"../secret\"".to_owned(), false),
        ("b", format!("robots.path = {:?}", folder.at("secret")), false),
        ("c", "robots.path = \"out\"".to_owned(), false),
        ("d", "robots.path = \"in\"".to_owned(), true),
        ("e", "robots.path = \"dangling\"".to_owned(), false),
        ("f", "robots.path = \"not-yet/robots.txt\"".to_owned(), true),
        ("g", "robots.path = \"not-yet/../../secret\"".to_owned(), false),
        ("h", hook("../secret"), false),
        ("i", hook("own.token"), true),
        ("j", "robots.path = \"in\"\nrobots.baseline = \"../secret\"".to_owned(), false),
        ("k", "robots.path = \"in\"\nrefusal.file = \"out\"".to_owned(), false),
        ("l", "robots.path = \"root/../in\"".to_owned(), true),
    ];
    for (name, keys, _) in &cases {
        let host = format!("{name}.example");
        folder.write(
            format!("sites.d/{name}.toml"),
            format!("[[site]]\nname = {name:?}\nhosts = [{host:?}]\nroot = \"root\"\n{keys}\n"),
        );
    }
    for (name, root) in [("m", "linked"), ("n", "leaking"), ("o", "..")] {
        folder.write(
            format!("sites.d/{name}.toml"),
            format!("[[site]]\nname = {name:?}\nhosts = [\"{name}.example\"]\nroot = {root:?}\n"),
        );
    }
    folder.write("sites.d/p.toml", "[[site]]\nname = \"p\"\nhosts = [\"p.example\"]\nupstreams = [\"unix:/run/docker.sock\"]\nrobots.path = \"in\"\n");
    let said = folder.configured(["config", "check", "--format", "json"]).ends_with(2);
    let said = said.json_lines();
    let is_refused = |name: &str| {
        let path = folder.at(format!("sites.d/{name}.toml"));
        let is_it = |line: &&Value| line["file"] == path.to_str().unwrap() && line["severity"] == "error";
        said.iter().filter(is_it).any(|line| line["message"].as_str().unwrap().contains(" is outside "))
    };
    for (name, keys, is_right) in &cases {
        assert_eq!(is_refused(name), !is_right, "{name}: {keys}");
    }
    for name in ["m", "n", "o", "p"] {
        assert!(is_refused(name), "{name}: {said:?}");
    }
    assert!(!is_refused("ok"));
    let of_link = |line: &&Value| line["message"].as_str().unwrap().contains("whole.toml: this link leads out of");
    assert_eq!(said.iter().filter(of_link).count(), 1, "{said:?}");
    let running = folder.start();
    assert!(is_of(&running, "ok.example", "ok") && is_of(&running, "d.example", "inside"));
    assert_eq!(served(&running, "whole.example"), None);
    assert_eq!(served(&running, "c.example"), None);
}

/// The root folders of these sites are outside of the folder with the site files.
#[test]
fn paths_in_an_included_file_may_use_the_folders_in_include_roots() {
    use std::os::unix::fs::symlink;

    let folder = folder(&[
        ("www/shop/robots.txt", "User-agent: *\nDisallow: /private/shop\n"),
        ("www/robots.txt", "User-agent: *\n"),
        ("secret/robots.txt", "User-agent: *\nDisallow: /secret\n"),
    ]);
    let file = |name: &str, root: &str| {
        let text = format!("[[site]]\nname = {name:?}\nhosts = [\"{name}.example\"]\nroot = {root:?}\n");
        folder.write(format!("sites.d/{name}.toml"), text);
    };
    symlink(folder.at("secret"), folder.at("www/linked")).unwrap();
    file("shop", "../www/shop");
    file("whole", folder.at("www/shop").to_str().unwrap());
    for (name, root) in [("out", "../secret"), ("back", "../www/../secret"), ("linked", "../www/linked")] {
        file(name, root);
    }
    folder.configure(HEAD);
    let refused_by =
        |checked: &str, name: &str| checked.contains(&format!("{name}.toml: the included file is rejected"));
    let checked = folder.configured(["config", "check"]).ends_with(2).error;
    assert!(refused_by(&checked, "shop") && refused_by(&checked, "out"), "{checked}");
    assert_has(
        &checked,
        &["an included file may only use files in its own folder and in \"include_roots\" (after links are followed)"],
    );

    folder.configure(format!("include_roots = [\"www\", \".\"]\n{HEAD}"));
    let checked = folder.configured(["config", "check"]).ends_with(0).error;
    assert_has(
        &checked,
        &["robotsd.toml:1:25", "contains this config, so every included file could use the secrets of the config"],
    );

    folder.configure(format!("include_roots = [\"www\", \"gone\"]\n{HEAD}"));
    let checked = folder.configured(["config", "check"]).ends_with(2).error;
    assert!(!refused_by(&checked, "shop") && !refused_by(&checked, "whole"), "{checked}");
    for name in ["out", "back", "linked"] {
        assert!(refused_by(&checked, name), "{name}: {checked}");
    }
    assert_has(&checked, &["robotsd.toml:1:25", "the folder ", "/gone does not exist"]);
    let running = folder.start();
    assert!(is_of(&running, "shop.example", "shop") && is_of(&running, "whole.example", "shop"));
    // If the operator removes a site, it must not be served from a saved copy either.
    folder.configure(HEAD);
    let said = reload(&running, 1);
    let of_files = said.lines().filter(|line| line.starts_with("config: partly: ") && line.contains(" is outside "));
    assert_eq!(of_files.count(), 5, "{said}");
    assert_eq!(served(&running, "shop.example"), None);
}

/// One file is broken, one claims a host of another file, and one contains a path outside of its
/// folder.
#[test]
fn valid_included_files_are_reloaded_although_three_others_are_invalid() {
    let files = if is_long() { 20 } else { 10 };
    let host = |number: usize, site: usize| format!("s{site}.f{number}.example");
    let text = |number: usize, mark: &str| {
        (0..25).map(|of| site(&format!("f{number}-{of}{mark}"), &host(number, of))).collect::<String>()
    };
    let folder = folder(&[("robotsd.toml", HEAD)]);
    for number in 0..files {
        folder.write(format!("sites.d/f{number}.toml"), text(number, ""));
    }
    let running = folder.start();
    wait_until("the copies", || folder.at("state/include.json").is_file());
    folder.replace("sites.d/f3.toml", text(3, "") + "broken");
    folder.replace("sites.d/f4.toml", text(4, "") + &site("thief", &host(7, 7)));
    folder.replace("sites.d/f5.toml", text(5, "").replacen("root = \".\"", "root = \"..\"", 1));
    folder.replace("sites.d/f6.toml", text(6, "").replace("/private/", "/private/new-"));
    let said = reload(&running, 1);
    let cases =
        [("f3.toml", "f3.toml:"), ("f4.toml", "f7.toml, which contained it first"), ("f5.toml", " is outside ")];
    for (file, why) in cases {
        let start =
            format!("config: partly: {}: the included file is rejected", folder.at("sites.d").join(file).display());
        let line = said.lines().find(|line| line.starts_with(&start));
        assert_has(line.unwrap_or_else(|| panic!("{said}")), &[why]);
    }
    assert_eq!(refused(&folder).as_array().unwrap().len(), 3);
    for number in 0..files {
        let mark = if number == 6 { "new-" } else { "" };
        for of in [0, 24] {
            assert!(is_of(&running, &host(number, of), &format!("{mark}f{number}-{of}")), "{number} {of}");
        }
    }
    // In the text output, the same error in many sites must be shown once, with the names of these
    // sites.
    let same = text(9, "").replace("Disallow", "Dissallow");
    folder.replace("sites.d/f9.toml", same);
    let checked = folder.configured(["config", "check"]);
    let of_word = checked.error.matches("Dissallow").count();
    assert!(of_word <= 2, "{}", checked.error);
    assert_has(&checked.error, &["24 more sites have the same problem: f9-1, f9-2, ", "…"]);
    let github = folder.configured(["config", "check", "--format", "github"]);
    assert_has(&github.out, &["::error file=", "f3.toml,line=", "%0A24 more sites have the same problem: f9-1"]);
    let said = folder.configured(["config", "check", "--format", "json"]).json_lines();
    let grouped = said.iter().find(|line| line["sites"].as_array().is_some_and(|sites| sites.len() == 25)).unwrap();
    assert!(grouped["code"].is_string() && grouped["line"].is_u64(), "{grouped}");
}

#[test]
fn enforce_accepts_sites_of_included_files_without_a_running_server() {
    let folder = folder(&[("robotsd.toml", HEAD), ("sites.d/a.toml", &file("a"))]);
    folder.run(["enforce", "off", "--site", "a", "--config", "robotsd.toml"]).succeeded();
    let said = folder.run(["enforce", "off", "--site", "b", "--config", "robotsd.toml"]).failed(2);
    assert_has(said, &["there is no site \"b\": the sites are \"a\""]);
}
