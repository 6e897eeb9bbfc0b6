//! The sitemaps that a robots.txt names.

use super::check;
use super::zoo::{Reply, Zoo, gzip, response};
use super::{Checked, URL};

/// A sitemap of so many URLs of a site.
fn sitemap(site: &str, urls: usize) -> String {
    let urls: String = (0..urls).map(|number| format!("<url><loc>{site}/{number}</loc></url>")).collect();
    format!("<?xml version=\"1.0\"?>\n<urlset>{urls}</urlset>")
}

/// What is found about a site whose robots.txt has these lines, and the sitemaps that are shown.
fn found(lines: &'static str, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let zoo = Zoo::start(move |asked| {
        let xml = |body: &[u8]| Reply::Octets(response("200 OK", &["Content-Type: application/xml"], body));
        match asked.target.as_str() {
            "/robots.txt" => {
                let body = format!("User-agent: *\nDisallow: /private/\n\n{lines}");
                Reply::Octets(response("200 OK", &["Content-Type: text/plain"], body))
            }
            "/good.xml" => xml(sitemap(URL, 3).as_bytes()),
            "/packed.xml.gz" => xml(&gzip(sitemap(URL, 4).as_bytes())),
            "/index.xml" => {
                xml(b"<sitemapindex><sitemap><loc>http://example.com:8080/good.xml</loc></sitemap></sitemapindex>")
            }
            "/list.txt" => xml(b"http://example.com:8080/a\nhttp://example.com:8080/b\n"),
            "/staging.xml" => xml(sitemap("http://staging.example.com", 2).as_bytes()),
            "/many.xml" => xml(sitemap(URL, 50_001).as_bytes()),
            "/huge.xml" => {
                // Packed once and not as a whole, which would take the time that the client has.
                let huge = [gzip(b"<urlset>"), gzip(&[b' '; 1 << 20]).repeat(50)].concat();
                Reply::Octets(response("200 OK", &["Content-Encoding: gzip"], huge))
            }
            "/feed.xml" => xml(format!("<rss><channel><item><link>{URL}/1</link></item></channel></rss>").as_bytes()),
            "/images.xml" => xml(format!(
                "<urlset>\n<url><loc >\n{URL}/1?a&amp;b\n</loc><image:image><image:loc>http://cdn.example.net/1.png</image:loc>\
                 </image:image></url>\n</urlset>"
            )
            .as_bytes()),
            "/broken.xml" => xml(sitemap("http://staging.example.com", 2).replace("</urlset>", "\n</url>").as_bytes()),
            "/empty.xml" => xml(b" \n"),
            "/page.xml" => xml(b"<!DOCTYPE html><html></html>"),
            "/moved.xml" => Reply::Octets(super::zoo::redirect("301 Moved", "/good.xml")),
            _ => Reply::Octets(response("404 Not Found", &[], "")),
        }
    });
    let mut command = check(&[URL], &[zoo.rule("example.com", 8080), zoo.rule("cdn.example.net", 80)]);
    let checked = Checked::of(command.args(arguments));
    let text = |value: &serde_json::Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let findings =
        checked.findings.iter().map(|finding| format!("{} {}", text(finding, "code"), text(finding, "message")));
    let sitemaps = checked.answers.as_ref().unwrap()["sitemaps"].as_array().cloned().unwrap_or_default();
    let shown = sitemaps
        .iter()
        .map(|sitemap| format!("{} {} {}", text(sitemap, "url"), text(sitemap, "answer"), sitemap["urls"]));
    (findings.collect(), shown.collect())
}

#[test]
fn good_sitemaps_of_every_kind_are_counted() {
    let lines = "Sitemap: http://example.com:8080/good.xml\nSitemap: http://example.com:8080/packed.xml.gz\n\
                 Sitemap: http://example.com:8080/index.xml\nSitemap: http://example.com:8080/list.txt\n\
                 Sitemap: http://example.com:8080/moved.xml\nSitemap: http://example.com:8080/good.xml\n\
                 Sitemap: http://example.com:8080/feed.xml\nSitemap: http://example.com:8080/images.xml\n";
    let (findings, shown) = found(lines, &["--sitemap"]);
    assert_eq!(findings, [""; 0]);
    let want = [
        ("good.xml", 3),
        ("packed.xml.gz", 4),
        ("index.xml", 1),
        ("list.txt", 2),
        ("moved.xml", 3),
        ("feed.xml", 1),
        ("images.xml", 1),
    ];
    assert_eq!(shown, want.map(|(name, urls)| format!("http://example.com:8080/{name} 200 OK {urls}")));
    assert_eq!(found(lines, &[]), (vec![], vec![]), "without --sitemap none is fetched");
}

#[test]
fn what_is_wrong_with_a_sitemap_is_found() {
    for (line, want) in [
        ("Sitemap: http://example.com:8080/none.xml", "sitemap-failed 404 Not Found: "),
        ("Sitemap: http://example.com:8080/page.xml", "sitemap-kind it is no sitemap"),
        ("Sitemap: http://example.com:8080/empty.xml", "sitemap-kind it is empty"),
        ("Sitemap: http://example.com:8080/broken.xml", "sitemap-kind line 3, column 1: ill-formed document: "),
        ("Sitemap: http://example.com:8080/broken.xml", "sitemap-scope 2 of 2 URLs are of another site than "),
        (
            "Sitemap: http://example.com:8080/staging.xml",
            "sitemap-scope 2 of 2 URLs are of another site than http://example.com:8080, such as http://staging.example.com/0",
        ),
        ("Sitemap: http://example.com:8080/many.xml", "sitemap-size it has 50,001 URLs: "),
        ("Sitemap: http://example.com:8080/huge.xml", "sitemap-size it has more than 52,428,800 octets: "),
        (
            "Sitemap: http://cdn.example.net/good.xml",
            "sitemap-elsewhere the sitemap is on another host than example.com",
        ),
        ("Sitemap: ftp://example.com/good.xml", "sitemap-failed line 4 names a sitemap that no request can name: "),
    ] {
        let (findings, _) = found(line, &["--sitemap"]);
        let starts: Vec<_> = findings.iter().map(|finding| finding.starts_with(want)).collect();
        assert!(starts.contains(&true), "{line}: {findings:#?}");
    }
}

#[test]
fn no_file_has_a_site_flooded() {
    let many: String = (0..600).map(|number| format!("Sitemap: http://example.com:8080/{number}.xml\n")).collect();
    let (findings, shown) = found(many.leak(), &["--sitemap"]);
    assert_eq!(shown.len(), 50);
    let last = "sitemap-size the file names more than 50 sitemaps: the others were not fetched";
    assert!(findings.iter().any(|finding| finding == last), "{findings:#?}");
}
