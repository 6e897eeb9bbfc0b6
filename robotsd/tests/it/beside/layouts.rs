//! Tests typical layouts of nginx sites, each without robotsd and with the files of
//! `config/beside/nginx`.
//!
//! The same request is sent to both forms. The file `layouts.diff` contains both forms, which
//! differ only in the marked lines.

use std::os::unix::net::UnixStream;

use super::super::daemon::{Daemon, find};
use super::browsers::newer_nginx_config;
use super::scene::REFUSED;
use super::server::{LAYOUTS, Stage};
use crate::harness::*;

/// Text that every script contains. A response with this text shows that the script was not run.
const SOURCE: [&str; 2] = ["<?php", "the-password-of-the-database"];

const FASTCGI: &str = "
fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
fastcgi_param SCRIPT_NAME $fastcgi_script_name;
fastcgi_param QUERY_STRING $query_string;
fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param REQUEST_URI $request_uri;
fastcgi_param DOCUMENT_URI $document_uri;
fastcgi_param DOCUMENT_ROOT $document_root;
fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param REMOTE_ADDR $remote_addr;
fastcgi_param REMOTE_USER $remote_user;
fastcgi_param SERVER_NAME $server_name;
fastcgi_param REDIRECT_STATUS 200;
";

/// A script that responds with everything that it receives.
const SCRIPT: &str = "<?php
$secret = 'the-password-of-the-database';
if (isset($_GET['missing'])) { http_response_code(404); }
if (isset($_GET['forbidden'])) { http_response_code(403); }
if (isset($_GET['accel'])) { header('X-Accel-Redirect: ' . $_GET['accel']); }
setcookie('seen', 'yes');
$given = array_diff_key($_SERVER, array_flip(['REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'REMOTE_PORT']));
ksort($given);
foreach ($given as $name => $value) { echo $name, '=', is_array($value) ? '' : $value, \"\\n\"; }
$body = file_get_contents('php://input');
echo strlen($body), ' ', md5($body), \"\\n\";
";

const FILES: &str = "\
    static/index.html static/robots.txt static/denied.html static/missing.html static/page.html \
    static/style.css static/folder/index.html static/empty/deep/x.txt static/downloads/app.js \
    static/members/list.html wordpress/index.php wordpress/wp-config.php wordpress/wp-login.php \
    wordpress/wp-admin/index.php wordpress/style.css wordpress/readme.html wordpress/parts.html \
    wordpress/guarded/page.html wordpress/.git/config wordpress/uploads/shell.php \
    wordpress/uploads/photo.png wordpress/protected/report.txt front/index.php front/config.php \
    front/style.css front/folder/index.html nested/index.html nested/blog/index.php \
    nested/blog/config.php nested/blog/photo.png nested/blog/static/style.css nested-shop/index.php \
    nested-shop/config.php nested-shop/photo.png nested-files/list.txt";

/// Targets of each site that must be refused to a crawler if a rule disallows them.
const ASKED: &[(&str, &str)] = &[
    (
        "static",
        "/ /page.html /index.html /style.css /none.css /none /folder /folder/ /empty/ /empty/deep /downloads/ \
         /downloads /downloads/app.js /members/list.html /members/ /form /%70age.html?x=%20 //page.html \
         /a/../page.html /PAGE.html /page.html/",
    ),
    (
        "wordpress",
        "/ /index.php /wp-config.php /wp-admin /wp-admin/ /wp-admin/index.php /a-post/ /?p=1 \
         /a%2Fb//c?d=%20&e /none.php /index.php/path/info?q=1 /wp-config.php/x.css /style.css /none.png \
         /uploads/photo.png /readme.html /old/ /old/wp-config.php /old/style.css /old/gone.php?x=1 \
         /issue-7/cover.php /issue-7/none.PHP /feed /index.php?missing=1 /index.php?forbidden=1 \
         /index.php?accel=/protected/report.txt /index.php?accel=/style.css /index.php?accel=/wp-admin/ \
         /index.php?accel=/none.php /wp-config%2Ephp /WP-CONFIG.PHP /wp-config.php%20 //wp-config.php \
         /wp-admin/../wp-config.php /wp-login.php?a=b /parts.html /guarded/page.html /guarded/none",
    ),
    ("proxy", "/ /a//b%2Fc?d=%20 /api/ /api/x//y%2Fz?q=%20 /apis /v2/ /v2/x%2Fy/z?q=1 /upload /socket /dead/x"),
    (
        "front",
        "/ /a/route?x=1 /index.php /index.php/a/route /index.php/a%2Fb /style.css /folder/ /folder /none.css \
         /index.php?accel=/style.css /a/route/index.php5",
    ),
    (
        "nested",
        "/ /none /blog/ /blog /blog/a/post?x=1 /blog/index.php /blog/config.php /blog/none.php \
         /blog/photo.png /blog/static/style.css /blog/static/none.css /blog/static/ /blog/static /shop/ \
         /shop/index.php /shop/config.php /shop/photo.png /shop/none.png /shop/files/list.txt /shop/files/ \
         /shop /shop/files",
    ),
];

/// Targets in unchanged locations. nginx must not ask robotsd about them.
const UNASKED: &[(&str, &str)] = &[
    ("static", "/denied.html /mirror /page.html%00"),
    ("wordpress", "/favicon.ico /.git/config /uploads/shell.php /protected/report.txt /.env /uploads/../.git/config"),
    ("proxy", "/api /api?x=1 /dead /large.html"),
    ("front", "/config.php /none.php /folder/config.php"),
    ("nested", "/denied.html"),
];

/// Returns each target in a table, with its site.
fn each(table: &'static [(&str, &str)]) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.iter().flat_map(|(site, targets)| targets.split_whitespace().map(|target| (*site, target)))
}

/// All sites in both forms, and the program that runs PHP scripts.
struct Layouts {
    stage: Stage,
    _php: Daemon,
    folder: Folder,
}

impl Layouts {
    /// Starts the sites. `adapt` changes the text of the form with robotsd.
    fn set(adapt: impl Fn(String) -> String) -> Option<Self> {
        Self::set_with(adapt, |file| file)
    }

    /// Like [`Self::set`], but `file` also changes the files of `config/beside`.
    fn set_with(adapt: impl Fn(String) -> String, file: impl Fn(String) -> String) -> Option<Self> {
        Self::set_on(|nginx, config| Stage::set(&LAYOUTS, nginx, "", config), adapt, file)
    }

    /// Starts the sites with the timeouts of the shipped files.
    fn set_as_shipped() -> Option<Self> {
        Self::set_on(|nginx, config| Stage::set_as_shipped(&LAYOUTS, nginx, config), |text| text, |file| file)
    }

    fn set_on(
        set: impl Fn(&Path, &dyn Fn(String) -> String) -> Stage,
        adapt: impl Fn(String) -> String,
        file: impl Fn(String) -> String,
    ) -> Option<Self> {
        let programs = LAYOUTS.find().and_then(|nginx| Ok((nginx, find("php-fpm8.2").or_else(|_| find("php-fpm"))?)));
        let (nginx, php) = crate::programs::present(programs)?;
        let folder = site_folder();
        let php = run_scripts(&php, folder.path());
        let here = folder.path().to_str().expect("a path of ASCII");
        let config = |text: String| {
            if !text.starts_with(" #") {
                return file(text);
            }
            let forms = [("plain", '-', text.clone()), ("asked", '+', adapt(text))];
            let forms =
                forms.map(|(form, mark, text)| of_form(&text, mark).replace("FORM", form).replace("FOLDER", here));
            forms.concat()
        };
        let stage = set(&nginx, &config);
        Some(Self { stage, _php: php, folder })
    }

    /// Returns the responses of both forms, prepared by [`comparable`].
    fn ask(&self, request: &Request<'_>) -> [String; 2] {
        ["plain", "asked"].map(|form| comparable(&self.stage.send_raw(&request.bytes(form))))
    }

    fn same(&self, request: &Request<'_>) -> Answer {
        let [plain, asked] = self.ask(request);
        assert!(plain == asked, "{request:?}\n== without robotsd\n{plain}\n== with it\n{asked}");
        without_source(request, &asked);
        Answer::parse(asked.as_bytes())
    }

    /// Repeats the request until it is refused, because nginx does not ask robotsd for a short time
    /// after a timeout. A real error does not go away.
    fn refused(&self, request: &Request<'_>) {
        wait_until(&format!("a refusal of {request:?}"), || {
            let Some(answer) = self.stage.offer(&request.bytes("asked")) else { return false };
            without_source(request, &format!("{}{}", answer.head, answer.body));
            let is_refusal = answer.status == 403 && answer.field("cache-control") == Some("no-store");
            is_refusal && (request.method == "HEAD" || answer.body.contains(REFUSED))
        });
    }

    /// Checks everything that a browser does, in both forms of the sites.
    fn browse(&self) {
        for (site, target) in each(ASKED).chain(each(UNASKED)) {
            let get = Request { site, target, ..GET };
            self.same(&get);
            self.same(&Request { method: "HEAD", ..get });
            self.same(&Request { method: "POST", body: "a=form", ..get });
            self.same(&Request { fields: "Range: bytes=1-4\r\n", ..get });
            self.same(&Request { fields: "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n", ..get });
        }
    }

    /// Checks that each site's own robots.txt is served, even if a script generates it.
    fn fetch_robots_txt(&self) {
        for (site, _) in ASKED {
            for agent in [FIREFOX, GPTBOT] {
                self.same(&Request { site, target: "/robots.txt", agent, ..GET });
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    site: &'a str,
    method: &'a str,
    target: &'a str,
    agent: &'a str,
    fields: &'a str,
    body: &'a str,
}

const GET: Request<'_> = Request { site: "", method: "GET", target: "/", agent: FIREFOX, fields: "", body: "" };

impl Request<'_> {
    fn bytes(&self, form: &str) -> Vec<u8> {
        let Self { site, method, target, agent, fields, body } = self;
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {form}.{site}.test\r\nUser-Agent: {agent}\r\n{fields}");
        let end = if fields.contains("Connection: ") { "\r\n" } else { "Connection: close\r\n\r\n" };
        format!("{head}{length}{end}{body}").into_bytes()
    }
}

#[test]
fn every_response_for_a_browser_is_the_same_as_without_robotsd() {
    let Some(mut layouts) = Layouts::set_as_shipped() else { return };
    layouts.browse();
    layouts.stage.robotsd.freeze();
    layouts.browse();
    layouts.fetch_robots_txt();
    layouts.stage.robotsd.signal("CONT");
    layouts.refused(&Request { site: "static", target: "/?refused=", agent: GPTBOT, ..GET });
    layouts.stage.robotsd.kill();
    layouts.browse();
    layouts.fetch_robots_txt();
    // While robotsd is down, crawlers must get the response of the site, too.
    for (site, target) in each(ASKED) {
        layouts.same(&Request { site, target: &to_be_refused(target), agent: GPTBOT, ..GET });
    }
}

#[test]
fn responses_for_browsers_are_unchanged_if_nginx_does_not_ask_robotsd() {
    let Some(layouts) = Layouts::set_with(|text| text, newer_nginx_config) else { return };
    layouts.browse();
    layouts.refused(&Request { site: "static", target: "/?refused=", agent: GPTBOT, ..GET });
}

#[test]
fn a_crawler_is_refused_in_every_location_and_gets_no_source_code() {
    let Some(layouts) = Layouts::set(|text| text) else { return };
    for (site, target) in each(ASKED) {
        let refused = Request { site, target: &to_be_refused(target), agent: GPTBOT, ..GET };
        layouts.refused(&refused);
        layouts.refused(&Request { method: "HEAD", ..refused });
        layouts.refused(&Request { method: "POST", body: "a=form", ..refused });
        // If the request may pass, it must get the response of the site.
        layouts.same(&Request { site, target, agent: GPTBOT, ..GET });
    }
}

/// A location that does not set `$robotsd_next` must not use the value of another location.
#[test]
fn a_location_that_sets_no_continuation_answers_500_and_never_source_code() {
    let without_next = |text: String| {
        let lines = text.lines().map(|line| match line.split_once("set $robotsd_next ") {
            Some((start, rest)) if !rest.starts_with("@site;") => {
                format!("{start}{}\n", rest.split_once(';').expect("the end of a directive").1)
            }
            _ => format!("{line}\n"),
        });
        lines.collect()
    };
    let Some(layouts) = Layouts::set(without_next) else { return };
    let mut statuses = BTreeSet::new();
    for (site, target) in each(ASKED) {
        let request = Request { site, target, ..GET };
        let answer = layouts.stage.send_raw(&request.bytes("asked"));
        without_source(&request, &String::from_utf8_lossy(&answer));
        statuses.insert(Answer::parse(&answer).status);
        layouts.refused(&Request { target: &to_be_refused(target), agent: GPTBOT, ..request });
    }
    let of =
        |target| Answer::parse(&layouts.stage.send_raw(&Request { site: "wordpress", target, ..GET }.bytes("asked")));
    for target in ["/", "/a-post/", "/index.php", "/wp-config.php", "/wp-admin/", "/old/wp-config.php"] {
        assert_eq!(of(target).status, 500, "{target}");
    }
    assert!(layouts.stage.log().contains("could not find named location \"@robotsd_next_is_not_set\""));
    // This location sets `$robotsd_next` itself.
    assert_eq!(of("/readme.html").status, 200);
    assert!(statuses.is_superset(&[200, 500].into()), "{statuses:?}");
}

/// A server without the `include` line for robotsd must not serve pages without asking robotsd.
#[test]
fn a_server_without_the_robotsd_include_line_answers_500() {
    let without_server = |text: String| text.replace("include nginx/robotsd-server.conf;", "");
    let Some(layouts) = Layouts::set(without_server) else { return };
    for (site, target) in each(ASKED) {
        for (method, body) in [("GET", ""), ("POST", "a=form")] {
            let request = Request { site, target, method, body, ..GET };
            let answer = Answer::parse(&layouts.stage.send_raw(&request.bytes("asked")));
            assert_eq!(answer.status, 500, "{request:?}");
            without_source(&request, &answer.body);
        }
    }
    assert!(layouts.stage.log().contains("location \"@robotsd-server.conf_is_not_included_for_@site\""));
}

#[test]
fn rate_and_size_limits_of_a_location_still_apply_with_robotsd() {
    let Some(layouts) = Layouts::set(|text| text) else { return };
    // The fourth request exceeds the rate limit of the location. The different limit of the server
    // does not apply.
    let login = Request { site: "wordpress", target: "/wp-login.php", fields: "X-Limited: yes\r\n", ..GET };
    let statuses = [0; 5].map(|_| layouts.same(&login).status);
    assert_eq!(statuses, [200, 200, 200, 503, 503]);
    // Size limits of the server and of a location. A body above both limits leads to the error
    // page.
    let [two, nine] = [2, 9].map(|mebibytes| "x".repeat(mebibytes << 20));
    let post = Request { method: "POST", body: &two, ..GET };
    for (site, target, status) in [
        ("wordpress", "/index.php", 200),
        ("wordpress", "/wp-admin/index.php", 200),
        ("proxy", "/upload", 200),
        ("proxy", "/api/x", 413),
        ("proxy", "/v2/x", 413),
    ] {
        assert_eq!(layouts.same(&Request { site, target, ..post }).status, status, "{site} {target}");
    }
    for target in ["/upload", "/"] {
        let answer = layouts.same(&Request { site: "proxy", target, body: &nine, ..post });
        assert_eq!((answer.status, answer.body.as_str()), (413, "too large\n"), "{target}");
    }
}

#[test]
fn a_request_is_mirrored_once_and_a_refused_one_never() {
    let Some(layouts) = Layouts::set(|text| text) else { return };
    let page = Request { site: "static", target: "/page.html", ..GET };
    layouts.refused(&Request { target: "/page.html?refused=", agent: GPTBOT, ..page });
    layouts.refused(&Request { target: "/folder/?refused=", agent: GPTBOT, ..page });
    assert_eq!(layouts.same(&page).status, 200);
    layouts.same(&Request { target: "/folder/", ..page });
    layouts.same(&Request { target: "/none", ..page });
    let mirrored = |form: &str| {
        let log = fs::read_to_string(layouts.folder.at(format!("{form}-mirrored"))).unwrap_or_default();
        log.lines().map(|line| line.split('"').nth(1).map(str::to_owned)).collect::<Vec<_>>()
    };
    wait_until("the same in the mirrors of both", || {
        let [plain, asked] = ["plain", "asked"].map(mirrored);
        !plain.is_empty() && plain == asked
    });
}

#[test]
fn password_and_address_restrictions_of_a_site_still_apply() {
    let Some(layouts) = Layouts::set(|text| text) else { return };
    let members = Request { site: "static", target: "/members/list.html", ..GET };
    assert_eq!(layouts.same(&members).status, 401);
    let password = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    assert_eq!(layouts.same(&Request { fields: password, ..members }).status, 200);
    let from = |agent: &str| {
        let fields = [("User-Agent", agent.as_bytes())];
        layouts.stage.ask_host_from([127, 0, 0, 3], "asked.static.test", b"/members/list.html?refused=", &fields).status
    };
    assert_eq!(from(FIREFOX), 200);
    wait_until("a refusal", || from(GPTBOT) == 403);
}

#[test]
fn a_protocol_upgrade_passes_through() {
    let Some(layouts) = Layouts::set(|text| text) else { return };
    let fields = "Connection: upgrade\r\nUpgrade: echo\r\n";
    let socket = Request { site: "proxy", target: "/socket/x", fields, ..GET };
    let bytes = |form| [socket.bytes(form), b"what is said\n".to_vec()].concat();
    let [plain, asked] = ["plain", "asked"].map(|form| comparable(&layouts.stage.send_raw(&bytes(form))));
    assert!(plain.starts_with("HTTP/1.1 101 ") && plain.ends_with("\r\n\r\nwhat is said\n"), "{plain}");
    assert_eq!(plain, asked);
    layouts.refused(&Request { target: "/socket/x?refused=", agent: GPTBOT, ..socket });
}

#[test]
fn responses_over_http_2_are_the_same_with_and_without_robotsd() {
    let Some(layouts) = Layouts::set(|text| text) else { return };
    let Some(curl) = crate::programs::present(find("curl")) else { return };
    let ask = |form: &str, socket: &str, site: &str, target: &str, agent: &str, more: &[&str]| {
        let path = layouts.folder.at(format!("{form}{socket}.sock"));
        let mut command = Command::new(&curl);
        command.args(["-s", "-i", "--http2-prior-knowledge", "--path-as-is", "--unix-socket"]).arg(path);
        let output = run(command.args(["-A", agent]).args(more).arg(format!("http://{form}.{site}.test{target}")));
        comparable(output.out.as_bytes())
    };
    let sites = [
        ("", "static", None),
        ("-php", "wordpress", Some("/wp-admin/index.php")),
        ("-proxy", "proxy", Some("/api/x")),
        ("-front", "front", Some("/a/route")),
        ("-nested", "nested", Some("/blog/a/post")),
    ];
    for (socket, site, form_target) in sites {
        let targets: Vec<_> = each(ASKED).filter(|(known, _)| *known == site).map(|(_, target)| target).collect();
        let same = |target: &str, more: &[&str]| {
            let [plain, asked] = ["plain", "asked"].map(|form| ask(form, socket, site, target, FIREFOX, more));
            assert!(plain.starts_with("HTTP/2 "), "{site} {target} {more:?}: {plain}");
            assert_eq!(plain, asked, "{site} {target} {more:?}");
        };
        targets.iter().for_each(|target| same(target, &[]));
        // A body is sent only to a target that reads it. Otherwise, the connection might end too
        // early.
        form_target.into_iter().for_each(|target| same(target, &["-d", "a=form"]));
        wait_until("a refusal", || {
            let refusal = ask("asked", socket, site, &to_be_refused(targets[1]), GPTBOT, &[]);
            refusal.starts_with("HTTP/2 403") && refusal.contains(REFUSED)
        });
    }
}

/// nginx reads the first file in `conf.d` on its own, before any site includes the other files.
#[test]
fn nginx_accepts_the_robotsd_http_file_on_its_own() {
    let Ok(nginx) = find("nginx") else { return };
    let http = fs::read_to_string(project("config/beside/nginx/robotsd-http.conf")).unwrap();
    let folder = folder(&[("nginx.conf", &format!("events {{}}\nhttp {{\n{http}\n}}"))]);
    let arguments = ["-t", "-q", "-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "pid nginx.pid;"];
    let checked = run(Command::new(nginx).args(arguments).current_dir(folder.path()));
    assert!(checked.code == Some(0), "{}", checked.error);
}

/// Each line that is only in the form with robotsd must be in the shipped files or the handbook, or
/// be a moved line of the site.
#[test]
fn the_nginx_configs_with_and_without_robotsd_differ_only_by_documented_lines() {
    let text = fs::read_to_string(project("robotsd/tests/it/beside/layouts.diff")).unwrap();
    let plain = of_form(&text, '-');
    let own: BTreeSet<_> = plain.lines().map(str::trim).collect();
    let asked: Vec<_> = text.lines().filter_map(|line| line.strip_prefix('+')).map(str::trim).collect();
    assert!(asked.len() > 40, "{}", asked.len());
    for line in asked {
        let hands_on = line.split_once(" { set $robotsd_next @").is_some_and(|(location, rest)| {
            let included = rest.split_once("; include nginx/robotsd-location.conf;").map(|(_, more)| more.trim());
            let size = |more: &str| more.starts_with("client_max_body_size ") && more.ends_with("; }");
            own.contains(format!("{location} {{").as_str()) && included.is_some_and(|more| more == "}" || size(more))
        });
        let is_documented = ["robotsd-server.conf;", "robotsd-location.conf;", "robotsd-in-place.conf;"]
            .iter()
            .any(|file| line == format!("include nginx/{file}"))
            || line.starts_with("location @") && line.ends_with(" {")
            || line.starts_with("set $robotsd_next @")
            || line.split_once(" { return 301 ").is_some_and(|(_, to)| to.ends_with("/$is_args$args; }"));
        assert!(hands_on || is_documented || own.contains(line), "{line}");
    }
}

/// Returns the lines of one of the two forms.
fn of_form(text: &str, mark: char) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix([' ', mark]));
    lines.map(|line| format!("{line}\n")).collect()
}

fn site_folder() -> Folder {
    // The page has three parts that are requested at the same time.
    let parts =
        ["/index.php?a=part", "/style.css", "/wp-admin/"].map(|part| format!("<!--# include virtual=\"{part}\" -->"));
    let parts = parts.concat();
    let text = |name: &str| match name {
        script if script.ends_with(".php") => SCRIPT.to_owned(),
        "wordpress/parts.html" => format!("this is {parts}\n"),
        name => format!("this is {name}\n"),
    };
    let files: Vec<_> =
        FILES.split_whitespace().map(|name| (name, text(name))).chain([("fastcgi.conf", FASTCGI.into())]).collect();
    let folder = folder(&files.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
    // The workers of nginx may run as another user.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for form in ["plain", "asked"] {
        fs::write(folder.at(format!("{form}-mirrored")), "").unwrap();
    }
    folder
}

/// Runs PHP scripts with PHP-FPM, as most sites do.
fn run_scripts(program: &Path, folder: &Path) -> Daemon {
    let here = folder.display();
    let config = format!(
        "[global]\ndaemonize = no\nerror_log = {here}/php.log\n[www]\nlisten = {here}/php.sock\nlisten.mode = 0666\n\
         user = root\ngroup = root\npm = static\npm.max_children = 2\nsecurity.limit_extensions = .php .PHP\n"
    );
    fs::write(folder.join("php-fpm.conf"), config).unwrap();
    let mut command = Command::new(program);
    // If the test runs as root, PHP must, too. Otherwise, PHP ignores the lines about a user.
    command
        .args(["--allow-to-run-as-root", "--nodaemonize", "--no-php-ini", "--fpm-config"])
        .arg(folder.join("php-fpm.conf"));
    let php = Daemon::spawn(command.stdin(Stdio::null()));
    wait_until("a PHP that listens", || UnixStream::connect(folder.join("php.sock")).is_ok());
    php
}

/// Returns a target that is in the same location and that a rule disallows.
fn to_be_refused(target: &str) -> String {
    format!("{target}{}refused=", if target.contains('?') { '&' } else { '?' })
}

fn without_source(request: &Request<'_>, answer: &str) {
    for source in SOURCE {
        assert!(!answer.contains(source), "{request:?} is answered with source:\n{answer}");
    }
}

/// Removes the times from a response, and unifies the host names of the two forms.
fn comparable(answer: &[u8]) -> String {
    let answer = String::from_utf8(answer.to_vec()).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an end of the head");
    let of_now = |line: &&str| ["date: ", "expires: "].iter().any(|name| line.to_lowercase().starts_with(name));
    let head: Vec<_> = head.lines().filter(|line| !of_now(line)).collect();
    format!("{}\r\n\r\n{body}", head.join("\r\n")).replace("plain.", "asked.")
}
