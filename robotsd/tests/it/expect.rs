//! Tests `robotsd test`, as CI runs it.

use crate::harness::*;

const ROBOTS: &str = "User-agent: *\nDisallow: /drafts/\n";

#[test]
fn expectations_cannot_name_files_outside_the_folder() {
    let met = |robots: &str| format!("robots = \"{robots}\"\n[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n");
    let folder = folder(&[("secret", "password = hunter2"), ("site/robots.txt", ROBOTS)]);
    let site = folder.at("site");
    let absolute = folder.at("secret");
    for (robots, fault) in [
        ("robots.txt", None),
        ("../site/robots.txt", None),
        ("../secret", Some("this path leads out of the folder")),
        (absolute.to_str().unwrap(), Some("this path leads out of the folder")),
        ("http://127.0.0.1:9/latest/meta-data", Some("this is a URL")),
    ] {
        fs::write(site.join("robots.test.toml"), met(robots)).unwrap();
        let Ended { code, error: said, .. } =
            run(robotsd().current_dir(&site).args(["test", "--within", ".", "robots.test.toml"]));
        assert_eq!(code, Some(if fault.is_some() { 2 } else { 0 }), "{robots}: {said}");
        assert!(said.contains(fault.unwrap_or_default()) && !said.contains("connection"), "{robots}: {said}");
    }
    let said = run(robotsd().current_dir(&site).args(["test", "--within", ".", "../secret"])).error;
    assert!(said.contains("../secret: this path leads out of the folder") && !said.contains("hunter2"), "{said}");
}
