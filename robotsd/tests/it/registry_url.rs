//! Tests a registry that is published at a URL (`registry_url`).

use super::upstreams::secure_origin;
use crate::harness::*;

const HOUSE: &str = "[[crawler]]\nname = \"HouseBot\"\nheader = [\"House-Fetcher\"]\ncategory = \"ai-training\"\n";
const WITHOUT_GOOGLE: &str = "[[crawler]]\nname = \"Googlebot\"\nremove = true\n";
const HOUSE_FETCHER: &str = "House-Fetcher/2.0";

/// A server with a registry, and a folder whose config names the URL of that registry.
struct Published {
    folder: Folder,
    server: Origin,
    url: String,
}

impl std::ops::Deref for Published {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Published {
    fn new(text: &str) -> Self {
        let (server, ca) = secure_origin("localhost", text);
        let url = format!("https://localhost:{}/crawlers.toml", server.address.port());
        let robots = "User-agent: HouseBot\nDisallow: /private/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n";
        let folder = folder(&[("ca.pem", &ca), ("robots.txt", robots)]);
        fs::create_dir(folder.at("root")).unwrap();
        let published = Self { folder, server, url };
        published.configure("");
        published
    }

    fn configure(&self, agents: &str) {
        let config = Config::refusing().keys("state_dir = \"state\"").admin_socket();
        let config = config.site("a", "root = \"root\"\nrobots.path = \"robots.txt\"");
        let registry = format!("[agents]\nregistry_url = \"{}\"\nregistry_ca = \"ca.pem\"\n{agents}", self.url);
        self.folder.configure(config.tables(registry));
    }

    /// Returns the output of a command. The process may or may not be running.
    fn command(&self, arguments: &[&str]) -> String {
        self.with_config(arguments).out
    }

    fn status(&self) -> Value {
        self.with_config(&["status", "--json"]).json()["registry"]["published"].take()
    }
}

#[test]
fn a_published_registry_is_in_force_and_survives_a_restart() {
    let published = Published::new(HOUSE);
    let running = published.start();
    running.wait_for_event("registry", |line| message(line) == format!("{}: this registry is used now", published.url));
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
    let want = json!({"url": published.url, "origin": "fetched", "problem": null});
    assert_part(&published.status(), &want);
    let text = published.command(&["status"]);
    assert_has(&text, &[&format!("from {}:", published.url), "confirmed "]);
    // Without this wait, the process could be killed before it has saved the registry.
    let saved = || run(Command::new("grep").args(["-rlF", "House-Fetcher"]).arg(published.at("state"))).code == Some(0);
    wait_until("what is saved", saved);
    drop(running);

    // Commands and the next start must use the saved copy, whatever the server returns from now on.
    assert_has(published.command(&["agents", "HouseBot"]), &["HouseBot"]);
    published.server.show(200, "<html>");
    let running = published.start();
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
    let line = running.event("registry-rejected");
    let message = message(&line);
    assert!(message.starts_with(&published.url), "{message}");
    assert!(message.ends_with("the previous version stays in use"), "{message}");
    assert_eq!(published.status()["origin"], "saved");
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
}

#[test]
fn a_large_registry_change_is_held_until_the_config_accepts_it() {
    let published = Published::new(&format!("{HOUSE}{WITHOUT_GOOGLE}"));
    let running = published.start();
    let line = running.event("registry-gated");
    let message = message(&line);
    assert_has(
        message,
        &["the search engine \"Googlebot\" is missing from the new registry; the previous version stays in use"],
    );
    let waiting = wait_for("what waits", || Some(published.status()["waiting"].clone()).filter(|it| !it.is_null()));
    let hash = &waiting["hash"].as_str().unwrap()["sha256:".len()..][..16];
    assert!(
        message.ends_with(&format!("to use this version, write registry_accept = [\"{hash}\"] in [agents]")),
        "{message}"
    );
    let problems = || published.with_config(&["status", "--problems"]);
    let want = format!("problem: {}: version {hash} is held until accepted: ", published.url);
    assert_has(unfolded(&problems().ends_with(1).out), &[&want]);
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 404, "it is not in force");

    published.configure(&format!("registry_accept = [\"{hash}\"]\n"));
    wait_until("the accepted version", || running.get("/private/x", HOUSE_FETCHER).status == 403);
    wait_until("the status", || published.status()["waiting"].is_null());
    problems().ends_with(0);
    // Without its row, the crawler is only known by its header, and a group names it.
    assert_eq!(running.get("/drafts/x", GOOGLEBOT).status, 403);
}

#[test]
fn a_reload_fetches_the_registry_and_reports_the_outcome() {
    let published = Published::new("[[crawler]]\nname = \"OtherBot\"\ncategory = \"seo\"\n");
    let running = published.start();
    running.wait_for_event("registry", |line| message(line) == format!("{}: this registry is used now", published.url));
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 404);
    published.server.show(200, HOUSE);
    let said = published.with_config(&["reload"]).succeeded();
    assert_has(said, &[&format!("registry: published: {}: this registry is used now", published.url)]);
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);

    published.server.show(503, "");
    let said = published.with_config(&["reload"]).ends_with(1).out;
    assert_has(
        said,
        &["registry: kept: ", "; the version at the URL of the registry is not used: the server answered 503"],
    );
    published.server.show(200, &format!("{HOUSE}{WITHOUT_GOOGLE}"));
    let said = published.with_config(&["reload"]).ends_with(1).out;
    assert_has(said, &["registry: kept: ", "is held until accepted: ", "write registry_accept = ["]);
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
}

#[test]
fn an_invalid_registry_is_refused_with_the_position_of_the_error() {
    let published = Published::new("[[crawler]]\nname = \"HouseBot\"\ncategory = \"seo\"\nstar = \"maybe\"\n");
    let running = published.start();
    let line = running.event("registry-rejected");
    let message = message(&line);
    assert_has(message, &["/crawlers.toml:4:8: \"maybe\" is not a value of \"star\""]);
    assert_eq!(published.status()["hash"], Value::Null);
}
