//! Tests `robotsd agents`, and an operator's own registry.

use crate::harness::*;

fn out(arguments: &[&str]) -> String {
    run(robotsd().arg("agents").args(arguments)).succeeded()
}

/// Returns the rows of the list that contain all of these words.
fn rows(words: &[&str]) -> Vec<Value> {
    run(robotsd().args(["agents", "--format", "json"]).args(words)).json_lines()
}

#[test]
fn crawlers_are_listed_and_searched() {
    let text = out(&["openai", "TRAINING"]);
    let lines: Vec<&str> = text.lines().collect();
    let want = "name    category        obeys file   obeys *  delay    operator; tokens; source";
    assert!(lines[0].starts_with(want), "{text}");
    assert!(lines[1].starts_with("GPTBot  ai-training "), "{text}");
    assert!(lines[1].contains("  OpenAI; token gptbot; https://"), "{text}");
    assert!(lines.last().unwrap().starts_with("1 of "), "{text}");
    // The crawler with exactly this name must come first.
    let text = out(&["googlebot"]);
    assert!(text.lines().count() > 3 && text.lines().nth(1).unwrap().starts_with("Googlebot "), "{text}");
    let rows = rows(&[]);
    assert!(rows.len() > 190, "{}", rows.len());
    let image = rows.iter().find(|row| row["name"] == "Googlebot-Image").unwrap();
    assert_eq!(image["tokens"], json!(["googlebot-image", "googlebot"]));
    assert!(rows.iter().any(|row| row["name"] == "Google-Extended" && row["control"] == true));
    let expected = json!(["crawl-*-*-*-*.googlebot.com", "geo-crawl-*-*-*-*.geo.googlebot.com"]);
    assert_eq!(image["rdns"], expected);
}

#[test]
fn the_filter_index_matches_search_engines_and_not_crawler_names() {
    let found = rows(&["index"]);
    assert!(found.len() > 20 && found.iter().all(|row| row["index"] == true));
    let found = rows(&["category:ai-training", "operator:openai"]);
    assert!(!found.is_empty());
    assert!(found.iter().all(|row| row["category"] == "ai-training" && row["operator"] == "OpenAI"));
    assert!(rows(&["aiwebindex"]).iter().all(|row| row["index"] == false));
}

#[test]
fn rows_show_when_they_were_checked_and_the_summary_counts_checked_rows() {
    let text = out(&["mojeekbot"]);
    assert_has(
        &text,
        &["; checked 2026-", "1 (100 %) were checked against the pages of their operators, the last on 2026-"],
    );
    let text = out(&["bravebot"]);
    assert!(!text.contains("; checked"), "{text}");
    assert!(text.ends_with("0 (0 %) were checked against the pages of their operators\n"), "{text}");
    let rows = rows(&[]);
    let checked = |name: &str| rows.iter().find(|row| row["name"] == name).map(|row| row["checked"].clone());
    assert_eq!((checked("MojeekBot"), checked("Bravebot")), (Some("2026-11-22".into()), Some(Value::Null)));
}

#[test]
fn user_agents_are_identified_from_arguments_and_standard_input() {
    let text = out(&["--identify", GPTBOT, FIREFOX]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1], "  registered GPTBot, ai-training; obeys gptbot, else *");
    assert_eq!(lines[3], "  browser; obeys no group");
    let text = out(&["--identify", "CCBot/2.0 GPTBot/1.2"]);
    let names: Vec<_> = text.lines().skip(1).filter_map(|line| line.split([' ', ',']).nth(3)).collect();
    assert_eq!(names, ["CCBot", "GPTBot"], "{text}");
    let several = &rows(&["--identify", "CCBot/2.0 GPTBot/1.2"])[0];
    assert_eq!((&several["crawler"], &several["others"][0]["crawler"]), (&"CCBot".into(), &"GPTBot".into()));
    let folder = folder(&[("robots.txt", "User-agent: House Thing\nDisallow: /\n")]);
    let robots = folder.at("robots.txt").display().to_string();
    let mut identify = robotsd();
    identify.args(["agents", "--identify", "-", "--format", "json", "--robots", &robots]);
    let answers = run_with(&mut identify, b"House Thing/2\n\n\xff\x1b[1m GPTBot").json_lines();
    assert_eq!(answers[0]["tokens"][0], "house thing");
    assert_eq!(answers[1]["class"], "empty");
    assert_eq!((&answers[2]["crawler"], &answers[2]["held_to_star"]), (&"GPTBot".into(), &true.into()));
}

#[test]
fn a_custom_registry_cannot_control_the_terminal() {
    let row = "[[crawler]]\nname = \"House\\u001bBot\"\noperator = \"\\u001b]0;x\\u0007\\nAcme\"\ncategory = \"seo\"\nsource = \"a\\u001b[2J\"\n";
    let config = Config::new().files_of("a").tables("[agents]\nregistry_extra = \"crawlers.toml\"");
    let folder = config.file("crawlers.toml", row).file("f", "User-agent: *\nDisallow:\n").folder();
    let explain = ["explain", "--config", "robotsd.toml", "--robots", "f", "--user-agent", "House\u{1b}Bot", "/x"];
    for arguments in [
        &["agents", "--registry", "crawlers.toml", "acme"][..],
        &explain,
        &[&explain[..], &["--format", "matrix"]].concat(),
        &["explain", "--robots", "f", "--user-agent", "Huose\u{1b}Bott", "/x"],
    ] {
        let text = folder.run(arguments).said();
        assert!(text.contains("\\u{1b}") && text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
    }
}

#[test]
fn a_registry_on_the_command_line_is_used_with_a_config_too() {
    let config = Config::new().files_of("a");
    let folder = config.file("crawlers.toml", "[[crawler]]\nname = \"HouseBot\"\ncategory = \"seo\"\n").folder();
    for arguments in [&["HouseBot"][..], &["--site", "a", "HouseBot"], &["--identify", "HouseBot/1.0"]] {
        let mut command = folder.robotsd();
        command.args(["agents", "--registry", "crawlers.toml"]).args(arguments);
        assert_has(run(command.env("ROBOTSD_CONFIG", "robotsd.toml")).succeeded(), &["HouseBot", "seo"]);
    }
}

#[test]
fn a_custom_registry_is_read_at_start_and_on_sighup() {
    let row = "[[crawler]]\nname = \"HouseBot\"\ncategory = \"monitoring\"\n";
    let config = Config::refusing().files_of("a").tables("[agents]\nregistry_extra = \"crawlers.toml\"");
    let config = config.robots("User-agent: *\nDisallow: /private/\n");
    let folder = config.file("crawlers.toml", format!("{row}colour = \"red\"\n")).folder();
    assert_has(run(&mut folder.serve()).failed(2), &["crawlers.toml:4:1: ", "colour"]);
    folder.write("crawlers.toml", "# none yet\n");
    let running = folder.start();
    let status = || running.get("/private/x", "HouseBot/1.0 (+https://house.test/bot)").status;
    assert_eq!(status(), 403);
    folder.replace("crawlers.toml", row);
    running.signal("HUP");
    running.event("registry");
    assert_eq!(status(), 404);
    folder.replace("crawlers.toml", "[[crawler]]\n");
    running.signal("HUP");
    let rejected = running.event("registry-rejected");
    let message = message(&rejected);
    assert!(
        message.contains("crawlers.toml:1:1: ") && message.ends_with("the previous registry stays in use"),
        "{message}"
    );
    assert_eq!(status(), 404);
}
