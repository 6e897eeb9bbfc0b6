//! A signer of requests: its key, the key directory, and signed requests.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::Ed25519KeyPair;

use super::played_http::answer;
use crate::identity::{MessageHead, SignatureCandidate};

/// The key of RFC 8037, and its thumbprint.
pub(crate) const KEY: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
pub(crate) const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const PRIVATE: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";

/// Returns the response of a directory with these keys.
pub(crate) fn keys(keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|x| format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}"#)).collect();
    answer("200 OK", "Cache-Control: max-age=600\r\n", &format!(r#"{{"keys":[{}]}}"#, keys.join(",")))
}

/// Returns the signature fields of a request to `example.com`, signed now with the key in this
/// directory.
pub(crate) fn signed(directory: &str, now: SystemTime) -> Vec<(&'static str, String)> {
    let created = now.duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let expires = created + 20_000;
    let mut fields = vec![
        ("signature-agent", format!("\"{directory}\"")),
        (
            "signature-input",
            format!(
                "a=(\"@authority\" \"signature-agent\");created={created};expires={expires};\
                 keyid=\"{THUMBPRINT}\";tag=\"web-bot-auth\""
            ),
        ),
        ("signature", "a=:AAAA:".to_owned()),
    ];
    let base = {
        let fields = fields.as_slice();
        let message = MessageHead::new("GET", "https", Some("example.com"), "/", &fields);
        SignatureCandidate::all(&message, now).remove(0).expect("a signature").base
    };
    let seed = URL_SAFE_NO_PAD.decode(PRIVATE).expect("base64");
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a key");
    fields[2].1 = format!("a=:{}:", STANDARD.encode(pair.sign(base.as_bytes())));
    fields
}
