//! Opens the tester's page in a real browser: from a disk and from a server, with hostile files and
//! links, and with the keyboard only.

use std::fs;

use crate::board_browser::{axe, hinders_nobody};
use crate::browser::Browser;
use crate::harness::*;
use crate::tester::{ANSWERED, page};

const TAB: char = '\u{e004}';
const ENTER: char = '\u{e007}';

/// Starts a browser, and returns it with the address of the page on the disk.
fn browser_and_page() -> Option<(Browser, String)> {
    let page = page()?;
    Some((Browser::start("")?, format!("file://{}", page.display())))
}

fn text_of(browser: &Browser, id: &str) -> String {
    browser.run(&format!("return document.getElementById('{id}').innerText")).as_str().unwrap().to_owned()
}

/// Replaces the text of a field, and waits for the answer.
fn write_into(browser: &Browser, id: &str, text: &str) {
    browser.run(&format!(
        "window.before = document.documentElement.dataset.answers; const field = document.getElementById('{id}'); \
         field.value = {}; field.dispatchEvent(new Event('input'));",
        json!(text)
    ));
    browser.wait_until("return document.documentElement.dataset.answers !== window.before");
}

/// Runs an asynchronous expression in the page, and returns its value.
fn value(browser: &Browser, expression: &str) -> Value {
    let script = format!(
        "const done = arguments[0]; (async () => {expression})().then(done, error => done('error: ' + error.message))"
    );
    browser.post("/execute/async", &json!({ "script": script, "args": [] }))
}

#[test]
fn the_tester_is_accessible() {
    let Some(axe) = axe() else { return };
    let Some((browser, url)) = browser_and_page() else { return };
    hinders_nobody(&browser, &axe, &url, "tester", ANSWERED);
}

#[test]
fn the_page_gives_answers_without_any_request_after_it_is_loaded() {
    let Some((browser, url)) = browser_and_page() else { return };
    let content = fs::read(page().unwrap()).unwrap();
    let server = Origin::answering(move |_| response("200 OK", &["Content-Type: text/html; charset=utf-8"], &content));
    for url in [url, format!("http://{}/", server.address)] {
        browser.requested();
        browser.open_until(&url, ANSWERED);
        assert_has(text_of(&browser, "shown"), &["This is an example"]);
        assert_has(text_of(&browser, "table"), &["GPTBot", "may not", "line 11: Disallow: /"]);
        assert_has(text_of(&browser, "front"), &["AI training", "AI search", "search engines"]);
        let took = browser.run("return performance.getEntriesByName('answered')[0].startTime");
        println!("the first answer of {} after {took} ms", url.split(':').next().unwrap());

        write_into(&browser, "file", "User-agent: GPTBot\nDisallow: /x\nDisallow: /x\n");
        assert_has(text_of(&browser, "shown"), &["This is your file: 4 lines, 45 bytes."]);
        browser.run("for (const id of ['keep', 'csv', 'share']) document.getElementById(id).click()");
        browser.wait_until("return document.getElementById('link-note').textContent !== ''");
        write_into(&browser, "file", "User-agent: GPTBot\nDisallow: /\n");
        assert_has(text_of(&browser, "diff"), &["GPTBot", "may not any more: the whole site"]);
        let requested = browser.requested();
        let sent: Vec<_> = requested.iter().filter(|url| !url.starts_with("blob:")).collect();
        assert_eq!(sent, [&url], "a request after the page was loaded");
        let errors = browser.log("browser").into_iter().filter(|entry| entry["level"] != "INFO").collect::<Vec<_>>();
        assert_eq!(errors, Vec::<Value>::new());
    }
}

#[test]
fn the_page_states_that_it_checks_only_the_beginning_that_crawlers_read() {
    let Some((browser, url)) = browser_and_page() else { return };
    browser.open_until(&url, ANSWERED);
    let line = "Disallow: /x\n";
    write_into(&browser, "file", &["User-agent: *\n", &line.repeat(512_000 / line.len() + 2)].concat());
    assert_has(text_of(&browser, "findings-note"), &["Crawlers do not read the last ", ", so these are not checked"]);
    assert_eq!(browser.run("return document.getElementById('fix-all').parentElement.hidden"), json!(true));
}

#[test]
fn the_page_blocks_fetch_and_image_requests_to_a_server() {
    let Some((browser, url)) = browser_and_page() else { return };
    let server = Origin::answering(|_| response("200 OK", &[], "secret"));
    browser.open_until(&url, ANSWERED);
    for attempt in [
        format!("fetch('http://{}/')", server.address),
        format!(
            "new Promise((yes, no) => {{ const it = new Image(); it.onload = yes; it.onerror = () => no(new Error('refused')); it.src = 'http://{}/'; }})",
            server.address
        ),
    ] {
        let found = value(&browser, &attempt);
        assert!(found.as_str().is_some_and(|text| text.starts_with("error: ")), "{attempt}: {found}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn hostile_text_is_never_interpreted_as_markup() {
    let Some((browser, url)) = browser_and_page() else { return };
    browser.open_until(&url, ANSWERED);
    let elements = "return document.querySelectorAll('img, iframe, script, svg, a').length";
    let before = browser.run(elements);
    let hostile = "<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>";
    let file =
        format!("User-agent: {hostile}\nDisallow: /{hostile}\n{hostile}: x\nSitemap: {hostile}\nDisalow: {hostile}\n");
    browser.run("document.getElementById('keep').click()");
    write_into(&browser, "crawlers", &format!("{hostile}\n*\nGooglebot\n\u{202e}Bot"));
    write_into(&browser, "urls", &format!("/{hostile}\n{hostile}\n/\u{202e}x"));
    write_into(&browser, "file", &file);
    for id in ["table", "findings"] {
        assert_has(text_of(&browser, id), &["<img src=x onerror=alert(1)>"]);
    }
    assert_has(text_of(&browser, "table"), &["/\\u{202e}x", "\\u{202e}Bot"]);
    assert_eq!(browser.run(elements), before);
}

#[test]
fn a_link_restores_the_page_and_an_invalid_link_is_refused_with_the_reason() {
    let Some((browser, url)) = browser_and_page() else { return };
    browser.open_until(&url, ANSWERED);
    write_into(&browser, "file", "User-agent: Ünï\nDisallow: /größe\n");
    write_into(&browser, "crawlers", "Ünï\n");
    browser.run("document.getElementById('share').click()");
    browser.wait_until("return document.getElementById('link').value !== ''");
    let link = browser.run("return document.getElementById('link').value").as_str().unwrap().to_owned();
    assert!(link.starts_with(&format!("{url}#v1=")), "{link}");
    browser.open("about:blank");
    browser.open_until(&link, ANSWERED);
    let values = browser.run("return ['file', 'crawlers'].map(id => document.getElementById(id).value)");
    assert_eq!(values, json!(["User-agent: Ünï\nDisallow: /größe\n", "Ünï\n"]));
    assert_has(text_of(&browser, "shown"), &["the file in the link"]);

    let bomb = value(&browser, "await fragmentOf(new Uint8Array(20_000_000))");
    let bomb = bomb.as_str().unwrap();
    let cut = &link[link.find('#').unwrap()..link.len() - 20];
    let other = value(&browser, "await fragmentOf(encode('verdicts standard 5 - 0 0\\nab'))");
    for (fragment, want) in [
        (bomb, "refused: its content is larger than 512 kB"),
        (cut, "The link is damaged, perhaps because a program cut it"),
        ("#v1=%%%", "The link is damaged"),
        ("#v1=", "The link is damaged"),
        ("#v1=AAAA", "The link is damaged"),
        (other.as_str().unwrap(), "its content is not from this page"),
        ("#v2=abc", "The link is of version 2, which this page does not know"),
    ] {
        browser.open("about:blank");
        browser.open_until(&format!("{url}{fragment}"), ANSWERED);
        let shown = text_of(&browser, "shown");
        assert!(shown.contains(want), "{}…: {shown}", fragment.chars().take(40).collect::<String>());
        assert_has(text_of(&browser, "table"), &["GPTBot"]);
    }

    // The page must warn about a link that some programs truncate.
    let random = "const bytes = crypto.getRandomValues(new Uint8Array(9000)); const field = document.getElementById('file'); \
                  field.value = Array.from(bytes, byte => byte.toString(16)).join('\\n'); field.dispatchEvent(new Event('input')); \
                  document.getElementById('share').click();";
    browser.run(random);
    browser.wait_until("return document.getElementById('link-note').textContent.includes('longer than 8 kB')");
}

/// A text area can show only UTF-8 text with line feeds, but a file may contain other bytes.
#[test]
fn unedited_lines_keep_their_bytes() {
    let Some((browser, url)) = browser_and_page() else { return };
    browser.open_until(&url, ANSWERED);
    for (file, text, want) in [
        (&b"/caf\xE9\n# a\n"[..], "/caf\u{fffd}\n# ab\n", &b"/caf\xE9\n# ab\n"[..]),
        (b"a\n/caf\xE9", "b\n/caf\u{fffd}", b"b\n/caf\xE9"),
        (b"a\rb\rc", "a\n\nb\nc", b"a\r\rb\rc"),
        (b"a\r\nb\n", "a\nx\nb\n", b"a\r\nx\r\nb\n"),
        (b"\n\r\n\r", "\n\n\n", b"\n\r\n\r"),
        (b"a\nb", "", b""),
        (b"", "a\nb", b"a\nb"),
    ] {
        let file_now = format!("Array.from(retyped(Uint8Array.from({}), {}))", json!(file), json!(text));
        assert_eq!(value(&browser, &file_now), json!(want), "{text:?}");
    }
}

#[test]
fn the_keyboard_reaches_every_control_and_can_fix_findings() {
    let Some((browser, url)) = browser_and_page() else { return };
    browser.open_until(&url, ANSWERED);
    let mut reached = Vec::new();
    let focused = "const it = document.activeElement; return it.id || it.textContent";
    while reached.len() < 200 && !reached.iter().any(|name| name == "share") {
        browser.press(&TAB.to_string());
        let name = browser.run(focused).as_str().unwrap().to_owned();
        reached.push(name.clone());
        // The first fix is applied. The focus must then be on the title of the findings.
        if name == "Fix" {
            browser.run("window.before = document.documentElement.dataset.answers");
            browser.press(&ENTER.to_string());
            browser.wait_until("return document.documentElement.dataset.answers !== window.before && document.activeElement.id === 'findings-title'");
            assert_has(text_of(&browser, "shown"), &["is fixed. “Undo” takes it back."]);
            break;
        }
    }
    for id in ["upload", "example", "file", "urls", "crawlers", "reading", "table", "csv"] {
        assert!(reached.iter().any(|name| name == id), "{id}: {reached:?}");
    }
    browser.run("document.getElementById('undo').focus()");
    browser.press(&ENTER.to_string());
    browser.wait_until("return document.getElementById('shown').textContent === 'The last change is undone.'");
    // The button of a deciding rule selects its line.
    browser.run(
        "[...document.querySelectorAll('#table button')].find(it => it.textContent.startsWith('line 11')).focus()",
    );
    browser.press(&ENTER.to_string());
    let selected =
        browser.run("const it = document.activeElement; return it.value.slice(it.selectionStart, it.selectionEnd)");
    assert_eq!(selected, "Dissallow: /");
}
