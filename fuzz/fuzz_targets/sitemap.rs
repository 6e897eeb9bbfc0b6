//! Sitemaps in every format, compressed or not, and the traversal of the sitemaps that they name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| robotsd::fuzzing::sitemap(bytes));
