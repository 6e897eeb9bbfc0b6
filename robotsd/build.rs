//! Tells the compiler whether the tester's page is built into the program. The variable
//! `ROBOTSD_TESTER` names the page, which `docs/tester/build.py` builds.

fn main() {
    println!("cargo::rerun-if-env-changed=ROBOTSD_TESTER");
    println!("cargo::rustc-check-cfg=cfg(has_tester)");
    if let Some(page) = std::env::var_os("ROBOTSD_TESTER").filter(|page| !page.is_empty()) {
        println!("cargo::rerun-if-changed={}", page.display());
        println!("cargo::rustc-cfg=has_tester");
    }
}
