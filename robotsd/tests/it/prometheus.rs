//! Runs a real Prometheus with the shipped scrape config.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::programs::debian;
use crate::harness::*;

/// A Prometheus that scrapes and evaluates every second. It is killed when this is dropped.
pub(super) struct Prometheus {
    _process: KillOnDrop,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts Prometheus with the shipped config, these targets and these rules.
    pub(super) fn start(folder: &Path, targets: &[SocketAddr], alerts: &str) -> Self {
        fs::write(folder.join("alerts.yml"), alerts).unwrap();
        let targets: Vec<_> = targets.iter().map(|target| format!("{:?}", target.to_string())).collect();
        let config = fs::read_to_string(project("config/monitoring/prometheus.yml")).unwrap();
        let config = config.replace("15s", "1s").replace("\"127.0.0.1:9145\"", &targets.join(", "));
        fs::write(folder.join("prometheus.yml"), config).unwrap();
        // With port 0, Prometheus would not report its port, so it is given a free one.
        let address = free();
        let process = debian("prometheus", "prometheus")
            .unwrap()
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Self { _process: KillOnDrop(process), address };
        wait_for("Prometheus", || TcpStream::connect(address).ok());
        prometheus
    }

    pub(super) fn query(&self, expression: &str) -> Value {
        let Ok(stream) = TcpStream::connect(self.address) else { return Value::Null };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let expression = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        // A response to a request with HTTP/1.0 is not chunked.
        let answer = offer(stream, format!("GET /api/v1/query?query={expression} HTTP/1.0\r\n\r\n"));
        answer.and_then(|answer| serde_json::from_str(&Answer::parse(&answer).body).ok()).unwrap_or_default()
    }

    pub(super) fn answer(&self, expression: &str) -> bool {
        self.query(expression)["data"]["result"].as_array().is_some_and(|found| !found.is_empty())
    }

    pub(super) fn answers(&self, expression: &str) {
        wait_until(&format!("an answer to {expression}"), || self.answer(expression));
    }
}
