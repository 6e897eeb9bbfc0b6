//! Headers of people's programs: telephones, televisions, consoles, players, readers, applications
//! and browsers.
//!
//! `tests/cases/people.txt` contains one header per line. Many are real headers of devices and
//! programs. The others are invented: they contain words of crawlers in the names of models and
//! programs, so they are hard to distinguish from the headers of crawlers.
//! `tests/cases/programs.tsv` contains headers of other programs that owners of machines run, each
//! with its source: clients for packages, clusters, backups, monitoring, offices and feeds.

use tower_robots::agent::{Agents, Recognizer, Registry};
use tower_robots::rules::RobotsTxt;

use super::agents::held;

const PEOPLE: &str = include_str!("../cases/people.txt");
const PROGRAMS: &str = include_str!("../cases/programs.tsv");

fn agents(header: &str) -> Agents {
    Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..])).agents(header.as_bytes())
}

fn is_held(header: &str) -> bool {
    agents(header).iter().any(held)
}

/// When an address or a syllable was enough evidence, 400 of 1,200 headers were treated as
/// crawlers.
#[test]
fn the_star_group_does_not_apply_to_peoples_browsers_and_apps() {
    let held: Vec<_> = PEOPLE.lines().filter(|header| is_held(header)).collect();
    assert_eq!(PEOPLE.lines().count(), 1200);
    assert!(held.is_empty(), "{} are held\n{}", held.len(), held.join("\n"));
}

/// When words and addresses were enough evidence, a quarter of these headers were treated as
/// crawlers.
#[test]
fn the_star_group_does_not_apply_to_package_backup_and_monitoring_clients() {
    let rows = PROGRAMS.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<_> = rows.map(|line| line.split_once('\t').expect("a header and its source")).collect();
    assert!(rows.len() >= 150 && rows.iter().all(|(_, source)| !source.is_empty()));
    let held: Vec<_> = rows.iter().map(|(header, _)| *header).filter(|header| is_held(header)).collect();
    assert!(held.is_empty(), "{} are held\n{}", held.len(), held.join("\n"));
}

#[test]
fn devices_and_programs_with_crawler_syllables_in_their_names_are_not_crawlers() {
    let instagram = "Mozilla/5.0 (Linux; Android 7.0; S550 Pro Build/NRD90M; wv) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Version/4.0 Chrome/64.0.3282.137 Mobile Safari/537.36 Instagram 46.0.0.15.96 Android (24/7.0; 320dpi; \
                     720x1280; CUBOT; S550 Pro; S550_Pro; mt6735; it_IT)";
    for header in [
        instagram,
        "Instagram 46.0.0.15.96 Android (24/7.0; 320dpi; 720x1280; CUBOT; S550 Pro; S550_Pro; mt6735; it_IT)",
        "SPICE_M-5365/MAUI/11A1046MP;INDEX/004;SPICE;M-5365",
        "Mozilla/4.0 (compatible; SPICE_M-5365; MAUI/11A1046MP; INDEX/005; SPICE)",
        "HbbTV/1.1.1 (;BOTECH;;;;) Maple;2014",
        "Mozilla/5.0 (compatible; ANTGalio/3.3.0; Linux2.6) HbbTV/1.1.1",
        "NCBrowser/2.3 (http://www.ncbrowser.com)",
        "Avant Browser/1.2.789rel1 (http://www.avantbrowser.com)",
        "Podbean/Android App 8.3.2 (http://podbean.com)",
        "Fountain/0.2.6 iOS https://www.fountain.fm",
        "XBMC/10.1 r35648 (Mac OS X; 11.4.2 x86_64; http://www.xbmc.org)",
        "gPodder/3.10.1 (+http://gpodder.org/) Linux",
        "castero/0.8.4 (https://github.com/xgi/castero)",
        // Media players and radio stations.
        "ExampleMediaPlayer/1.19 (+https://player.example)",
        "Example Launcher/2.6 (+http://games.example; Windows)",
        "Peapod/1.0 +http://www.peapodpy.example",
        "Turtle/1.0 (https://turtle.fm)",
        "http://c.exampleradio.example/s:",
        "Example Internet Reader/2.0 (compatible; Windows-Media-Player/10)",
        "Mozilla/3.0 (compatible; Example Synchronizer 21.7)",
        // Crawlers' words in the names of desktop programs and applications.
        "SpiderMahjong/1.2 (Macintosh; Intel Mac OS X 10_15)",
        "Index Cards/4 (Windows NT 10.0)",
        "Mozilla/5.0 (iPad; CPU OS 16_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/20B82 RobotLab/3",
        "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0; Bot Toolbar 3.1; .NET CLR 2.0.50727)",
        "Robot TV NetCast.TV-2012 Mozilla/5.0 (Linux) WebKit/531",
    ] {
        assert!(!is_held(header), "{:?}: {header}", agents(header));
    }
    assert_eq!(agents("python-urllib3/1.26.5").first().class().as_str(), "library");
}
