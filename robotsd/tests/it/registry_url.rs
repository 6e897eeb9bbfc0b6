//! A registry that is published at a URL: `registry_url`.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::upstreams::secure_origin;
use crate::harness::{ADMIN_SOCKET, Folder, GOOGLEBOT, LISTENER, folder, wait_until};

const HOUSE: &str = "[[crawler]]\nname = \"HouseBot\"\nheader = [\"House-Fetcher\"]\ncategory = \"ai-training\"\n";
const WITHOUT_GOOGLE: &str = "[[crawler]]\nname = \"Googlebot\"\nremove = true\n";
const HOUSE_FETCHER: &str = "House-Fetcher/2.0";

/// A server of a registry, and a folder whose config follows it.
struct Published {
    folder: Folder,
    text: Arc<Mutex<String>>,
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
        let text = Arc::new(Mutex::new(text.to_owned()));
        let (address, ca) = secure_origin("localhost", Arc::clone(&text));
        let url = format!("https://localhost:{}/crawlers.toml", address.port());
        let robots = "User-agent: HouseBot\nDisallow: /private/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n";
        let folder = folder(&[("ca.pem", &ca), ("robots.txt", robots)]);
        std::fs::create_dir(folder.at("root")).unwrap();
        let published = Self { folder, text, url };
        published.configure("");
        published
    }

    fn configure(&self, agents: &str) {
        let config = format!(
            "mode = \"refuse\"\nstate_dir = \"state\"\n{LISTENER}[[site]]\nname = \"a\"\nroot = \"root\"\n\
             robots.path = \"robots.txt\"\n{ADMIN_SOCKET}[agents]\nregistry_url = \"{}\"\nregistry_ca = \"ca.pem\"\n\
             {agents}",
            self.url
        );
        self.replace("robotsd.toml", config);
    }

    /// What a command writes about the running server, or beside it.
    fn command(&self, arguments: &[&str]) -> String {
        self.run(arguments).out
    }

    fn status(&self) -> Value {
        let status: Value =
            serde_json::from_str(&self.command(&["status", "--json", "--config", "robotsd.toml"])).unwrap();
        status["registry"]["published"].clone()
    }
}

#[test]
fn a_published_registry_is_in_force_and_outlives_the_process() {
    let published = Published::new(HOUSE);
    let running = published.start();
    running.wait_for_event("registry", |line| {
        line["message"].as_str().is_some_and(|message| message == format!("{}: is in force", published.url))
    });
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
    let status = published.status();
    assert_eq!(
        (&status["url"], &status["origin"], &status["trouble"]),
        (&published.url.clone().into(), &"fetched".into(), &Value::Null)
    );
    let text = published.command(&["status", "--config", "robotsd.toml"]);
    assert!(text.contains(&format!("from {}:", published.url)) && text.contains("confirmed "), "{text}");
    drop(running);

    // Commands judge by what was saved; so does the next start, whatever the server of the registry says then.
    assert!(published.command(&["agents", "HouseBot", "--config", "robotsd.toml"]).contains("HouseBot"));
    *published.text.lock().unwrap() = "<html>".to_owned();
    let running = published.start();
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
    let line = running.event("registry-rejected");
    let message = crate::harness::message(&line);
    assert!(message.starts_with(&published.url) && message.ends_with("the one before stays in force"), "{message}");
    assert_eq!(published.status()["origin"], "saved");
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 403);
}

#[test]
fn a_large_change_waits_for_the_config_to_accept_it() {
    let published = Published::new(&format!("{HOUSE}{WITHOUT_GOOGLE}"));
    let running = published.start();
    let line = running.event("registry-gated");
    let message = crate::harness::message(&line);
    assert!(message.contains("the search engine \"Googlebot\" is gone; the one before stays in force"), "{message}");
    let waiting = published.status()["waiting"].clone();
    let hash = &waiting["hash"].as_str().unwrap()["sha256:".len()..][..16];
    assert!(message.ends_with(&format!("to use it, write registry_accept = [\"{hash}\"] in [agents]")), "{message}");
    assert!(published.command(&["status", "--config", "robotsd.toml"]).contains("REGISTRY WAITS:"));
    assert_eq!(running.get("/private/x", HOUSE_FETCHER).status, 404, "it is not in force");

    published.configure(&format!("registry_accept = [\"{hash}\"]\n"));
    wait_until("the accepted version", || running.get("/private/x", HOUSE_FETCHER).status == 403);
    assert_eq!(published.status()["waiting"], Value::Null);
    // Without its row it is a crawler by its own word, which a group names.
    assert_eq!(running.get("/drafts/x", GOOGLEBOT).status, 403);
}

#[test]
fn a_registry_with_a_fault_is_refused_with_its_place() {
    let published = Published::new("[[crawler]]\nname = \"HouseBot\"\ncategory = \"seo\"\nstar = \"maybe\"\n");
    let running = published.start();
    let line = running.event("registry-rejected");
    let message = crate::harness::message(&line);
    assert!(message.contains("/crawlers.toml:4:8: \"maybe\" is not a value of star"), "{message}");
    assert_eq!(published.status()["hash"], Value::Null);
}
