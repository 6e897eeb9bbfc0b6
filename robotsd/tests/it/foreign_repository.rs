//! Tests a repository that someone else has created, for example in an archive. Its config names
//! programs. `replay --history` must not run any of these programs.

use std::fs::Permissions;
use std::os::unix::fs::symlink;

use super::programs::skip;
use crate::harness::*;

/// Names a program in every setting from which git may run a program. `RUN` leaves a file behind.
const CONFIG: &str = "[core]\npager = RUN\nfsmonitor = RUN\nhooksPath = HOOKS\nalternateRefsCommand = RUN\nsshCommand = RUN\n\
                      gitProxy = RUN\naskPass = RUN\neditor = RUN\n[pager]\nlog = RUN\n[diff]\nexternal = RUN\norderFile = nowhere\n\
                      [diff \"run\"]\ncommand = RUN\ntextconv = RUN\n[log]\nshowSignature = true\n[gpg]\nprogram = RUN\n\
                      [credential]\nhelper = RUN\n[alias]\nlog = !RUN\ncat-file = !RUN\nrev-parse = !RUN\n";

/// Makes git fetch a missing object, over any protocol.
const PARTIAL: &str = "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = origin\n[protocol]\nallow = always\n\
                       [protocol \"ext\"]\nallow = always\n[protocol \"none\"]\nallow = always\n[remote \"origin\"]\npromisor = true\n";

/// Creates a repository with this config and two versions of a robots.txt. The older one is
/// missing, so that git would have to fetch it.
fn repository(more: &str) -> Folder {
    let log = "192.0.2.1 - - [20/Nov/2026:00:00:00 +0000] \"GET /a HTTP/1.1\" 200 1 \"-\" \"Googlebot\"\n";
    let version = "User-agent: *\nDisallow: /a\n";
    let folder = folder(&[("site/robots.txt", version), ("site/.gitattributes", "* diff=run\n"), ("log", log)]);
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder.at("site")).args(["-c", "user.name=t", "-c", "user.email=t@a.test"]);
        run(git.args(arguments)).succeeded()
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "A version"]);
    folder.write("site/robots.txt", "User-agent: *\nDisallow: /b\n");
    git(&["commit", "--quiet", "--all", "--message", "Another"]);
    if !more.is_empty() {
        let blob = git(&["rev-parse", "HEAD~1:robots.txt"]);
        let (folder_of, name) = blob.trim().split_at(2);
        folder.remove(format!("site/.git/objects/{folder_of}/{name}"));
    }
    folder.write("run", "#!/bin/sh\necho \"$0 $*\" >> \"${0%/*}/ran\"\n");
    fs::set_permissions(folder.at("run"), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.at("hooks")).unwrap();
    for hook in ["post-index-change", "pre-auto-gc", "reference-transaction"] {
        symlink("../run", folder.at("hooks").join(hook)).unwrap();
    }
    let config = [&folder.read("site/.git/config"), CONFIG, more].concat();
    let config = config.replace("RUN", folder.at("run").to_str().unwrap());
    folder.write("site/.git/config", config.replace("HOOKS", folder.at("hooks").to_str().unwrap()));
    folder
}

#[test]
fn replay_runs_no_program_from_the_git_config_of_a_repository() {
    if Command::new("git").arg("--version").output().is_err() {
        return skip("git");
    }
    let replay = ["replay", "log", "--format", "json", "--history", "site"];
    let whole = repository("");
    let versions = whole.run(replay).json()["history"]["versions"].as_array().unwrap().len();
    assert_eq!((versions, whole.at("ran").exists()), (2, false));

    for (what, remote) in [
        ("a command of the remote", "url = .\nuploadpack = RUN\n"),
        ("a command of ssh", "url = ssh://a.test/b\n"),
        ("a proxy of git", "url = git://a.test/b\n"),
        ("a helper in the URL", "url = ext::RUN\n"),
        ("a helper by its name", "url = a\nvcs = ext\n"),
        ("a helper whose protocol is allowed", "url = a\nvcs = none\n[alias]\nremote-none = !RUN\n"),
        ("a helper in the URL, whose protocol is allowed", "url = none::a\n[alias]\nremote-none = !RUN\n"),
        ("a name like it", "url = none::a\n[alias]\nremote-non = !RUN\n[help]\nautocorrect = immediate\n"),
        ("a helper without a name", "url = ::a\n[alias]\nremote- = !RUN\n"),
    ] {
        let folder = repository(&format!("{PARTIAL}{remote}"));
        // This wrapper makes git behave like versions before 2.45, which do not support this
        // variable.
        folder
            .write("older/git", "#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nPATH=${PATH#*:}\nexport PATH\nexec git \"$@\"\n");
        fs::set_permissions(folder.at("older/git"), Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        for path in [format!("{}:{path}", folder.at("older").display()), path] {
            let said = run(folder.robotsd().env("PATH", &path).args(replay)).failed(2);
            assert!(!folder.at("ran").exists(), "{what}: {}", folder.read("ran"));
            let parts =
                ["the repository does not contain the file of commit ", "a partial clone (robotsd does not fetch"];
            assert_has(said, &parts);
        }
    }
}
