//! An operator's list of URLs: a path or a URL a line, comments behind `#` at the beginning of a line.

use std::path::Path;

use tower_robots::check::Page;

use super::own_hosts::OwnHosts;
use super::page_set::PageSet;
use crate::input;
use crate::target_url::TargetUrl;

/// Reads a list. URLs of other hosts are those of other sites, which may share the list.
pub(crate) fn read_urls(path: &Path, hosts: &[String]) -> Result<Vec<Page>, String> {
    let octets = input::read(path).map_err(|error| error.to_string())?;
    let hosts = OwnHosts::of(hosts);
    let mut pages = PageSet::default();
    let text = octets.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&octets);
    for (number, line) in text.split(|octet| *octet == b'\n').enumerate() {
        let column = line.len() - line.trim_ascii_start().len() + 1;
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let url =
            TargetUrl::parse(line).map_err(|error| format!("{}:{}:{column}: {error}", path.display(), number + 1))?;
        pages.add(&url, &hosts);
    }
    match (pages.found, pages.of_others) {
        (0, 0) => Err(format!("{}: it lists no page", path.display())),
        (0, _) => Err(format!("{}: all of its pages are on other hosts", path.display())),
        _ => Ok(pages.into_pages()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.txt");
        std::fs::write(&path, text).unwrap();
        let pages = read_urls(&path, &["shop.example".to_owned(), "*.shop.example".to_owned()])?;
        Ok(pages.iter().map(|page| String::from_utf8_lossy(page.target()).into_owned()).collect())
    }

    #[test]
    fn paths_and_urls_of_the_site_count_once_each() {
        let text = "\u{feff}# what matters\n/\n/news/\r\nhttps://shop.example/news/#top\nhttp://www.shop.example:80/a?b=1\n\n\
                    https://other.example/elsewhere\n";
        assert_eq!(read(text).unwrap(), ["/", "/a?b=1", "/news/"]);
    }

    #[test]
    fn a_list_that_watches_nothing_says_so() {
        let error = read("# none\n\n").unwrap_err();
        assert!(error.ends_with("urls.txt: it lists no page"), "{error}");
        let error = read("https://www.shop.test/\n").unwrap_err();
        assert!(error.ends_with("urls.txt: all of its pages are on other hosts"), "{error}");
    }

    #[test]
    fn what_is_neither_is_named_with_its_line() {
        let error = read("/news/\n  news/today\n").unwrap_err();
        assert!(error.contains("urls.txt:2:3: \"news/today\""), "{error}");
        let error = read_urls(Path::new("/none/urls.txt"), &[]).unwrap_err();
        assert!(error.contains("/none/urls.txt"), "{error}");
    }
}
