//! The site behind the proxy. Its response contains the whole received request.

use crate::harness::*;

pub(super) const OWN_ROBOTS_TXT: &str = "# the site's own\n";

pub(super) fn start() -> Origin {
    Origin::answering(|asked| {
        // The connection now uses another protocol, such as a websocket. All bytes are echoed.
        if asked.field("upgrade").is_some() {
            let switching = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
            return Reply::Echo(switching.to_vec());
        }
        let head = String::from_utf8_lossy(&asked.head);
        // The site sends its own robots.txt with this status, and takes longer than servers wait
        // for robotsd.
        if let Some((_, status)) = head.lines().next().unwrap_or_default().split_once("/robots.txt?status=") {
            thread::sleep(Duration::from_millis(500));
            let status = status.split(' ').next().unwrap_or_default();
            return response(&format!("{status} As asked"), &["Served-By: site"], OWN_ROBOTS_TXT).into();
        }
        let body = if head.starts_with("GET /robots.txt ") {
            OWN_ROBOTS_TXT.into()
        } else if head.starts_with("GET ") && head.contains("/page-with-a-fragment ") {
            b"<esi:include src=\"/drafts/fragment\"/>".to_vec()
        } else {
            [&asked.head[..], &asked.body].concat()
        };
        let mut answer = response("200 OK", &["Served-By: site"], &body);
        if asked.head.starts_with(b"HEAD ") {
            answer.truncate(answer.len() - body.len());
        }
        answer.into()
    })
}
