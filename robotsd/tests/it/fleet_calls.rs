//! Tests commands that query each replica of a fleet. The replicas are real processes; one is
//! frozen, and one refuses the commands.

use crate::harness::*;

const ROBOTS: &str = "User-agent: *\nDisallow: /private/\n";

/// Repeats a command until it ends with this status and prints these parts, each on one line. If a
/// replica takes longer than two seconds, the output does not include this replica, but a later
/// attempt may succeed.
pub(super) fn comes_to(command: impl Fn() -> Ended, code: i32, parts: &[&str]) -> Ended {
    let began = Instant::now();
    loop {
        let ended = command();
        let said = unfolded(&ended.said());
        if ended.code == Some(code) && parts.iter().all(|part| said.contains(part)) {
            return ended;
        }
        if began.elapsed() > PATIENCE {
            assert_has(said, parts);
            return ended.ends_with(code);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a replica. `access` and `tokens` configure who may use its admin listener.
fn replica_with(access: &str, tokens: &str) -> (Folder, Running) {
    let folder = folder_with(access, tokens);
    let running = folder.start();
    (folder, running)
}

/// Creates the folder of a replica. The admin listener has a reserved port, so that no process of
/// another test answers there after a kill.
fn folder_with(access: &str, tokens: &str) -> Folder {
    let admin = free();
    let config = format!(
        "mode = \"refuse\"\nstate_dir = \"state\"\n[admin]\nsocket = \"admin.sock\"\n{tokens}[[admin.listener]]\n\
         address = \"{admin}\"\naccess = {access:?}\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\n\
         root = \".\"\n"
    );
    folder(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)])
}

fn replica(access: &str) -> (Folder, Running) {
    replica_with(access, "")
}

/// Creates the folder of an operator. No process runs in it.
fn operator(replicas: &[SocketAddr]) -> Folder {
    let replicas: Vec<_> = replicas.iter().map(ToString::to_string).collect();
    // The rest of the config is broken, but the fleet must still be reached.
    folder(&[("robotsd.toml", &format!("mode = refuse\n[fleet]\nreplicas = {replicas:?}\n"))])
}

fn fleet(operator: &Folder, arguments: &[&str]) -> Ended {
    operator.with_config(&[arguments, &["--fleet"]].concat())
}

fn page(running: &Running) -> u16 {
    running.get("/private/x", GPTBOT).status
}

#[test]
fn a_fleet_command_reports_for_each_replica_whether_it_confirmed() {
    let (first, second, third) = (replica("full"), replica("full"), replica("full"));
    let replicas = [&first, &second, &third].map(|(_, running)| running.admin());
    let operator = operator(&replicas);
    for (to, status) in [("off", 404), ("on", 403)] {
        let said = fleet(&operator, &["enforce", to]).succeeded();
        let lines: Vec<_> = said.lines().collect();
        for (line, replica) in lines.iter().zip(replicas) {
            assert_eq!(*line, format!("{replica}: enforcement of every site is switched {to}"));
        }
        assert_eq!(lines[3], "3 of 3 replicas confirmed");
        for (_, running) in [&first, &second, &third] {
            assert_eq!(page(running), status);
        }
    }
    assert_has(fleet(&operator, &["status"]).succeeded(), &["is serving, 1 site\n", "3 of 3 replicas confirmed\n"]);
    assert_has(fleet(&operator, &["reload"]).succeeded(), &[": reloaded 1 site\n", "3 of 3 replicas confirmed\n"]);

    // A frozen process accepts connections, but does not respond. A killed process accepts no
    // connections.
    second.1.freeze();
    let (third_folder, mut third) = third;
    third.kill();
    let ended = fleet(&operator, &["enforce", "off", "--json"]).ends_with(2);
    let answers = ended.json();
    assert_eq!(answers[0]["answer"]["enforcement"], "off");
    let parts = ["NOT REACHED: robotsd did not answer within 10 s", "; the request may still take effect"];
    assert_has(answers[1]["error"].as_str().unwrap(), &parts);
    assert_has(answers[2]["error"].as_str().unwrap(), &["NOT REACHED: no process listens there"]);
    for (answer, replica) in answers.as_array().unwrap().iter().zip(replicas) {
        assert_eq!(answer["replica"], replica.to_string());
    }
    assert_eq!(page(&first.1), 404);
    second.1.signal("CONT");
    drop(third_folder);
}

#[test]
fn a_replica_that_refuses_the_command_or_the_token_is_not_counted_as_confirmed() {
    let token = || {
        let said = run(robotsd().args(["token", "new", "alice"])).succeeded();
        let (token, tables) = said.split_once('\n').unwrap();
        (token.to_owned(), format!("{}\n", tables.trim().replace("\"read\"", "\"operate\"")))
    };
    let ((mine, of_mine), (_, of_other)) = (token(), token());
    let (full, other, read) =
        (replica_with("token", &of_mine), replica_with("token", &of_other), replica_with("read", &of_mine));
    let operator = operator(&[full.1.admin(), other.1.admin(), read.1.admin()]);
    let fleet = |arguments: &[&str]| {
        let arguments = [arguments, &["--fleet", "--config", "robotsd.toml"]].concat();
        run(operator.robotsd().args(arguments).env("ROBOTSD_TOKEN", &mine))
    };
    let said = fleet(&["enforce", "off", "--reason", "an outage"]).ends_with(2).out;
    assert_has(
        &said,
        &[": REFUSED: the token in the request belongs to no [[admin.token]]\n", "1 of 3 replicas confirmed\n"],
    );
    assert_eq!(said.matches(": REFUSED: ").count(), 2, "{said}");
    assert_eq!((page(&full.1), page(&other.1), page(&read.1)), (404, 403, 403));
    let audit = full.0.with_config(&["audit", "--json"]).out;
    assert_has(audit, &["alice", "an outage"]);
    // The command can read the status of one replica, and must report that enforcement is off
    // there.
    assert_has(fleet(&["status"]).ends_with(2).out, &["ENFORCEMENT IS OFF FOR EVERY SITE", "1 of 3 replicas"]);
}

#[test]
fn accept_and_rollback_apply_to_every_replica_and_rollback_needs_equal_versions() {
    let (first, second) = (replica("full"), replica("full"));
    let operator = operator(&[first.1.admin(), second.1.admin()]);
    let everyone_out = "User-agent: *\nDisallow: /\n";
    let waiting = |(folder, running): &(Folder, Running)| {
        folder.replace("robots.txt", everyone_out);
        wait_for("the version that waits", || {
            running.json(&["status"])["sites"][0]["pending"]["hash"].as_str().map(str::to_owned)
        })
    };
    let hash = waiting(&first).trim_start_matches("sha256:").to_owned();
    waiting(&second);
    assert_has(fleet(&operator, &["status"]).ends_with(1).out, &["is pending", "0 of 2 replicas confirmed"]);
    assert_has(fleet(&operator, &["accept", "shop"]).failed(2), &["--fleet needs the hash of the version to accept"]);
    // A replica that already serves the version must confirm it.
    first.1.command(&["accept", "shop", &hash[..16]]).succeeded();
    let status = fleet(&operator, &["status"]).ends_with(1).out;
    assert_has(unfolded(&status), &["site \"shop\": replicas serve different versions: "]);
    let said = fleet(&operator, &["rollback", "shop"]).failed(2);
    let parts = ["replicas serve different versions: ", "which version is unwanted: roll back each replica"];
    assert_has(said, &parts);
    let said = fleet(&operator, &["accept", "shop", &hash[..16]]).succeeded();
    assert_has(said, &["is already live\n", "2 of 2 replicas confirmed\n"]);
    fleet(&operator, &["status"]).succeeded();
    let wants = ["REFUSED: site \"shop\": "];
    assert_has(fleet(&operator, &["accept", "shop", "0123456789abcdef"]).ends_with(2).out, &wants);
    let said = fleet(&operator, &["rollback", "shop"]).succeeded();
    assert_has(said, &["is live again", "2 of 2 replicas confirmed\n"]);
}

#[test]
fn the_fleet_status_reports_different_versions_even_if_each_replica_is_healthy() {
    let (first, second) = (replica("full"), replica("full"));
    let operator = operator(&[first.1.admin(), second.1.admin()]);
    fleet(&operator, &["status"]).succeeded();
    let live = |running: &Running| running.json(&["status"])["sites"][0]["hash"].take();
    let before = live(&second.1);
    second.0.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    wait_until("the other version", || live(&second.1) != before);
    let said = fleet(&operator, &["status"]).ends_with(1).out;
    assert_has(unfolded(&said), &["site \"shop\": replicas serve different versions: ", "2 of 2 replicas confirmed"]);
}

/// Without a shared store, a decision must be made on every replica separately.
#[test]
fn suggested_commands_have_the_fleet_option_only_if_the_config_lists_replicas() {
    let (folder, running) = replica_with("full", "[fleet]\nreplicas = [\"127.0.0.1:9145\"]\n");
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    let hash = wait_for("the version that waits", || {
        running.json(&["status"])["sites"][0]["pending"]["hash"].as_str().map(|hash| hash[7..23].to_owned())
    });
    running.command(&["enforce", "off"]).succeeded();
    running.command(&["enforce", "off", "--site", "shop"]).succeeded();
    assert_has(
        running.command(&["status"]).out,
        &[
            &format!("robotsd accept shop {hash} --fleet"),
            "robotsd enforce on --fleet",
            "robotsd enforce on --site shop --fleet",
        ],
    );
    // The page must link to the board of all replicas only if the config names the replicas.
    assert_has(running.ask_admin("GET /board").body, &[">All replicas</a>"]);
    let (_folder, other) = replica_with("full", "[board]\nreplicas = 3\n");
    assert_lacks(other.ask_admin("GET /board").body, &[">All replicas</a>"]);
    other.command(&["enforce", "off"]).succeeded();
    assert_lacks(other.command(&["status"]).out, &["--fleet"]);
}

#[test]
fn a_fleet_command_reports_missing_or_invalid_replicas_in_the_config() {
    let folder = folder(&[("robotsd.toml", "mode = \"tag\"\n")]);
    assert_has(
        fleet(&folder, &["status"]).failed(2),
        &[" in [fleet] is empty, so the command cannot find the replicas of the fleet"],
    );
    folder.configure("[fleet]\nreplicas = [\"127.0.0.1:1\", \"http://web\"]\n");
    assert_has(fleet(&folder, &["enforce", "off"]).failed(2), &["robotsd.toml:2:28: \"http://web\" is not the place"]);
    folder.configure("[fleet]\nreplicas = [\"no-such-name.invalid:9145\"]\n");
    let said = fleet(&folder, &["enforce", "off"]).ends_with(2).out;
    assert_has(said, &["no-such-name.invalid:9145: NOT REACHED: ", "0 of 1 replica confirmed"]);
}

/// Requests this many disallowed pages as a crawler. Each page is requested for the first time.
fn crawl(running: &Running, times: u64) {
    (0..times).for_each(|_| assert_eq!(page(running), 403));
}

fn disallowed(board: &Value) -> u64 {
    let crawlers = board["sites"][0]["crawlers"].as_array().into_iter().flatten();
    crawlers.map(|of| of["disallowed"].as_u64().unwrap()).sum()
}

fn asked(running: &Running, target: &str, token: &str) -> Answer {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{token}Connection: close\r\n\r\n", running.admin());
    exchange(running.admin(), request)
}

#[test]
fn the_fleet_board_is_the_sum_over_the_replicas_that_respond() {
    // The first replica has two addresses, but must be counted only once.
    let other = free();
    let listener = format!("[[admin.listener]]\naddress = \"{other}\"\naccess = \"read\"\n");
    let first_folder = folder_with("full", "");
    first_folder.write("robotsd.toml", first_folder.read("robotsd.toml") + &listener);
    let first = first_folder.start();
    let ((_second_folder, second), (_third_folder, mut third)) = (replica("read"), replica("full"));
    [&first, &second, &third].into_iter().zip([1, 2, 4]).for_each(|(running, times)| crawl(running, times));
    let replicas = [first.admin(), second.admin(), other, third.admin()];
    let operator = operator(&replicas);
    let replicas = replicas.map(|replica| replica.to_string());
    first_folder.configure(first_folder.read("robotsd.toml") + &format!("[fleet]\nreplicas = {replicas:?}\n"));

    let all = "Counted: 3 of 3 replicas.";
    comes_to(|| fleet(&operator, &["board"]), 0, &[all, "7 disallowed"]);
    wait_until("the report", || {
        let board = fleet(&operator, &["board", "--json"]).json();
        board["replicas"] == 3 && board["counted_replicas"] == 3 && disallowed(&board) == 7
    });
    let said = comes_to(|| fleet(&operator, &["board", "shop", "--csv", "--period", "30d"]), 0, &[all]);
    assert!(said.out.contains(",7,") && said.error.contains(all), "{said:?}");
    // The page of a replica must show its own counts, and with `fleet=1` the counts of all
    // replicas.
    let json = |target: &str| asked(&first, target, "").json();
    assert_eq!(disallowed(&json("/board.json")), 1);
    wait_until("the sum", || disallowed(&json("/board.json?fleet=1")) == 7);
    let shown = |target: &str, part: &str| {
        wait_for(part, || Some(unfolded(&asked(&first, target, "").body)).filter(|page| page.contains(part)))
    };
    let page = shown("/board?fleet=1&period=30d", all);
    assert_has(&page, &[">This replica alone</a>", "/board.csv?period=30d&amp;fleet=1"]);
    assert_lacks(&page, &["not known yet", "since the start"]);
    // This replica has no list of replicas, so it cannot show the board of all replicas.
    let of_second = asked(&second, "/board?fleet=1", "");
    assert_eq!(of_second.status, 409, "{of_second:?}");
    assert_has(of_second.body, &[" in [fleet] is empty, so the command cannot find the replicas of the fleet"]);

    // One replica is frozen and one is killed. After two seconds, the page names both.
    second.freeze();
    third.kill();
    let page = shown("/board?fleet=1", "Counted: 1 of 3 replicas.");
    let missing = [second.admin(), third.admin()].map(|replica| format!("Not counted: {replica}: NOT REACHED: "));
    assert_has(&page, &[&missing[0], &missing[1], "robotsd did not answer within 2 s"]);
    let parts = ["Counted: 1 of 3 replicas.", &missing[0], &missing[1], "1 disallowed"];
    comes_to(|| fleet(&operator, &["board"]), 2, &parts);
    second.signal("CONT");
}

#[test]
fn the_fleet_board_reports_invalid_responses_of_replicas_and_does_not_count_them() {
    let one = replica("read");
    crawl(&one.1, 1);
    let earlier = Origin::showing(404, "{\"error\": \"there is nothing here\"}");
    let later = Origin::showing(200, "{\"sites\": []}");
    let large = Origin::showing(200, &" ".repeat((8 << 20) + 1));
    let operator = operator(&[one.1.admin(), earlier.address, later.address, large.address]);
    comes_to(
        || fleet(&operator, &["board"]),
        2,
        &[
            "1 disallowed",
            "Counted: 1 of 4 replicas.",
            &format!("Not counted: {}: REFUSED: there is nothing here.", earlier.address),
            &format!("Not counted: {}: NOT REACHED: this response does not come from robotsd: ", later.address),
            &format!("Not counted: {}: NOT REACHED: no answer: the body exceeds the size limit.", large.address),
        ],
    );
}

/// With a token for one site, the board of all replicas must show only that site, and no addresses.
#[test]
fn the_fleet_board_shows_only_the_sites_that_a_token_permits() {
    let made = || {
        let said = run(robotsd().args(["token", "new", "alice"])).succeeded();
        let (token, tables) = said.split_once('\n').unwrap();
        (token.to_owned(), tables.trim().to_owned() + "\n")
    };
    let ((reader, of_reader), (shop, of_shop)) = (made(), made());
    let of_shop = of_shop.replace("\"alice\"", "\"bob\"").replace("[\"*\"]", "[\"shop\"]");
    let places = [free(), free()];
    let tables = |at: usize| {
        format!(
            "{of_reader}{of_shop}[fleet]\nreplicas = [\"{}\", \"{}\"]\n[[site]]\nname = \"blog\"\nhosts = [\"blog.test\"]\nroot = \".\"\n\
             [[admin.listener]]\naddress = \"{}\"\naccess = \"token\"\n",
            places[0], places[1], places[at]
        )
    };
    let start = |at: usize, token: Option<&String>| {
        let folder = folder_with("token", &tables(at));
        let mut command = folder.serve();
        let running = Running::spawn(command.envs(token.map(|token| ("ROBOTSD_TOKEN", token))));
        (folder, running)
    };
    let (first, second) = (start(0, Some(&reader)), start(1, None));
    [&first, &second].into_iter().for_each(|(_, running)| {
        crawl(running, 1);
        running.request("GET", "/private/x", &[("Host", "blog.test"), ("User-Agent", GPTBOT)]);
    });
    let field = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let of_shop = |target: &str| asked(&first.1, target, &field(&shop));
    let board = wait_for("the sum", || {
        Some(of_shop("/board.json?fleet=1&site=shop").json()).filter(|board| disallowed(board) == 2)
    });
    assert_eq!((board["sites"].as_array().unwrap().len(), &board["sites"][0]["site"]), (1, &json!("shop")));
    assert_eq!(board["notes"], json!(["Counted: 2 of 2 replicas."]));
    let rows = of_shop("/board/rows?site=shop").json();
    assert_eq!(rows["sites"].as_object().unwrap().keys().collect::<Vec<_>>(), ["shop"]);
    for target in ["/board?fleet=1", "/board.json?fleet=1&site=blog", "/board/rows", "/board/rows?site=blog"] {
        assert_eq!(of_shop(target).status, 403, "{target}");
    }
    // A command must use its own token.
    let command = |words: &[&str]| {
        let words = [words, &["--fleet", "--config", "robotsd.toml"]].concat();
        run(first.0.robotsd().args(words).env("ROBOTSD_TOKEN", &shop))
    };
    comes_to(|| command(&["board", "shop"]), 0, &["Counted: 2 of 2 replicas.", "site shop: "]);
    comes_to(|| command(&["board"]), 2, &["Counted: 0 of 2 replicas.", "for every site"]);
    // Without a token, every replica refuses, including the replica that serves the page.
    let board = wait_for("a refusal of each", || {
        let board = asked(&second.1, "/board.json?fleet=1", &field(&reader)).json();
        let refused = board["notes"].to_string().matches("REFUSED: the request has no token").count();
        (refused == 2).then_some(board)
    });
    assert_eq!((&board["counted_replicas"], &board["replicas"]), (&json!(0), &json!(2)));
    let alone = asked(&second.1, "/board.json?fleet=1&site=shop", &field(&shop)).json();
    assert_eq!(alone["notes"], json!(["Counted: 0 of 2 replicas."]));
}
