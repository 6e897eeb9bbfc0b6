//! A crawler that checks robots.txt before it fetches a page. It handles the status code of
//! robots.txt as RFC 9309, section 2.3.1, requires, obeys the crawl delay, and prints the sitemaps.
//!
//!     cargo run --example polite_crawler --features tls -- https://example.com / /drafts/x

use std::error::Error;
use std::io::Write;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use tower_robots::rules::{AgentRules, RobotsTxt};
use tower_robots::source::fetch::{CrawlerCache, CrawlerReading, FetchRequest, FetchUrl, Fetcher};

const AGENT: &str = "OurBot/1.0 (+https://example.com/our-bot)";

/// Maximum crawl delay that this crawler obeys. If a site asks for a longer one, the crawler does
/// not fetch anything, because fetching faster would ignore the robots.txt.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Fetches the paths that are allowed. Returns one line per path with the result.
async fn crawl(site: FetchUrl, paths: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let fetcher = Fetcher::builder().user_agent(HeaderValue::from_static(AGENT)).start()?;
    // A crawler of several sites needs one cache for each.
    let mut cache = CrawlerCache::new(site.to_string())?;
    let mut lines = Vec::new();
    for path in paths {
        let ours = rules(&fetcher, &site, &mut cache).await?;
        if !ours.allows(path) {
            let line = ours.verdict(path).line().unwrap_or_default();
            lines.push(format!("{path}: disallowed by line {line}"));
            continue;
        }
        tokio::time::sleep(delay(&ours)?).await;
        // The robots.txt applies only to this site. A path cannot lead to another site, because
        // `with_target` keeps scheme and host.
        let answer = fetcher.exchange(FetchRequest::new(site.with_target(path.parse()?))).await?;
        lines.push(format!("{path}: {}, {} bytes", answer.status.as_u16(), answer.body.len()));
    }
    let ours = rules(&fetcher, &site, &mut cache).await?;
    let sitemaps = ours.document().sitemaps();
    lines.extend(sitemaps.map(|sitemap| format!("sitemap: {}", sitemap.as_str().unwrap_or("not UTF-8"))));
    Ok(lines)
}

/// Returns the current rules for this crawler. Fetches the robots.txt if the cache is empty or its
/// copy is too old, so this function must be called before each page.
async fn rules(fetcher: &Fetcher, site: &FetchUrl, cache: &mut CrawlerCache) -> Result<AgentRules, Box<dyn Error>> {
    if cache.is_due(SystemTime::now()) {
        let answer = fetcher.fetch(&site.join(b"/robots.txt")?, cache.validators()).await;
        cache.record(answer, SystemTime::now());
    }
    match cache.permission(SystemTime::now()) {
        CrawlerReading::Rules(file) => Ok(RobotsTxt::parse(file).for_agent(AGENT)),
        CrawlerReading::AllowAll => Ok(RobotsTxt::parse("").for_agent(AGENT)),
        _ => Err("the robots.txt cannot be read now: try again later".into()),
    }
}

/// Returns the time to wait before each request.
fn delay(ours: &AgentRules) -> Result<Duration, String> {
    let delay = ours.crawl_delay().map_or(Duration::from_secs(1), |delay| delay.interval());
    if delay <= MAX_DELAY {
        return Ok(delay);
    }
    let seconds = delay.as_secs();
    Err(format!("the site asks for {seconds} s between requests, which is too long: do not crawl this site"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let site = arguments.next().ok_or("give a site and paths: https://example.com / /drafts/x")?;
    let paths: Vec<_> = arguments.collect();
    for line in crawl(site.parse()?, &paths).await? {
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use axum::routing::get;

    /// Returns the lines for a site on the loopback interface. The site responds to requests for
    /// robots.txt with the result of `robots`.
    async fn crawled<R: IntoResponse + 'static>(
        robots: impl Fn() -> R + Clone + Send + Sync + 'static,
    ) -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let app =
            Router::new().route("/robots.txt", get(async move || robots())).route("/{*path}", get(async || "a page"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let site = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, app).await });
        super::crawl(site.parse()?, &["/a".to_owned(), "/drafts/x".to_owned()]).await
    }

    #[tokio::test]
    async fn the_crawler_fetches_only_allowed_pages_and_stops_on_an_error_or_a_long_delay() {
        let robots = "User-agent: OurBot\nDisallow: /drafts/\nCrawl-delay: 0.1\nSitemap: https://example.com/s.xml\n";
        let lines = crawled(move || robots).await.expect("a robots.txt");
        assert_eq!(
            lines,
            ["/a: 200, 6 bytes", "/drafts/x: disallowed by line 2", "sitemap: https://example.com/s.xml"]
        );
        // If the server responds to robots.txt with an error, everything is disallowed until the
        // server works again.
        let error = crawled(|| StatusCode::SERVICE_UNAVAILABLE).await.expect_err("503");
        assert!(error.to_string().contains("try again later"), "{error}");
        let error = crawled(|| "User-agent: *\nCrawl-delay: 86400\n").await.expect_err("a day");
        assert!(error.to_string().contains("86400 s between requests"), "{error}");
    }

    #[tokio::test]
    async fn the_crawler_fetches_robots_txt_again_when_its_copy_is_stale() {
        static REQUESTS: AtomicUsize = AtomicUsize::new(0);
        let robots = || {
            let rule = ["Allow", "Disallow"][REQUESTS.fetch_add(1, Ordering::Relaxed).min(1)];
            ([("cache-control", "no-cache")], format!("User-agent: *\n{rule}: /\nCrawl-delay: 0.1\n"))
        };
        let lines = crawled(robots).await.expect("a robots.txt");
        assert_eq!(lines, ["/a: 200, 6 bytes", "/drafts/x: disallowed by line 2"]);
    }
}
