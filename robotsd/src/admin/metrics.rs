//! `GET /metrics`: the facts of the status, as metrics.

use std::io::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, StatusCode};
use tokio::task::spawn_blocking;

use super::reply::{AdminReply, Answer};
use super::state::ServerState;
use crate::metrics::{ContentCoding, Exposition, ExpositionFormat, family, write_process};

/// The text in the format and coding that the client prefers. Tens of thousands of sites take a while, so it is made on a thread
/// that may block, whole, before anything is sent.
pub(super) async fn answer(state: Arc<ServerState>, fields: &HeaderMap) -> Answer {
    let (format, coding) = (ExpositionFormat::accepted(fields), ContentCoding::accepted(fields));
    let made = spawn_blocking(move || {
        let text = text(&state, format);
        match coding {
            ContentCoding::Identity => Ok((text.into_bytes(), None)),
            ContentCoding::Gzip => gzip(&text).map(|packed| (packed, Some("gzip"))),
        }
    });
    let made = made.await.map_err(|error| AdminReply::fault(&error))?;
    let failed = |error: std::io::Error| AdminReply::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
    let (body, coding) = made.map_err(failed)?;
    Ok(AdminReply::negotiated(format.content_type(), body, coding))
}

fn text(state: &ServerState, format: ExpositionFormat) -> String {
    let mut exposition = Exposition::new(format);
    write_process(&mut exposition, state.started.0);
    exposition.info(&family::BUILD, &[("version", env!("CARGO_PKG_VERSION"))]);
    let config = &state.config;
    exposition.holds(&family::CONFIG_SUCCESSFUL, &[], config.trouble().is_none());
    if let Ok(accepted) = config.accepted().duration_since(SystemTime::UNIX_EPOCH) {
        exposition.sample(&family::CONFIG_TIMESTAMP, &[], accepted.as_secs_f64());
    }
    for (log, lines) in state.lost_lines() {
        exposition.sample(&family::LOG_DROPPED, &[("log", log)], lines);
    }
    if let Some(serving) = state.serving() {
        serving.write_metrics(&mut exposition);
    }
    exposition.finish()
}

/// Fast rather than small: a scrape comes every few seconds.
fn gzip(text: &str) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes())?;
    packer.finish()
}
