//! Reads the pages that gates watch anew: those of sitemaps, from where the site serves them, and those that search engines
//! request most.
//!
//! Nothing waits for it: a version is compared with the pages that are known. What cannot be read leaves the pages that are known
//! as they are, and a note.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower_robots::check::Page;
use tower_robots::rules::RobotsTxt;
use tower_robots::source::fetch::FetchUrl;

use super::served_site::ServedSite;
use super::site_documents::SiteDocuments;
use super::site_list::Sites;
use super::site_pages::{NoteAbout, room_for_pages};
use crate::board::{Board, seconds};
use crate::pages::{OwnHosts, SitemapSource, SitemapWalk};

/// How often, and on every request to reload.
const EVERY: Duration = Duration::from_secs(3600);

/// How long the sites that follow wait for one: more than its documents take, unless a file system hangs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Sites {
    /// Reads the pages of the sites for which that is due, one site after the other: whatever its sitemaps hold, what is held of them
    /// while they are read is held once.
    pub(crate) async fn refresh_pages(self: Arc<Self>, board: Option<Arc<Board>>) {
        let is_due = |site: &ServedSite| site.gate.is_on() && !site.has_directory() && site.gate.pages.take_due(EVERY);
        let due: Vec<usize> =
            self.iter().enumerate().filter(|(_, site)| is_due(site)).map(|(number, _)| number).collect();
        for number in due {
            let Some(pages) = self.iter().nth(number).map(|site| site.gate.pages.clone()) else { continue };
            // One whose files hang keeps one thread, however often it is due.
            let Some(reading) = pages.begin_reading() else { continue };
            let (this, board, runtime) = (Arc::clone(&self), board.clone(), Handle::current());
            let refresh = move || {
                let _reading = reading;
                let Some(site) = this.iter().nth(number) else { return };
                if let Some(board) = board {
                    let requested = board.requested_much(&site.name, seconds(SystemTime::now()));
                    site.gate.pages.set_requested(requested.iter().map(Page::new).collect());
                }
                this.refresh_sitemaps(site, runtime);
            };
            // The panic hook has reported a panic.
            if timeout(PATIENCE, spawn_blocking(refresh)).await.is_err() {
                let why = format!("sitemaps not read: they are still being read after {} s", PATIENCE.as_secs());
                pages.note(NoteAbout::Sitemaps, Some(why));
            }
        }
    }

    /// Blocks for as long as the documents take, which is bounded.
    fn refresh_sitemaps(&self, site: &ServedSite, runtime: Handle) {
        let pages = &site.gate.pages;
        if !site.gate.reads_sitemaps() {
            pages.set_sitemaps(Vec::new());
            return pages.note(NoteAbout::Sitemaps, None);
        }
        let opener = self.opener();
        let documents = match SiteDocuments::of(&site.settings, || opener.fetcher(), runtime) {
            Ok(Some(documents)) => documents,
            Ok(None) => return,
            Err(why) => return pages.note(NoteAbout::Sitemaps, Some(format!("sitemaps not read: {why}"))),
        };
        let (named, usual) = sitemaps_of(site, &documents.hosts);
        let fetch = |source: &SitemapSource| match source {
            SitemapSource::Url(url) => documents.open(url),
            SitemapSource::File(_) => Ok(None),
        };
        let known = pages.of_sitemaps();
        let mut walk = SitemapWalk::within(&documents.hosts, self.room_for_pages_of(site));
        walk.walk(named.into_iter().map(SitemapSource::Url), fetch);
        let (of_named, read_of_named) = (walk.trouble(), walk.read);
        walk.walk(usual.map(SitemapSource::Url), fetch);
        // What answers there for a site that has no sitemap, such as a page of an application, is no trouble.
        let has_usual = walk.read > read_of_named;
        let mut trouble = if known > 0 || has_usual { walk.trouble() } else { of_named };
        let has_read = walk.read > 0;
        let read = walk.into_pages();
        if (trouble.is_none() && (has_read || known == 0)) || read.len() > known {
            if let Err(error) = opener.saved_pages(&site.name).save(&read) {
                trouble = Some(format!("they are not kept over a restart: {error}"));
            }
            pages.set_sitemaps(read);
        } else if trouble.is_none() {
            trouble = Some("there is none any more".to_owned());
        }
        let kept = match pages.of_sitemaps() {
            0 => String::new(),
            count => format!("; the gate watches the {count} pages that are known"),
        };
        pages.note(NoteAbout::Sitemaps, trouble.map(|why| format!("sitemaps not read: {why}{kept}")));
    }

    /// How many octets the pages of a site's sitemaps may take in memory.
    fn room_for_pages_of(&self, site: &ServedSite) -> usize {
        let others = self.iter().filter(|other| !std::ptr::eq(*other, site));
        let others =
            others.filter(|other| other.gate.reads_sitemaps()).map(|other| other.gate.pages.held_of_sitemaps());
        room_for_pages(self.iter().filter(|site| site.gate.reads_sitemaps()).count(), others)
    }
}

/// The sitemaps of a site: those that the version that is live names, and the one that waits, on the site's own hosts; and the usual
/// one, where it is none of them and a host is known to request it from.
fn sitemaps_of(site: &ServedSite, hosts: &OwnHosts) -> (Vec<FetchUrl>, Option<FetchUrl>) {
    let mut named: Vec<FetchUrl> = Vec::new();
    let mut add = |robots: &RobotsTxt| {
        for sitemap in robots.sitemaps() {
            let url = std::str::from_utf8(sitemap.value).ok().and_then(|url| url.parse::<FetchUrl>().ok());
            named.extend(url.filter(|url| hosts.has(url.authority().as_bytes())));
        }
    };
    if let Some(live) = site.robots.only() {
        if let Some(content) = live.with(|snapshot| snapshot.content.clone()) {
            add(content.robots());
        }
        if let Some(pending) = live.status().pending.as_ref() {
            add(&RobotsTxt::parse(pending.bytes().clone()));
        }
    }
    let usual = match (named.first(), hosts.name.as_deref()) {
        (Some(named), _) => named.join(b"/sitemap.xml").ok(),
        (None, Some(host)) => format!("https://{host}/sitemap.xml").parse().ok(),
        (None, None) => None,
    };
    let usual = usual.filter(|usual| !named.contains(usual));
    (named, usual)
}
