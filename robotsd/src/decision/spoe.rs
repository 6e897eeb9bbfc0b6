//! Converts HAProxy's SPOE messages to decision requests, and converts the responses to variables
//! that HAProxy's rules can use. A message becomes a decision request with the preset `haproxy`.
//!
//! | argument | type | meaning |
//! |---|---|---|
//! | `method`, `target` | string | method and target of the original request, unchanged |
//! | `fields` | binary | all header fields of the original request (`req.hdrs_bin`) |
//! | `address` | address | address of the client |
//! | `id` | string | ID of the original request; optional |
//! | `site` | string | name of the site; optional, by default the site of the host |
//!
//! | variable | meaning |
//! |---|---|
//! | `action` | `pass`, `tag` or `refuse` |
//! | `verdict` | `Robots-Verdict` of a tagged request |
//! | `status` | status of the refusal |
//! | `content_usage`, `link`, `x_robots_tag`, `vary` and others | fields for the response, with `_` instead of `-` in the names |
//! | `agent`, `reason`, `group`, `rule`, `line` | verdict on a tagged or refused request, as in the log |
//!
//! The response to a refused request is not returned in a variable, because HAProxy would escape
//! line breaks and non-ASCII bytes in it. HAProxy fetches the response to a refused request from
//! `/-/refusal/haproxy`.

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Request, Response, Uri};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use tower_robots::layer::Record;

use super::preset::{X_ORIGINAL_METHOD, X_ORIGINAL_URI, X_ORIGINAL_URL, X_REAL_IP, value_of};
use crate::edge::{Arguments, SpopMessages, SpopValue, VariableList, X_REQUEST_ID, split_string};

pub(crate) const MESSAGES: SpopMessages = SpopMessages { request: question, variables };

/// Maximum number of header fields to parse. Decision listeners accept fewer fields than this
/// maximum, so a decision request with too many fields is refused and not truncated.
const MAX_FIELDS: usize = 1024;

fn question(arguments: Arguments<'_>) -> Request<()> {
    let mut request = Request::new(());
    let mut fields = HeaderMap::new();
    let is_whole = arguments.bytes(b"fields").is_none_or(|bytes| read_fields(bytes, &mut fields).is_some());
    // If some fields cannot be parsed, the request is refused, because a crawler might not be
    // recognised without them.
    *request.uri_mut() = endpoint_uri(if is_whole { "auth" } else { "refusal" }, arguments.bytes(b"site"));
    // Fields with these names may come from the client. Such fields are replaced with the arguments
    // of the message, which come from HAProxy. HAProxy sends an empty value if the target has no
    // path, as in `OPTIONS *` and CONNECT.
    let target = arguments.get(b"target").map(|value| match value {
        SpopValue::Bytes(target) if !target.is_empty() => target,
        _ => b"*",
    });
    for (name, value) in [
        (X_ORIGINAL_URI, target),
        (X_ORIGINAL_METHOD, arguments.bytes(b"method")),
        (X_REQUEST_ID, arguments.bytes(b"id").filter(|id| !id.is_empty())),
    ] {
        fields.remove(&name);
        if let Some(bytes) = value {
            fields.insert(name, value_of(bytes));
        }
    }
    fields.remove(X_ORIGINAL_URL);
    fields.remove(X_REAL_IP);
    if let Some(SpopValue::Address(address)) = arguments.get(b"address")
        && let Ok(address) = HeaderValue::from_str(&address.to_string())
    {
        fields.insert(X_REAL_IP, address);
    }
    *request.headers_mut() = fields;
    request
}

fn endpoint_uri(endpoint: &str, site: Option<&[u8]>) -> Uri {
    let site = site.map(|name| format!("site/{}/", percent_encode(name, NON_ALPHANUMERIC))).unwrap_or_default();
    Uri::try_from(format!("/-/{site}{endpoint}/haproxy")).unwrap_or_else(|_| Uri::from_static("/-/refusal/haproxy"))
}

/// Parses alternating names and values up to an empty name. Returns `None` if the empty name at the
/// end is missing, or if there are too many fields. Fields are never dropped silently, because a
/// crawler could otherwise hide the fields that identify it.
fn read_fields(bytes: &[u8], fields: &mut HeaderMap) -> Option<()> {
    let mut rest = bytes;
    while fields.len() <= MAX_FIELDS {
        let (name, left) = split_string(rest)?;
        let (value, left) = split_string(left)?;
        rest = left;
        if name.is_empty() {
            return Some(());
        }
        // Fields whose name is not a token are skipped, because proxies do not accept these fields
        // from clients.
        let Ok(name) = HeaderName::from_bytes(name) else { continue };
        if !is_of_message(&name) {
            fields.try_append(name, value_of(value)).ok()?;
        }
    }
    None
}

/// Reports whether a field describes the body or the connection of the original request. Such
/// fields are left out of the decision request, because the decision request has no body and uses
/// another connection.
fn is_of_message(name: &HeaderName) -> bool {
    matches!(*name, CONNECTION | CONTENT_LENGTH | EXPECT | TE | TRAILER | TRANSFER_ENCODING | UPGRADE)
}

fn variables(response: &Response<Bytes>, variables: &mut VariableList) {
    if response.status().is_success() {
        match response.headers().get(Record::FIELD) {
            Some(verdict) => {
                variables.text("action", b"tag");
                variables.text("verdict", verdict.as_bytes());
            }
            None => variables.text("action", b"pass"),
        }
        for name in response.headers().keys().filter(|name| **name != Record::FIELD) {
            let lines: Vec<_> = response.headers().get_all(name).iter().map(HeaderValue::as_bytes).collect();
            variables.text(&name.as_str().replace('-', "_"), &lines.join(&b", "[..]));
        }
    } else {
        // The response is a refusal, or an error because the decision request is invalid. In both
        // cases, HAProxy must refuse the client's request: otherwise, clients could evade the rules
        // by causing invalid decision requests.
        variables.text("action", b"refuse");
        variables.number("status", response.status().as_u16().into());
    }
    if let Some(record) = response.extensions().get::<Record>() {
        variables.text("agent", record.name().as_bytes());
        variables.text("reason", record.reason.as_str().as_bytes());
        for (name, value) in [("group", record.group.as_deref()), ("rule", record.rule.as_deref())] {
            if let Some(value) = value {
                variables.text(name, value.as_bytes());
            }
        }
        if let Some(line) = record.line.and_then(|line| u32::try_from(line).ok()) {
            variables.number("line", line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::push_string;

    /// Builds the decision request for a message with these arguments. The argument `fields` is
    /// binary, and all other arguments are strings.
    fn question_of(arguments: &[(&str, &[u8])]) -> Request<()> {
        let mut message = vec![1, b'q', arguments.len() as u8];
        for (name, value) in arguments {
            push_string(&mut message, name.as_bytes());
            message.push(if *name == "fields" { 9 } else { 8 });
            push_string(&mut message, value);
        }
        question(Arguments::of_message(&message).unwrap().0)
    }

    fn fields(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in pairs.iter().flat_map(|(name, value)| [name, value]).chain([&&b""[..], &&b""[..]]) {
            push_string(&mut bytes, text);
        }
        bytes
    }

    #[test]
    fn all_lines_of_client_fields_are_kept_and_reserved_fields_are_dropped() {
        let sent = fields(&[
            (b"host", b"a.test"),
            (b"user-agent", b"Mozilla/5.0"),
            (b"user-agent", b"GPTBot \xFF"),
            (b"content-length", b"7"),
            (b"connection", b"user-agent"),
            (b"x-original-uri", b"/"),
            (b"x-original-method", b"POST"),
            (b"x-real-ip", b"127.0.0.1"),
            (b"x-request-id", b"forged"),
            (b"cookie", b"a\x7Fb"),
        ]);
        let asked = question_of(&[("fields", &sent), ("target", b"/drafts/"), ("method", b"GET")]);
        assert_eq!(asked.uri().path(), "/-/auth/haproxy");
        let of = |name: &str| asked.headers().get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
        assert_eq!(of("user-agent"), [&b"Mozilla/5.0"[..], b"GPTBot \xFF"]);
        assert_eq!((of("x-original-uri"), of("x-original-method")), (vec![&b"/drafts/"[..]], vec![&b"GET"[..]]));
        assert_eq!(of("cookie"), [b"a?b"]);
        for name in ["content-length", "connection", "x-real-ip", "x-request-id"] {
            assert!(of(name).is_empty(), "{name}");
        }
        // Missing arguments are not an error of this conversion: the endpoint reports them.
        assert!(question_of(&[]).headers().is_empty());
        assert_eq!(question_of(&[("site", b"a shop/b")]).uri().path(), "/-/site/a%20shop%2Fb/auth/haproxy");
    }

    #[test]
    fn a_target_without_a_path_is_an_asterisk() {
        let null = [&[1, b'q', 1][..], b"\x06target", &[0]].concat();
        let asked = [question_of(&[("target", b"")]), question(Arguments::of_message(&null).unwrap().0)];
        assert_eq!(asked.map(|asked| asked.headers()[X_ORIGINAL_URI].clone()), ["*", "*"]);
    }

    #[test]
    fn many_fields_do_not_hide_the_user_agent_and_cut_or_too_many_fields_are_refused() {
        let agent = (&b"user-agent"[..], &b"GPTBot"[..]);
        for (name, count) in [(&b"te"[..], 3000), (b"no token", 3000), (b"accept", 1000)] {
            let sent: Vec<_> = std::iter::repeat_n((name, &b"x"[..]), count).chain([agent]).collect();
            let asked = question_of(&[("fields", &fields(&sent))]);
            let want = ("/-/auth/haproxy", &b"GPTBot"[..]);
            assert_eq!((asked.uri().path(), asked.headers()["user-agent"].as_bytes()), want);
        }
        let many: Vec<_> = std::iter::repeat_n((&b"accept"[..], &b"x"[..]), 3000).chain([agent]).collect();
        let whole = fields(&[agent]);
        for cut in [&fields(&many)[..], &whole[..whole.len() - 1], &whole[..3]] {
            assert_eq!(question_of(&[("fields", cut)]).uri().path(), "/-/refusal/haproxy");
        }
    }

    #[test]
    fn every_status_other_than_200_sets_the_refuse_variable() {
        let told = |status: u16, verdict: Option<&str>| {
            let mut response = Response::builder().status(status);
            if let Some(verdict) = verdict {
                response = response.header(Record::FIELD, verdict);
            }
            let mut list = VariableList::of_frame(1024);
            variables(&response.body(Bytes::new()).unwrap(), &mut list);
            ["pass", "tag", "refuse", "status", "disallow"]
                .map(|word| memchr::memmem::find(&list.actions, word.as_bytes()).is_some())
        };
        assert_eq!(told(200, None), [true, false, false, false, false]);
        assert_eq!(told(200, Some("disallow")), [false, true, false, false, true]);
        for status in [403, 429, 431, 451, 502] {
            assert_eq!(told(status, None), [false, false, true, true, false], "{status}");
        }
    }
}
