use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method, StatusCode, Version};

use super::*;
use crate::config::{AddressLogging, QueryLogging};
use crate::edge::RequestId;

fn record() -> AccessRecord {
    AccessRecord {
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        peer: Some(([192, 0, 2, 77], 4711).into()),
        id: RequestId::new(1, 2),
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".into()),
        method: Method::GET,
        target: "/find?q=secret".to_owned(),
        version: Version::HTTP_11,
        host: Some(HeaderValue::from_static("shop.test")),
        referer: Some(HeaderValue::from_static("https://a.test/?token=1")),
        user_agent: Some(HeaderValue::from_bytes(b"Evil \" \\ bot \xff").expect("a value")),
        status: Some(StatusCode::FORBIDDEN),
        sent: 42,
        is_whole: true,
        took: Duration::from_micros(1500),
        notes: vec![("site", "shop".into()), ("action", "refused".into()), ("line", 7.into())],
    }
}

fn combined(record: &AccessRecord, privacy: LogPrivacy) -> String {
    let mut out = Vec::new();
    write_combined(record, privacy, &mut out);
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn the_combined_format_escapes_fields_and_redacts_private_data_by_default() {
    let id = RequestId::new(1, 2);
    let want = format!(
        "192.0.2.0 - - [09/Sep/2001:01:46:40 +0000] \"GET /find?q=\\xE2\\x80\\xA6 HTTP/1.1\" 403 42 \
         \"https://a.test/?token=\\xE2\\x80\\xA6\" \"Evil \\x22 \\x5C bot \\xFF\" \"shop\" \"refused\" \"{id}\"\n"
    );
    assert_eq!(combined(&record(), LogPrivacy::default()), want);
    let open = LogPrivacy { query: QueryLogging::Keep, address: AddressLogging::Keep };
    assert!(combined(&record(), open).starts_with("192.0.2.77 - - [09/Sep/2001:01:46:40 +0000] \"GET /find?q=secret "));
}

#[test]
fn missing_values_are_dashes_and_a_client_that_disconnects_gets_499() {
    let nothing =
        AccessRecord { referer: None, user_agent: None, notes: Vec::new(), status: None, sent: 0, ..record() };
    let line = combined(&nothing, LogPrivacy { address: AddressLogging::Drop, ..LogPrivacy::default() });
    assert!(line.starts_with("- - - ["), "{line}");
    assert!(line.contains("\" 499 0 \"-\" \"-\" \"-\" \"-\" \""), "{line}");
}

#[test]
fn a_json_record_is_one_object_on_one_line() {
    let mut out = Vec::new();
    write_json(&record(), LogPrivacy::default(), &mut out);
    let line = String::from_utf8(out).expect("UTF-8");
    assert_eq!(line.matches('\n').count(), 1);
    let object: serde_json::Value = serde_json::from_str(&line).expect("an object");
    let wanted: [(&str, serde_json::Value); 11] = [
        ("event", "request".into()),
        ("site", "shop".into()),
        ("action", "refused".into()),
        ("line", 7.into()),
        ("path", "/find?q=…".into()),
        ("protocol", "HTTP/1.1".into()),
        ("status", 403.into()),
        ("octets", 42.into()),
        ("seconds", 0.0015.into()),
        ("address", "192.0.2.0/24".into()),
        ("user_agent", "Evil \" \\ bot \u{fffd}".into()),
    ];
    for (name, value) in wanted {
        assert_eq!(object[name], value, "{name}");
    }
}

#[test]
fn a_reopened_log_is_a_new_file_if_the_old_file_was_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let settings = AccessSettings { format: AccessFormat::Combined, path: Some(path.clone()) };
    let log =
        AccessLog::start(&settings, LogPrivacy::default(), Log::start(crate::config::LogFormat::Json)).expect("a log");
    let tell = log.observer();
    tell(record().into());
    log.flush();
    std::fs::rename(&path, folder.path().join("access.log.1")).expect("renamed");
    log.reopen();
    tell(record().into());
    tell(record().into());
    log.flush();
    let lines = |path: &Path| std::fs::read_to_string(path).expect("a log").lines().count();
    assert_eq!((lines(&folder.path().join("access.log.1")), lines(&path)), (1, 2));
}

#[test]
fn a_record_after_a_restart_does_not_continue_a_cut_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    for (before, is_ended) in [("", true), ("whole\n", true), ("cut", false)] {
        std::fs::write(&path, before).expect("a log");
        let settings = AccessSettings { format: AccessFormat::Combined, path: Some(path.clone()) };
        let log = AccessLog::start(&settings, LogPrivacy::default(), Log::start(crate::config::LogFormat::Json))
            .expect("a log");
        log.observer()(record().into());
        log.flush();
        let end = if is_ended { "" } else { "\n" };
        let want = format!("{before}{end}{}", combined(&record(), LogPrivacy::default()));
        assert_eq!(std::fs::read_to_string(&path).expect("a log"), want);
    }
}

#[test]
fn the_error_for_a_log_that_cannot_be_opened_contains_its_path() {
    let settings = AccessSettings { format: AccessFormat::Json, path: Some("/no/such/folder/log".into()) };
    let error = AccessLog::start(&settings, LogPrivacy::default(), Log::start(crate::config::LogFormat::Json));
    assert!(error.is_err_and(|error| error.starts_with("/no/such/folder/log: the access log cannot be opened: ")));
}
