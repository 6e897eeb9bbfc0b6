//! Tokens of the admin interface: `rbd_`, 256 random bits and a checksum. Secret scanners can
//! recognise them, and commands detect truncated ones.
//!
//! The local token is created by robotsd, in a file that only its owner can read. It prevents
//! programs of other users from making changes over a loopback address.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use tokio_rustls::rustls::crypto::ring;

use super::listen::prepare_runtime_folder;
use crate::config::{TokenFile, runtime_folders};
use crate::files;

const PREFIX: &str = "rbd_";

/// Number of hex digits of the random part. [`CHECKED`] is the number of digits of the checksum
/// after it.
const DIGITS: usize = 64;
const CHECKED: usize = 8;

/// Environment variables with the token, or the path of its file. As an argument, every user of the
/// machine could see it.
const TOKEN: &str = "ROBOTSD_TOKEN";
const TOKEN_FILE: &str = "ROBOTSD_TOKEN_FILE";

/// Maximum size of a token file, in bytes.
const MAX_BYTES: u64 = 4096;

/// Creates a token, and returns it with its hash for the config. Fails if the system provides no
/// randomness.
pub(crate) fn new_token() -> Result<(String, String), String> {
    let mut secret = [0; DIGITS / 2];
    let random = ring::default_provider().secure_random;
    random.fill(&mut secret).map_err(|_| "the system provides no randomness".to_owned())?;
    let token = with_checksum(&HEXLOWER.encode(&secret));
    let hash = format!("sha256:{}", HEXLOWER.encode(&hmac_sha256::Hash::hash(token.as_bytes())));
    Ok((token, hash))
}

/// Returns the token of a command, from its environment.
pub(super) fn token_of_environment() -> Result<Option<String>, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (token, at) = match (variable(TOKEN), variable(TOKEN_FILE)) {
        (Some(token), _) => (whole(&token), TOKEN.to_owned()),
        (None, None) => return Ok(None),
        (None, Some(path)) => {
            let read = read_token(Path::new(&path)).map_err(|error| format!("{path}: {error}"))?;
            (read.0, path)
        }
    };
    token.map(Some).ok_or_else(|| format!("{at}: this is not a token of robotsd, or it was truncated"))
}

/// Reads the token in a file, and the file's metadata. The token is `None` if the file contains
/// anything else.
fn read_token(path: &Path) -> io::Result<(Option<String>, Metadata)> {
    let (bytes, found) = files::read_at_most(path, MAX_BYTES)?;
    Ok((whole(&String::from_utf8_lossy(&bytes)), found))
}

/// The local token, and the files that contain it.
#[derive(Debug)]
pub(crate) struct KeptToken {
    pub(crate) token: String,
    /// Files with the token, the preferred one first. Never empty.
    pub(crate) files: Vec<PathBuf>,
    /// Why the token in existing files was replaced.
    pub(crate) replaced: Vec<String>,
    /// Why other files do not contain the token.
    pub(crate) failures: Vec<String>,
}

/// Reads the local token from these files, or creates one, and writes it to the files without it: a
/// command must find the token even if the state directory cannot be read. If others may know the
/// token in one of the files, all files get a new one. Blocks.
///
/// # Errors
///
/// Returns an error if the token cannot be stored in any file.
pub(crate) fn keep_local_token(files: &[PathBuf]) -> Result<KeptToken, String> {
    let found: Vec<_> = files.iter().map(|path| local_token(path)).collect();
    let is_secret = found.iter().all(Result::is_ok);
    let known = found.iter().flatten().flatten().next().filter(|_| is_secret);
    let token = known.map_or_else(|| new_token().map(|(token, _)| token), |known| Ok(known.clone()))?;
    let (mut kept, mut replaced, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for (path, found) in files.iter().zip(found) {
        let written = match &found {
            Ok(Some(known)) if *known == token => Ok(()),
            _ => write_local_token(path, &token),
        };
        match (written, found) {
            (Err(error), _) => failures.push(format!("{}: {error}", path.display())),
            (Ok(()), found) => {
                kept.push(path.clone());
                let new = "so it contains a new token now, and the previous one is no longer valid";
                replaced.extend(found.err().map(|why| format!("{}: {why}; {new}", path.display())));
            }
        }
    }
    if kept.is_empty() { Err(failures.join("; ")) } else { Ok(KeptToken { token, files: kept, replaced, failures }) }
}

fn write_local_token(path: &Path, token: &str) -> io::Result<()> {
    let folder = files::folder_of(path);
    if runtime_folders().iter().any(|runtime| runtime == folder) {
        prepare_runtime_folder(folder)?;
    }
    files::replace(path, format!("{token}\n").as_bytes())
}

/// Reads the local token of this user; `None` if there is no file. Returns an error if others may
/// know the token.
fn local_token(path: &Path) -> Result<Option<String>, String> {
    let (token, found) = match read_token(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(format!(
            "the file belongs to user {}, but must belong to user {own}, as which robotsd runs",
            found.uid()
        ));
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("the mode of the file is {mode:03o}, so others may know the token: it must be 600"));
    }
    token.map(Some).ok_or_else(|| "this is not a token of robotsd, or it was truncated".to_owned())
}

impl TokenFile {
    /// Reads the token. `None` if this user cannot read it, or if the file has another owner than
    /// its process recorded: otherwise, the process could be sent the secret of somebody else.
    pub(super) fn read(&self) -> Option<String> {
        let (token, found) = read_token(&self.path).ok()?;
        token.filter(|_| found.uid() == self.owner)
    }
}

/// Returns the token in a string, without surrounding space; `None` if the string contains anything
/// else.
fn whole(text: &str) -> Option<String> {
    let token = text.trim();
    is_whole(token).then(|| token.to_owned())
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
