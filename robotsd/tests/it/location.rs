//! Tests which config commands use, and where they find the admin interface, if no option specifies
//! this.

use tower_robots::agent::Registry;

use crate::harness::*;

const CONFIG: &str = "mode = \"refuse\"\ngrace = \"24h\"\nstate_dir = \"state\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                      [[site]]\nname = \"a\"\nroot = \".\"\n";
const OPEN: &str = "User-agent: *\nDisallow: /drafts/\n";

/// Returns the files in a folder that have this extension.
fn ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension() == Some(ending.as_ref())).collect()
}

#[test]
fn commands_find_the_private_socket_of_a_config_without_an_admin_table() {
    let runtime = folder(&[]);
    let [one, other] = [(); 2].map(|()| folder(&[("robotsd.toml", CONFIG), ("robots.txt", OPEN)]));
    let of_user = || {
        let mut command = robotsd();
        command.env_remove("RUNTIME_DIRECTORY").env("XDG_RUNTIME_DIR", runtime.path());
        command
    };
    let start = |folder: &Folder| Running::spawn(of_user().arg("serve").arg(folder.at("robotsd.toml")));
    let status = |arguments: &[&str]| run(of_user().arg("status").args(arguments));
    let mut first = start(&one);
    let place = runtime.at("robotsd");
    let socket = ending(&place, "sock").remove(0);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(&socket)), (0o700, 0o600));
    // A place file that an earlier process left in another runtime folder must be ignored.
    let left = folder(&[]);
    fs::write(left.at(socket.with_extension("place").file_name().unwrap()), "127.0.0.1:1").unwrap();
    let mut command = robotsd();
    command.env("RUNTIME_DIRECTORY", left.path()).env("XDG_RUNTIME_DIR", runtime.path());
    run(command.args(["status", "--config"]).arg(one.at("robotsd.toml"))).succeeded();
    let second = start(&other);
    for (folder, running) in [(&one, &first), (&other, &second)] {
        let output = status(&["--json", "--config", folder.at("robotsd.toml").to_str().unwrap()]);
        assert_eq!(output.json()["pid"], running.id());
    }
    if !Path::new("/etc/robotsd/robotsd.toml").exists() {
        let wants = [
            "/etc/robotsd/robotsd.toml: no running robotsd uses this config: give the config of a running robotsd with --config",
        ];
        assert_has(status(&[]).failed(2), &wants);
    }
    // After `su`, `XDG_RUNTIME_DIR` names another user's runtime folder, which root must not trust.
    // Only root can test this.
    if std::os::unix::fs::chown(runtime.path(), Some(1), None).is_ok() {
        one.remove("state/admin.place");
        status(&["--config", one.at("robotsd.toml").to_str().unwrap()]).failed(2);
        std::os::unix::fs::chown(runtime.path(), Some(0), None).unwrap();
    }
    // A socket file that a killed process has left must be replaced.
    first.kill();
    let first = start(&one);
    first.wait_for_event("admin-listening", |line| line["level"] == "info");
}

#[test]
fn a_runtime_folder_writable_by_others_is_not_used_and_sites_are_still_served() {
    let runtime = folder(&[]);
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", OPEN)]);
    let mut command = robotsd();
    command.env("RUNTIME_DIRECTORY", runtime.path()).arg("serve").arg(folder.at("robotsd.toml"));
    let running = Running::spawn(&mut command);
    let event = running.wait_for_event("admin-listening", |line| line["level"] == "warn");
    assert_has(message(&event), &["the runtime folder is writable by other users"]);
    assert_eq!(running.get("/robots.txt", GPTBOT).status, 200);
    assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 0);
}

/// The shipped config does not set an address in `[admin]`.
#[test]
fn commands_use_the_default_socket_even_if_the_config_is_broken() {
    let (runtime, folder) = (folder(&[]), folder(&[("robots.txt", OPEN)]));
    let config = format!("{CONFIG}[[admin.listener]]\naddress = \"127.0.0.1:0\"\naccess = \"read\"\n");
    folder.write("robotsd.toml", &config);
    let of_user = |arguments: &[&str]| {
        let mut command = robotsd();
        command.env("RUNTIME_DIRECTORY", runtime.path()).args(arguments).arg("--config").arg(folder.at("robotsd.toml"));
        command
    };
    let mut serving = of_user(&["serve"]);
    let mut running = Running::spawn(&mut serving);
    let faults = [
        config.replace("[[site]]", "[gate\n[[site]]"),
        config.replace("grace = \"24h\"", "grace = 24h"),
        config.replace("[[admin.listener]]\naddress = \"127.0.0.1:0\"", "[[admin.listener]]\naddress = \"localhost\""),
        config.replace("[[admin.listener]]", "[admin\n[[admin.listener]]"),
    ];
    for fault in &faults {
        folder.write("robotsd.toml", fault);
        let status = || run(&mut of_user(&["status"]));
        wait_until("the fault", || status().out.contains("CONFIG REJECTED"));
        status().ends_with(1);
        run(&mut of_user(&["enforce", "off"])).succeeded();
        run(&mut of_user(&["enforce", "on"])).succeeded();
    }
    running.kill();
    for fault in &faults {
        folder.write("robotsd.toml", fault);
        let said = run(&mut of_user(&["status"])).failed(2);
        assert_has(&said, &["no running robotsd uses this config", "its admin interface with --admin PLACE"]);
        // The command changes the switch in the state directory. The lock of that directory shows
        // that no process uses it.
        let said = unfolded(&run(&mut of_user(&["enforce", "off"])).succeeded());
        assert_has(&said, &["is switched off in", "takes effect at the next start"]);
    }
    // A held lock shows that a process runs, although its address is unknown.
    folder.write("robotsd.toml", &config);
    // The killed process has left its files behind.
    let places = || ending(runtime.path(), "place").into_iter().chain([folder.at("state/admin.place")]);
    let remove_places = || places().filter(|place| place.exists()).for_each(|place| fs::remove_file(place).unwrap());
    remove_places();
    let mut running = Running::spawn(&mut serving);
    let has_left_places = || places().count() == 2 && places().all(|place| place.exists());
    wait_until("the files that say where its admin interface is", has_left_places);
    remove_places();
    let said = run(&mut of_user(&["enforce", "off"])).failed(2);
    assert_has(&said, &["its admin interface with --admin PLACE. ", "has the state directory open"]);
    running.kill();
}

/// In a container, the file system may be read-only, except for the volume with the state.
#[test]
fn commands_find_the_admin_interface_through_the_state_directory_without_a_runtime_folder() {
    let runtime = folder(&[]);
    fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let config = format!("{CONFIG}[admin]\naddress = \"127.0.0.1:0\"\n");
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", OPEN)]);
    let of_user = |arguments: &[&str]| {
        let mut command = robotsd();
        command.env("RUNTIME_DIRECTORY", runtime.path()).args(arguments).arg("--config").arg(folder.at("robotsd.toml"));
        command
    };
    let mut running = Running::spawn(&mut of_user(&["serve"]));
    run(&mut of_user(&["status"])).succeeded();
    folder.write("robotsd.toml", config.replace("mode = \"refuse\"", "mode = \"refuze\""));
    run(&mut of_user(&["enforce", "off"])).succeeded();
    // After a kill, no request may be sent, because another process may have the address by now.
    running.kill();
    assert!(folder.at("state/admin.place").exists());
    assert_has(run(&mut of_user(&["status"])).failed(2), &["no running robotsd uses this config"]);
    // Without a state directory, only a person can know the address.
    folder.write("robotsd.toml", config.replace("state_dir = \"state\"\n", ""));
    let mut running = Running::spawn(&mut of_user(&["serve"]));
    let warning = running.wait_for_event("admin-listening", |line| line["level"] == "warn");
    let named = format!("commands find this process only with --admin {} or ROBOTSD_ADMIN", running.admin());
    assert_has(message(&warning), &["the runtime folder is writable by other users", &named]);
    running.kill();
    // A socket that the config sets is found without a place file.
    folder.write(
        "robotsd.toml",
        format!("{}[admin]\nsocket = \"admin.sock\"\n", CONFIG.replace("state_dir = \"state\"\n", "")),
    );
    let mut running = Running::spawn(&mut of_user(&["serve"]));
    let warning = running.wait_for_event("admin-listening", |line| line["level"] == "warn");
    assert_has(message(&warning), &["commands find this process only with --config, --admin "]);
    run(&mut of_user(&["enforce", "off"])).succeeded();
    running.kill();
    assert_has(run(&mut of_user(&["status"])).failed(2), &["no running robotsd uses this config"]);
}

#[test]
fn the_admin_interface_is_chosen_by_option_config_or_environment_in_this_order() {
    let config = format!("{CONFIG}[admin]\naddress = \"127.0.0.1:0\"\n");
    let [one, other] = [(); 2].map(|()| folder(&[("robotsd.toml", &*config), ("robots.txt", OPEN)]));
    let [first, second] = [&one, &other].map(Folder::start);
    let path = one.at("robotsd.toml").display().to_string();
    let (at_first, at_second) = (first.admin().to_string(), second.admin().to_string());
    for (arguments, environment, want) in [
        (&["--admin", &*at_first][..], Some(&*at_second), &first),
        (&["--config", &path], Some(&*at_second), &first),
        (&[], Some(&*at_second), &second),
        (&["--config", &path], Some("no place"), &first),
    ] {
        let mut command = robotsd();
        command.args(["status", "--json"]).args(arguments).envs(environment.map(|place| ("ROBOTSD_ADMIN", place)));
        let status = run(&mut command);
        assert_eq!(status.json()["pid"], want.id(), "{arguments:?} {environment:?}");
    }
    let said = run(robotsd().arg("status").env("ROBOTSD_ADMIN", "no place")).failed(2);
    assert_has(&said, &["ROBOTSD_ADMIN: \"no place\" is not the place of an admin interface"]);
}

#[test]
fn a_config_is_found_by_option_argument_or_environment() {
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", OPEN)]);
    let path = folder.at("robotsd.toml");
    for command in [
        robotsd().args(["config", "check", "--config"]).arg(&path),
        robotsd().args(["config", "check"]).arg(&path),
        robotsd().args(["config", "check"]).env("ROBOTSD_CONFIG", &path),
    ] {
        let out = run(command).succeeded();
        assert!(out.starts_with(&path.display().to_string()));
    }
    // If a command's settings do not come from its arguments, its output must contain their source.
    let robots = folder.at("robots.txt");
    let quiet = run(robotsd().arg("check").arg(&robots));
    assert!(!quiet.error.contains("using the settings"));
    let said = run(robotsd().arg("check").arg(&robots).env("ROBOTSD_CONFIG", &path));
    let want = format!("using the settings of {} (ROBOTSD_CONFIG)", path.display());
    assert!(said.error.contains(&want));
    // The site determines the file. The config is found as the help of `--site` describes.
    let of_site = run(robotsd().args(["check", "--format", "json", "--site", "a"]).env("ROBOTSD_CONFIG", &path));
    assert!(of_site.code == Some(0) && of_site.error.contains(&want), "{of_site:?}");
    let missing = run(robotsd().args(["check", "--site", "other"]).env("ROBOTSD_CONFIG", &path)).failed(2);
    assert_has(&missing, &["there is no site \"other\": the sites are \"a\""]);
    // A site that is not in the config is an error. Otherwise, another robots.txt would be edited.
    for command in [&["edit", "--disallow", "GPTBot"][..], &["explain", "--user-agent", "GPTBot", "/"], &["check"]] {
        run(folder.robotsd().args(command).args(["--site", "other"])).failed(2);
    }
    assert_eq!(folder.read("robots.txt"), OPEN);
}

#[test]
fn accept_without_a_hash_shows_the_pending_version_only() {
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", OPEN)]);
    let running = folder.start();
    let accept = |site: &str, code: i32| {
        let accepting = || Some(folder.with_config(&["accept", site])).filter(|ended| ended.code == Some(code));
        wait_for("an answer to accept", accepting).out
    };
    assert_eq!(accept("a", 0), "site a: no version is pending\n");
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    running.event("gated");
    assert_has(accept("a", 1), &["everyone is blocked", "robotsd accept a "]);
    assert_eq!(running.get("/robots.txt", GPTBOT).body, OPEN);
    accept("b", 2);
}

#[test]
fn unintended_settings_cause_a_warning_with_their_line() {
    let config = format!(
        "{CONFIG}[site.modes]\n\"agent:GTPBot\" = {{ mode = \"tag\", until = 2020-01-01 }}\n\
         [agents]\nignore = [\"Gogglebot\", \"Googlebot\", \"HouseBot\"]\n"
    )
    .replace("grace = \"24h\"", "grace = \"0s\"");
    let robots = "User-agent: HouseBot\nDisallow: /drafts/\n";
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", robots)]);
    let said = folder.configured(["config", "check"]).ends_with(0).error;
    let said = said.replace(&format!("{}/", folder.path().display()), "");
    let wants = [
        "note: the site \"a\" refuses requests without a grace period: ",
        "warning: no crawler is called \"GTPBot\", so this entry only affects requests that contain exactly this name\n  --> robotsd.toml:10:1\n",
        "= help: did you mean \"GPTBot\"?",
        "warning: this override has expired and no longer has any effect\n  --> robotsd.toml:10:42\n",
        "warning: no crawler is called \"Gogglebot\", so this entry only affects requests that contain exactly this name\n  --> robotsd.toml:12:11\n",
        "= help: did you mean \"Googlebot\"?",
    ];
    assert_has(&said, &wants);
    // The robots.txt names this crawler.
    assert_lacks(&said, &["HouseBot\", so"]);
    assert_eq!(said.matches("warning: ").count(), 3, "{said}");
    let running = folder.start();
    running.wait_for_message("config-warning", "Gogglebot");
}

#[test]
fn evidence_without_an_effect_causes_a_warning() {
    let google = Registry::builtin().crawler("Googlebot").unwrap().ranges[0].clone();
    let list = |url: &str| format!("[[identity.list]]\nurl = \"{url}\"\npath = \"list.json\"\n");
    let lists = list(&google) + &list(&google.replace(".json", ".jsno")) + &list("https://lists.example/a.json");
    let identity = "[identity]\nimpostors = \"refuse\"\nrdns = false\n";
    let config = format!("{CONFIG}{identity}{lists}");
    let none = format!("{CONFIG}[agents]\nregistry_extra = \"crawlers.toml\"\n{identity}");
    for (config, wants) in [
        (
            &config,
            &[
                "so this copy of the list has no effect",
                "= help: did you mean \"https://",
                "= help: `robotsd status --json` shows the URL",
            ][..],
        ),
        (&none, &["warning: impostors cannot be recognised: "][..]),
    ] {
        let files =
            [("robotsd.toml", &**config), ("robots.txt", OPEN), ("crawlers.toml", &super::identity::crawlers())];
        let folder = folder(&files);
        folder.write("list.json", r#"{"prefixes": [{"ipv4Prefix": "8.8.8.0/24"}]}"#);
        let said = folder.configured(["config", "check"]).error;
        assert!(wants.iter().all(|want| said.contains(want)), "{said}");
        let copies = said.matches("so this copy of the list has no effect").count();
        assert_eq!(copies, if wants.len() > 1 { 2 } else { 0 }, "{said}");
    }
}
