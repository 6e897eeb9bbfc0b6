//! Tests the parameters of a signature: the validity window, and the required parameters and their
//! types.

use super::*;

#[test]
fn a_signature_window_may_last_a_day_with_a_clock_tolerance_of_a_minute() {
    let window = |created: i64, expires: i64, now: u64| {
        let list = format!(r#"{COVERED};created={created};expires={expires};keyid="{KEYID}";tag="web-bot-auth""#);
        Signed::new(AGENT).now(now).sign("sig1", &list, None).outcome()
    };
    let created = CREATED as i64;
    assert_eq!(window(created, created + 86_400, CREATED), VERIFIED);
    assert_eq!(window(created, created + 86_401, CREATED), failed(WindowTooLong));
    assert_eq!(window(created, created, CREATED), VERIFIED);
    assert_eq!(window(created, created - 1, CREATED), failed(WindowNegative));
    assert_eq!(window(created + 60, created + 100, CREATED), VERIFIED);
    assert_eq!(window(created + 61, created + 100, CREATED), failed(CreatedInFuture));
    assert_eq!(window(created - 100, created - 60, CREATED), VERIFIED);
    assert_eq!(window(created - 100, created - 61, CREATED), failed(Expired));
    // The largest numbers that a structured field can contain.
    assert_eq!(window(-999_999_999_999_999, 999_999_999_999_999, CREATED), failed(WindowTooLong));
    assert_eq!(window(999_999_999_999_999, 999_999_999_999_999, CREATED), failed(CreatedInFuture));
    assert_eq!(window(-999_999_999_999_999, -999_999_999_999_999, CREATED), failed(Expired));
    assert_eq!(window(created, created + 1, u64::MAX / 4), failed(Expired));
    assert_eq!(window(0, 1, 0), VERIFIED);
}

#[test]
fn signature_parameters_are_required_and_must_have_the_right_type() {
    let all = parameters();
    let without = |name: &str| {
        let kept: Vec<_> = all.split(';').filter(|parameter| !parameter.starts_with(name)).collect();
        with_parameters(&kept.join(";"))
    };
    assert_eq!(with_parameters(&all), VERIFIED);
    for name in ["created", "expires", "keyid"] {
        assert_eq!(without(name), failed(MissingParameter), "{name}");
    }
    // A signature without the tag has another purpose, so the request is treated as not signed.
    assert_eq!(without("tag"), None);
    for (change, outcome) in [
        ("tag=web-bot-auth", None),
        ("tag=\"Web-Bot-Auth\"", None),
        ("tag=\"web-bot-auth \"", None),
        ("tag=:d2ViLWJvdC1hdXRo:", None),
        ("created=1735689600.0", failed(Unparsable)),
        ("created=\"1735689600\"", failed(Unparsable)),
        ("created=@1735689600", failed(Unparsable)),
        ("created", failed(Unparsable)),
        ("created=1735689600000000", failed(Unparsable)),
        ("created=+1735689600", failed(Unparsable)),
        ("expires=9999999999999999999999", failed(Unparsable)),
        ("keyid=abc", failed(Unparsable)),
        ("alg=ed25519", failed(Unparsable)),
        ("alg=\"Ed25519\"", failed(AlgMismatch)),
        ("alg=\"hmac-sha256\"", failed(AlgMismatch)),
        ("alg=\"rsa-pss-sha512\"", failed(AlgMismatch)),
        ("alg=\"ed25519\"", VERIFIED),
        ("nonce=\"\\\"; created=0\"", VERIFIED),
        ("unknown;other=(1)", failed(Unparsable)),
        ("unknown;other=1.5", VERIFIED),
        // If a parameter is repeated, the last value is used (RFC 9651, section 4.2.3.2). The base
        // contains all parameters as received.
        ("created=1735689601", VERIFIED),
        ("created=9999999999", failed(WindowNegative)),
        (" created=1735689601", VERIFIED),
        ("keyid=\"POQKLGIYMH_W0UP6PZFW-DVEZ3QJT5SOLQXBCW38R0U\"", undecided(UndecidedReason::KeyUnknownThere)),
        ("keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U=\"", undecided(UndecidedReason::KeyUnknownThere)),
    ] {
        assert_eq!(with_parameters(&format!("{all};{change}")), outcome, "{change}");
    }
}

#[test]
fn only_the_canonical_form_of_a_signature_verifies() {
    let request = Signed::new(AGENT).sign("sig1", &format!("{COVERED};{}", parameters()), None);
    let change = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut request = request.clone();
        let (_, value) = request.fields.last_mut().expect("the signature");
        let text = String::from_utf8(std::mem::take(value)).expect("text");
        let mut bytes = STANDARD.decode(text.trim_start_matches("sig1=:").trim_end_matches(':')).expect("base64");
        change(&mut bytes);
        *value = format!("sig1=:{}:", STANDARD.encode(bytes)).into_bytes();
        request.outcome()
    };
    assert_eq!(change(&|_| {}), VERIFIED);
    assert_eq!(change(&|bytes| bytes.push(0)), failed(BadSignature));
    assert_eq!(change(&|bytes| bytes.truncate(63)), failed(BadSignature));
    assert_eq!(change(&Vec::clear), failed(BadSignature));
    assert_eq!(change(&|bytes| bytes[0] ^= 1), failed(BadSignature));
    // The group order is added to the second half of the signature, which gives an equivalent but
    // invalid form of the same number (RFC 8032, section 5.1.7).
    assert_eq!(
        change(&|bytes| {
            let order: [u8; 32] = [
                0xED, 0xD3, 0xF5, 0x5C, 0x1A, 0x63, 0x12, 0x58, 0xD6, 0x9C, 0xF7, 0xA2, 0xDE, 0xF9, 0xDE, 0x14, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
            ];
            let mut carry = 0_u16;
            for (byte, more) in bytes[32..].iter_mut().zip(order) {
                carry += u16::from(*byte) + u16::from(more);
                *byte = carry as u8;
                carry >>= 8;
            }
        }),
        failed(BadSignature)
    );
    for value in ["sig1=abc", "sig1=(:AAAA:)", "sig1", "sig1=:A*:", "x", "sig2=:AAAA:", ""] {
        let mut request = request.clone();
        request.fields.last_mut().expect("the signature").1 = value.as_bytes().to_vec();
        let refutation = if ["x", "sig2=:AAAA:", ""].contains(&value) { NoSignatureForLabel } else { Unparsable };
        assert_eq!(request.outcome(), failed(refutation), "{value}");
    }
}
