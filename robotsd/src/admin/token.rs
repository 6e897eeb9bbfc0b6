//! Tokens of the admin interface. A token consists of the prefix `rbd_`, 256 random bits and a
//! checksum. The prefix lets secret scanners recognise tokens, and the checksum lets commands
//! detect truncated tokens.
//!
//! robotsd creates the local token in a file that only the user of robotsd can read. Changes over a
//! loopback address need this token, so programs of other users cannot make such changes.

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

/// Number of hex digits in the random part. The checksum that follows it has [`CHECKSUM_DIGITS`]
/// digits.
const SECRET_DIGITS: usize = 64;
const CHECKSUM_DIGITS: usize = 8;

/// Environment variable with the token. A token cannot be a command-line argument, because every
/// user of the machine could see it in the process list.
const TOKEN_VARIABLE: &str = "ROBOTSD_TOKEN";
const TOKEN_FILE_VARIABLE: &str = "ROBOTSD_TOKEN_FILE";

const MAX_BYTES: u64 = 4096;

/// Returns a new token, and its hash for the config.
pub(crate) fn new_token() -> Result<(String, String), String> {
    let mut secret = [0; SECRET_DIGITS / 2];
    let random = ring::default_provider().secure_random;
    random.fill(&mut secret).map_err(|_| "the system provides no randomness".to_owned())?;
    let token = with_checksum(&HEXLOWER.encode(&secret));
    let hash = format!("sha256:{}", HEXLOWER.encode(&hmac_sha256::Hash::hash(token.as_bytes())));
    Ok((token, hash))
}

/// Returns the token from the environment variables [`TOKEN_VARIABLE`] and [`TOKEN_FILE_VARIABLE`];
/// `None` if neither is set.
pub(super) fn token_of_environment() -> Result<Option<String>, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (token, at) = match (variable(TOKEN_VARIABLE), variable(TOKEN_FILE_VARIABLE)) {
        (Some(token), _) => (valid_token(&token), TOKEN_VARIABLE.to_owned()),
        (None, None) => return Ok(None),
        (None, Some(path)) => {
            let read = read_token(Path::new(&path)).map_err(|error| format!("{path}: {error}"))?;
            (read.0, path)
        }
    };
    token.map(Some).ok_or_else(|| format!("{at}: the value is not a complete token of robotsd"))
}

/// Reads a token file and its metadata. The token is `None` if the file does not contain exactly
/// one valid token.
fn read_token(path: &Path) -> io::Result<(Option<String>, Metadata)> {
    let (bytes, found) = files::read_at_most(path, MAX_BYTES)?;
    Ok((valid_token(&String::from_utf8_lossy(&bytes)), found))
}

#[derive(Debug)]
pub(crate) struct StoredToken {
    pub(crate) token: String,
    /// Files that contain the token, the preferred file first. The list is never empty.
    pub(crate) files: Vec<PathBuf>,
    /// Reasons why the token in existing files was replaced.
    pub(crate) replaced: Vec<String>,
    /// Reasons why the token could not be written to other files.
    pub(crate) failures: Vec<String>,
}

/// Reads the local token from these files, or creates a token. Writes the token to every file that
/// does not contain it. Several files are needed, because some commands cannot read the state
/// directory. If an existing file is unreadable or has no valid token, or if other users may know
/// its token, all files get a new token. Blocks.
///
/// # Errors
///
/// Returns an error if the token cannot be stored in any file.
pub(crate) fn ensure_local_token(files: &[PathBuf]) -> Result<StoredToken, String> {
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
                let new = "the file now contains a new token, and the previous one is no longer valid";
                replaced.extend(found.err().map(|why| format!("{}: {why}; {new}", path.display())));
            }
        }
    }
    if kept.is_empty() { Err(failures.join("; ")) } else { Ok(StoredToken { token, files: kept, replaced, failures }) }
}

fn write_local_token(path: &Path, token: &str) -> io::Result<()> {
    let folder = files::folder_of(path);
    if runtime_folders().iter().any(|runtime| runtime == folder) {
        prepare_runtime_folder(folder)?;
    }
    files::replace(path, format!("{token}\n").as_bytes())
}

/// Reads the local token from a file. Returns `None` if the file does not exist. Returns an error
/// if the file is unreadable or has no valid token, or if other users may know the token.
fn local_token(path: &Path) -> Result<Option<String>, String> {
    let (token, found) = match read_token(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(format!(
            "the file belongs to the user with uid {owner}, but must belong to the user of robotsd (uid {own})",
            owner = found.uid()
        ));
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("the mode of the file is {mode:03o} instead of 600, so others may know the token"));
    }
    token.map(Some).ok_or_else(|| "the file does not contain a complete token of robotsd".to_owned())
}

impl TokenFile {
    /// Reads the token. Returns `None` if this user cannot read the file, or if the token file and
    /// the place file have different owners. Without the check of the owners, an attacker could
    /// write a place file with the path of another user's token file, and the command would send
    /// that token to the attacker's process.
    pub(super) fn read(&self) -> Option<String> {
        let (token, found) = read_token(&self.path).ok()?;
        token.filter(|_| found.uid() == self.owner)
    }
}

/// Removes white space around a token. Returns `None` if the string is not a valid token.
fn valid_token(text: &str) -> Option<String> {
    let token = text.trim();
    is_valid_token(token).then(|| token.to_owned())
}

fn is_valid_token(token: &str) -> bool {
    let digits = token.strip_prefix(PREFIX).and_then(|digits| digits.get(..SECRET_DIGITS));
    digits.is_some_and(|digits| with_checksum(digits) == token)
}

fn with_checksum(digits: &str) -> String {
    let token = format!("{PREFIX}{digits}");
    let checksum = HEXLOWER.encode(&hmac_sha256::Hash::hash(token.as_bytes()));
    token + &checksum[..CHECKSUM_DIGITS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_or_altered_token_is_detected() {
        let (token, hash) = new_token().unwrap();
        assert!(is_valid_token(&token) && token.len() == PREFIX.len() + SECRET_DIGITS + CHECKSUM_DIGITS, "{token}");
        assert_eq!(hash.len(), "sha256:".len() + 64);
        assert_ne!(new_token().unwrap().0, token);
        for end in 0..token.len() {
            assert!(!is_valid_token(&token[..end]), "{end}");
        }
        let other = if token.ends_with('0') { '1' } else { '0' };
        assert!(!is_valid_token(&format!("{}{other}", &token[..token.len() - 1])));
        assert!(!is_valid_token(&format!("{token}0")) && !is_valid_token("ä") && !is_valid_token("rbd_"));
    }
}
