//! Tests the sitemaps that a robots.txt names.

use super::{Checked, URL, check, rule};
use crate::harness::*;

/// Returns a sitemap with this many URLs of a site.
fn sitemap(site: &str, urls: usize) -> String {
    let urls: String = (0..urls).map(|number| format!("<url><loc>{site}/{number}</loc></url>")).collect();
    format!("<?xml version=\"1.0\"?>\n<urlset>{urls}</urlset>")
}

/// Returns the findings about a site whose robots.txt has these lines, and the sitemaps in the
/// output.
fn found(lines: &'static str, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let server = Origin::answering(move |asked| {
        let text = match asked.target.as_str() {
            "/robots.txt" => {
                let body = format!("User-agent: *\nDisallow: /private/\n\n{lines}");
                return response("200 OK", &["Content-Type: text/plain"], body);
            }
            "/packed.xml.gz" => {
                return response("200 OK", &["Content-Type: application/xml"], gzip(sitemap(URL, 4)));
            }
            "/huge.xml" => {
                // The sitemap is compressed in parts, because compressing it as a whole would take
                // too long.
                let huge = [gzip("<urlset>"), gzip([b' '; 1 << 20]).repeat(50)].concat();
                return response("200 OK", &["Content-Encoding: gzip"], huge);
            }
            "/moved.xml" => return redirect("301 Moved", "/good.xml"),
            "/good.xml" => sitemap(URL, 3),
            "/index.xml" => format!("<sitemapindex><sitemap><loc>{URL}/good.xml</loc></sitemap></sitemapindex>"),
            "/list.txt" => format!("{URL}/a\n{URL}/b\n"),
            "/staging.xml" => sitemap("http://staging.example.com", 2),
            "/many.xml" => sitemap(URL, 50_001),
            "/feed.xml" => format!("<rss><channel><item><link>{URL}/1</link></item></channel></rss>"),
            "/images.xml" => format!(
                "<urlset>\n<url><loc >\n{URL}/1?a&amp;b\n</loc><image:image><image:loc>http://cdn.example.net/1.png</image:loc>\
                 </image:image></url>\n</urlset>"
            ),
            "/broken.xml" => sitemap("http://staging.example.com", 2).replace("</urlset>", "\n</url>"),
            "/empty.xml" => " \n".to_owned(),
            "/page.xml" => "<!DOCTYPE html><html></html>".to_owned(),
            _ => return response("404 Not Found", &[], ""),
        };
        response("200 OK", &["Content-Type: application/xml"], text)
    });
    let rules = [("example.com", 8080), ("cdn.example.net", 80)].map(|(host, port)| rule(server.address, host, port));
    let mut command = check(&[URL], &rules);
    let checked = Checked::of(command.args(arguments));
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let findings =
        checked.findings.iter().map(|finding| format!("{} {}", text(finding, "code"), text(finding, "message")));
    let sitemaps = checked.answers.as_ref().unwrap()["sitemaps"].as_array().cloned().unwrap_or_default();
    let shown = sitemaps
        .iter()
        .map(|sitemap| format!("{} {} {}", text(sitemap, "url"), text(sitemap, "answer"), sitemap["urls"]));
    (findings.collect(), shown.collect())
}

#[test]
fn the_urls_of_valid_sitemaps_of_every_kind_are_counted() {
    let names = "good.xml packed.xml.gz index.xml list.txt moved.xml good.xml feed.xml images.xml";
    let lines: String = names.split(' ').map(|name| format!("Sitemap: {URL}/{name}\n")).collect();
    let lines: &str = lines.leak();
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
fn a_sitemap_on_another_host_is_reported_without_fetching_it() {
    let line = "Sitemap: https://www.shop.example/sitemap.xml\nSitemap: https://www.shop.example/sitemap.xml";
    let want = "sitemap-elsewhere the sitemap is on another host than the site (example.com)";
    assert_eq!(found(line, &[]), (vec![want.to_owned()], vec![]));
}

#[test]
fn problems_of_a_sitemap_are_found() {
    let of_another = "sitemap-scope 2 of 2 URLs belong to a site other than ";
    let staging = format!("{of_another}{URL}, such as http://staging.example.com/0");
    for (url, want) in [
        ("/none.xml", "sitemap-failed 404 Not Found: "),
        ("/page.xml", "sitemap-kind the document is not a sitemap"),
        ("/empty.xml", "sitemap-kind the sitemap is empty"),
        ("/broken.xml", "sitemap-kind line 3, column 1: ill-formed document: "),
        ("/broken.xml", of_another),
        ("/staging.xml", &staging),
        ("/many.xml", "sitemap-size the sitemap has 50,001 URLs: "),
        ("/huge.xml", "sitemap-size the sitemap has more than 52,428,800 bytes: "),
        (
            "http://cdn.example.net/good.xml",
            "sitemap-elsewhere the sitemap is on another host than the site (example.com)",
        ),
        ("ftp://example.com/good.xml", "sitemap-failed line 4 names an invalid sitemap URL: "),
    ] {
        let site = if url.starts_with('/') { URL } else { "" };
        let (findings, _) = found(format!("Sitemap: {site}{url}").leak(), &["--sitemap"]);
        assert!(findings.iter().any(|finding| finding.starts_with(want)), "{url}: {findings:#?}");
    }
}

#[test]
fn only_the_first_50_sitemaps_of_a_file_are_fetched() {
    let many: String = (0..600).map(|number| format!("Sitemap: http://example.com:8080/{number}.xml\n")).collect();
    let (findings, shown) = found(many.leak(), &["--sitemap"]);
    assert_eq!(shown.len(), 50);
    let last = "sitemap-size the file names more than 50 sitemaps: only the first 50 were fetched";
    assert!(findings.iter().any(|finding| finding == last), "{findings:#?}");
}
