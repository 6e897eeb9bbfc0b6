#!/usr/bin/env python3
"""Runs the files for the CI of other projects as they run there: the steps of action.yml, the hooks for pre-commit, the job for GitLab.

Usage: ci_pieces.py ROBOTSD WHEELS      WHEELS: a folder with the wheel that robotsd/packaging/build.sh has built

A step of the action runs as on GitHub: its script, its `env` with evaluated expressions, bash with -eo pipefail. A fake `gh` keeps
comments in a file instead of calling GitHub's API. Needs git, jq, and robotsd/packaging/requirements.txt.
"""

import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import virtualenv
import yaml

PROJECT = pathlib.Path(__file__).resolve().parents[2]
ROBOTSD = pathlib.Path(sys.argv[1]).resolve()
WHEELS = pathlib.Path(sys.argv[2]).resolve()

# pip installs packages only from these folders: the wheel under test, and the packages with which pre-commit builds its empty package.
NO_INDEX = {
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": f"{WHEELS} {pathlib.Path(virtualenv.__file__).parent / 'seed/wheels/embed'}",
}

GOOD = "User-agent: *\nDisallow: /search\n"
NEWS = "User-agent: *\nDisallow: /search\nDisallow: /news/\n"
# An error, and a finding that can be fixed without changing the meaning of the file.
BROKEN = "User-agent *\nDisallow: /search\nDisallow: /search\nDisallow: drafts/\n"

# A fake `gh` that keeps the comments of a pull request, and refuses to write if the token may only read.
GH = r"""#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys
host = os.environ["GH_HOST"]
assert host == os.environ["GITHUB_SERVER_URL"].removeprefix("https://"), host
variable = "GH_TOKEN" if host == "github.com" else "GH_ENTERPRISE_TOKEN"
assert os.environ[variable] == "a-token", "the token reaches the step in the variable that gh reads for the host"
login = os.environ["LOGIN"]
arguments = sys.argv[1:]
assert arguments.pop(0) == "api", arguments
options = {"--method": "GET"}
rest = []
while arguments:
    argument = arguments.pop(0)
    if argument in ("--paginate", "--silent"):
        continue
    if argument.startswith("--"):
        options[argument] = arguments.pop(0)
    else:
        rest.append(argument)
(path,) = rest
if path == "graphql":
    assert "viewer" in options["--field"] and options["--jq"] == ".data.viewer.login", options
    if os.environ.get("UNNAMED"):
        sys.exit("GraphQL: Resource not accessible by integration")
    print(login)
    sys.exit()
store = pathlib.Path(os.environ["COMMENTS"])
comments = json.loads(store.read_text())
if options["--method"] == "GET":
    assert path == "repos/acme/site/issues/7/comments", path
    found = subprocess.run(["jq", "-r", options["--jq"]], input=json.dumps(comments), text=True, check=True, stdout=subprocess.PIPE)
    sys.stdout.write(found.stdout)
    sys.exit()
if os.environ.get("READ_ONLY"):
    sys.exit("HTTP 403: Resource not accessible by integration")
name, value = options["--field"].split("=", 1)
assert name == "body" and value.startswith("@"), options
body = pathlib.Path(value[1:]).read_text()
if options["--method"] == "POST":
    assert path == "repos/acme/site/issues/7/comments", path
    user = {"type": "Bot" if login.endswith("[bot]") else "User", "login": login}
    comments.append({"id": len(comments) + 1, "user": user, "body": body})
else:
    (changed,) = [comment for comment in comments if path == f"repos/acme/site/issues/comments/{comment['id']}"]
    changed["body"] = body
store.write_text(json.dumps(comments))
"""


def run(arguments, cwd, check=True, **environment):
    """Runs a program and returns its exit status and everything it printed."""
    done = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env={**os.environ, **NO_INDEX, **{name: str(value) for name, value in environment.items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )
    assert not check or done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}"
    return done.returncode, done.stdout


def git(cwd, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@site.example", "-c", "commit.gpgsign=false"]
    return run(["git", *identity, *arguments], cwd)[1].strip()


def commit(repository, files, message="Change"):
    for name, text in files.items():
        path = repository / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", message)
    return git(repository, "rev-parse", "HEAD")


class Scene:
    """A hosted repository, a runner's checkout of it, and the files that a runner gives to steps."""

    def __init__(self, folder, before, after, depth=2, event="pull_request"):
        self.folder = folder
        self.origin = folder / "origin"
        self.origin.mkdir()
        git(self.origin, "init", "--quiet", "--initial-branch=main")
        git(self.origin, "config", "uploadpack.allowAnySHA1InWant", "true")
        commit(self.origin, {"page.html": "x"})
        self.base = commit(self.origin, before)
        git(self.origin, "switch", "--quiet", "--create", "change")
        commit(self.origin, {"page.html": "y"})
        commit(self.origin, after)
        git(self.origin, "switch", "--quiet", "main")
        # Meanwhile, the base branch gets a commit that does not belong to the pull request.
        commit(self.origin, {"style.css": "z"})
        self.event = event
        if event == "pull_request":
            git(self.origin, "switch", "--quiet", "--create", "merged")
            git(self.origin, "merge", "--quiet", "--no-ff", "change")
        self.sha = git(self.origin, "rev-parse", "HEAD")
        self.workspace = folder / "workspace"
        branch = git(self.origin, "branch", "--show-current")
        git(folder, "clone", "--quiet", f"--depth={depth}", f"--branch={branch}", self.origin.as_uri(), self.workspace)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.comments = folder / "comments.json"
        # Comments by other users.
        others = [
            {"id": 1, "user": {"type": "User", "login": "someone"}, "body": "mine"},
            {"id": 2, "user": {"type": "Bot", "login": "github-actions[bot]"}, "body": "coverage"},
        ]
        self.comments.write_text(json.dumps(others))
        tools = folder / "tools"
        tools.mkdir()
        (tools / "gh").write_text(GH)
        (tools / "gh").chmod(0o755)

    def written(self):
        return json.loads(self.comments.read_text())[2:]


# The workflow commands that the runner obeys in the output of a step.
COMMANDS = set("error warning notice debug group endgroup echo add-mask add-path set-env set-output save-state add-matcher remove-matcher".split())


def obeyed(printed):
    """Returns the commands that a runner obeys, and whether it still obeys commands at the end.

    A command may follow blanks; in its older form it may begin anywhere in a line.
    """
    commands, token = [], None
    for line in printed.splitlines():
        known = {"stop-commands", *COMMANDS} if token is None else {token}
        newer = re.match(r"\s*::([^ :]+)(?: .*?)?::(.*)", line)
        older = re.search(r"##\[([^ \]]+)[^\]]*\](.*)", line)
        for found in (newer, older):
            if found and found[1] in known:
                commands.append((found[1], found[2]))
                token = found[2] if found[1] == "stop-commands" else None
                break
    return commands, token is None


class Action:
    """Runs action.yml in a scene."""

    def __init__(self, scene, read_only=False, pull_request=7, environment=None, **inputs):
        self.scene = scene
        self.environment = environment or {}
        self.document = yaml.safe_load((PROJECT / "action.yml").read_text())
        self.github = {
            "token": "a-token",
            "event_name": scene.event,
            "event.pull_request.number": str(pull_request) if scene.event == "pull_request" else "",
            "event.pull_request.base.sha": scene.base if scene.event == "pull_request" else "",
            "event.merge_group.base_sha": scene.base if scene.event == "merge_group" else "",
            "event.before": scene.base if scene.event == "push" else "",
        }
        self.inputs = {name: self.fill(value.get("default", "")) for name, value in self.document["inputs"].items()}
        self.inputs["robotsd"] = str(ROBOTSD)
        assert set(inputs) <= set(self.inputs), inputs
        self.inputs.update(inputs)
        self.read_only = read_only
        self.outputs = {}
        self.log = ""
        self.commands = []
        self.summary = ""
        self.status = 0

    def value(self, expression):
        """Returns the value of a name in an expression. An unknown name is an error in the test or in the action."""
        expression = expression.strip()
        if literal := re.fullmatch(r"'([^']*)'", expression):
            return literal[1]
        kind, _, name = expression.partition(".")
        if kind == "inputs":
            return self.inputs[name]
        if kind == "github":
            return self.github[name]
        step, output = re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+)", expression).groups()
        return self.outputs.get(step, {}).get(output, "")

    def holds(self, expression):
        if "==" in expression:
            left, right = expression.split("==")
            return self.value(left) == self.value(right)
        return bool(self.value(expression))

    def fill(self, text):
        def alternatives(found):
            return next((value for name in found[1].split("||") if (value := self.value(name))), "")

        return re.sub(r"\$\{\{(.*?)\}\}", alternatives, str(text))

    def run(self):
        for number, step in enumerate(self.document["runs"]["steps"]):
            condition = step.get("if", "")
            if condition and not all(self.holds(term) for term in condition.split("&&")):
                continue
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], f"{step['name']}: a value is written into a script"
            files = {name: self.scene.temporary / f"{number}-{name}" for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "SCRIPT")}
            for path in files.values():
                path.write_text("")
            files["SCRIPT"].write_text(step["run"])
            environment = {name: self.fill(value) for name, value in step.get("env", {}).items()}
            environment |= {name: path for name, path in files.items() if name != "SCRIPT"}
            environment |= {
                "GITHUB_SHA": self.scene.sha,
                "GITHUB_REPOSITORY": "acme/site",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_WORKFLOW": "robots.txt",
                "GITHUB_JOB": "robots-txt",
                "LOGIN": "github-actions[bot]",
                "RUNNER_TEMP": self.scene.temporary,
                "COMMENTS": self.scene.comments,
                "READ_ONLY": "1" if self.read_only else "",
                "PATH": f"{self.scene.folder / 'tools'}:{os.environ['PATH']}",
                **self.environment,
            }
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", files["SCRIPT"]]
            self.status, printed = run(command, self.scene.workspace, check=False, **environment)
            self.log += printed
            commands, is_open = obeyed(printed)
            assert is_open, f"{step['name']}: the next step's commands are not obeyed\n{printed}"
            self.commands += [(name, text) for name, text in commands if name in COMMANDS]
            self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
            lines = files["GITHUB_OUTPUT"].read_text().splitlines()
            self.outputs[step.get("id", number)] = dict(line.split("=", 1) for line in lines)
            if self.status != 0:
                break
        named = {name: self.fill(value["value"]) for name, value in self.document["outputs"].items()}
        return self.status, named


def passes(action):
    status, outputs = action.run()
    assert status == 0 and outputs["passed"] == "true", f"{outputs}\n{action.log}"
    return outputs


def fails(action, message):
    status, outputs = action.run()
    assert status != 0, f"{outputs}\n{action.log}"
    assert message in action.log, f"{message!r} is not in\n{action.log}"
    return outputs


def the_effect_of_a_change_is_written_once(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    outputs = passes(Action(scene))
    (comment,) = scene.written()
    assert "Googlebot" in comment["body"] and "/news/" in comment["body"], comment["body"]
    assert "/search" not in comment["body"] and "style" not in comment["body"], comment["body"]
    document = json.loads(pathlib.Path(outputs["sarif"]).read_text())
    assert document["version"] == "2.1.0" and document["runs"][0]["tool"]["driver"]["name"] == "robotsd"
    assert pathlib.Path(outputs["diff"]).read_text() in comment["body"]
    again = Action(scene)
    passes(again)
    assert "/news/" in again.summary
    assert len(scene.written()) == 1, "the comment is replaced"
    # A later push reverts the change.
    commit(scene.workspace, {"robots.txt": GOOD})
    scene.sha = git(scene.workspace, "rev-parse", "HEAD")
    scene.base = git(scene.workspace, "rev-parse", "HEAD~2")
    passes(Action(scene))
    assert "as it was" in scene.written()[0]["body"], scene.written()


def a_change_of_something_else_says_nothing(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"page.html": "other"})
    outputs = passes(Action(scene))
    assert outputs["diff"] == "" and scene.written() == []


def what_may_not_change_fails(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    outputs = fails(Action(scene, forbid="bingbot:/shop/\nGooglebot:/news/\n"), "changes what it may not")
    assert outputs["passed"] == "false" and len(scene.written()) == 1, "the comment is there to say why"


def an_error_is_an_annotation_and_fails(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": BROKEN})
    action = Action(scene)
    outputs = fails(action, "robots.txt does not pass its check")
    assert re.search(r"::(error|warning) .*file=robots\.txt,.*line=\d", action.log), action.log
    assert ("error", "robots.txt does not pass its check: see the lines above") in action.commands, action.commands
    assert len(action.commands) > 2, "findings are commands"
    assert "| line |" in action.summary, action.summary
    results = json.loads(pathlib.Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    assert results, "findings in SARIF"


def an_unmet_expectation_fails(folder):
    tests = 'robots = "robots.txt"\n[[allow]]\nagents = ["Googlebot"]\npaths = ["/news/today"]\n'
    scene = Scene(folder, {"robots.txt": GOOD, "robots.test.toml": tests}, {"robots.txt": NEWS})
    fails(Action(scene), "does not pass its check")


def names_are_never_run(folder):
    name = 'a $(touch pwned) `touch pwned` "; touch pwned; \'/ü --help/robots.txt'
    scene = Scene(folder, {name: GOOD}, {name: NEWS})
    passes(Action(scene, files=":(glob)**/robots.txt\n$(touch pwned)"))
    (comment,) = scene.written()
    assert "/news/" in comment["body"] and f"``{name}``" in comment["body"], comment["body"]
    fails(Action(scene, options="--ignore=$(touch pwned)"), "does not pass")
    fails(Action(scene, forbid="$(touch pwned)", base="$(touch pwned)", folder=".", name="$(touch pwned)"), "could not be compared")
    assert list(folder.rglob("pwned")) == []


def what_others_wrote_is_no_command(folder):
    """Plants commands in paths and content of a pull request, which git, pip and robotsd print."""
    planted = [f"{line}planted" for line in ("::error::", "  ::notice::", "::stop-commands::", "\t::add-mask::", "x ##[warning]", "##[set-env name=A]")]
    for number, text in enumerate(planted):
        place = folder / str(number)
        place.mkdir()
        name = f"a\n{text}\r{text}\n/robots.txt"
        content = f"User-agent *\n{text}\nDisallow: x\n{text}: {text}\n"
        tests = f"robots = 'robots.txt'\n[[allow]]\nagents = [{json.dumps(text)}]\npaths = ['/']\n[[x]]\n"
        after = {name: content, name.replace("robots.txt", "robots.test.toml"): tests, "robots.txt": NEWS}
        scene = Scene(place, {"robots.txt": GOOD, name: GOOD}, after)
        link = scene.workspace / "link\n" / text / "robots.txt"
        link.parent.mkdir(parents=True)
        link.symlink_to(f"../../../\n{text}\n/none")
        commit(scene.workspace, {f"{text}\n/robots-check.toml": f"{text}\n = 1\n", "robots-check.toml": f"\n{text}\n"})
        program = place / "tools/robotsd"
        program.write_text(f"#!/bin/bash\nprintf '%s' {shlex.quote(text)} {shlex.quote(chr(10) + text)} >&2\nexec {ROBOTSD} \"$@\"\n")
        program.chmod(0o755)
        for inputs in ({}, {"robotsd": "robotsd"}, {"robotsd": f"no\n{text}"}, {"options": f"--{text}"}, {"forbid": f"{text}:/"}, {"folder": f"x\n{text}"}):
            action = Action(scene, base=scene.base, **inputs)
            action.run()
            assert all(name in ("error", "warning", "notice") for name, _ in action.commands), action.commands
            assert not any(text.lstrip().startswith("planted") for _, text in action.commands), f"{inputs}\n{action.log}"
            # The runner must still obey the action's own commands.
            assert action.commands, f"{inputs}\n{action.log}"


def a_new_and_a_deleted_file_are_compared_with_nothing(folder):
    scene = Scene(folder, {"robots.txt": GOOD, "old/robots.txt": NEWS}, {"new/robots.txt": NEWS, "old/robots.txt": None})
    passes(Action(scene))
    (comment,) = scene.written()
    assert comment["body"].index("new/robots.txt") < comment["body"].index("old/robots.txt"), comment["body"]


def the_base_is_fetched_where_it_can_be(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS}, depth=1)
    passes(Action(scene))
    assert len(scene.written()) == 1


def without_the_base_the_check_goes_on(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS}, depth=1)
    git(scene.workspace, "remote", "remove", "origin")
    action = Action(scene)
    passes(action)
    assert "fetch-depth: 2" in action.log and scene.written() == []


def a_token_that_may_only_read_fails_nothing(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    action = Action(scene, read_only=True)
    passes(action)
    assert "may only read" in action.log and "/news/" in action.summary


def a_push_is_compared_and_writes_no_comment(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS}, event="push", depth=9)
    scene.base, scene.sha = scene.sha, git(scene.origin, "rev-parse", "change")
    git(scene.workspace, "fetch", "--quiet", "origin", "change")
    git(scene.workspace, "checkout", "--quiet", "FETCH_HEAD")
    action = Action(scene)
    passes(action)
    assert "/news/" in action.summary and scene.written() == []
    scene.base = "0" * 40
    first = Action(scene)
    assert passes(first)["diff"] == "", "the first push of a branch"


def without_a_file_it_says_so(folder):
    scene = Scene(folder, {"a": "b"}, {"c": "d"})
    fails(Action(scene), "no robots.txt to check")
    # A robots.txt that a build creates can be named.
    (scene.workspace / "public").mkdir()
    (scene.workspace / "public/robots.txt").write_text(GOOD)
    passes(Action(scene, files="public/robots.txt"))


def a_program_that_is_not_there_is_said(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    fails(Action(scene, robotsd="no-such-robotsd"), "is not a program")


def the_action_installs_the_wheel(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    passes(Action(scene, robotsd=""))
    fails(Action(scene, robotsd="", version="99.0"), "robotsd==99.0")


def the_pull_request_is_not_run(folder):
    """Python imports modules from the folder in which it starts, so the action must not start Python in the checkout."""
    planted = "import pathlib; pathlib.Path(__file__).with_name('pwned').touch(); raise SystemExit('run')\n"
    names = ["venv.py", "pip.py", "tempfile.py", "subprocess.py", "sitecustomize.py", "ensurepip/__init__.py"]
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS, **dict.fromkeys(names, planted)})
    passes(Action(scene, robotsd=""))
    # Python does not import these files through PYTHONPATH, either. This run writes no comment,
    # because the fake `gh` is a Python program, which would import them.
    passes(Action(scene, robotsd="", comment="false", environment={"PYTHONPATH": scene.workspace}))
    assert list(folder.rglob("pwned")) == []


def what_is_installed_can_be_pinned(folder):
    (wheel,) = WHEELS.glob("*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    passes(Action(scene, robotsd="", hashes=f"{'0' * 64}\nsha256:{digest}"))
    passes(Action(scene, robotsd="", hashes=f"{digest}  {wheel.name}\n"))
    fails(Action(scene, robotsd="", hashes="0" * 64), "THESE PACKAGES DO NOT MATCH THE HASHES")
    fails(Action(scene, robotsd="", hashes=f"sha256:{digest[1:]}"), "the input hashes has a line that is not a SHA-256")


def what_is_denied_is_reported_too(folder):
    warned = "User-agent: *\nDisallow: /\n"
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": warned})
    for options in ("--deny=warnings", "--deny=notes\n--ignore=secret-path"):
        action = Action(scene, options=options)
        outputs = fails(action, "does not pass its check")
        assert json.loads(pathlib.Path(outputs["sarif"]).read_text())["runs"][0]["results"], options
        assert "| line |" in action.summary, action.summary
    outputs = passes(Action(scene, options="--deny=warnings\n--exit-zero"))
    assert json.loads(pathlib.Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    # If a run fails completely, the action reports the error and writes no SARIF file.
    action = Action(scene, options="--no-such-option")
    outputs = fails(action, "does not pass its check")
    assert outputs["sarif"] == "" and "'--no-such-option'" in action.summary, f"{outputs}\n{action.summary}"
    half = scene.folder / "tools/half-a-robotsd"
    half.write_text(f'#!/bin/bash\nif [[ "$*" = *"--format sarif"* ]]; then echo "no SARIF today" >&2; exit 3; fi\nexec {ROBOTSD} "$@"\n')
    half.chmod(0o755)
    action = Action(scene, robotsd="half-a-robotsd")
    outputs = fails(action, "does not pass its check")
    assert outputs["sarif"] == "" and "no SARIF today" in action.summary, f"{outputs}\n{action.summary}"


def where_the_effect_is_not_known_forbid_fails(folder):
    def scene_of(name, after=NEWS, **options):
        (folder / name).mkdir()
        return Scene(folder / name, {"robots.txt": GOOD}, {"robots.txt": after}, **options)

    forbid = "Googlebot:/shop/"
    passes(Action(scene_of("known"), forbid=forbid))

    scene = scene_of("no base", depth=1)
    git(scene.workspace, "remote", "remove", "origin")
    action = Action(scene, forbid=forbid)
    outputs = fails(action, "could not be compared")
    assert outputs["compared"] == "false" and "fetch-depth: 2" in action.summary, action.summary

    scene = scene_of("git fails")
    git_fails = scene.folder / "tools/git"
    git_fails.write_text(f'#!/bin/bash\nfor word; do [ "$word" != "--diff-filter=D" ] || exit 128; done\nexec {shutil.which("git")} "$@"\n')
    git_fails.chmod(0o755)
    fails(Action(scene, forbid=forbid), "git cannot compare")
    git_fails.write_text(git_fails.read_text().replace("--diff-filter=D", "blob"))
    fails(Action(scene, forbid=forbid), "git cannot read its content")

    scene = scene_of("a file is not here")
    blob = git(scene.workspace, "rev-parse", "HEAD^1:robots.txt")
    for pack in scene.workspace.glob(".git/objects/pack/*.pack"):
        moved = pack.rename(scene.folder / pack.name)
        run(["bash", "-c", 'git unpack-objects -q < "$1"', "-", moved], scene.workspace)
    (scene.workspace / ".git/objects" / blob[:2] / blob[2:]).unlink()
    fails(Action(scene, forbid=forbid), "git cannot read its content")

    for event in ("workflow_dispatch", "schedule"):
        scene = scene_of(event, event="push", depth=9)
        scene.event = event
        fails(Action(scene, forbid=forbid), f"the event {event} names no earlier version")
        assert passes(Action(scene))["compared"] == "false"
        assert passes(Action(scene, forbid=forbid, base="HEAD~1"))["compared"] == "true"

    scene = scene_of("first push", event="push")
    scene.base = "0" * 40
    fails(Action(scene, forbid=forbid), "the first push of a branch")

    scene = scene_of("the base is checked out")
    git(scene.workspace, "checkout", "--quiet", "HEAD^1")
    for event, scene.base in (("pull_request", git(scene.workspace, "rev-parse", "HEAD")), ("pull_request_target", scene.base)):
        action = Action(scene, forbid=forbid, environment={"GITHUB_SHA": git(scene.workspace, "rev-parse", "HEAD")})
        action.github["event_name"] = event
        fails(action, "the checkout is the version before the pull request")

    scene = scene_of("built")
    (scene.workspace / "public").mkdir()
    (scene.workspace / "public/robots.txt").write_text("User-agent: *\nDisallow: /shop/\n")
    passes(Action(scene, files="public/robots.txt"))
    fails(Action(scene, files="public/robots.txt", forbid=forbid), "public/robots.txt: made or changed by a build")
    (scene.workspace / "robots.txt").write_text("User-agent: *\nDisallow: /shop/\n")
    fails(Action(scene, forbid=forbid), "robots.txt: made or changed by a build")


def a_merge_group_is_compared_with_its_base(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    scene.event = "merge_group"
    action = Action(scene)
    assert passes(action)["compared"] == "true" and "/news/" in action.summary
    fails(Action(scene, forbid="Googlebot:/news/"), "changes what it may not")


def unknown_is_not_unchanged(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS}, depth=1)
    passes(Action(scene))
    git(scene.workspace, "fetch", "--quiet", "--depth=1", "origin", scene.sha)
    (scene.workspace / ".git/shallow").write_text(scene.sha + "\n")
    git(scene.workspace, "remote", "remove", "origin")
    git(scene.workspace, "reflog", "expire", "--expire=now", "--all")
    git(scene.workspace, "gc", "--quiet", "--prune=now")
    (scene.workspace / ".git/FETCH_HEAD").unlink(missing_ok=True)
    git(scene.workspace, "prune", "--expire=now")
    passes(Action(scene))
    (comment,) = scene.written()
    assert "is not known" in comment["body"] and "as it was" not in comment["body"], comment["body"]
    assert "fetch-depth: 2" in comment["body"], comment["body"]


def each_use_has_its_comment(folder):
    scene = Scene(folder, {"a/robots.txt": GOOD, "b/robots.txt": GOOD}, {"a/robots.txt": NEWS, "b/robots.txt": "User-agent: *\nDisallow: /b/\n"})
    first = passes(Action(scene, files="a/robots.txt"))
    second = passes(Action(scene, files="b/robots.txt"))
    assert [("/news/" in one["body"], "/b/" in one["body"]) for one in scene.written()] == [(True, False), (False, True)], scene.written()
    assert first["sarif"] != second["sarif"] and pathlib.Path(first["sarif"]).is_file(), "no file takes the place of another use's"
    passes(Action(scene, files="a/robots.txt", environment={"GITHUB_JOB": "another"}))
    assert len(scene.written()) == 3, "another job"
    passes(Action(scene, files="a/robots.txt", name="x"))
    passes(Action(scene, files="b/robots.txt", name="x"))
    assert len(scene.written()) == 4 and "/b/" in scene.written()[3]["body"], "the name alone"


def links_out_of_the_checkout_are_not_read(folder):
    secret = folder / "secret"
    secret.write_text("password = hunter2 /\n[hunter2\n")
    scene = Scene(folder, {"robots.txt": GOOD}, {"page.html": "other"})
    site = scene.workspace
    git(site, "config", "http.extraheader", "hunter2")
    tests = "[[allow]]\nagents = ['Googlebot']\npaths = ['/']\n"
    (folder / "tests").mkdir()
    for number, (link, target) in enumerate(
        [
            ("a/robots.txt", secret),
            ("a/robots.txt", "../../secret"),
            ("a/robots.txt", "../.git/config"),
            ("robots-check.toml", secret),
            ("a/robots.test.toml", secret),
            ("a/robots.test.toml", f"robots = '{secret}'\n{tests}"),
            ("a/robots.test.toml", f"robots = '../../secret'\n{tests}"),
            ("a/robots.test.toml", f"robots = 'http://127.0.0.1:9/'\n{tests}"),
            ("robotsd.toml", secret),
        ]
    ):
        git(site, "reset", "--quiet", "--hard", scene.sha)
        path = site / link
        path.parent.mkdir(exist_ok=True)
        if "[[allow]]" in str(target):
            path.write_text(target)
        else:
            path.symlink_to(target)
        git(site, "add", "--all")
        git(site, "commit", "--quiet", "--message", str(number))
        action = Action(scene, options="--config=robotsd.toml" if link == "robotsd.toml" else "", base=scene.base)
        outputs = fails(action, "--within allows only files in .")
        sarif = pathlib.Path(outputs["sarif"]).read_text() if outputs["sarif"] else ""
        for said in (action.log, action.summary, sarif, json.dumps(scene.written())):
            assert "hunter2" not in said and "onnection" not in said, f"{link} -> {target}:\n{said}"
    # A link within the checkout is read.
    git(site, "reset", "--quiet", "--hard", scene.sha)
    (site / "a").mkdir()
    (site / "a/robots.txt").symlink_to("../robots.txt")
    commit(site, {})
    passes(Action(scene, base=scene.base))


def a_link_is_compared_by_what_it_leads_to(folder):
    scene = Scene(folder, {"robots.txt": GOOD, "conf/live": GOOD}, {"page.html": "other"})
    site = scene.workspace

    def change(forbid="", **files):
        """Commits these files and returns the action for that commit. A path as content creates a link."""
        before = git(site, "rev-parse", "HEAD")
        for name, content in files.items():
            path = site / {"robots": "robots.txt", "live": "conf/live"}[name]
            path.unlink(missing_ok=True)
            if isinstance(content, pathlib.Path):
                path.symlink_to(content)
            else:
                path.write_text(content)
        commit(site, {})
        return Action(scene, base=before, forbid=forbid)

    # A link that replaces a file with the same content changes nothing.
    outputs = passes(change("Googlebot:/", robots=pathlib.Path("conf/live")))
    assert outputs["diff"] == "" and outputs["compared"] == "true"
    # The file behind the link changes.
    action = change("Googlebot:/news/", live=NEWS)
    fails(action, "changes what it may not")
    assert "/news/" in action.summary and "robots.txt" in action.summary
    fails(change("Googlebot:/news/", robots=GOOD), "changes what it may not")
    # A link to a file that only a build creates.
    (site / ".gitignore").write_text("dist\n")
    commit(site, {})
    (site / "dist").mkdir()
    (site / "dist/robots.txt").write_text(GOOD)
    action = change(robots=pathlib.Path("dist/robots.txt"))
    assert passes(action)["compared"] == "false" and "robots.txt: git cannot read its content" in action.summary
    fails(Action(scene, base="HEAD~1", forbid="Googlebot:/news/"), "could not be compared")


def a_fault_in_forbid_is_said_whatever_changes(folder):
    unchanged = Scene(folder, {"robots.txt": GOOD}, {"page.html": "other"})
    (folder / "changed").mkdir()
    changed = Scene(folder / "changed", {"robots.txt": GOOD}, {"robots.txt": NEWS})
    (folder / "none").mkdir()
    none = Scene(folder / "none", {"a": "b"}, {"c": "d"})
    for scene in (unchanged, changed, none):
        for forbid, said in (("Gogglebot:/news/", "Gogglebot"), ("Googlebot/news", "write a crawler, a colon and a path")):
            action = Action(scene, forbid=forbid)
            fails(action, "could not be compared")
            assert said in action.summary, f"{forbid}\n{action.summary}"
    passes(Action(unchanged, forbid="Googlebot:/"))


def the_last_file_is_compared_where_it_goes(folder):
    scene = Scene(folder, {"robots.txt": NEWS, "a": "b"}, {"robots.txt": None})
    action = Action(scene, forbid="Googlebot:/news/")
    fails(action, "changes what it may not")
    assert "no robots.txt to check" in action.log and "/news/" in action.summary, action.summary


def a_folder_that_looks_like_an_option_is_a_folder(folder):
    scene = Scene(folder, {"-x/robots.txt": GOOD}, {"-x/robots.txt": NEWS})
    passes(Action(scene))
    assert "/news/" in scene.written()[0]["body"]


def an_enterprise_server_gets_the_comment(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    passes(Action(scene, environment={"GITHUB_SERVER_URL": "https://git.site.example"}))
    assert len(scene.written()) == 1


def the_comment_is_that_of_whom_the_token_is_of(folder):
    for login in ("someone", "github-actions[bot]", "an-app[bot]"):
        (folder / login).mkdir()
        scene = Scene(folder / login, {"robots.txt": GOOD}, {"robots.txt": NEWS})
        passes(Action(scene, environment={"LOGIN": login}))
        # Another user's comment may begin in the same way.
        mine = scene.written()[0]
        others = [{"type": "User", "login": "mallory"}, {"type": "Bot", "login": "m[bot]"}]
        copies = [{"id": 90 + n, "user": user, "body": mine["body"] + "\ncopied"} for n, user in enumerate(others)]
        scene.comments.write_text(json.dumps([*copies, *json.loads(scene.comments.read_text())]))
        passes(Action(scene, environment={"LOGIN": login}, files=":(glob)**/robots.txt"))
        written = json.loads(scene.comments.read_text())
        assert len(written) == 5 and written[:2] == copies, written
    # A token whose owner cannot be looked up is treated as a bot's token.
    (folder / "unnamed").mkdir()
    scene = Scene(folder / "unnamed", {"robots.txt": GOOD}, {"robots.txt": NEWS})
    for _ in range(2):
        passes(Action(scene, environment={"UNNAMED": "1"}))
    assert len(scene.written()) == 1


def a_checkout_elsewhere_is_named(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS})
    moved = scene.workspace.rename(folder / "moved")
    scene.workspace.mkdir()
    moved.rename(scene.workspace / "the site")
    action = Action(scene)
    fails(action, "the input folder is not a checkout")
    assert "no robots.txt" not in action.log, action.log
    action = Action(scene, folder="the site")
    passes(action)
    assert "/news/" in scene.written()[0]["body"]
    (scene.workspace / "the site/part").mkdir()
    fails(Action(scene, folder="the site/part"), "a part of a checkout")


def a_whole_clone_stays_whole(folder):
    scene = Scene(folder, {"robots.txt": GOOD}, {"robots.txt": NEWS}, event="push", depth=9)
    assert git(scene.workspace, "rev-parse", "--is-shallow-repository") == "false"
    scene.base = git(scene.origin, "rev-parse", "change")
    action = Action(scene)
    assert passes(action)["compared"] == "true" and "/news/" in action.summary
    assert git(scene.workspace, "rev-parse", "--is-shallow-repository") == "false"


def pre_commit(repository, *arguments, check=True):
    tools = repository.parent / "bin"
    tools.mkdir(exist_ok=True)
    shutil.copy(ROBOTSD, tools / "robotsd")
    return run(
        ["pre-commit", "run", "--all-files", *arguments],
        repository,
        check,
        PATH=f"{tools}:{os.environ['PATH']}",
        PRE_COMMIT_HOME=repository.parent / "cache",
    )


def repository_with(folder, files):
    repository = folder / "site"
    repository.mkdir()
    git(repository, "init", "--quiet")
    commit(repository, files)
    return repository


def the_hooks_of_the_repository_run(folder):
    hosted = repository_with(folder, {".pre-commit-hooks.yaml": (PROJECT / ".pre-commit-hooks.yaml").read_text()}).rename(folder / "hosted")
    rev = git(hosted, "rev-parse", "HEAD")
    tests = 'robots = "robots.txt"\n[[disallow]]\nagents = ["*"]\npaths = ["/search"]\n'
    config = {"repos": [{"repo": hosted.as_uri(), "rev": rev, "hooks": [{"id": "robotsd-check"}, {"id": "robotsd-fix"}, {"id": "robotsd-test"}]}]}
    repository = repository_with(
        folder, {".pre-commit-config.yaml": json.dumps(config), "robots.txt": GOOD, "robots.test.toml": tests, "not-robots.txt": BROKEN}
    )
    _, printed = pre_commit(repository)
    assert printed.count("Passed") == 3, printed
    commit(repository, {"sub dir/robots.txt": BROKEN})
    status, printed = pre_commit(repository, check=False)
    assert status == 1 and "sub dir/robots.txt" in printed and "not-robots" not in printed, printed


def the_expectations_of_any_folder_are_tested(folder):
    hosted = repository_with(folder, {".pre-commit-hooks.yaml": (PROJECT / ".pre-commit-hooks.yaml").read_text()}).rename(folder / "hosted")
    rev = git(hosted, "rev-parse", "HEAD")

    def config(**hook):
        return json.dumps({"repos": [{"repo": hosted.as_uri(), "rev": rev, "hooks": [{"id": "robotsd-test", **hook}]}]})

    # Without expectations the hook passes.
    repository = repository_with(folder, {".pre-commit-config.yaml": config(), "public/robots.txt": NEWS})
    _, printed = pre_commit(repository)
    assert "Passed" in printed, printed
    tests = 'robots = "../public/robots.txt"\n[[allow]]\nagents = ["*"]\npaths = ["/shop"]\n'
    unmet = 'robots = "../public/robots.txt"\n[[allow]]\nagents = ["*"]\npaths = ["/news/"]\n'
    commit(repository, {"-a $(touch pwned) b/robots.test.toml": unmet, "met/robots.test.toml": tests, "unmet/robots.test.toml": unmet})
    status, printed = pre_commit(repository, check=False)
    assert status == 1 and printed.count("* may not fetch /news/") == 2, printed
    assert "unmet/robots.test.toml:4:10:" in printed and "1 expected, all met" in printed, printed
    commit(repository, {".pre-commit-config.yaml": config(args=["met/robots.test.toml"])})
    _, printed = pre_commit(repository)
    assert "Passed" in printed and list(folder.rglob("pwned")) == [], printed


def the_local_hook_installs_the_wheel(folder):
    config = (PROJECT / "config/ci/pre-commit-config.yaml").read_text()
    fixable = "User-agent: *\nDisallow: /search\nDisallow: /search\n"
    repository = repository_with(folder, {".pre-commit-config.yaml": config, "robots.txt": fixable})
    status, printed = pre_commit(repository, check=False)
    assert status == 1 and "files were modified by this hook" in printed, printed
    assert (repository / "robots.txt").read_text() == GOOD
    _, printed = pre_commit(repository)
    assert "Passed" in printed, printed
    installed = list((folder / "cache").rglob("bin/robotsd"))
    assert len(installed) == 1, "pre-commit installed it, and did not take the one on the PATH"


def the_job_of_gitlab_runs(folder):
    job = yaml.safe_load((PROJECT / "config/ci/gitlab.yml").read_text())["robots.txt"]
    scene = Scene(folder, {"a b/robots.txt": GOOD}, {"a b/robots.txt": NEWS}, depth=9)
    run([sys.executable, "-m", "venv", folder / "venv"], folder)
    script = "\n".join(["set -eo pipefail", *job["before_script"], *job["script"]])
    environment = {
        **job["variables"],
        "PATH": f"{folder / 'venv/bin'}:{os.environ['PATH']}",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": scene.base,
    }
    run(["bash", "-c", script], scene.workspace, **environment)
    effect = (scene.workspace / job["artifacts"]["paths"][0]).read_text()
    assert "/news/" in effect, effect
    commit(scene.workspace, {"a b/robots.txt": BROKEN})
    status, printed = run(["bash", "-c", script], scene.workspace, check=False, **environment)
    assert status != 0 and "a b/robots.txt:" in printed, printed

    def job_after(change, before="HEAD", **links):
        """Commits a change and runs the job. Returns its status, its output and its artifact."""
        environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = git(scene.workspace, "rev-parse", "HEAD") if before == "HEAD" else before
        for name, target in links.items():
            (scene.workspace / name).mkdir(exist_ok=True)
            (scene.workspace / name / "robots.txt").unlink(missing_ok=True)
            (scene.workspace / name / "robots.txt").symlink_to(target)
        commit(scene.workspace, change)
        artifact = scene.workspace / "effect.md"
        artifact.unlink(missing_ok=True)
        status, printed = run(["bash", "-c", script], scene.workspace, check=False, **environment)
        return status, printed, artifact.read_text() if artifact.exists() else ""

    exclude = scene.workspace / ".git/info/exclude"
    exclude.write_text("effect.md\n")
    assert job_after({"a b/robots.txt": GOOD, "-x/robots.txt": GOOD, "live": GOOD})[0] == 0
    # A folder that looks like an option, and a link, which is compared by the content of its target.
    assert job_after({"page.html": "x"}, link="../live")[0] == 0
    status, printed, effect = job_after({"live": NEWS, "-x/robots.txt": NEWS})
    assert status == 0 and effect.count("/news/") >= 2 and "link/robots.txt" in effect and "-x/robots.txt" in effect, f"{printed}\n{effect}"
    assert job_after({"page.html": "y"})[2] == "", "nothing changes"
    # An unknown version fails.
    assert job_after({"page.html": "z"}, before="1" * 40)[0] != 0
    (folder / "secret").write_text("hunter2 hunter2\n")
    status, printed, effect = job_after({"page.html": "w"}, link=str(folder / "secret"))
    assert status != 0 and "link/robots.txt: not known" in effect and "hunter2" not in printed + effect, f"{printed}\n{effect}"
    # The merge request contains something under the artifact's name: a file, a folder, a link to a file elsewhere, a dangling link.
    (scene.workspace / "link/robots.txt").unlink()
    commit(scene.workspace, {})
    outside = folder / "outside"
    outside.write_text("as it was")
    exclude.write_text("")
    artifact = scene.workspace / "effect.md"
    artifact.unlink(missing_ok=True)

    def brought(number, files):
        if number == 0:
            artifact.write_text("planted")
        elif number == 1:
            artifact.mkdir()
            (artifact / "planted").write_text("planted")
        else:
            artifact.symlink_to(outside if number == 2 else folder / "not-there")
        commit(scene.workspace, files)
        environment["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = git(scene.workspace, "rev-parse", "HEAD~1")
        run(["bash", "-c", script], scene.workspace, check=False, **environment)

    for number, text in enumerate((NEWS, GOOD, NEWS, GOOD)):
        brought(number, {"live": text, "robots.txt": text})
        assert artifact.is_file() and not artifact.is_symlink(), number
        assert "planted" not in artifact.read_text() and "/news/" in artifact.read_text(), artifact.read_text()
        artifact.unlink()
        brought(number, {"page.html": str(number)})
        assert not artifact.exists() and not artifact.is_symlink(), "nothing changes"
    assert outside.read_text() == "as it was" and not (folder / "not-there").exists()


def a_new_user_has_a_green_check(folder):
    """Runs the commands of docs/src/start/ci.md exactly as written, in the repository of a site with a faulty file; then runs its workflow."""
    page = (PROJECT / "docs/src/start/ci.md").read_text()
    section = page.split("## From nothing to a fixed file and a green check\n")[1].split("\n## ")[0]
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))
    assert script.count("\n") > 20, script
    home = folder / "home"
    home.mkdir()
    faulty = "User-agent: *\nDisallow: /search\nDisallow: /search\nDisalow: /drafts/\n"
    site = repository_with(folder, {"robots.txt": faulty, "page.html": "x"})
    identity = {f"GIT_{who}_{what}": "a@site.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    _, printed = run(["bash", "-euo", "pipefail", "-c", script], site, HOME=home, **identity)
    assert (home / ".local/robotsd/bin/robotsd").is_file()
    fixed = (site / "robots.txt").read_text()
    assert fixed.count("/search") == 1, f"{fixed}\n{printed}"
    assert git(site, "status", "--short") == "", "everything is in the commit"
    workflow = site / ".github/workflows/robots-txt.yml"
    run(["check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow], site)
    (uses,) = [step for step in yaml.safe_load(workflow.read_text())["jobs"]["robots-txt"]["steps"] if "tower-robots" in step["uses"]]
    (folder / "scene").mkdir()
    files = {name: (site / name).read_text() for name in ("robots.txt", "robots.test.toml")}
    scene = Scene(folder / "scene", {"robots.txt": faulty}, files)
    action = Action(scene, **uses.get("with", {}))
    passes(action)
    assert "tests/" not in action.log and scene.written() != []


def the_files_fit_their_schemas(folder):
    ci = PROJECT / "config/ci"
    schema = ["check-jsonschema", "--builtin-schema"]
    run([*schema, "vendor.github-actions", PROJECT / "action.yml"], folder)
    run([*schema, "vendor.github-workflows", ci / "github.yml"], folder)
    run([*schema, "vendor.gitlab-ci", "--data-transform", "gitlab-ci", ci / "gitlab.yml"], folder)
    run(["pre-commit", "validate-manifest", PROJECT / ".pre-commit-hooks.yaml"], folder)
    run(["pre-commit", "validate-config", ci / "pre-commit-config.yaml"], folder)
    # Checks for problems that the schemas do not cover: values in scripts, unneeded permissions. The examples pin versions, not hashes.
    settings = folder / "zizmor.yml"
    settings.write_text("rules: { unpinned-uses: { disable: true } }\n")
    run(["zizmor", "--offline", "--no-progress", "--config", settings, PROJECT / "action.yml", ci / "github.yml"], folder)
    # Every version in these files equals the version of the program.
    version = run([ROBOTSD, "--version"], folder)[1].split()[1]
    pages = {PROJECT / "docs/src/start/ci.md", PROJECT / "docs/src/howto/ci.md"}
    named = pages | {PROJECT / "action.yml", ci / "github.yml", ci / "gitlab.yml", ci / "pre-commit-config.yaml"}
    for path in sorted(named):
        found = re.findall(r"tower-robots@v([\d.]+\d)|robotsd==([\d.]+\d)|VERSION: \"([\d.]+)\"|default: \"([\d.]+\d)\"|rev: v([\d.]+)", path.read_text())
        assert found and all("".join(one) == version for one in found), f"{path}: {found}, the program is {version}"


CASES = [
    the_files_fit_their_schemas,
    the_effect_of_a_change_is_written_once,
    a_change_of_something_else_says_nothing,
    what_may_not_change_fails,
    an_error_is_an_annotation_and_fails,
    an_unmet_expectation_fails,
    names_are_never_run,
    what_others_wrote_is_no_command,
    a_new_and_a_deleted_file_are_compared_with_nothing,
    the_base_is_fetched_where_it_can_be,
    without_the_base_the_check_goes_on,
    a_token_that_may_only_read_fails_nothing,
    a_push_is_compared_and_writes_no_comment,
    without_a_file_it_says_so,
    a_program_that_is_not_there_is_said,
    the_action_installs_the_wheel,
    the_pull_request_is_not_run,
    what_is_installed_can_be_pinned,
    what_is_denied_is_reported_too,
    where_the_effect_is_not_known_forbid_fails,
    a_merge_group_is_compared_with_its_base,
    unknown_is_not_unchanged,
    each_use_has_its_comment,
    links_out_of_the_checkout_are_not_read,
    a_link_is_compared_by_what_it_leads_to,
    a_fault_in_forbid_is_said_whatever_changes,
    the_last_file_is_compared_where_it_goes,
    a_folder_that_looks_like_an_option_is_a_folder,
    an_enterprise_server_gets_the_comment,
    the_comment_is_that_of_whom_the_token_is_of,
    a_checkout_elsewhere_is_named,
    a_whole_clone_stays_whole,
    the_hooks_of_the_repository_run,
    the_expectations_of_any_folder_are_tested,
    the_local_hook_installs_the_wheel,
    the_job_of_gitlab_runs,
    a_new_user_has_a_green_check,
]


def main():
    failed = 0
    only = sys.argv[3:]
    for case in CASES:
        if only and case.__name__ not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(pathlib.Path(folder))
                print(f"ok      {case.__name__}")
            except AssertionError as error:
                failed += 1
                print(f"FAILED  {case.__name__}\n{error}")
    print(f"ci pieces: {len(only or CASES) - failed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
