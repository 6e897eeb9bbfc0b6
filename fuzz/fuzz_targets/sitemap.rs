//! Sitemaps in every form, packed and not, and the walk through what they name.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| robotsd::fuzzing::sitemap(octets));
