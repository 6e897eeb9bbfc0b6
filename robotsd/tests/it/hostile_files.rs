//! Measures the time and memory that commands need for crafted files, which a pull request may
//! contain.
//!
//! Times are only meaningful in an optimised build, which `ROBOTSD_HOSTILE` names. Without this
//! variable, only the tests without times run. `ROBOTSD_HOSTILE_OCTETS=8388608` makes the files as
//! large as a robots.txt may be, which takes ten minutes; the limits are the same.

use std::fmt::Write as _;

use tower_robots::check::Lint;
use tower_robots::live::VersionHash;

use crate::harness::*;

/// Limits for one command.
const SECONDS: u64 = 4;
const MEBIBYTES: u64 = 500;

/// Default size of a file, in bytes. Large enough to reveal a cost that grows faster than the size.
const OCTETS: usize = 432 << 10;

fn bytes() -> usize {
    let bytes = std::env::var("ROBOTSD_HOSTILE_OCTETS").ok();
    bytes.map_or(OCTETS, |bytes| bytes.parse().expect("a number of bytes"))
}

/// Returns a file that consists of a head, followed by as many units as fit.
fn filled(head: &str, unit: impl Fn(usize) -> String) -> Vec<u8> {
    let mut file = head.to_owned();
    for number in 0.. {
        let next = unit(number);
        if file.len() + next.len() > bytes() {
            break;
        }
        file.push_str(&next);
    }
    file.into_bytes()
}

/// Returns a file that consists of a head, a repeated unit, and a tail.
fn long(head: &str, unit: &str, tail: &str) -> Vec<u8> {
    let times = bytes().saturating_sub(head.len() + tail.len()) / unit.len();
    [head, &unit.repeat(times), tail].concat().into_bytes()
}

/// Returns one file per lint, which contains the lint's example many times. The copies differ only
/// in one additional rule.
fn of_lints() -> impl Iterator<Item = (String, Vec<u8>)> {
    Lint::all().iter().map(|lint| {
        let example: String = String::from_utf8_lossy(&lint.bad.bytes()).chars().take(2_000).collect();
        // Each copy has another rule, so that the copies differ.
        let copy = |number: usize| format!("{example}\nAllow: /{number}\n");
        (lint.code.to_owned(), filled("", copy))
    })
}

/// Returns more files, each of which exploits one possible weakness.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    const ALL: &str = "User-agent: *\n";
    let crawlers: Vec<_> = tower_robots::agent::Registry::builtin().crawlers().map(|one| &one.name).collect();
    let named: String = crawlers.iter().fold(String::new(), |mut names, name| {
        let _ = writeln!(names, "User-agent: {name}");
        names
    });
    let half = bytes() / 2;
    let lengths = (1..).take_while(|length| length * length < bytes()).fold(ALL.to_owned(), |mut file, length| {
        let _ = writeln!(file, "Allow: /{}*b", "a".repeat(length));
        file
    });
    vec![
        ("groups-of-one-name", filled("", |n| format!("User-agent: a\nDisallow: /{n}\n\n"))),
        ("groups-of-two-names", filled("", |n| format!("User-agent: {}\nDisallow: /{n}\n", ["a", "b"][n % 2]))),
        ("groups-of-pairs", filled("", |n| format!("User-agent: a\nUser-agent: b{}\nDisallow: /{n}\n", n % 1000))),
        (
            "groups-with-comments",
            filled("", |n| format!("# {n}\nUser-agent: a\nDisallow: /{n}\n\nUser-agent: b\nCrawl-delay: 1\n\n")),
        ),
        (
            "groups-that-overlap",
            filled("", |n| {
                let names = (0..100).filter(|other| *other != n % 100).map(|other| format!("User-agent: b{other}\n"));
                names.collect::<String>() + &format!("Disallow: /{n}\n")
            }),
        ),
        ("one-name-repeated", long("", "User-agent: a\n", "Disallow: /\n")),
        ("many-names", filled("", |n| format!("User-agent: a{n}\n"))),
        ("empty-names", long("", "User-agent:\n", "Disallow: /\n")),
        ("lines-between-names", filled("", |n| format!("User-agent: a{n}\nfoo: x\n"))),
        ("names-nearly-known", filled("", |n| format!("User-agent: Googlebo{n}\nDisallow: /\n"))),
        (
            "names-of-all-crawlers",
            filled("", |n| format!("User-agent: {}\nDisallow: /*ads{n}\n", crawlers[n % crawlers.len()])),
        ),
        ("one-group-for-all-crawlers", filled(&named, |n| format!("Disallow: /*a{n}.txt\n"))),
        (
            "headers-as-names",
            filled("", |n| format!("User-agent: Mozilla/5.0 (compatible; Foo{n}/1.0)\nDisallow: /\n")),
        ),
        ("blank-lines", long("User-agent: a\n", "\n", "Disallow: /\n")),
        ("blank-lines-between-rules", filled("User-agent: a\n", |n| format!("Disallow: /{n}\n\n"))),
        ("rules-far-down", [vec![b'\n'; half], filled("", |n| format!("Disallow: /{n}\n"))[..half].to_vec()].concat()),
        ("stars-first", filled(ALL, |n| format!("Disallow: /*a{n}\n"))),
        ("stars-inside", filled(ALL, |n| format!("{}: /*a{n}*b\n", ["Allow", "Disallow"][n % 2]))),
        ("stars-in-a-row", filled(ALL, |n| format!("Disallow: /{}{n}\n", "*a".repeat(250)))),
        ("stars-in-one-rule", long(&format!("{ALL}Disallow: /"), "*", "\n")),
        ("queries", filled(ALL, |n| format!("Disallow: /*{n}?*+*%2B*%20*$\n"))),
        ("ties", filled(ALL, |n| format!("Allow: /a{n}\nDisallow: /a{n}\n"))),
        ("prefixes-of-all-lengths", filled(&lengths, |_| format!("Disallow: /{}\n", "a".repeat(2_000)))),
        (
            "wide-and-long",
            filled(ALL, |n| {
                if n % 2 == 0 {
                    format!("Disallow: /{}\n", "a".repeat(4_000))
                } else {
                    format!("Allow: /a{}\n", "*a".repeat(200))
                }
            }),
        ),
        (
            "sitemaps-and-stars",
            filled(ALL, |n| {
                if n % 2 == 0 { format!("Sitemap: https://a.test/s{n}\n") } else { format!("Disallow: /*a{n}\n") }
            }),
        ),
        ("sitemaps-and-hosts", filled(ALL, |n| format!("Host: a{n}.test\nSitemap: https://b{n}.test/s\n"))),
        (
            "long-sitemaps",
            filled(&format!("{ALL}Disallow: /*x\n"), |n| format!("Sitemap: https://a.test/{}{n}\n", "a".repeat(8_000))),
        ),
        ("carriage-returns", long("", "\r", "")),
        ("lines-of-carriage-returns", long("User-agent: *\r", "a\r", "")),
        ("nul-octets", long(&format!("{ALL}Disallow: /"), "a\0", "\n")),
        ("dollars", long(&format!("{ALL}Disallow: /"), "$a", "\n")),
        ("brackets", long(&format!("{ALL}Disallow: /"), "(|[a", "\n")),
        ("dollar-rules", filled(ALL, |n| format!("Disallow: /$a{n}\n"))),
        ("codes-in-one-line", long(&format!("{ALL}Disallow: /a # robots-check: allow("), "secret-pats,", ")\n")),
        (
            "codes-in-all-lines",
            filled(ALL, |n| format!("Disallow: /a{n} # robots-check: allow(crawl-delay-xx{})\n", n % 10)),
        ),
        ("missing-colons", filled(ALL, |n| format!("Disallow /a{n}\n"))),
        ("one-long-line", long(&format!("{ALL}Disallow: /"), "a", "")),
        ("blanks-in-a-path", long(&format!("{ALL}Disallow: /"), "a ", "\n")),
    ]
}

/// Commands that read a robots.txt from a pull request. Only the first two commands read the files
/// of the lints.
const COMMANDS: [&[&str]; 6] = [
    &["check", "robots.txt"],
    &["check", "--unsafe-fixes", "--diff", "robots.txt"],
    &["check", "--format", "json", "robots.txt"],
    &["check", "--diff", "robots.txt"],
    &["diff", "old.txt", "robots.txt"],
    &["test", "robots.test.toml"],
];

/// Returns the processor time, the peak memory and the exit status of a command. Other programs on
/// the machine do not affect the two measurements.
fn cost(command: &mut Command) -> (Duration, u64, Option<i32>) {
    /// Length of a clock tick in `/proc`, which is the same on all current Linux platforms.
    const TICK: Duration = Duration::from_millis(10);
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let own = format!("/proc/{}", child.id());
    let read = |name: &str| fs::read_to_string(format!("{own}/{name}")).unwrap_or_default();
    let (mut took, mut peak) = (Duration::ZERO, 0);
    loop {
        let status = read("status");
        let held =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(held.unwrap_or(0));
        // The name of the program is in parentheses, and may itself contain spaces.
        let stat = read("stat");
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let ticks: u32 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
        took = took.max(TICK * ticks);
        if let Some(ended) = child.try_wait().unwrap() {
            return (took, peak >> 10, ended.code());
        }
        if start.elapsed() > Duration::from_secs(SECONDS * 15) {
            let _ = child.kill();
        }
        // The interval between two measurements.
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn commands_need_bounded_time_and_memory_for_hostile_files() {
    let Some(program) = std::env::var_os("ROBOTSD_HOSTILE") else {
        println!("skipped: ROBOTSD_HOSTILE names no program");
        return;
    };
    const EXPECTED: &str =
        "robots = \"robots.txt\"\n[[allow]]\nagents = [\"Googlebot\", \"*\"]\npaths = [\"/\", \"/a/b\"]\n";
    let others = others().into_iter().map(|(name, file)| (name.to_owned(), file, COMMANDS.len()));
    // This order distributes the files evenly over both halves.
    let mut files: Vec<_> = of_lints().map(|(code, file)| (code, file, 2)).chain(others).collect();
    files.sort_by_key(|(name, ..)| VersionHash::of(name.as_bytes()).to_string());
    let judge = |files: &[(String, Vec<u8>, usize)]| {
        let folder = folder(&[("old.txt", "User-agent: *\nDisallow: /x\n"), ("robots.test.toml", EXPECTED)]);
        let mut costly = String::new();
        for (name, file, commands) in files {
            folder.write("robots.txt", file);
            for arguments in &COMMANDS[..*commands] {
                let (took, held, code) = cost(Command::new(&program).current_dir(folder.path()).args(*arguments));
                let is_cheap = took <= Duration::from_secs(SECONDS) && held <= MEBIBYTES;
                if !is_cheap || !matches!(code, Some(0..=2)) {
                    let _ = writeln!(costly, "{name} {arguments:?}: {took:.1?}, {held} MiB, {code:?}");
                }
            }
        }
        costly
    };
    let (one, other) = files.split_at(files.len() / 2);
    let costly = thread::scope(|scope| {
        let threads = [one, other].map(|files| scope.spawn(move || judge(files)));
        threads.map(|thread| thread.join().expect("no panic")).concat()
    });
    assert!(costly.is_empty(), "{costly}");
}

/// Parsing settings needs a hundred times their size in memory, so their size must be limited.
#[test]
fn too_large_settings_and_expectations_files_are_refused() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /x\n")]);
    let comment = "#".repeat((64 << 10) + 1);
    folder.write("robots-check.toml", &comment);
    let wanted = "robots-check.toml: the input is larger than 64 KiB, the limit for this kind of file";
    assert_has(folder.run(["check", "robots.txt"]).failed(2), &[wanted]);
    folder.write("robots-check.toml", &comment[1..]);
    folder.run(["check", "robots.txt"]).succeeded();

    let list = |name: &str, count: usize| (0..count).map(|n| format!("\"{name}{n}\",")).collect::<String>();
    let (agents, paths) = (list("b", 1_000), list("/", 101));
    let pairs = format!("robots = \"robots.txt\"\n[[allow]]\nagents = [{agents}]\npaths = [{paths}]\n");
    for (expected, wanted) in [
        ("#".repeat((1 << 20) + 1), "larger than 1024 KiB"),
        (pairs, "the file has more than 100000 combinations of agents and paths"),
    ] {
        folder.write("e.toml", expected);
        assert_has(folder.run(["test", "e.toml"]).failed(2), &[wanted]);
    }
}

/// Opening a FIFO blocks until it has a writer, perhaps forever.
#[test]
fn a_fifo_on_the_command_line_is_refused_at_once() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /x\n"), ("log", "")]);
    assert!(Command::new("mkfifo").arg(folder.at("fifo")).status().unwrap().success());
    std::os::unix::fs::symlink("fifo", folder.at("link")).unwrap();
    for arguments in [
        &["check", "fifo"][..],
        &["check", "link"],
        &["check", "--fix", "fifo"],
        &["check", "--config", "fifo"],
        &["check", "--sitemap", "--cacert", "fifo", "https://127.0.0.1:9/"],
        &["replay", "--robots", "robots.txt", "fifo"],
        &["replay", "--robots", "robots.txt", "log", "link"],
        &["replay", "--robots", "fifo", "log"],
        &["explain", "--robots", "fifo", "--user-agent", "GPTBot", "/"],
        &["diff", "fifo", "robots.txt"],
        &["diff", "robots.txt", "fifo"],
        &["test", "fifo"],
        &["config", "check", "fifo"],
    ] {
        let ended = folder.run(arguments);
        assert_ne!(ended.code, Some(0), "{arguments:?}");
        let want = "a FIFO blocks this command until another program writes to it: use a regular file";
        assert_has(ended.said(), &[want]);
    }
}

/// A pipe is read if the command line names it. A pipe in a folder, or in the place of a settings
/// file, is not read.
#[test]
fn files_that_the_command_line_does_not_name_are_read_only_if_regular() {
    let folder = folder(&[("site/robots.txt", "User-agent: *\nDisallow: /x\n"), ("other/robots.txt", "")]);
    let fifo = |name: &str| {
        let path = folder.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    fifo("site/deep/robots.txt");
    let error = folder.run(["check", "site"]).failed(2);
    assert_has(error, &["site/deep/robots.txt: this is not a regular file"]);
    fifo("other/robots-check.toml");
    let error = folder.run(["check", "other/robots.txt"]).error;
    assert_has(error, &["other/robots-check.toml: this is not a regular file"]);
    let error = folder.run(["replay", "--robots", "site/robots.txt", "/dev/zero"]).error;
    assert_has(error, &["/dev/zero: this is a device"]);
    // A pipe that the command line names is read as a log.
    let pipe = "printf '' | \"$0\" replay --robots site/robots.txt /dev/stdin; \"$0\" check <(cat site/robots.txt)";
    run(Command::new("bash").current_dir(folder.path()).args(["-c", pipe, env!("CARGO_BIN_EXE_robotsd")])).succeeded();
}

/// Twenty sitemaps send a byte from time to time, each for as long as a request may take.
#[test]
fn slow_sitemaps_do_not_exceed_the_total_timeout() {
    let origin = Origin::answering(|asked| {
        if asked.target != "/robots.txt" {
            return Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n<".to_vec());
        }
        let host = asked.field("host").unwrap();
        let robots: String = (0..20).map(|n| format!("Sitemap: http://{host}/{n}.xml\n")).collect();
        response("200 OK", &["Content-Type: text/plain"], robots).into()
    });
    let url = format!("http://{origin}");
    let asked = wait_for("sitemaps that were not fetched", || {
        let before = origin.requests().len();
        let shown = run(robotsd().args(["check", "--sitemap", "--timeout", "500ms", "--notes", &url])).out;
        // On a busy machine, fetching robots.txt alone may exceed the timeout.
        let is_over =
            shown.contains("the time limit of 2s was reached, so this sitemap and the following ones were not fetched");
        is_over.then(|| origin.requests().len() - before - 1)
    });
    // Each sitemap takes half a second, so all of them together would take ten seconds.
    assert!(asked < 20, "{asked}");
}

/// A terminal must receive only printable characters, whatever the files contain. A pipe must
/// receive the exact bytes, because `patch` needs them.
#[test]
fn no_file_content_can_control_a_terminal() {
    let hostile = "User-agent: *\nDissallow: /a\u{1b}[8m\u{1b}]0;x\u{7}\u{202e}\u{3164}\n";
    let folder = folder(&[("robots.txt", hostile)]);
    let robotsd = env!("CARGO_BIN_EXE_robotsd");
    let on_terminal = |arguments: &str| {
        let command = format!("{robotsd} {arguments}");
        run(Command::new("script").current_dir(folder.path()).args(["-qec", &command, "/dev/null"])).out
    };
    let shown = on_terminal("check --diff robots.txt");
    assert_has(&shown, &["-Dissallow: /a\\u{1b}[8m\\u{1b}]0;x\\u{7}\\u{202e}\\u{3164}"]);
    for arguments in
        ["check robots.txt", "check --format json robots.txt", "explain robots.txt", "diff /dev/null robots.txt"]
    {
        let shown = on_terminal(arguments);
        assert!(!shown.contains(['\u{7}', '\u{202e}', '\u{3164}']), "{arguments}: {shown:?}");
        assert!(!shown.contains("\u{1b}]"), "{arguments}: {shown:?}");
    }
    let piped = folder.run(["check", "--diff", "robots.txt"]).out;
    assert_has(piped, &["-Dissallow: /a\u{1b}[8m\u{1b}]0;x\u{7}\u{202e}\u{3164}\n"]);
}
