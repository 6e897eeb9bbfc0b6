//! Tests of the certificate that each client gets, and of replaced certificate files.

use super::*;

#[tokio::test]
async fn each_server_name_gets_its_certificate_and_others_get_the_first() {
    let authority = TestAuthority::new("ours");
    let [a, b, c] = [("a", "a.test"), ("b", "*.b.test"), ("c", "x.b.test")].map(|(f, n)| authority.write(f, &[n]));
    let edge = secure_with(live(&[&a, &b, &c]), EdgeLimits::default());
    let client = authority.client(&[]);
    for (name, paths) in [
        ("a.test", &a),
        ("A.TEST", &a),
        ("y.b.test", &b),
        ("x.b.test", &c),
        // A client that connects by address sends no name.
        ("127.0.0.1", &a),
    ] {
        let stream = edge.connect(&client, name).await.unwrap();
        assert_eq!(leaf(&stream), CertificatePair::read(paths).unwrap().key.cert[0], "{name}");
    }
    // No certificate has the name that this client sends, so the client rejects the default
    // certificate.
    let error = edge.connect(&client, "other.test").await.unwrap_err().to_string();
    assert!(error.contains("a.test"), "{error}");
}

#[test]
fn the_certificates_cover_a_pattern_if_they_cover_at_least_one_matching_host() {
    let authority = TestAuthority::new("ours");
    let certificates = live(&[&authority.write("a", &["a.test"]), &authority.write("b", &["*.b.test", "x.c.test"])]);
    for (patterns, cover) in
        [("a.test A.test x.b.test *.b.test *.c.test", true), ("b.test x.y.b.test c.test *.a.test", false)]
    {
        for pattern in patterns.split(' ') {
            assert_eq!(certificates.cover(pattern), cover, "{pattern}");
        }
    }
}

#[tokio::test]
async fn if_a_name_has_two_keys_the_client_gets_the_first_one_that_it_supports() {
    let authority = TestAuthority::new("ours");
    let modern = authority.write_with("modern", &["a.test"], &KeyPair::generate_for(&PKCS_ED25519).unwrap(), |_| {});
    let common = authority.write("common", &["a.test"]);
    let edge = secure_with(live(&[&modern, &common]), EdgeLimits::default());
    let mut provider = pair::provider();
    for (schemes, shown) in [(3, &modern), (2, &common)] {
        // The client prefers ECDSA with two different hashes, then Ed25519.
        provider.signature_verification_algorithms.mapping =
            &pair::provider().signature_verification_algorithms.mapping[..schemes];
        let client = authority.client_of(provider.clone(), ALL_VERSIONS);
        let stream = edge.connect(&Arc::new(client), "a.test").await.unwrap();
        assert_eq!(leaf(&stream), CertificatePair::read(shown).unwrap().key.cert[0]);
    }
}

#[tokio::test]
async fn a_request_for_a_host_of_another_certificate_is_misdirected() {
    let authority = TestAuthority::new("ours");
    let [a, b, c] = [
        authority.write("a", &["a.test", "also-a.test"]),
        authority.write("b", &["*.b.test"]),
        authority.write("c", &["c.b.test"]),
    ];
    let edge = secure_with(live(&[&a, &b, &c]), EdgeLimits::default());
    let client = authority.client(&[]);
    for (name, host, status) in [
        ("a.test", "A.test:443", 200),
        ("a.test", "also-a.test", 200),
        ("a.test", "x.b.test", 421),
        ("a.test", "c.b.test", 421),
        // A client that sends no name would also get the first certificate.
        ("a.test", "nowhere.test", 200),
        ("a.test", "10.0.0.1", 200),
        ("x.b.test", "y.b.test", 200),
        // A separate connection to the requested host would get another certificate, but the
        // certificate of this connection also covers that host.
        ("x.b.test", "c.b.test", 200),
        ("c.b.test", "x.b.test", 421),
        ("x.b.test", "a.test", 421),
        ("x.b.test", "nowhere.test", 421),
        ("x.b.test", "127.0.0.1", 200),
        // If the client names no host in the handshake, any `Host` is accepted.
        ("127.0.0.1", "x.b.test", 200),
        ("127.0.0.1", "a.test", 200),
    ] {
        assert_eq!(edge.ask_secured(&client, name, host).await.status(), status, "{name} {host}");
    }
    let stream = edge.connect(&authority.client(&[b"h2"]), "a.test").await.unwrap();
    let mut client = Http2Client::over(stream).await;
    for (host, status) in [("x.b.test", 421), ("a.test", 200)] {
        let response = client.ask(Request::get(format!("https://{host}/"))).await.unwrap();
        assert_eq!(response.status(), status, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_replaced_without_disturbing_running_connections() {
    let authority = TestAuthority::new("ours");
    let paths = authority.write("a", &["a.test"]);
    let certificates = live(&[&paths]);
    let edge = Arc::new(secure_with(certificates.clone(), EdgeLimits::default()));
    let mut first = edge.raw(&authority.client(&[]), "a.test").await;
    let (asked, is_over) = (shared::<AtomicUsize>(), shared::<AtomicBool>());
    let mut clients = Vec::new();
    for kept_alive in [true, true, false, false] {
        let (edge, client) = (Arc::clone(&edge), authority.client(&[]));
        clients.push(tokio::spawn(async move {
            let mut connection = edge.raw(&client, "a.test").await;
            while !is_over.load(Ordering::Relaxed) {
                if !kept_alive {
                    connection = edge.raw(&client, "a.test").await;
                }
                assert_eq!(connection.ask(&get("a.test")).await.body, "https");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for round in 0..20 {
        let before = asked.load(Ordering::Relaxed);
        authority.write("a", &["a.test", &format!("round-{round}.test")]);
        let (live, now) = (certificates.clone(), SystemTime::now());
        let news = tokio::task::spawn_blocking(move || live.reload(now)).await.unwrap();
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(news[0].kind, CertificateEventKind::InForce);
        assert!(news[0].message.contains(&format!("round-{round}.test")), "{news:?}");
        wait_until(|| asked.load(Ordering::Relaxed) >= before + 8).await;
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(first.ask(&get("a.test")).await.body, "https");
    let shown = leaf(&edge.connect(&authority.client(&[]), "round-19.test").await.unwrap());
    assert_eq!(shown, CertificatePair::read(&paths).unwrap().key.cert[0]);
}

#[test]
fn a_broken_pair_is_reported_once_and_the_previous_pair_stays_in_force() {
    let authority = TestAuthority::new("ours");
    let paths = authority.write("a", &["a.test"]);
    let (chain, key) = (std::fs::read(&paths.chain).unwrap(), std::fs::read(&paths.key).unwrap());
    let certificates = live(&[&paths]);
    let in_force = || certificates.current().certificates[0].pair.names.clone();
    let now = SystemTime::now();
    assert_eq!(certificates.reload_changed(now, SETTLING), []);
    let other = authority.write("b", &["b.test"]);
    let other = (std::fs::read(&other.chain).unwrap(), std::fs::read(&other.key).unwrap());
    let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIH0\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let secret = "c2VjcmV0";
    let broken = format!("-----BEGIN PRIVATE KEY-----\n{secret}\n{secret}!\n-----END PRIVATE KEY-----\n");
    for (what, chain, key, culprit) in [
        ("the key does not match the first certificate", &other.0[..], &key[..], &paths.key),
        ("the file contains no certificate", b"", &key, &paths.chain),
        ("the file contains no private key", &chain, b"", &paths.key),
        ("the file contains no certificate", &key, &key, &paths.chain),
        ("the file contains no private key", &chain, &chain, &paths.key),
        ("invalid PEM", &chain[..chain.len() / 2], &key, &paths.chain),
        ("is encrypted", &chain, encrypted, &paths.key),
        ("invalid PEM", &chain, broken.as_bytes(), &paths.key),
        (
            "the key has an unsupported type or size: use ECDSA",
            &chain,
            b"-----BEGIN PRIVATE KEY-----\nMIH0\n-----END PRIVATE KEY-----\n",
            &paths.key,
        ),
        (
            "the first certificate is invalid",
            b"-----BEGIN CERTIFICATE-----\nMIH0\n-----END CERTIFICATE-----\n",
            &key,
            &paths.chain,
        ),
        ("larger than 1 MiB", &vec![b'x'; (1 << 20) + 1], &key, &paths.chain),
        ("the key does not match the first certificate", &chain, &other.1, &paths.key),
    ] {
        put(&paths.chain, chain);
        put(&paths.key, key);
        let news = certificates.reload_changed(now, SETTLING);
        assert_eq!(news.len(), 1, "{what}: {news:?}");
        assert_eq!(news[0].kind, CertificateEventKind::Rejected);
        assert!(news[0].message.contains(what), "{what}: {news:?}");
        assert!(news[0].message.starts_with(&format!("{}: ", culprit.display())), "{news:?}");
        assert!(!news[0].message.contains(secret), "{news:?}");
        assert_eq!(certificates.reload_changed(now, SETTLING), [], "{what}");
        // A problem is reported again if an operator requests a reload.
        assert_eq!(certificates.reload(now), news);
        assert_eq!(certificates.rejections(), [(paths.chain.clone(), Some(news[0].message.clone()))]);
        assert_eq!(in_force(), ["a.test"]);
    }
    std::fs::remove_file(&paths.key).unwrap();
    assert_eq!(certificates.reload_changed(now, SETTLING).len(), 1);
    std::fs::create_dir(&paths.key).unwrap();
    assert!(certificates.reload_changed(now, SETTLING)[0].message.contains("not a regular file"));
    std::fs::remove_dir(&paths.key).unwrap();
    // The files get the content of the pair in use again.
    put(&paths.chain, &chain);
    put(&paths.key, &key);
    let news = certificates.reload_changed(now, SETTLING);
    assert!(news.len() == 1 && news[0].message.contains("the files again contain the certificate"), "{news:?}");
    assert_eq!(certificates.rejections(), [(paths.chain.clone(), None)]);
    // The files are replaced with another valid pair.
    put(&paths.chain, &other.0);
    put(&paths.key, &other.1);
    let news = certificates.reload_changed(now, SETTLING);
    assert!(
        news.len() == 1 && news[0].message.contains("the certificate was replaced; the new one is used for b.test"),
        "{news:?}"
    );
    assert_eq!(in_force(), ["b.test"]);
}

#[test]
fn a_fifo_in_place_of_a_key_file_does_not_block() {
    let authority = TestAuthority::new("ours");
    let paths = authority.write("a", &["a.test"]);
    let certificates = live(&[&paths]);
    std::fs::remove_file(&paths.key).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&paths.key).status().unwrap().success());
    let news = certificates.reload_changed(SystemTime::now(), SETTLING);
    assert!(news[0].message.contains("not a regular file"), "{news:?}");
}

#[test]
fn pairs_that_expire_soon_or_have_too_open_permissions_cause_warnings() {
    let authority = TestAuthority::new("ours");
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let paths = authority.write_with("a", &["a.test"], &key, |params| {
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 1);
    });
    let at = |text: &str| humantime::parse_rfc3339(text).unwrap();
    let certificates = live(&[&paths]);
    let news = certificates.report_all(at("2026-02-01T00:00:00Z"));
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].message.ends_with("a.pem: used for a.test, until 2026-04-01"), "{news:?}");
    // A warning is repeated at most once a day.
    for (now, warnings) in [
        ("2026-03-01T00:00:00Z", 0),
        ("2026-03-20T00:00:00Z", 1),
        ("2026-03-20T00:00:05Z", 1),
        ("2026-03-20T00:00:10Z", 0),
        ("2026-03-21T00:00:10Z", 1),
        ("2026-04-02T00:00:00Z", 1),
        ("2026-04-03T00:00:00Z", 0),
    ] {
        let news = certificates.reload_changed(at(now), SETTLING);
        let found = news.iter().filter(|news| news.kind == CertificateEventKind::Warning).count();
        assert_eq!(found, warnings, "{now} {news:?}");
    }
    for (mode, warnings) in [(0o600, 0), (0o640, 0), (0o400, 0), (0o644, 1), (0o660, 1), (0o604, 1)] {
        std::fs::set_permissions(&paths.key, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let news = live(&[&paths]).report_all(at("2026-02-01T00:00:00Z"));
        assert_eq!(news.len(), 1 + warnings, "{mode:o} {news:?}");
    }
}
