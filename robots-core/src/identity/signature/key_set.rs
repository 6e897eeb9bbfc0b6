//! The keys of a directory: a JWK Set (RFC 7517). Only Ed25519 keys (RFC 8037) are used.
//!
//! **The parser skips unusable keys.** If a key is a point of small order, anybody can forge valid
//! signatures for the key. `ring` accepts such keys.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::agent::UndecidedReason;
use crate::identity::published_list::{DocumentError, DocumentErrorKind};

/// Maximum size of a key set, in bytes.
const MAX_BYTES: usize = 64 * 1024;
const MAX_KEYS: usize = 32;

/// `test-key-ed25519` of RFC 9421, appendix B.1.4. Its private key is public.
const TEST_KEY: [u8; 32] = [
    0x26, 0xB4, 0x0B, 0x8F, 0x93, 0xFF, 0xF3, 0xD8, 0x97, 0x11, 0x2F, 0x7E, 0xBC, 0x58, 0x2B, 0x23, 0x2D, 0xBD, 0x72,
    0x51, 0x7D, 0x08, 0x2F, 0xE8, 0x3C, 0xFB, 0x30, 0xDD, 0xCE, 0x43, 0xD1, 0xBB,
];

/// The keys of one directory, by their thumbprints (RFC 7638).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeySet {
    keys: Vec<(String, VerifyingKey)>,
    /// Number of keys that were skipped because they have another type or are unusable.
    pub skipped: usize,
    /// Whether signatures with the test key of RFC 9421 are accepted. Set this field only in tests,
    /// because the private key of the test key is public.
    pub accepts_test_key: bool,
}

/// A usable Ed25519 public key: a point in canonical encoding that is not of small order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerifyingKey([u8; 32]);

impl KeySet {
    /// Parses a JWK Set or a single JWK.
    ///
    /// The parser accepts what real directories contain: `kid` may be missing or have any value;
    /// `alg` may be missing, `EdDSA` or `Ed25519`; and the set may be empty. The parser skips keys
    /// of other algorithms, and Ed25519 keys whose signatures can be forged.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a key set, or if the set is larger than 64 KiB or has
    /// more than 32 keys. The caller should then keep the previous keys.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let error = |kind, message: String| DocumentError::new(kind, message);
        if bytes.len() > MAX_BYTES {
            let message =
                format!("the key set has {size} bytes, but at most {MAX_BYTES} are allowed", size = bytes.len());
            return Err(error(DocumentErrorKind::TooLarge, message));
        }
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|cause| error(DocumentErrorKind::InvalidJson, format!("the key set is not JSON: {cause}")))?;
        let no_key_set = || {
            let message = "the JSON is neither a JWK Set, {\"keys\":[…]}, nor a JWK, {\"kty\":\"OKP\",…}";
            error(DocumentErrorKind::NoKeySet, message.to_owned())
        };
        let object = value.as_object().ok_or_else(no_key_set)?;
        let keys = match object.get("keys") {
            Some(keys) => keys.as_array().map(Vec::as_slice).ok_or_else(no_key_set)?,
            None if object.contains_key("kty") => std::slice::from_ref(&value),
            None => return Err(no_key_set()),
        };
        if keys.len() > MAX_KEYS {
            let message =
                format!("the key set has {count} keys, but at most {MAX_KEYS} are allowed", count = keys.len());
            return Err(error(DocumentErrorKind::TooMany, message));
        }
        let mut set = Self::default();
        for key in keys {
            match key.as_object().and_then(VerifyingKey::of_jwk) {
                Some(key) => set.keys.push((key.thumbprint(), key)),
                None => set.skipped += 1,
            }
        }
        Ok(set)
    }

    /// Returns the number of usable keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Reports whether there are no usable keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the thumbprints of the keys. A signature refers to its key by the thumbprint, in the
    /// parameter `keyid`.
    pub fn thumbprints(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(thumbprint, _)| thumbprint.as_str())
    }

    pub(super) fn key(&self, keyid: &str) -> Result<VerifyingKey, UndecidedReason> {
        let (_, key) =
            self.keys.iter().find(|(thumbprint, _)| thumbprint == keyid).ok_or(UndecidedReason::KeyUnknownThere)?;
        if key.0 == TEST_KEY && !self.accepts_test_key { Err(UndecidedReason::TestKey) } else { Ok(*key) }
    }
}

impl VerifyingKey {
    fn of_jwk(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).map(|value| value.as_str().unwrap_or_default());
        let is_ed25519 = text("kty") == Some("OKP") && text("crv") == Some("Ed25519");
        let is_for_signatures = text("use").is_none_or(|purpose| purpose == "sig");
        let is_alg = |alg: &str| alg.eq_ignore_ascii_case("EdDSA") || alg.eq_ignore_ascii_case("Ed25519");
        if !is_ed25519 || !is_for_signatures || !text("alg").is_none_or(is_alg) {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text("x")?.trim_end_matches('=')).ok()?;
        let key: [u8; 32] = bytes.try_into().ok()?;
        is_usable(&key).then_some(Self(key))
    }

    /// Returns the thumbprint of the key (RFC 7638), computed from the members that RFC 8037,
    /// section 2, requires.
    fn thumbprint(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0);
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()))
    }

    pub(super) fn verifies(&self, signature: &[u8], bytes: &[u8]) -> bool {
        ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, &self.0).verify(bytes, signature).is_ok()
    }
}

fn is_usable(key: &[u8; 32]) -> bool {
    /// The y coordinates of the eight points of small order, as little-endian bytes. There are only
    /// five coordinates, because some points differ only in the sign of x.
    const SMALL_ORDER: [[u8; 32]; 5] = [
        [0; 32],
        [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [
            0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0, 0xD5, 0xDF,
            0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
        ],
        [
            0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F, 0x2A, 0x20,
            0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
        ],
        MINUS_ONE,
    ];
    /// The largest possible coordinate: the prime of the curve's field minus one.
    const MINUS_ONE: [u8; 32] = [
        0xEC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F,
    ];
    let mut y = *key;
    y[31] &= 0x7F;
    y.iter().rev().le(MINUS_ONE.iter().rev()) && !SMALL_ORDER.contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
    const KEYID: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

    fn parse(text: &str) -> KeySet {
        KeySet::parse(text.as_bytes()).expect(text)
    }

    fn jwk(members: &str) -> String {
        format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}"{members}}}"#)
    }

    #[test]
    fn a_key_is_found_by_its_thumbprint_and_not_by_its_kid() {
        for members in [
            "",
            r#","kid":"anything""#,
            r#","kid":7"#,
            r#","alg":"EdDSA""#,
            r#","alg":"ed25519""#,
            r#","alg":"Ed25519","use":"sig","nbf":1,"exp":2"#,
        ] {
            for set in [jwk(members), format!(r#"{{"keys":[{}],"purpose":"x"}}"#, jwk(members))] {
                let set = parse(&set);
                assert_eq!(set.thumbprints().collect::<Vec<_>>(), [KEYID], "{members}");
                assert_eq!(set.key(KEYID), Err(UndecidedReason::TestKey));
                assert_eq!(set.key("anything"), Err(UndecidedReason::KeyUnknownThere));
            }
        }
        let padded = parse(&jwk("").replace(X, &format!("{X}=")));
        assert_eq!(padded.thumbprints().collect::<Vec<_>>(), [KEYID]);
    }

    #[test]
    fn keys_other_than_valid_ed25519_signing_keys_are_skipped() {
        for key in [
            jwk(r#","alg":"ES256""#),
            jwk(r#","alg":7"#),
            jwk(r#","use":"enc""#),
            jwk("").replace("OKP", "EC"),
            jwk("").replace("Ed25519", "Ed448"),
            jwk("").replace("Ed25519", "X25519"),
            jwk("").replace(X, "AAAA"),
            jwk("").replace(X, ""),
            jwk("").replace(X, &format!("{X}AAAA")),
            jwk("").replace(X, &X.replace('_', "/")),
            // This string differs from `X` only in the unused bits of the last character. The
            // decoder rejects the string, although it stands for the same key.
            jwk("").replace(X, &format!("{}t", &X[..42])),
            r#"{"kty":"OKP","crv":"Ed25519"}"#.to_owned(),
            r#"{"kty":"RSA","n":"x","e":"AQAB"}"#.to_owned(),
            "null".to_owned(),
            "[]".to_owned(),
        ] {
            let set = parse(&format!(r#"{{"keys":[{key},{}]}}"#, jwk("")));
            assert_eq!((set.len(), set.skipped), (1, 1), "{key}");
        }
        let empty = parse(r#"{"keys":[]}"#);
        assert!(empty.is_empty() && empty.skipped == 0);
    }

    #[test]
    fn a_key_that_would_verify_forged_signatures_is_skipped() {
        let bytes = |hex: &str| -> [u8; 32] {
            let digit = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex");
            std::array::from_fn(digit)
        };
        let f = "f".repeat(60);
        for hex in [
            "00".repeat(32),
            format!("01{}", "00".repeat(31)),
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05".to_owned(),
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".to_owned(),
            format!("ec{f}7f"),
            // Non-canonical encodings of points, some of them of small order.
            format!("ed{f}7f"),
            format!("ee{f}7f"),
            format!("f0{f}7f"),
            format!("ff{f}7f"),
        ] {
            for sign in [0, 0x80] {
                let mut key = bytes(&hex);
                key[31] |= sign;
                assert!(!is_usable(&key), "{hex} {sign}");
                let x = URL_SAFE_NO_PAD.encode(key);
                assert!(parse(&jwk("").replace(X, &x)).is_empty(), "{hex}");
            }
        }
        assert!(is_usable(&TEST_KEY));
        assert!(is_usable(&bytes(&format!("eb{f}7f"))));
        // With this key, a signature that consists of a byte 1 and zeros would be valid for any
        // message.
        let mut forged = [0; 64];
        forged[0] = 1;
        let neutral = VerifyingKey(bytes(&format!("01{}", "00".repeat(31))));
        assert!(neutral.verifies(&forged, b"anything"), "the reason for the rule");
    }

    #[test]
    fn an_invalid_or_too_large_key_set_is_refused() {
        let kind = |text: &str| KeySet::parse(text.as_bytes()).expect_err("no key set").kind;
        for text in ["{}", "[]", "7", r#"{"keys":{}}"#, r#"{"keys":null}"#, r#"{"prefixes":[]}"#] {
            assert_eq!(kind(text), DocumentErrorKind::NoKeySet, "{text}");
        }
        for text in ["", "<html>", r#"{"keys":["#] {
            assert_eq!(kind(text), DocumentErrorKind::InvalidJson, "{text}");
        }
        let many = |count| format!(r#"{{"keys":[{}null]}}"#, "null,".repeat(count - 1));
        assert_eq!(parse(&many(MAX_KEYS)).skipped, MAX_KEYS);
        assert_eq!(kind(&many(MAX_KEYS + 1)), DocumentErrorKind::TooMany);
        let large = format!("{}{}", jwk(""), " ".repeat(MAX_BYTES - jwk("").len()));
        assert_eq!(parse(&large).len(), 1);
        assert_eq!(kind(&format!("{large} ")), DocumentErrorKind::TooLarge);
    }
}
