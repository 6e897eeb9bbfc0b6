//! Tokens of the admin interface: `rbd_`, 256 random bits and a checksum, so that scanners for secrets find one, and a command notices one
//! that was cut.

use std::path::Path;

use data_encoding::HEXLOWER;
use tokio_rustls::rustls::crypto::ring;

use crate::files;

const PREFIX: &str = "rbd_";

/// Hex digits of the random part, and of the checksum behind it.
const DIGITS: usize = 64;
const CHECKED: usize = 8;

/// The variables in which a command finds its token, or the file with it: as an argument every user of the machine would see it.
const TOKEN: &str = "ROBOTSD_TOKEN";
const TOKEN_FILE: &str = "ROBOTSD_TOKEN_FILE";

/// No token is larger.
const LARGEST: u64 = 4096;

/// A new token, and what the config has of it; fails where the system has no randomness to give.
pub(crate) fn new_token() -> Result<(String, String), String> {
    let mut secret = [0; DIGITS / 2];
    let random = ring::default_provider().secure_random;
    random.fill(&mut secret).map_err(|_| "the system has no randomness to give".to_owned())?;
    let token = with_checksum(&HEXLOWER.encode(&secret));
    let hash = format!("sha256:{}", HEXLOWER.encode(&hmac_sha256::Hash::hash(token.as_bytes())));
    Ok((token, hash))
}

/// The token of a command, by its environment.
pub(super) fn token_of_environment() -> Result<Option<String>, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (token, at) = match (variable(TOKEN), variable(TOKEN_FILE)) {
        (Some(token), _) => (token, TOKEN.to_owned()),
        (None, None) => return Ok(None),
        (None, Some(path)) => {
            let read = files::read_at_most(Path::new(&path), LARGEST).map_err(|error| format!("{path}: {error}"))?;
            (String::from_utf8_lossy(&read.0).into_owned(), path)
        }
    };
    let token = token.trim().to_owned();
    if is_whole(&token) {
        Ok(Some(token))
    } else {
        Err(format!("{at}: this is no token of robotsd, or one that was cut"))
    }
}

fn is_whole(token: &str) -> bool {
    let digits = token.strip_prefix(PREFIX).and_then(|digits| digits.get(..DIGITS));
    digits.is_some_and(|digits| with_checksum(digits) == token)
}

fn with_checksum(digits: &str) -> String {
    let token = format!("{PREFIX}{digits}");
    let checksum = HEXLOWER.encode(&hmac_sha256::Hash::hash(token.as_bytes()));
    token + &checksum[..CHECKED]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_whole_or_it_is_noticed() {
        let (token, hash) = new_token().unwrap();
        assert!(is_whole(&token) && token.len() == PREFIX.len() + DIGITS + CHECKED, "{token}");
        assert_eq!(hash.len(), "sha256:".len() + 64);
        assert_ne!(new_token().unwrap().0, token);
        for end in 0..token.len() {
            assert!(!is_whole(&token[..end]), "{end}");
        }
        let other = if token.ends_with('0') { '1' } else { '0' };
        assert!(!is_whole(&format!("{}{other}", &token[..token.len() - 1])));
        assert!(!is_whole(&format!("{token}0")) && !is_whole("ä") && !is_whole("rbd_"));
    }
}
