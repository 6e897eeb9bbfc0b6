//! Reads versions that are saved as files. A version came into force on the date in the name of its
//! file. If the name contains no date, the version came into force when the file was last changed.

use std::io;
use std::path::{Path, PathBuf};

use super::{DatedVersion, FoundVersions, must_exist};
use crate::date;
use crate::input;
use crate::render::printable_path;

pub(super) const EXPECTED: &str = "specify a file that git tracks, or copies of the robots.txt with the date in their \
    names, such as robots-2026-11-01.txt";

/// Reports whether a path is a dated file, or a directory that contains dated files but no
/// `robots.txt`.
pub(super) fn has_dated_files(path: &Path) -> bool {
    match path.is_dir() {
        true => !path.join("robots.txt").exists() && files_in(path).is_ok(),
        false => date_in(&name_of(path)).is_some(),
    }
}

/// Returns the versions at these paths, the newest first.
pub(super) fn versions(paths: &[PathBuf]) -> io::Result<FoundVersions> {
    let mut dated = Vec::new();
    for path in paths {
        let files = if must_exist(path)?.is_dir() { files_in(path)? } else { vec![path.clone()] };
        for file in files {
            let file_facts = must_exist(&file)?;
            let changed = || file_facts.modified().map(date::seconds).map_err(|error| input::named(&file, &error));
            let at = date_in(&name_of(&file)).map_or_else(changed, Ok)?;
            dated.push((at, file, file_facts.len()));
        }
    }
    dated.sort();
    let mut found = FoundVersions::default();
    for (at, file, bytes) in dated.into_iter().rev() {
        let source = file.to_string_lossy().into_owned();
        if !found.fits_limits(usize::try_from(bytes).unwrap_or(usize::MAX), &source) {
            break;
        }
        found.versions.push(DatedVersion { at, source, bytes: input::read_configured(&file)? });
    }
    found.file = found.versions.first().map(|newest| newest.source.clone()).unwrap_or_default();
    Ok(found)
}

/// Returns the files of a directory whose names contain a date. Hidden files are left out.
///
/// # Errors
///
/// Returns an error if the directory contains no dated file. Files without a date are not read,
/// because they may be something other than a robots.txt.
fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).map_err(|error| input::named(folder, &error))? {
        files.push(file.map_err(|error| input::named(folder, &error))?.path());
    }
    let is_dated = |name: &str| !name.starts_with('.') && date_in(name).is_some();
    files.retain(|file| file.is_file() && is_dated(&name_of(file)));
    match files.is_empty() {
        true => Err(io::Error::other(format!(
            "{folder}: no file in this folder has a date in its name: {EXPECTED}",
            folder = printable_path(folder)
        ))),
        false => Ok(files),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Parses the time in a file name, in UTC: `2026-11-01`, `20261101`,
/// `robots-2026-11-01T12:30:00Z.txt`, `2026-11-01_1230`.
fn date_in(name: &str) -> Option<i64> {
    let begins = (0..name.len()).filter(|at| !name.as_bytes()[..*at].last().is_some_and(u8::is_ascii_digit));
    begins.filter_map(|at| name.get(at..)).find_map(moment)
}

fn moment(text: &str) -> Option<i64> {
    let mut rest = text;
    // Parses `digits` digits after an optional separator.
    let mut number = |digits: usize, signs: &str| {
        let behind = rest.strip_prefix(|sign| signs.contains(sign)).unwrap_or(rest);
        let number = behind.get(..digits).filter(|number| number.bytes().all(|digit| digit.is_ascii_digit()))?;
        rest = &behind[digits..];
        Some(number)
    };
    let (year, month, day) = (number(4, "")?, number(2, "-_.")?, number(2, "-_.")?);
    let hour = number(2, "Tt-_ ").unwrap_or("00");
    let (minute, second) = (number(2, ":-.").unwrap_or("00"), number(2, ":-.").unwrap_or("00"));
    let at = |clock: &str| date::parse_time(&format!("{year}-{month}-{day}T{clock}Z"));
    // If the digits after the day are not a time, the beginning of the day is used.
    at(&format!("{hour}:{minute}:{second}")).or_else(|| at("00:00:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_force_from_the_date_in_its_name() {
        let day = 1_793_491_200;
        for (name, want) in [
            ("2026-11-01", Some(day)),
            ("robots-2026-11-01.txt", Some(day)),
            ("robots.20261101.txt", Some(day)),
            ("2026-11-01T12:30:05Z.txt", Some(day + 45_005)),
            ("robots_20261101T1230.txt", Some(day + 45_000)),
            ("2026-11-01_12-30-05_robots.txt", Some(day + 45_005)),
            ("2026-11-01-77.txt", Some(day)),
            ("v2-2026-11-01.txt", Some(day)),
            ("robots.txt", None),
            ("robots-2026-13-01.txt", None),
            ("build-120261101.txt", None),
            ("", None),
            ("röbots-2026-11-01", Some(day)),
        ] {
            assert_eq!(date_in(name), want, "{name}");
        }
    }
}
