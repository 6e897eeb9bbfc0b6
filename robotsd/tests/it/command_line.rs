//! Tests the description of the command line: manual pages and completions.

use crate::harness::*;

fn commands() -> Vec<String> {
    let help = run(robotsd().arg("--help")).out;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // The description of a command may continue on the next line, which is indented further.
    let named = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> = named.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(names.len() > 15 && names.contains(&"replay".to_owned()), "{names:?}");
    names
}

#[test]
fn every_shell_has_completions_for_every_command() {
    let commands = commands();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(robotsd().args(["completions", shell])).succeeded();
        for name in &commands {
            assert!(script.contains(name), "{shell}: {name}");
        }
        assert!(script.contains("user-agent"), "{shell}: an option");
        // The completions for Elvish and PowerShell contain no values.
        assert!(script.contains("sarif") || ["elvish", "powershell"].contains(&shell), "{shell}: a value");
    }
    let error = run(robotsd().args(["completions", "tcsh"])).failed(2);
    assert!(error.contains("bash, elvish, fish, powershell, zsh"));
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = folder(&[]);
    run(robotsd().arg("man").arg(directory.path()).env("SOURCE_DATE_EPOCH", "1790000000")).succeeded();
    for name in commands().iter().filter(|name| *name != "help") {
        let page = fs::read_to_string(directory.at(format!("robotsd-{name}.1"))).unwrap();
        let title = format!(".TH robotsd-{name} 1 2026-09-21 \"robotsd {}\"", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&title), "{name}: {}", page.lines().take(5).collect::<Vec<_>>().join("\n"));
        let has_commands = ["fleet", "token", "config"].contains(&name.as_str());
        assert!(has_commands || page.contains(".SH \"EXIT STATUS\"\n0"), "{name}");
    }
    let program = directory.read("robotsd.1");
    assert_has(&program, &["robotsd\\-replay(1)"]);
    assert!(directory.at("robotsd-config-check.1").is_file(), "a command of a command");
}

#[test]
fn man_fails_if_its_target_is_not_an_existing_folder() {
    let directory = folder(&[("file", "")]);
    for place in ["missing", "file"] {
        let message = run(robotsd().arg("man").arg(directory.at(place))).failed(2);
        assert_has(&message, &[place, "not a folder"]);
    }
}
