//! The files in `config/` that an operator begins with.

use super::process::{FIREFOX, GPTBOT, Running, folder, project, robotsd, run};

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

/// The config for production, with the paths and ports of a test.
fn production(folder: &std::path::Path, upstream: &str) -> String {
    let text = std::fs::read_to_string(project("config/production.toml")).unwrap();
    let mut adapted = text.clone();
    let here = |name: &str| folder.join(name).display().to_string();
    for (shipped, here) in [
        ("/var/lib/robotsd", here("state")),
        ("/etc/robotsd/robots.txt", here("robots.txt")),
        ("/run/robotsd/admin.sock", here("admin.sock")),
        ("127.0.0.1:8080", "127.0.0.1:0".to_owned()),
        ("http://127.0.0.1:3000", upstream.to_owned()),
        ("\"example.com\"", "\"site.test\"".to_owned()),
    ] {
        assert!(adapted.contains(shipped), "{shipped}");
        adapted = adapted.replace(shipped, &here);
    }
    adapted
}

#[test]
fn the_config_for_production_passes_its_check_and_observes() {
    let origin = super::origin::Origin::start();
    let folder = folder(&[("robots.txt", ROBOTS)]);
    let path = folder.path().join("robotsd.toml");
    std::fs::write(&path, production(folder.path(), &format!("http://{}", origin.address))).unwrap();
    let checked = run(robotsd().args(["config", "check"]).arg(&path));
    assert_eq!(String::from_utf8(checked.stderr).unwrap(), "", "it has no warning and no note");
    assert_eq!(checked.status.code(), Some(0));
    let mut running = Running::start(folder.path());
    assert_eq!(running.get("/robots.txt", GPTBOT).body, ROBOTS);
    assert_eq!(running.get("/drafts/x", GPTBOT).status, 200);
    running.wait_for_event("observed", |line| line["path"] == "/drafts/x");
    assert_eq!(running.get("/drafts/x", FIREFOX).status, 200);
    // The command finds the socket by the config, and by the environment that names it.
    for command in [
        robotsd().args(["status", "--config"]).arg(&path),
        robotsd().arg("status").env("ROBOTSD_CONFIG", &path),
        robotsd().args(["status", "--admin", "admin.sock"]).current_dir(folder.path()),
    ] {
        let status = run(command);
        assert_eq!(status.status.code(), Some(0), "{status:?}");
        assert!(String::from_utf8(status.stdout).unwrap().contains("mode:       observe"));
    }
    running.signal("TERM");
    assert!(running.wait_for_end().success());
    assert!(folder.path().join("state").is_dir());
}

#[test]
fn every_line_of_the_config_for_production_is_explained() {
    let text = std::fs::read_to_string(project("config/production.toml")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let is_key = line.contains(" = ") && !line.starts_with('#');
        // Two keys of one comment stand below each other.
        let above = lines[..number].iter().rev().find(|line| !line.contains(" = ") || line.starts_with('#'));
        assert!(!is_key || above.is_some_and(|line| line.starts_with('#')), "{line}");
    }
}

/// The text of a block of a ConfigMap.
fn block(manifest: &str, name: &str) -> String {
    let (_, rest) = manifest.split_once(&format!("\n  {name}: |\n")).unwrap();
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(""))).collect()
}

#[test]
fn the_manifests_for_kubernetes_hold_configs_that_can_be_served() {
    for name in ["config/kubernetes.yaml", "config/beside/kubernetes.yaml"] {
        let manifest = std::fs::read_to_string(project(name)).unwrap();
        assert!(!manifest.contains('\t'), "{name}: YAML is indented with blanks");
        let folder = folder(&[]);
        // The folder of a pod's state is made by its volume.
        let state = folder.path().join("state").display().to_string();
        let config = block(&manifest, "robotsd.toml").replace("/var/lib/robotsd", &state);
        std::fs::write(folder.path().join("robotsd.toml"), &config).unwrap();
        std::fs::write(folder.path().join("robots.txt"), block(&manifest, "robots.txt")).unwrap();
        let checked = run(robotsd().args(["config", "check"]).arg(folder.path().join("robotsd.toml")));
        assert_eq!(checked.status.code(), Some(0), "{name}: {checked:?}");

        let documents: Vec<&str> = manifest.split("\n---\n").collect();
        let kinds: Vec<&str> = documents
            .iter()
            .map(|document| document.split("\nkind: ").nth(1).unwrap().lines().next().unwrap())
            .collect();
        assert_eq!(kinds, ["ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"], "{name}");
        for document in &documents {
            assert!(document.contains("apiVersion: ") && document.contains("\nmetadata:\n  name: robotsd\n"), "{name}");
        }
        let deployment = documents[1];
        // Every port that the pod opens is one of a listener, and every name of a port is one of the pod.
        for port in deployment.split("containerPort: ").skip(1) {
            let port = port.split([' ', '}', '\n']).next().unwrap();
            assert!(config.contains(&format!("0.0.0.0:{port}\"")), "{name}: no listener has the port {port}");
        }
        for used in manifest.split("targetPort: ").skip(1).chain(deployment.split("/-/health, port: ").skip(1)) {
            let port = used.split([' ', '}', ',', '\n']).next().unwrap();
            assert!(deployment.contains(&format!("name: {port}, containerPort")), "{name}: the pod has no port {port}");
        }
        for volume in deployment.split("{ name: ").skip(1).filter(|rest| rest.contains("mountPath")) {
            let volume = volume.split([',', ' ']).next().unwrap();
            if deployment.contains(&format!("{{ name: {volume}, mountPath")) {
                assert!(deployment.contains(&format!("- name: {volume}\n")), "{name}: there is no volume {volume}");
            }
        }
    }
}

/// As the API server's own client reads them, where one is installed.
#[test]
fn the_manifests_are_yaml() {
    let script = "import sys, yaml\nfor name in sys.argv[1:]:\n    assert all(d['kind'] for d in yaml.safe_load_all(open(name)))";
    let mut python = std::process::Command::new("python3");
    if !python.args(["-c", "import yaml"]).output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: python3 has no yaml here");
    }
    let names = ["config/kubernetes.yaml", "config/beside/kubernetes.yaml"].map(project);
    let read = run(std::process::Command::new("python3").args(["-c", script]).args(names));
    assert!(read.status.success(), "{read:?}");
}
