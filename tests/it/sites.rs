//! Tests which robots.txt applies to a URL, and which one applies to a request.

use serde_json::Value;
use tower_robots::internals::CompileCache;
use tower_robots::internals::Origin;
use tower_robots::live::LiveRobots;
use tower_robots::source::{HostMap, SiteMap};

#[test]
fn rfc_2_3_a_robots_txt_is_valid_for_its_scheme_host_and_port() {
    let spec: Value = serde_json::from_str(include_str!("../cases/spec.json")).unwrap();
    let cases = spec["origin_scope"].as_array().unwrap();
    assert!(cases.len() >= 7);
    let mut asked = 0;
    for case in cases {
        let robots = case["robots_url"].as_str().unwrap();
        let covers = |url: &str| Origin::of_robots_txt(robots).is_some_and(|origin| origin.covers(url));
        for url in case["valid_for"].as_array().unwrap() {
            assert!(covers(url.as_str().unwrap()), "{robots} is valid for {url}");
            asked += 1;
        }
        for url in case["not_valid_for"].as_array().unwrap() {
            assert!(!covers(url.as_str().unwrap()), "{robots} is not valid for {url}");
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked}");
}

#[test]
fn rfc_2_3_different_spellings_of_an_origin_are_equal() {
    let origin = |url| Origin::of_robots_txt(url).unwrap();
    for (one, other) in [
        ("http://example.com/robots.txt", "HTTP://Example.COM.:80/a?b#c"),
        ("https://[::1]/robots.txt", "https://[0:0::1]:443"),
        ("http://user:word@example.com:/robots.txt", "http://example.com?x"),
        #[cfg(feature = "idn")]
        ("http://m\u{fc}ller.example/robots.txt", "http://xn--mller-kva.example/"),
        ("ftp://example.com:21/robots.txt", "ftp://example.com/"),
    ] {
        assert!(origin(one).covers(other), "{one} {other}");
    }
    for (one, other) in [
        ("http://example.com/robots.txt", "http://example.com:443/"),
        ("http://example.com/robots.txt", "http://example.com:99999/"),
        ("http://example.com/robots.txt", "http://example.com@other.example/"),
        ("http://example.com/robots.txt", "//example.com/"),
        ("http://[::1]/robots.txt", "http://[::2]/"),
        ("http://example.com/robots.txt", "http://example.com.evil.example/"),
    ] {
        assert!(!origin(one).covers(other), "{one} {other}");
    }
    for url in
        ["http://a/robots.txt?x", "http://a/Robots.txt", "gopher://a/robots.txt", "a/robots.txt", "http:///robots.txt"]
    {
        assert_eq!(Origin::of_robots_txt(url), None, "{url}");
    }
}

fn live(text: &str) -> LiveRobots {
    LiveRobots::text(text).open().unwrap()
}

#[test]
fn equal_files_share_their_compiled_form() {
    let compile_cache = CompileCache::default();
    let open = |text: &str| LiveRobots::text(text).compile_cache(&compile_cache).open().unwrap();
    let rules = |live: &LiveRobots| std::ptr::from_ref(live.snapshot().content.as_ref().unwrap().rules()) as usize;
    let (one, same, other) = (open("# a\n"), open("# a\n"), open("# b\n"));
    assert_eq!(rules(&one), rules(&same));
    assert_ne!(rules(&one), rules(&other));
    let strict = tower_robots::check::Options::default().exempt_paths(["/x/"]).unwrap();
    let apart = LiveRobots::text("# a\n").compile_cache(&compile_cache).check(strict).open().unwrap();
    assert_ne!(rules(&one), rules(&apart), "another check has other findings");
    assert_ne!(rules(&one), rules(&live("# a\n")), "another cache");
    let before = format!("{compile_cache:?}");
    for number in 0..2_000 {
        drop(open(&format!("# {number}\n")));
    }
    assert_ne!(before, format!("{compile_cache:?}"));
    let versions: usize =
        format!("{compile_cache:?}").chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    assert!(versions < 500, "it holds on to nothing: {versions}");
}

#[cfg(feature = "layer")]
#[tokio::test]
async fn requests_use_the_site_of_their_host_and_replaced_sites_apply_at_once() {
    use http::{Request, Response, StatusCode};
    use tower::{ServiceBuilder, ServiceExt, service_fn};
    use tower_robots::layer::RobotsLayer;

    let mut hosts = HostMap::new();
    hosts.insert("a.example", live("# a\n")).unwrap();
    hosts.insert("xn--mnchen-3ya.example", live("# m\n")).unwrap();
    hosts.insert("b.example:443", live("# b\n")).unwrap();
    let sites = SiteMap::new(hosts);
    let inner = service_fn(|_: Request<()>| async {
        let response =
            Response::builder().status(StatusCode::IM_A_TEAPOT).body(http_body_util::Full::<bytes::Bytes>::default());
        Ok::<_, std::convert::Infallible>(response.unwrap())
    });
    let service = ServiceBuilder::new().layer(RobotsLayer::new(&sites)).service(inner);
    let ask = |uri: &str, host: &[u8]| {
        let request = Request::builder().uri(uri).header("host", host).body(()).unwrap();
        let service = service.clone();
        async move { service.oneshot(request).await.unwrap().status() }
    };
    let (ours, passed) = (StatusCode::OK, StatusCode::IM_A_TEAPOT);
    assert_eq!(ask("/robots.txt", b"A.example.:80").await, ours);
    assert_eq!(ask("/robots.txt", b"xn--mnchen-3ya.example").await, ours);
    #[cfg(feature = "idn")]
    assert_eq!(ask("/robots.txt", "m\u{fc}nchen.example".as_bytes()).await, ours);
    assert_eq!(ask("/robots.txt", b"b.example").await, ours);
    assert_eq!(ask("http://b.example/robots.txt", b"b.example").await, passed, "the scheme's port is another");
    assert_eq!(ask("/robots.txt", b"c.example").await, passed);
    assert_eq!(ask("/robots.txt", b"\xff").await, passed);
    let mut hosts = HostMap::new();
    hosts.insert("c.example", live("# c\n")).unwrap();
    sites.replace(hosts);
    assert_eq!(ask("/robots.txt", b"c.example").await, ours);
    assert_eq!(ask("/robots.txt", b"a.example").await, passed);
}
