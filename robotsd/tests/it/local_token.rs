//! Tests the local token. If the config has no tokens, robotsd creates the local token, and changes
//! over a loopback address require this token.

use std::os::unix::fs::{MetadataExt, chown};

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// All requests that change something. They are sent without the token.
const CHANGES: &str = "/enforce?to=off /enforce?to=off&site=shop /enforce?to=on \
    /accept?site=shop&hash=0123456789abcdef /rollback?site=shop /reload /upgrade /fleet/init";

fn config() -> Config {
    Config::refusing().keys("state_dir = \"state\"").files_of("shop").admin().robots(ROBOTS)
}

fn is_enforced(running: &Running) -> bool {
    running.request("GET", "/private/x", &[("Host", "shop.test"), ("User-Agent", GPTBOT)]).status == 403
}

fn token(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Returns the owner and the mode of a file.
fn access(path: impl AsRef<Path>) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.permissions().mode() & 0o777)
}

fn turn_off(running: &Running, token: &str) -> u16 {
    let fields = format!("Authorization: Bearer {token}\r\n");
    admin_answer_with(running.admin(), "POST /enforce?to=off", &fields).status
}

#[test]
fn a_program_without_the_local_token_can_read_but_not_change_anything() {
    let further = free();
    let config = config().tables(format!("[[admin.listener]]\naddress = \"{further}\""));
    let (folder, running) = config.start();
    let file = folder.at("state/admin.token");
    let none = "rbd_".to_owned() + &"0".repeat(72);
    for address in [running.admin(), further] {
        for path in ["/livez", "/readyz", "/status", "/metrics", "/board", "/board.json", "/history?site=shop"] {
            assert_eq!(admin_answer(address, &format!("GET {path}")).status, 200, "{path}");
            // Prometheus may also send credentials that are meant for other servers.
            let fields = "Authorization: Basic YTpi\r\n";
            assert_eq!(admin_answer_with(address, &format!("GET {path}"), fields).status, 200, "{path}");
        }
        for path in CHANGES.split(' ') {
            let answer = admin_answer(address, &format!("POST {path}"));
            assert_eq!((answer.status, answer.field("www-authenticate")), (401, Some("Bearer")), "{path}");
            let wants = ["needs the token in ", file.to_str().unwrap(), "ROBOTSD_TOKEN_FILE", "as root"];
            assert_has(answer.json()["error"].as_str().unwrap(), &wants);
            for fields in [format!("Authorization: Bearer {none}\r\n"), "Authorization: Bearer\r\n".to_owned()] {
                let answer = admin_answer_with(address, &format!("POST {path}"), &fields);
                assert_eq!(answer.status, 401, "{path} {fields}");
                assert_has(answer.json()["error"].as_str().unwrap(), &["the token in the request is not the one in "]);
            }
        }
    }
    assert!(is_enforced(&running) && !running.has_event("audit", |line| line["result"] != "refused"));
    // The token alone must not be sufficient, because a web page may make a browser send a request
    // with the token.
    let field = running.local_token();
    let page = format!("{field}Origin: http://evil.test\r\n");
    assert_eq!(admin_answer_with(further, "POST /enforce?to=off", &page).status, 403);
    let bare = format!("POST /enforce?to=off HTTP/1.1\r\nHost: {further}\r\n{field}\r\n");
    assert_eq!(exchange(further, bare).status, 403);
    assert_eq!(admin_answer_with(further, "POST /enforce?to=off", &field).status, 200);
    assert!(!is_enforced(&running));
    let done = running.wait_for_event("audit", |line| line["result"] == "done");
    assert_part(&done, &json!({"action": "enforce", "who": "local", "how": "token"}));
}

#[test]
fn an_admin_listener_with_full_access_needs_no_token() {
    let (_folder, running) =
        config().tables("[[admin.listener]]\naddress = \"127.0.0.1:0\"\naccess = \"full\"").start();
    let open = |line: &Value| message(line).starts_with("http://") && !message(line).contains("token");
    let listening = running.wait_for_event("admin-listening", open);
    let address: SocketAddr = message(&listening).trim_start_matches("http://").parse().unwrap();
    assert_eq!(admin_answer(address, "POST /enforce?to=off").status, 200);
}

#[test]
fn the_local_token_is_rejected_if_the_config_has_tokens() {
    let made = run(robotsd().args(["token", "new", "alice"])).succeeded();
    let lines: Vec<_> = made.lines().collect();
    let hash = lines.iter().find(|line| line.starts_with("hash")).unwrap();
    let tables = format!("[[admin.token]]\nname = \"alice\"\n{hash}\nrole = \"admin\"\n");
    let reading = free();
    let full = free();
    let listener = format!(
        "[[admin.listener]]\naddress = \"{reading}\"\naccess = \"token-for-changes\"\n[[admin.listener]]\n\
         address = \"{full}\"\naccess = \"full\"\n"
    );
    let (folder, running) = config().tables(tables + &listener).start();
    let local = token(folder.at("state/admin.token"));
    assert_eq!(turn_off(&running, &local), 401);
    // The command sends the local token, because it cannot know that another token is required. The
    // response must ask for that token, and a listener with full access must ignore the local one.
    let command = |place: SocketAddr| run(robotsd().args(["enforce", "on", "--admin", &place.to_string()]));
    assert_has(command(running.admin()).failed(2), &["robotsd answered 401: the request has no token"]);
    command(full).succeeded();
    // If the config allows reading to everyone, reading must still work without a token.
    assert_eq!(admin_answer(running.admin(), "GET /status").status, 401);
    assert_eq!(admin_answer(reading, "GET /status").status, 200);
    let refused = admin_answer(reading, "POST /enforce?to=off");
    assert_eq!(refused.status, 401);
    assert_has(refused.body, &["for commands, set ROBOTSD_TOKEN_FILE"]);
    assert!(is_enforced(&running));
    assert_eq!(turn_off(&running, lines[0]), 200);
}

#[test]
fn the_local_token_is_private_and_survives_reloads_upgrades_and_restarts() {
    let folder = config().folder();
    let path = folder.at("state/admin.token");
    let mut running = folder.start();
    let (first, own) = (token(&path), own_uid());
    assert!(first.starts_with("rbd_") && first.len() == 76, "{first}");
    assert_eq!(access(&path), (own, 0o600));
    folder.with_config(&["reload"]).succeeded();
    assert_eq!(turn_off(&running, &first), 200);
    running.end();
    let running = folder.start();
    assert_eq!((token(&path), access(&path)), (first.clone(), (own, 0o600)));
    assert_eq!(turn_off(&running, &first), 200);
    folder.with_config(&["upgrade"]).succeeded();
    assert_eq!(token(&path), first);
    folder.with_config(&["enforce", "on"]).succeeded();
    assert_eq!(turn_off(&running, &first), 200);
    // The new process is not a child process of the test.
    let process = folder.with_config(&["status", "--json"]).json()["pid"].as_u64().unwrap();
    signal("KILL", process.try_into().unwrap());
}

fn own_uid() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn a_local_token_that_is_damaged_or_that_others_may_know_is_replaced() {
    let folder = config().folder();
    let path = folder.at("state/admin.token");
    let mut running = folder.start();
    let mut last = token(&path);
    let damages: [(&str, &dyn Fn()); 5] = [
        ("the mode of the file is 640 instead of 600, so others may know the token", &|| mode(&path, 0o640)),
        ("the mode of the file is 604", &|| mode(&path, 0o604)),
        ("the file does not contain a complete token of robotsd", &|| fs::write(&path, &token(&path)[..75]).unwrap()),
        ("the file does not contain a complete token of robotsd", &|| fs::write(&path, "").unwrap()),
        // Only root can create this situation.
        ("the file belongs to the user with uid 1, but must belong to the user of robotsd (uid 0)", &|| {
            drop(chown(&path, Some(1), None))
        }),
    ];
    for (what, damage) in damages {
        running.end();
        damage();
        let is_other = what.contains("uid 1") && access(&path).0 != 1;
        if is_other {
            return;
        }
        running = folder.start();
        let said = running.wait_for_event("admin-listening", |line| line["level"] == "warn");
        assert_has(message(&said), &[path.to_str().unwrap(), what, "the file now contains a new token"]);
        assert_ne!(token(&path), last, "{what}");
        assert_eq!(access(&path).1, 0o600);
        assert_eq!((turn_off(&running, &last), turn_off(&running, &token(&path))), (401, 200), "{what}");
        last = token(&path);
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn commands_find_the_local_token_by_config_or_by_admin_address() {
    let folder = config().folder();
    let running = folder.start();
    let place = running.admin().to_string();
    let name = format!("localhost:{}", running.admin().port());
    for to in ["off", "on"] {
        folder.with_config(&["enforce", to]).succeeded();
        assert_eq!(is_enforced(&running), to == "on");
    }
    for place in [&place, &name] {
        run(robotsd().args(["enforce", "off", "--admin", place])).succeeded();
        run(robotsd().args(["enforce", "on"]).env("ROBOTSD_ADMIN", place)).succeeded();
        assert!(is_enforced(&running));
    }
    // As in a container, commands find the process only through the state directory.
    let elsewhere = crate::harness::folder(&[]);
    let command = |arguments: &[&str]| {
        let mut command = folder.robotsd();
        command.env("RUNTIME_DIRECTORY", elsewhere.path()).args(arguments);
        command
    };
    run(&mut command(&["enforce", "off", "--config", "robotsd.toml"])).succeeded();
    let by_place = ["enforce", "on", "--admin", &place];
    run(command(&by_place).env("ROBOTSD_CONFIG", "robotsd.toml")).succeeded();
    // A user who finds no token, or cannot read it, must learn which token is needed.
    let error = run(&mut command(&by_place)).failed(2);
    assert_has(unfolded(&error), &["robotsd answered 401", folder.at("state/admin.token").to_str().unwrap()]);
    let file = folder.at("state/admin.token");
    run(command(&by_place).env("ROBOTSD_TOKEN_FILE", &file)).succeeded();
    run(command(&by_place).env("ROBOTSD_TOKEN", token(&file))).succeeded();
}

/// A process could record its own address next to the token file of another process. A command must
/// not send the token to that address.
#[test]
fn a_command_does_not_send_a_token_of_another_user() {
    let folder = config().folder();
    let _running = folder.start();
    // Only root can try this.
    if chown(folder.at("state/admin.token"), Some(1), None).is_ok() {
        let elsewhere = crate::harness::folder(&[]);
        let mut command = folder.robotsd();
        command.env("RUNTIME_DIRECTORY", elsewhere.path()).args(["enforce", "off", "--config", "robotsd.toml"]);
        assert_has(run(&mut command).failed(2), &["robotsd answered 401"]);
    }
}

#[test]
fn without_a_usable_state_directory_the_local_token_is_in_the_runtime_folder() {
    let runtime = folder(&[]);
    let of = |folder: &Folder, arguments: &[&str]| {
        let mut command = folder.robotsd();
        command.env("RUNTIME_DIRECTORY", runtime.path()).args(arguments).args(["--config", "robotsd.toml"]);
        command
    };
    let tokens = || {
        let found = fs::read_dir(runtime.path()).unwrap().map(|entry| entry.unwrap().path());
        found.filter(|path| path.extension() == Some("token".as_ref())).collect::<Vec<_>>()
    };
    let without = Config::refusing().files_of("shop").admin().robots(ROBOTS).folder();
    without.configure(without.read("robotsd.toml").replace("state_dir = \"state\"\n", ""));
    // Commands must also work if the state directory cannot contain the token file.
    let blocked = config().folder();
    blocked.write("state/admin.token/file", "");
    for (number, folder) in [&without, &blocked].into_iter().enumerate() {
        let running = Running::spawn(&mut of(folder, &["serve"]));
        assert_eq!(tokens().len(), number + 1);
        run(&mut of(folder, &["enforce", "off"])).succeeded();
        assert!(!is_enforced(&running));
        assert!(tokens().iter().all(|token| access(token).1 == 0o600));
    }
}

#[test]
fn config_check_shows_which_listeners_accept_changes() {
    let tables = "socket = \"admin.sock\"\n[[admin.listener]]\naddress = \"127.0.0.1:9146\"\naccess = \"read\"\n\
                  [[admin.listener]]\naddress = \"127.0.0.1:9147\"\naccess = \"full\"";
    let folder = config().tables(tables).folder();
    let check = || folder.configured(["config", "check"]).succeeded();
    let wants = [
        format!("changes: through the socket {}\n", folder.at("admin.sock").display()),
        format!("changes: through 127.0.0.1:0 with the token in {}\n", folder.at("state/admin.token").display()),
        "changes: not through 127.0.0.1:9146, which is read-only\n".to_owned(),
        "changes: through 127.0.0.1:9147, by anyone who can connect, without a token\n".to_owned(),
    ];
    assert_has(check(), &wants.each_ref().map(|want| &**want));
    let token = format!("[[admin.token]]\nname = \"a\"\nhash = \"sha256:{}\"\nrole = \"admin\"\n", "0".repeat(64));
    folder.configure(folder.read("robotsd.toml") + "\n" + &token);
    assert_has(check(), &["changes: through 127.0.0.1:0 with an [[admin.token]]\n"]);
}
