//! The files and paths that the matchers are measured with. They are generated from a seed. Real
//! files are added if the shared cases are next to the project.

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;

use base64::Engine as _;
use serde_json::Value;

/// A column of the table: a file, a crawler, and the paths that it requests.
pub struct Column {
    pub name: String,
    pub robots: String,
    pub agent: &'static str,
    pub paths: Vec<String>,
}

const WORDS: [&str; 48] = [
    "account", "admin", "ajax", "api", "archive", "articles", "basket", "blog", "brands", "cart", "catalog",
    "checkout", "compare", "contact", "content", "customer", "download", "en", "events", "feed", "files", "forum",
    "gallery", "help", "images", "item", "login", "media", "members", "news", "orders", "page", "private", "products",
    "profile", "reviews", "search", "settings", "shop", "static", "stores", "tags", "tmp", "topics", "users", "video",
    "wishlist", "wp-admin",
];

const PARAMETERS: [&str; 16] = [
    "sort",
    "order",
    "color",
    "size",
    "price",
    "q",
    "utm_source",
    "utm_medium",
    "ref",
    "sid",
    "lang",
    "view",
    "page",
    "filter",
    "brand",
    "limit",
];

const SUFFIXES: [&str; 8] = ["", "", "", "/", "/", ".html", ".php", ".pdf"];

/// A small generator of random numbers (SplitMix64). It returns the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn literal(&mut self, words: usize) -> String {
        let mut path: String = (0..words).map(|_| format!("/{}", self.pick(&WORDS))).collect();
        if self.chance(50) {
            path.push_str(&format!("-{}", self.below(10_000)));
        }
        path + self.pick(&SUFFIXES)
    }

    fn wild(&mut self) -> String {
        let (word, other, parameter) = (self.pick(&WORDS), self.pick(&WORDS), self.pick(&PARAMETERS));
        let number = self.below(1000);
        match self.below(8) {
            0 => format!("/*?*{parameter}={number}"),
            1 => format!("/*/{word}-{number}/"),
            2 => format!("/{word}/*/{other}-{number}"),
            3 => format!("/*{parameter}={word}-{number}"),
            4 => format!("/*/{word}/{other}{number}.html$"),
            5 => format!("/{word}/*?{parameter}={number}"),
            6 => format!("/*-{word}-{number}.php$"),
            _ => format!("/*/*/{word}/{other}-{number}"),
        }
    }

    fn path(&mut self) -> String {
        let words = 2 + self.below(3);
        let mut path = self.literal(words);
        if self.chance(30) {
            path.push_str(&format!("?{}={}", self.pick(&PARAMETERS), self.below(1000)));
        }
        path
    }
}

fn file(rules: &[String]) -> String {
    let mut file = "User-agent: otherbot\nDisallow: /other/\n\nUser-agent: *\n".to_owned();
    for (at, rule) in rules.iter().enumerate() {
        file.push_str(if at % 8 == 7 { "Allow: " } else { "Disallow: " });
        file.push_str(rule);
        file.push('\n');
    }
    file
}

/// Generates a column. Half of its paths match the pattern of a rule, and half are arbitrary.
fn generated(name: &str, seed: u64, literals: usize, wilds: usize) -> Column {
    let mut random = Random(seed);
    let mut rules: Vec<String> = (0..literals)
        .map(|_| {
            let words = 1 + random.below(3);
            random.literal(words)
        })
        .collect();
    for _ in 0..wilds {
        let (at, rule) = (random.below(rules.len() + 1), random.wild());
        rules.insert(at, rule);
    }
    let paths = (0..256)
        .map(|at| match at % 2 {
            0 => random.path(),
            _ => {
                let pattern = rules[random.below(rules.len())].replace('$', "");
                let word = random.pick(&WORDS);
                pattern.replace('*', word) + if random.chance(50) { "more" } else { "" }
            }
        })
        .collect();
    Column { name: name.to_owned(), robots: file(&rules), agent: "examplebot", paths }
}

fn typical() -> Column {
    const RULES: [&str; 46] = [
        "/wp-admin/",
        "/wp-admin/admin-ajax.php",
        "/wp-includes/",
        "/cgi-bin/",
        "/tmp/",
        "/private/",
        "/search",
        "/cart",
        "/checkout",
        "/account/",
        "/customer/",
        "/login",
        "/logout",
        "/register",
        "/wishlist/",
        "/compare/",
        "/catalogsearch/",
        "/sendfriend/",
        "/review/",
        "/tag/",
        "/author/",
        "/trackback/",
        "/xmlrpc.php",
        "/readme.html",
        "/license.txt",
        "/feed/",
        "/comments/",
        "/print/",
        "/node/add/",
        "/user/password/",
        "/user/login/",
        "/includes/",
        "/misc/",
        "/modules/",
        "/profiles/",
        "/scripts/",
        "/themes/",
        "/update.php",
        "/install.php",
        "/ajax/",
        "/*?s=",
        "/*?sort=",
        "/*&order=",
        "/*.pdf$",
        "/*/feed/",
        "/*?replytocom=",
    ];
    let mut random = Random(46);
    let rules: Vec<String> = RULES.iter().map(|rule| (*rule).to_owned()).collect();
    let paths = (0..256)
        .map(|at| match at % 4 {
            0 => rules[random.below(40)].clone() + random.pick(&WORDS),
            _ => random.path(),
        })
        .collect();
    Column { name: "46 rules".to_owned(), robots: file(&rules), agent: "examplebot", paths }
}

/// Creates a file with rules that are valid, but make a backtracking matcher hang.
fn hostile(name: &str, rule: impl Fn(usize) -> String, path: String) -> Column {
    let rules: Vec<String> = (0..1000).map(rule).collect();
    let robots = format!("User-agent: *\nDisallow: {}\n", rules.join("\nDisallow: "));
    Column { name: name.to_owned(), robots, agent: "examplebot", paths: vec![path] }
}

/// Encodes ten bits of a number: each bit becomes `zero` or `one`. Different numbers have different
/// results.
fn either(number: usize, zero: &str, one: &str) -> String {
    (0..10).map(|bit| if number >> bit & 1 == 0 { zero } else { one }).collect()
}

/// Returns the six columns of the first design, and further hostile columns. The paths of the
/// further columns lack the literals that the rules require, or contain them in the wrong place.
pub fn seeded() -> Vec<Column> {
    let a = |length: usize| "a".repeat(length);
    vec![
        typical(),
        generated("31,843 rules", 1, 31_843, 0),
        generated("1,208 rules, 582 wild", 2, 626, 582),
        generated("15k literal", 3, 15_000, 0),
        generated("15k, 30 % wild", 4, 10_500, 4_500),
        hostile("1,000 hostile, 2 KiB", |at| format!("/*{}b{at}$", "a*".repeat(10)), format!("/{}", a(2047))),
        hostile(
            "1,000 hostile, late",
            |at| format!("/{}*zq{}", "*a".repeat(5 + at / 200), at % 200),
            format!("/{}{}", (0..200).map(|at| format!("zq{at}")).collect::<String>(), a(1000)),
        ),
        hostile(
            "1,000 hostile, near misses",
            |at| format!("/{}*aaab", either(at, "*aab", "*ba")),
            format!("/aaab{}", "aab".repeat(681)),
        ),
        hostile("1,000 × 250 stars, 8 KiB", |at| format!("/{}b{at}", "*a".repeat(250)), format!("/{}", a(8191))),
        hostile(
            "1,000 × 250 stars, late",
            |at| format!("/{}{}*b", either(at, "*a", "*aa"), "*a".repeat(240)),
            format!("/b{}", a(8190)),
        ),
        hostile(
            "1,000 × 250 stars, near misses",
            |at| format!("/{}{}", either(at, "*ab", "*b"), "*ab".repeat(240)),
            format!("/{}{}", "ab".repeat(242), "b".repeat(7700)),
        ),
    ]
}

/// Returns real files with the paths of the shared cases. Returns nothing if the cases are not next
/// to the project.
pub fn real() -> Vec<Column> {
    let (Some(files), Some(cases)) = (lines("cases/robots_files.jsonl.gz"), lines("cases/verdicts.jsonl.gz")) else {
        return Vec::new();
    };
    let mut paths: HashMap<&str, Vec<String>> = HashMap::new();
    for case in &cases {
        let (Some(robots), Some(url)) = (case["robots"].as_str(), case["url"].as_str()) else { continue };
        if let Some(path) = url.strip_prefix("https://example.com").filter(|path| path.starts_with('/')) {
            paths.entry(robots).or_default().push(path.to_owned());
        }
    }
    let wanted = [
        "protego/www.smugmug.com",
        "protego/github.com",
        "protego/www.etsy.com",
        "protego/www.eventbrite.com",
        "protego/www.aeroflot.ru",
    ];
    files
        .iter()
        .filter_map(|file| {
            let name = file["robots"].as_str().filter(|name| wanted.contains(name))?;
            let body = base64::engine::general_purpose::STANDARD.decode(file["body_base64"].as_str()?).ok()?;
            let robots = String::from_utf8(body).ok()?;
            Some(Column { name: name.to_owned(), robots, agent: "googlebot", paths: paths.remove(name)? })
        })
        .collect()
}

fn lines(name: &str) -> Option<Vec<Value>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared").join(name);
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).ok()?).read_to_string(&mut text).ok()?;
    text.lines().map(|line| serde_json::from_str(line).ok()).collect()
}
