//! Tests how much memory crafted sitemaps need, and whether requests are still served.

use std::fmt::Write as _;

use crate::harness::*;

/// Memory that the sitemaps of all sites together may use, in addition to other memory.
const BUDGET_KIB: u64 = 64 << 10;

/// Decompressed size of a sitemap, in bytes. It is nearly the maximum that the protocol allows.
const UNPACKED: usize = 49 << 20;

/// Number of sites, and of sitemaps per site. With `ROBOTSD_LONG`, there are ten sites with 50
/// sitemaps each, and the maximum is 200. Even two sitemaps have more pages than the budget allows.
fn scale() -> (usize, usize) {
    if is_long() { (10, 50) } else { (2, 1) }
}

/// Returns a sitemap with unclosed elements, bytes that are not UTF-8, and pages with the maximum
/// length. Also returns the line on which it ends.
fn hostile_sitemap() -> (Arc<[u8]>, usize) {
    let mut block = Vec::new();
    let junk = if is_long() { 2036 } else { 200 };
    for number in 0..256 {
        block.extend_from_slice(format!("<url><loc>/{number:0>2000}</loc><x>").as_bytes());
        block.resize(block.len() + junk, 0xFF);
        block.extend_from_slice(b"</x></url>\n");
    }
    let mut all = gzip(b"<urlset>");
    let blocks = UNPACKED / block.len();
    all.extend(gzip(&block).repeat(blocks));
    (all.into(), 256 * blocks + 1)
}

/// Creates a config with several sites of one upstream. Each site has its own robots.txt.
fn site(upstream: &Origin, robots: &[String]) -> Folder {
    let config = Config::new().keys("mode = \"observe\"\nstate_dir = \"state\"").admin();
    let with_site = |config: Config, (site, robots): (usize, &String)| {
        let upstreams = format!("upstreams = [\"http://{}\"]", upstream.address);
        let keys = format!("hosts = [\"s{site}.test\"]\n{upstreams}\nrobots.path = \"{site}.txt\"");
        config.site(&format!("s{site}"), keys).file(&format!("{site}.txt"), robots)
    };
    robots.iter().enumerate().fold(config, with_site).folder()
}

fn read_sitemaps(running: &Running) {
    running.command(&["reload"]).succeeded();
}

/// Returns the note about the sitemaps of a site; `None` if there is none.
fn note(running: &Running, site: usize) -> Option<String> {
    let lines = running.all("gate");
    let mut notes = lines.iter().filter(|line| line["level"] == "warn");
    let of_site = format!("s{site}: the sitemaps cannot be read: ");
    notes.find_map(|note| Some(message(note).split_once(&of_site)?.1.to_owned()))
}

#[test]
fn hostile_sitemaps_of_many_sites_stay_within_one_memory_budget_and_delay_no_request() {
    let (sites, sitemaps) = scale();
    let index = (0..sites * sitemaps).fold(String::new(), |mut index, number| {
        let site = number / sitemaps;
        let _ = write!(index, "<sitemap><loc>http://s{site}.test/{}.gz</loc></sitemap>", number % sitemaps);
        index
    });
    let (hostile, last_line) = hostile_sitemap();
    let mut documents: Vec<(String, Arc<[u8]>)> =
        (0..sitemaps).map(|number| (format!("/{number}.gz"), Arc::clone(&hostile))).collect();
    documents.push(("/sitemap.xml".to_owned(), format!("<sitemapindex>{index}</sitemapindex>").into_bytes().into()));
    documents.push(("/page".to_owned(), (*b"hello").into()));
    let upstream = Origin::of(documents);
    let folder = site(&upstream, &vec!["User-agent: *\nDisallow: /cart/\n".to_owned(); sites]);
    let mut running = folder.start();

    let mut kept = Kept::open(running.address, "s0.test");
    let client: Client<'_> = Box::new(|| {
        assert_eq!(kept.get("/page", FIREFOX), (200, "hello".to_owned()));
        thread::sleep(Duration::from_millis(5));
    });
    let (before, start) = while_asking([client], |asking| {
        asking.wait_for_more(100);
        let (before, start, turns) = (running.resident_kib(), Instant::now(), asking.turns());
        read_sitemaps(&running);
        let patience = PATIENCE + Duration::from_secs(30) * u32::try_from(sites).unwrap();
        while !(0..sites).all(|site| note(&running, site).is_some()) {
            assert!(start.elapsed() < patience, "not within {patience:?}");
            thread::sleep(Duration::from_millis(20));
        }
        // These requests were answered while sitemaps were read. No request may wait for the
        // sitemaps.
        let answered = asking.turns() - turns;
        assert!(answered >= 20, "{answered} requests were answered meanwhile");
        (before, start)
    });
    let taken = running.peak_kib() - before;
    println!(
        "{sites} sites of {sitemaps} sitemaps in {:?}: {} MiB above {} MiB",
        start.elapsed(),
        taken >> 10,
        before >> 10
    );
    assert!(taken <= BUDGET_KIB, "{taken} KiB");
    for site in 0..sites {
        let note = note(&running, site).unwrap();
        let faults = [
            format!(".gz:{last_line}:1: the sitemap is incomplete"),
            ".gz: the document was not read in time: all documents of the site together must be read within 10 s"
                .to_owned(),
        ];
        assert!(note.starts_with(&format!("http://s{site}.test/0.gz")), "{note}");
        assert!(faults.iter().any(|fault| note.contains(fault)), "{note}");
    }
    // The pages that are saved for a restart must be limited like those in memory.
    let saved = || -> u64 {
        let files = fs::read_dir(folder.at("state/pages")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    };
    wait_until("saved pages", || saved() > 0);
    running.end();
    assert!(saved() <= BUDGET_KIB << 10, "{} bytes", saved());
}

#[test]
fn a_sitemap_bomb_is_logged_with_its_url_and_reason_and_stays_within_the_memory_budget() {
    const SIZE: &str = ": the sitemap is larger than 50 MiB";
    let mib = |begin: &str, byte: u8| {
        let mut bytes = begin.as_bytes().to_vec();
        bytes.resize(1 << 20, byte);
        gzip(&bytes)
    };
    // Each file has about 50 KiB and decompresses to 55 MiB.
    let of = |begin: &str, byte| [gzip(begin.as_bytes()), mib("", byte).repeat(55)].concat();
    let good = "<urlset><url><loc>/good</loc></url></urlset>";
    let long = ": a tag, comment or text is longer than 2 MiB";
    let mut bursting: Vec<(Vec<u8>, &str)> = vec![
        (of("", b' '), SIZE),
        ([gzip(good.as_bytes()), gzip(b"").repeat(10_000), gzip(b"<")].concat(), ":1:45: syntax error"),
        (gzip(good.as_bytes())[..30].to_vec(), ": the sitemap cannot be decompressed: "),
        ([gzip(good.as_bytes()), b"garbage".to_vec()].concat(), ": the sitemap cannot be decompressed: "),
        (gzip("<a>".repeat(1 << 20).as_bytes()), ":1:100: elements are nested more than 32 levels deep"),
        (of("<urlset><a b=\"", b'x'), long),
        (of("<urlset><url><loc>", b'x'), long),
        (of("<urlset><!--", b'-'), long),
        (of("<urlset><url><loc><![CDATA[", b']'), long),
        (of("<!DOCTYPE a [<!ENTITY b \"", b'&'), long),
        (of("<urlset><", b'n'), long),
        (of("<urlset>&", b'n'), long),
        (of("https://a.test/", b'n'), long),
        (b"\xFF\xFE<\0u\0r\0l\0".to_vec(), ": the sitemap is UTF-16: save it as UTF-8"),
    ];
    if is_long() {
        // Millions of empty gzip members. If decompressing them is slow, the time limit must apply.
        bursting.push((gzip(b"").repeat((52 << 20) / gzip(b"").len()), SIZE));
    }
    let robots: Vec<String> = (0..bursting.len())
        .map(|site| format!("User-agent: *\nDisallow: /cart/\nSitemap: http://s{site}.test/{site}.xml\n"))
        .collect();
    let documents = bursting.iter().enumerate().map(|(site, (bytes, _))| (format!("/{site}.xml"), bytes.clone()));
    let upstream = Origin::of(documents);
    let folder = site(&upstream, &robots);
    let running = folder.start();
    let before = running.resident_kib();
    read_sitemaps(&running);
    for (site, (_, fault)) in bursting.iter().enumerate() {
        let note = wait_for(fault, || note(&running, site));
        assert!(note.starts_with(&format!("http://s{site}.test/{site}.xml:")), "{fault}: {note}");
        let is_late = *fault == SIZE
            && note.contains(
                ": the document was not read in time: all documents of the site together must be read within 10 s",
            );
        assert!(note.contains(fault) || is_late, "{fault}: {note}");
    }
    let taken = running.peak_kib() - before;
    println!("{} sitemaps that burst: {} MiB above {} MiB", bursting.len(), taken >> 10, before >> 10);
    assert!(taken <= BUDGET_KIB, "{taken} KiB");
}
