//! Handles `GET /metrics`. The metrics contain the data of the status report, and data from the
//! operating system about this process.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, StatusCode};
use tokio::task::spawn_blocking;

use super::reply::{AdminReply, Answer};
use super::state::ServerState;
use crate::fleet::Fleet;
use crate::metrics::{Exposition, ExpositionFormat, accepts_gzip, family};
use crate::report::ReplicaState;

/// Returns the metrics. The metrics are built on a blocking thread, because building takes a while
/// with tens of thousands of sites.
pub(super) async fn answer(state: Arc<ServerState>, fields: HeaderMap) -> Answer {
    let (format, is_packed) = (ExpositionFormat::accepted(&fields), accepts_gzip(&fields));
    let made = spawn_blocking(move || {
        let text = text(&state, format);
        if is_packed { gzip(&text).map(|packed| (packed, Some("gzip"))) } else { Ok((text.into_bytes(), None)) }
    });
    let made = made.await.map_err(|error| AdminReply::internal_error(&error))?;
    let failed = |error: std::io::Error| AdminReply::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
    let (body, coding) = made.map_err(failed)?;
    Ok(AdminReply::negotiated(format.content_type(), body, coding))
}

fn text(state: &ServerState, format: ExpositionFormat) -> String {
    let mut exposition = Exposition::new(format);
    write_process(&mut exposition, state.started.0);
    exposition.sample(&family::BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let config = &state.config;
    exposition.flag(&family::CONFIG_SUCCESSFUL, &[], config.problem().is_none());
    exposition.sample(&family::CONFIG_REFUSED, &[], config.report().refused.len());
    exposition.timestamp(&family::CONFIG_TIMESTAMP, &[], config.accepted());
    let dropped = state.lost_lines().map(|(log, lines)| (log, lines.count.load(Ordering::Relaxed)));
    exposition.samples_by_label(&family::LOG_DROPPED, &[], "log", dropped);
    state.watchdog.write_metrics(&mut exposition);
    if let Some(serving) = state.serving() {
        exposition.flag(&family::STATE_WRITABLE, &[], state.is_state_writable() != Some(false));
        serving.write_metrics(&mut exposition);
        serving.sites.state.fleet.iter().for_each(|fleet| write_fleet(&mut exposition, fleet));
    }
    exposition.finish()
}

fn write_fleet(exposition: &mut Exposition, fleet: &Fleet) {
    let report = fleet.report();
    let of = ("fleet", &*report.name);
    let own = ReplicaState::ALL.into_iter().filter(|state| state.is_own());
    let own: Vec<_> = own.map(ReplicaState::as_str).collect();
    exposition.state(&family::FLEET_STATE, &[of], &own, report.state.as_str());
    exposition.flag(&family::FLEET_WRITABLE, &[of], fleet.is_store_up());
    fleet.last_read().into_iter().for_each(|last_read| exposition.timestamp(&family::FLEET_READ, &[of], last_read));
    let count = |state: ReplicaState| report.replicas.iter().filter(|replica| replica.state == state).count();
    let other_states = ReplicaState::ALL.into_iter().filter(|state| *state != ReplicaState::Current);
    exposition.samples_by_label(
        &family::FLEET_REPLICAS,
        &[of],
        "state",
        other_states.map(|state| (state.as_str(), count(state))),
    );
}

/// Compresses at the fastest level, because Prometheus scrapes every few seconds.
fn gzip(text: &str) -> std::io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes())?;
    packer.finish()
}

/// Number of clock ticks per second. Times in `/proc/self/stat` are measured in clock ticks. All
/// kernels that can run this program use 100.
const TICKS_PER_SECOND: f64 = 100.0;

/// Writes the metrics of this process. Leaves out metrics that the system does not provide.
fn write_process(exposition: &mut Exposition, started: SystemTime) {
    exposition.timestamp(&family::PROCESS_START, &[], started);
    for (family, resource) in
        [(&family::PROCESS_MAX_FDS, rlimit::Resource::NOFILE), (&family::PROCESS_VIRTUAL_MAX, rlimit::Resource::AS)]
    {
        match resource.get_soft() {
            Ok(rlimit::INFINITY) => exposition.sample(family, &[], -1),
            Ok(bound) => exposition.sample(family, &[], bound),
            Err(_) => {}
        }
    }
    // One of the listed descriptors belongs to the open directory, so it is subtracted.
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        exposition.sample(&family::PROCESS_OPEN_FDS, &[], open.count().saturating_sub(1));
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some([user, system, threads, bytes, pages]) = stat_fields(&stat, [14, 15, 20, 23, 24]) else { return };
    exposition.sample(&family::PROCESS_CPU, &[], (user + system) as f64 / TICKS_PER_SECOND);
    exposition.sample(&family::PROCESS_RESIDENT, &[], pages * rustix::param::page_size() as u64);
    exposition.sample(&family::PROCESS_VIRTUAL, &[], bytes);
    exposition.sample(&family::PROCESS_THREADS, &[], threads);
}

/// Returns fields of `/proc/self/stat`. `places` are field numbers as in proc(5). The fields are
/// counted from the last `)`, because the program name, which is in parentheses, may contain spaces
/// and parentheses itself.
fn stat_fields<const N: usize>(stat: &str, places: [usize; N]) -> Option<[u64; N]> {
    let (_, after_name) = stat.rsplit_once(')')?;
    // The first field after the program name is field 3, the process state.
    let fields: Vec<_> = after_name.split_ascii_whitespace().collect();
    let numbers = places.iter().map(|place| fields.get(place - 3)?.parse().ok());
    numbers.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FleetSettings;
    use crate::log::Log;
    use crate::store::{StoreSettings, StoreUrl};

    #[test]
    fn the_fleet_store_is_reported_up_even_if_the_local_file_is_unreadable() {
        let state = tempfile::tempdir().unwrap();
        std::fs::create_dir(state.path().join("fleet.json")).unwrap();
        let store = StoreSettings::new(StoreUrl::new("redis://cache").unwrap());
        let settings = FleetSettings { name: "shop".to_owned(), replica: "web-1".to_owned(), store };
        let fleet = Fleet::open(&settings, Some(state.path()), &Log::without_output());
        assert_eq!(fleet.report().problems.len(), 1);
        let mut exposition = Exposition::new(ExpositionFormat::OpenMetrics);
        write_fleet(&mut exposition, &fleet);
        let text = exposition.finish();
        assert!(text.contains("robotsd_fleet_store_up{fleet=\"shop\"} 1\n"), "{text}");
    }

    #[test]
    fn processor_time_is_read_correctly_for_any_process_name() {
        let stat = "7 (a) b (c 9) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 4 0 5 6 7";
        assert_eq!(stat_fields(stat, [14, 15]), Some([12, 30]));
        assert_eq!(stat_fields("7 (a) S 1", [14, 15]), None);
        assert_eq!(stat_fields("", [14, 15]), None);
    }
}
