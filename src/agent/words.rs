//! Words that classify a header: those of browsers, platforms, libraries and robots.
//!
//! Kinds of words, not crawlers: what is one product belongs in the registry.

use std::sync::LazyLock;

use super::name_index::{NameIndex, WordHash};

/// The kinds of a whole word; several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u32);

impl Kinds {
    /// Part of the costume that browsers share; never a crawler's name.
    pub(super) const BROWSER: Self = Self(1);
    /// The engine of a browser: with `Mozilla/` or `Opera/` in front it makes a header browser-shaped.
    pub(super) const ENGINE: Self = Self(1 << 1);
    /// A system, device or machine; never a crawler's name.
    pub(super) const PLATFORM: Self = Self(1 << 2);
    /// A word many headers hold; a crawler's name only where it stands first.
    pub(super) const GENERIC: Self = Self(1 << 3);
    /// An HTTP library or command line client.
    pub(super) const LIBRARY: Self = Self(1 << 4);
    /// A browser without a person.
    pub(super) const HEADLESS: Self = Self(1 << 5);
    /// A part of applications on people's devices.
    pub(super) const APP: Self = Self(1 << 6);
    /// A browser that does not call itself Mozilla.
    pub(super) const PLAIN_BROWSER: Self = Self(1 << 7);

    /// A word that changes how the words around it are read.
    pub(super) const SYNTAX: Self = Self(1 << 8);
    /// Inside a comment, what follows is the model of a device.
    pub(super) const DEVICE: Self = Self(1 << 9);
    /// A mark of televisions, and of phones from before they had browsers like others.
    pub(super) const APPLIANCE: Self = Self(1 << 10);
    /// What applications on people's devices run on.
    pub(super) const RUNTIME: Self = Self(1 << 11);
    /// A program that a person starts: a player, a reader, a downloader. The address beside it is its maker's.
    pub(super) const PROGRAM: Self = Self(1 << 12);
    /// A system that people sit in front of.
    pub(super) const PERSONAL: Self = Self(1 << 13);
    /// The view of an application that shows pages.
    pub(super) const WEB_VIEW: Self = Self(1 << 14);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of them that say what a product runs on.
    pub(super) const fn of_device(self) -> Self {
        Self(self.0 & (Self::APP.0 | Self::APPLIANCE.0))
    }

    /// Whether a file's name may not match here at all.
    pub(super) const fn is_costume(self) -> bool {
        self.has(Self::BROWSER.with(Self::PLATFORM))
    }
}

const SYNTAX: &str = "like with compatible build android msie konqueror mobile tablet phone tizen symbianos series60 \
    series40 bb10 blackberry webos harmonyos kaios playbook";
const DEVICE: &str = "android mobile tablet phone tizen symbianos series60 series40 bb10 blackberry webos harmonyos \
    kaios playbook";
const APPLIANCE: &str = "hbbtv ce-html nettv netcast antgalio smart-tv smarttv stb set-top midp-1.0 midp-2.0 midp-2.1 cldc-1.0 cldc-1.1 up.browser up.link ucbrowser ucweb symbianos series60 \
    series40 netfront mmp j2me novarra-vision docomo s40ovibrowser profile configuration obigo teleca maui polaris openwave jig \
    netcast.tv-2011 netcast.tv-2012 netcast.tv-2013";
const RUNTIME: &str = "cfnetwork dalvik";
const PROGRAM: &str = "xbmc xbmc4xbox kodi plex plexamp jellyfin emby boxee miro banshee rhythmbox songbird nightingale amarok \
    clementine exaile tomahawk rma audacious mopidy volumio ampache subsonic dsub squeezebox squeezeplay sonos winamp foobar2000 itunes vlc \
    mplayer smplayer mpv deadbeef quodlibet musicbee mediamonkey gpodder ipodder hpodder bashpodder castero juice doppler \
    newsbeuter newsboat snownews liferea rssowl netnewswire akregator feeddemon blogbridge omea quiterss rssguard newsfire pulp snarfer \
    reeder readkit vienna thunderbird postbox zotero calibre transmission deluge qbittorrent utorrent azureus jdownloader \
    flashget getright netants emacs gnus sage lms vox battle.net";
const PERSONAL: &str = "windows winnt macintosh mac macos iphone ipad ipod android ios ipados watchos tvos playstation nintendo xbox \
    morphos amigaos haiku beos";
const WEB_VIEW: &str = "wv";
const BROWSER: &str = "mozilla opera version mobile safari like gecko compatible with u wv rv chromium crios fxios \
    edg edge edga edgios opr opios opt iemobile iceweasel seamonkey ucbrowser samsungbrowser yabrowser yowser vivaldi \
    brave net clr media center pc infopath sv1 tablet touch profile configuration build release silk miuibrowser \
    huaweibrowser duckduckgo gsa instagram fbav fban browser khtml mobilesafari ddg electron vivobrowser";
const ENGINE: &str = "applewebkit gecko presto trident khtml msie konqueror goanna netfront chrome firefox safari \
    phantomjs servo";
const PLATFORM: &str = "windows nt win64 win32 x64 wow64 x11 linux i686 i386 x86_64 amd64 x86 arm arm64 armv7l aarch64 \
    macintosh mac os x intel ppc iphone ipad ipod android cros ubuntu debian fedora freebsd openbsd netbsd sunos unix \
    solaris beos amigaos amiga epoc macos darwin ios ipados watchos tvos symbianos series60 series40 midp-2.0 midp-1.0 cldc-1.1 cldc-1.0 \
    blackberry bb10 playstation nintendo xbox webos tizen kaios harmonyos os/2 syllable haiku morphos smarttv \
    mac_powerpc warp palmos";
const GENERIC: &str = "bot bots spider crawler robot robots crawl google java search web internet agent client fetch \
    fetcher feed link links check checker http https url site page image images news video data download downloader \
    scanner scan monitor index the code titan disco zeus harvest yahoo bing microsoft apple amazon facebook twitter \
    python php perl ruby node library lib proxy cache api app service server user test tool project research open \
    fast live mobilebot widow grub black";
const LIBRARY: &str = "curl libcurl wget python-requests python-urllib python-urllib3 python-httpx python urllib urllib2 urllib3 \
    httpx aiohttp requests go-http-client java apache-httpclient apache-httpasyncclient httpclient \
    commons-httpclient okhttp okhttp3 axios got node-fetch node undici superagent request needle guzzlehttp guzzle \
    php pear symfony httpunit libwww-perl lwp lwp-request lwp-trivial lwp::simple www-mechanize mechanize perl ruby \
    faraday typhoeus httparty http.rb excon rest-client restsharp powershell windowspowershell dart deno bun ureq \
    reqwest hyper rust isahc surf libsoup libhttp libwww winhttp wininet asynchttp asynchttpclient async-http-client \
    fasthttp resty go-resty colly gocolly postmanruntime insomnia bruno-runtime httpie aria2 lftp fetch unirest-java \
    unirest lua-resty-http luasocket cpprestsdk boost.beast poco qt neon dav davclnt cfnetwork jaunt jsoup htmlunit \
    httrack phpcrawl zgrab masscan nmap nikto sqlmap nutch snoopy webdav filedownloader wordpress drupal typo3 \
    jersey akka-http ktor ktor-client vertx reactornetty jetty restlet retrofit java-http-client eventmachine \
    mikrotik esp32 esp8266 arduino indy winhttprequest serf cohttp haskell http-conduit http-kit clj-http hackney \
    httpoison finch req tesla elixir erlang wreq scrapy node.js nodejs xmlhttp msxml microsoftwinhttp \
    pip npm yarn pnpm cargo composer bundler rubygems maven gradle git apt yum dnf brew pacman nuget \
    trafilatura newspaper feedparser universalfeedparser simplepie magpierss rome rawweb pycurl treq tornado twisted \
    libsoup2 gvfs wget2 axel puf snacktory node-superagent ky httr rcurl";
const HEADLESS: &str = "headlesschrome headlesschromium headlessfirefox headlessedg headless phantomjs slimerjs \
    puppeteer playwright selenium webdriver chromedriver casperjs zombie.js splash cypress testcafe nightmare jsdom \
    happydom htmlunit rendertron prerender chrome-headless-shell cutycapt webkit2png wkhtmltopdf wkhtmltoimage";
const APP: &str = "fban fbav cfnetwork dalvik darwin applecoremedia exoplayer exoplayerlib exomedia androidxmedia3 stagefright \
    avfoundation networkingextension itunes mozacfetch alamofire expo reactnative flutter ios android iphone \
    ipad applewatch watchos vlc lavf quicktime nsplayer windows-media-player mpv kodi roku spotify";
const PLAIN_BROWSER: &str = "lynx w3m elinks links dillo netsurf icab netpositive omniweb ncsa_mosaic mosaic ibrowse amigavoyager amaya opera \
    ucweb offbyone uzbl surf retawq emacs-w3m aweb contiki cyberdog hotjava netscape docomo j-phone kddi softbank \
    vodafone nokia samsung sonyericsson blackberry lg mot motorola sie sharp";

static LEXICON: LazyLock<NameIndex> = LazyLock::new(|| {
    let lists = [
        (BROWSER, Kinds::BROWSER),
        (ENGINE, Kinds::ENGINE.with(Kinds::BROWSER)),
        (PLATFORM, Kinds::PLATFORM),
        (GENERIC, Kinds::GENERIC),
        (LIBRARY, Kinds::LIBRARY),
        (HEADLESS, Kinds::HEADLESS),
        (APP, Kinds::APP),
        (PLAIN_BROWSER, Kinds::PLAIN_BROWSER),
        (SYNTAX, Kinds::SYNTAX),
        (DEVICE, Kinds::DEVICE),
        (APPLIANCE, Kinds::APPLIANCE),
        (RUNTIME, Kinds::RUNTIME),
        (PROGRAM, Kinds::PROGRAM),
        (PERSONAL, Kinds::PERSONAL),
        (WEB_VIEW, Kinds::WEB_VIEW),
    ];
    let mut words: std::collections::BTreeMap<&[u8], Kinds> = std::collections::BTreeMap::new();
    for (list, kind) in lists {
        for word in list.split_ascii_whitespace() {
            let kinds = words.entry(word.as_bytes()).or_default();
            *kinds = kinds.with(kind);
        }
    }
    NameIndex::new(words.into_iter().map(|(word, kinds)| (word, kinds.0)))
});

/// The kinds of a word, whose hash is given.
#[inline]
pub(super) fn kinds(word: &[u8], hash: WordHash) -> Kinds {
    LEXICON.word(hash, word).map_or(Kinds::default(), Kinds)
}

/// Top-level domains that products are named after; in lower case, because `ASP.NET` is none.
const DOMAINS: &str = "com net org info biz edu gov io ai co eu us uk de fr nl be at ch it es pt pl cz sk hu ro ru ua by \
    se no dk fi is ie gr tr il ir in jp cn kr tw hk sg au nz br ar mx cl ca za fm tv me ly cc ws to";

/// Whether a word is the name of a host, as `example.com` of `example.com/1.0`; not that of an application
/// (`com.example.app`).
pub(super) fn is_host(word: &[u8]) -> bool {
    let Some(dot) = word.iter().rposition(|byte| *byte == b'.') else { return false };
    let (name, domain) = (&word[..dot], &word[dot + 1..]);
    let reversed = [&b"com."[..], b"org.", b"net.", b"io."].iter().any(|start| word.starts_with(start));
    !reversed
        && name.iter().any(u8::is_ascii_alphabetic)
        && !name.contains(&b'_')
        && DOMAINS.split_ascii_whitespace().any(|known| known.as_bytes() == domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_differ_from_applications() {
        for host in ["example.com", "seo4ajax.com", "w3af.org", "Transistor.fm"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for other in
            ["com.example.app", "ASP.NET", "http.rb", "archive.org_bot", "12.4", "node.js", ".com", "com.foo.me"]
        {
            assert!(!is_host(other.as_bytes()), "{other}");
        }
    }
}
