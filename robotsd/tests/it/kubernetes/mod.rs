//! Tests the Kubernetes manifests: the configs in them, their references to each other, and their
//! validity according to published schemas.

use super::programs::{python_with, skip};
use crate::harness::*;

/// Manifests that contain robotsd itself.
const PODS: [&str; 2] = ["config/kubernetes.yaml", "config/beside/kubernetes.yaml"];

/// Manifests of the gateways that ask robotsd.
const GATEWAYS: [&str; 3] =
    ["config/beside/gateway-api.yaml", "config/beside/envoy-gateway.yaml", "config/beside/ingress-nginx.yaml"];

fn manifest(name: &str) -> String {
    fs::read_to_string(project(name)).unwrap()
}

/// Returns the text of a block in a ConfigMap.
fn block(manifest: &str, name: &str) -> String {
    let (_, rest) = manifest.split_once(&format!("\n  {name}: |\n")).unwrap();
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(""))).collect()
}

/// Adapts the config to this machine, with free ports and a state directory next to the config.
fn local(config: &str) -> String {
    let ports = ["0.0.0.0:8080", "0.0.0.0:9180", "127.0.0.1:9145", "0.0.0.0:9146"];
    let config = ports.iter().fold(config.to_owned(), |config, port| config.replace(port, "127.0.0.1:0"));
    config.replace("/var/lib/robotsd", "state")
}

#[test]
fn the_pod_manifests_contain_a_valid_config_existing_ports_and_a_state_volume() {
    for name in PODS {
        let manifest = manifest(name);
        assert!(!manifest.contains('\t'), "{name}: YAML is indented with blanks");
        let folder = folder(&[]);
        // In a pod, the state directory is a volume.
        let state = folder.at("state").display().to_string();
        let shipped = block(&manifest, "robotsd.toml");
        let config = shipped.replace("/var/lib/robotsd", &state);
        assert_ne!(config, shipped);
        folder.write("robotsd.toml", &config);
        folder.write("robots.txt", block(&manifest, "robots.txt"));
        let checked = folder.configured(["config", "check"]);
        assert_eq!(checked.code, Some(0), "{name}: {checked:?}");

        let documents: Vec<&str> = manifest.split("\n---\n").collect();
        let kind = |document: &str| document.split("\nkind: ").nth(1).unwrap().lines().next().unwrap().to_owned();
        let kinds: Vec<String> = documents.iter().map(|document| kind(document)).collect();
        let expected = ["ConfigMap", "StatefulSet", "Service", "Service", "PodDisruptionBudget", "NetworkPolicy"];
        assert_eq!(kinds, expected, "{name}");
        let pods = documents[1];
        // Every port that a pod opens must belong to a listener, and named ports must exist.
        for port in pods.split("containerPort: ").skip(1) {
            let port = port.split([' ', '}', '\n']).next().unwrap();
            assert!(config.contains(&format!("0.0.0.0:{port}\"")), "{name}: no listener has the port {port}");
        }
        let probed = pods.split("httpGet: { path: ").skip(1).map(|probe| probe.split_once(", port: ").unwrap().1);
        for used in manifest.split("targetPort: ").skip(1).chain(probed) {
            let port = used.split([' ', '}', ',', '\n']).next().unwrap();
            assert!(pods.contains(&format!("name: {port}, containerPort")), "{name}: the pod has no port {port}");
        }
        // Each pod must have a volume, and a Service must give each pod a name.
        for part in [
            "{ name: state, mountPath: /var/lib/robotsd }",
            "volumeClaimTemplates:\n    - metadata: { name: state }",
            "serviceName: robotsd-pods",
        ] {
            assert!(pods.contains(part), "{name}: {part}");
        }
        assert!(documents[2].contains("name: robotsd-pods") && documents[2].contains("clusterIP: None"), "{name}");
    }
}

/// The pod is new, so it has no state, and the gate refuses its version.
#[test]
fn the_readiness_probe_of_a_pod_fails_while_its_first_version_is_held() {
    for name in PODS {
        let manifest = manifest(name);
        let probe = |kind: &str| manifest.split_once(&format!("{kind}: {{ httpGet: {{ path: ")).unwrap().1;
        assert!(probe("readinessProbe").starts_with("\"/readyz?require=sites\", port: metrics }"), "{name}");
        // A pod must not be restarted because of a problem that only an operator can fix.
        assert!(probe("livenessProbe").starts_with("/livez, port: metrics }"), "{name}");
        assert!(manifest.contains("{ name: metrics, containerPort: 9146 }"), "{name}");
        let shut = "User-agent: *\nDisallow: /\n";
        let config = local(&block(&manifest, "robotsd.toml")).replace("10.0.0.0/8", "127.0.0.0/8");
        let (_folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", shut)]);
        let listening = running.wait_for_event("admin-listening", |line| {
            line["message"].as_str().is_some_and(|message| message.ends_with(" (read-only)"))
        });
        let place = message(&listening).trim_start_matches("http://").split(' ').next().unwrap();
        // The kubelet sends the same request, with the address of the pod.
        let ask = || {
            let path = probe("readinessProbe").split('"').nth(1).unwrap();
            let fields = format!("Host: {place}\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n");
            super::admin::ask(place.parse().unwrap(), &format!("GET {path}"), &fields)
        };
        let waiting = ask();
        assert_eq!(waiting.status, 503, "{name}: {waiting:?}");
        let command = waiting.body.split('`').nth(1).unwrap().strip_prefix("robotsd ").unwrap();
        running.command(&command.split(' ').collect::<Vec<_>>()).succeeded();
        assert_eq!((ask().status, &*ask().body), (200, "ready\n"), "{name}");
    }
}

#[test]
fn metrics_are_served_for_the_name_of_each_pod_and_refused_for_other_hosts() {
    for name in PODS {
        let manifest = manifest(name);
        let replicas: usize = manifest.split_once("\n  replicas: ").unwrap().1.lines().next().unwrap().parse().unwrap();
        let config = local(&block(&manifest, "robotsd.toml"));
        let (_folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", &block(&manifest, "robots.txt"))]);
        let listening = running.wait_for_message("admin-listening", " (read-only)");
        let place = message(&listening).trim_start_matches("http://").split(' ').next().unwrap().parse().unwrap();
        let status = |host: &str| {
            let fields = format!("Host: {host}:9146\r\nConnection: close\r\n");
            super::admin::ask(place, "GET /metrics", &fields).status
        };
        for pod in 0..replicas {
            assert_eq!(status(&format!("robotsd-{pod}.robotsd-pods")), 200, "{name}");
        }
        assert_eq!(status("robotsd.example"), 403, "{name}");
    }
}

/// Starts robotsd with the config of the pods that answer decision requests.
fn deciding(pods: &str) -> (Folder, Running) {
    let shipped = block(pods, "robotsd.toml");
    let config = local(&shipped)
        // The shipped config only observes, until the operator has seen what would happen.
        .replace("mode = \"observe\"", "mode = \"refuse\"")
        .replace("grace = \"24h\"", "grace = \"0s\"");
    assert_ne!(config, local(&shipped));
    serving(&[("robotsd.toml", &config), ("robots.txt", &block(pods, "robots.txt"))])
}

#[test]
fn the_manifest_config_answers_the_auth_url_of_the_ingress_annotations() {
    let pods = manifest("config/beside/kubernetes.yaml");
    let (_folder, running) = deciding(&pods);
    let annotations = manifest("config/beside/ingress-nginx.yaml");
    let url = annotations.lines().find_map(|line| line.split_once("/auth-url: ")).expect("an auth-url").1;
    let (_, path) = url.trim_matches('"').split_once(":9180").expect("robotsd's port");
    let fields = [("X-Original-URL", "https://example.com/drafts/x"), ("X-Original-Method", "GET")];
    let answer = running.request("GET", path, &[&fields[..], &[("User-Agent", GPTBOT)]].concat());
    assert_eq!(answer.status, 403, "{answer:?}");
    let robots = running.request("GET", "/robots.txt", &[("Host", "example.com")]).body;
    assert_eq!(robots, block(&pods, "robots.txt"));
    assert_eq!(running.events("finding"), 0);
}

#[test]
fn the_gateway_manifests_use_an_existing_service_port_and_preset() {
    let pods = manifest("config/beside/kubernetes.yaml");
    let (_folder, running) = deciding(&pods);
    for name in ["config/beside/gateway-api.yaml", "config/beside/envoy-gateway.yaml"] {
        let manifest = manifest(name);
        let path = manifest.lines().find_map(|line| line.trim().strip_prefix("path: /-/")).expect("a path");
        let ask = |path: &str, agent: &str| {
            let fields = [("Host", "example.com"), ("User-Agent", agent), ("X-Forwarded-For", "192.0.2.1")];
            running.request("GET", path, &fields).status
        };
        assert_eq!(ask(&format!("/-/{path}/drafts/x"), GPTBOT), 403, "{name}");
        assert_eq!(ask(&format!("/-/{path}/x"), GPTBOT), 200, "{name}");
        for field in ["User-Agent", "X-Forwarded-For", "Signature-Agent"] {
            assert!(manifest.contains(&format!("- {field}\n")), "{name}: {field}");
        }
        assert!(manifest.contains("{ name: robotsd, port: 9180 }"), "{name}");
        assert!(manifest.contains("value: /robots.txt"), "{name}");
    }
    assert!(manifest("config/beside/envoy-gateway.yaml").contains("failOpen: true"));
    assert!(pods.contains("ports: [{ name: decisions, port: 9180, targetPort: decisions }]"));
    assert!(manifest("config/beside/ingress-nginx.yaml").starts_with("# ingress-nginx is discontinued"));
}

/// Core objects are validated as strictly as the API server does, and gateway objects by the
/// schemas of `@kubernetes-models`.
#[test]
fn the_manifests_match_published_schemas() {
    let Some(mut python) = python_with("kubernetes_validate", "kubernetes-validate") else { return };
    let script = |name: &str| project("robotsd/tests/it/kubernetes").join(name);
    let read = run(python.arg(script("core.py")).args(PODS.iter().chain(&GATEWAYS).map(|name| project(name))));
    assert!(read.code == Some(0), "{}", read.error);
    let Some(schemas) = std::env::var_os("ROBOTSD_KUBERNETES_SCHEMAS").map(PathBuf::from).filter(|it| it.is_dir())
    else {
        return skip("@kubernetes-models/gateway-api and envoy-gateway, from npm, in $ROBOTSD_KUBERNETES_SCHEMAS");
    };
    let valid = |objects: &str| {
        let mut node = Command::new("node");
        node.arg(script("custom.mjs")).arg(fs::canonicalize(&schemas).unwrap());
        run_with(&mut node, objects.as_bytes())
    };
    let objects = read.out;
    let checked = valid(&objects);
    assert!(checked.code == Some(0), "{}", checked.error);
    let names = checked.out;
    let expected = [
        "HTTPRoute site",
        "SecurityPolicy robotsd",
        "ClientTrafficPolicy robotsd",
        "HTTPRoute site",
        "HTTPRoute site-robots-txt",
    ];
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    // The validation must find a misspelled key and a wrong type.
    for (right, wrong) in [("\"failOpen\"", "\"failopen\""), ("\"HTTP\"", "\"HTPP\""), ("\"250ms\"", "250")] {
        assert!(objects.contains(right), "{right}");
        assert!(valid(&objects.replace(right, wrong)).code != Some(0), "{wrong}");
    }
}
