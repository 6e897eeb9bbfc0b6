#!/usr/bin/env bash
# Builds the packages and runs the linters for each format. Then installs each package into an empty root file system, and runs the program
# there. Also runs the commands of docs/src/howto/install.md exactly as written.
#
# Usage: robotsd/packaging/test.sh ROBOTSD OUT        (arguments and ROBOTSD_TESTER as for build.sh; OUT keeps the packages)
#
# Must run as root, to change into other roots. Needs the tools of build.sh; hadolint and cyclonedx-python-lib (for its schemas) from PyPI;
# from Debian: binutils busybox-static curl fish iproute2 lintian mandoc mmdebstrap rpm rpmlint shellcheck systemd unzip zsh; and cargo.
# Servers listen on the loopback of a separate network namespace.
set -euo pipefail
packaging=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$packaging/../.." && pwd)
robotsd=$(realpath "$1")
out=$(realpath -m "$2")

for tool in hadolint busybox curl fish ip lintian mandoc mmdebstrap rpm rpmlint shellcheck systemd-analyze unshare unzip zsh; do
    command -v "$tool" > /dev/null || { echo "$tool is not installed: the comment at the top of this script lists what it needs" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "not root, but this script changes into other roots: run it as root" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
chmod 755 "$folder"

passed=0
pass() { passed=$((passed + 1)); echo "ok  $*"; }
fail() { echo "packages: $*" >&2; exit 1; }

# Two builds must be identical.
"$packaging/build.sh" "$robotsd" "$folder/first" > /dev/null
"$packaging/build.sh" "$robotsd" "$out"
diff "$folder/first/SHA256SUMS" "$out/SHA256SUMS" || fail "two builds of one program differ"
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
[ "$(wc -l < "$out/SHA256SUMS")" = 5 ] || fail "SHA256SUMS does not list five files"
deb=$(echo "$out"/*.deb) rpm=$(echo "$out"/*.rpm) wheel=$(echo "$out"/*.whl) bill=$(echo "$out"/*.cdx.json)
version=$("$robotsd" --version)
pass "two builds are identical"

# Lints the source files.
shellcheck --severity=warning "$packaging"/*.sh "$packaging"/scripts/*.sh "$project/robotsd/tests/sarif.sh"
host=$(rustc -vV | sed -n 's/^host: //p')
(cd "$project" && cargo tree --locked -p robotsd -e normal --target "$host" --prefix none --no-dedupe --format '{p}') | sort -u > "$folder/tree"
python3 - "$bill" "$folder/tree" <<'PY'
import json, pathlib, re, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = pathlib.Path(sys.argv[1]).read_text()
validator = JsonStrictValidator(SchemaVersion.V1_5)
assert (fault := validator.validate_str(text)) is None, fault
assert validator.validate_str(text.replace('"bomFormat"', '"format"')) is not None, "the validator finds a fault where one is"
document = json.loads(text)
components = document["components"]
assert all(component.get("licenses") for component in components), "each has a licence"
# The crates that cargo links into the program on this machine. Crates that only Windows needs are not among them.
tree = {tuple(line.replace(" v", " ").split()[:2]) for line in pathlib.Path(sys.argv[2]).read_text().splitlines()}
listed = [(component["name"], component["version"]) for component in [document["metadata"]["component"], *components]]
assert len(tree) > 150 and sorted(listed) == sorted(tree), f"the bill and cargo tree differ in {set(listed) ^ tree}"
top = document["metadata"]["component"]
for component in [top, *top["components"], *components]:
    name, version = re.escape(component["name"]), re.escape(component["version"]).replace(r"\+", r"(\+|%2B)")
    assert re.fullmatch(rf"pkg:cargo/{name}@{version}(#.+)?", component["purl"]), component["purl"]
refs = {component["bom-ref"] for component in [top, *components]}
assert {dependency["ref"] for dependency in document["dependencies"]} == refs
assert all(set(dependency["dependsOn"]) <= refs for dependency in document["dependencies"])
PY
pass "bill of materials"
lintian --no-cfg --allow-root --fail-on error,warning --tag-display-limit 0 "$deb"
pass "lintian"
rpmlint --strict --config "$packaging/rpmlint.toml" "$rpm" > "$folder/rpmlint.log" || { cat "$folder/rpmlint.log" >&2; fail rpmlint; }
for wanted in 'libc.so.6(GLIBC_2.' 'libgcc_s.so.1()(64bit)'; do
    rpm -qp --requires "$rpm" | grep -F "$wanted" > /dev/null || fail "the rpm does not require $wanted"
done
[ "$(rpm -qp --queryformat '%{BUILDHOST}' "$rpm")" = localhost ] || fail "the rpm contains the name of the build machine"
diff <(rpm -qpc "$rpm") <(printf '%s\n' /etc/logrotate.d/robotsd /etc/robotsd/robots.txt /etc/robotsd/robotsd.toml) || fail "the rpm marks other files as config files"
rpm -qpd "$rpm" | grep -F /usr/share/man/man1/robotsd-check.1.gz > /dev/null || fail "the rpm does not mark the manual as documentation"
pass "rpmlint"

# Each package must contain the notices of all third-party crates, and its metadata must list their licences.
mkdir "$folder/notices" "$folder/packages"
unzip -q "$wheel" -d "$folder/packages/wheel"
dpkg-deb --extract "$deb" "$folder/packages/deb"
rpm2archive - < "$rpm" | tar -C "$folder/packages" --transform 's,^\./,rpm/,' -xzf -
for name in THIRD-PARTY-NOTICES.txt RUST-STANDARD-LIBRARY.html; do
    cp "$folder"/packages/wheel/robotsd-*.dist-info/licenses/"$name" "$folder/notices"
    for held in deb/usr/share/doc/robotsd rpm/usr/share/licenses/robotsd; do
        zcat "$folder/packages/$held/$name.gz" | cmp - "$folder/notices/$name" || fail "$held: $name differs from the notices in the wheel"
    done
done
grep -q 'Copyright notices for The Rust Standard Library' "$folder/notices/RUST-STANDARD-LIBRARY.html" || fail "the notices of the standard library are not in the file"
rpm -qp --queryformat '%{LICENSE}' "$rpm" > "$folder/rpm-license"
(cd "$project" && cargo metadata --locked --format-version 1 --filter-platform "$host") > "$folder/metadata.json"
python3 - "$folder/notices/THIRD-PARTY-NOTICES.txt" "$folder/tree" "$folder/metadata.json" "$folder"/packages/wheel/robotsd-*.dist-info/METADATA \
    "$folder/rpm-license" <<'PY'
import email, json, pathlib, re, sys
from packaging.licenses import canonicalize_license_expression

notices, tree, metadata, wheel, rpm = (pathlib.Path(argument).read_text() for argument in sys.argv[1:])
squeezed = re.sub(r"\s+", " ", notices)
tree = {tuple(line.replace(" v", " ").split()[:2]) for line in tree.splitlines()}
expression = email.message_from_string(wheel)["License-Expression"]
assert expression == rpm == canonicalize_license_expression(expression), "the wheel and the rpm must contain the same valid SPDX expression"
assert expression.startswith("(MIT OR Apache-2.0) AND "), expression
sections = {int(number): text for number, text in re.findall(r"^Text (\d+), in\n(?:  .+\n)+-+\n\n((?:.|\n)*?)(?=\n-{100}\nText |\Z)", notices, re.M)}
seen = own = 0
for package in json.loads(metadata)["packages"]:
    name, version = package["name"], package["version"]
    if (name, version) not in tree:
        continue
    if package["source"] is None:
        own += 1
        continue
    seen += 1
    line = re.search(rf"^{re.escape(name)} {re.escape(version)}: (.+); texts ([\d, ]*\d)", notices, re.M)
    assert line, f"{name} {version} is not in the notices"
    assert set(re.findall(r"[\w.-]+", line[1])) <= set(re.findall(r"[\w.-]+", expression)), f"{name}: {line[1]}"
    for number in line[2].split(", "):
        assert sections[int(number)].strip(), f"{name}: text {number} is empty"
    folder = pathlib.Path(package["manifest_path"]).parent
    for path in folder.rglob("LICEN*"):
        if path.is_file() and path.suffix != ".rs":
            text = re.sub(r"\s+", " ", path.read_bytes().decode("utf-8", "replace")).strip()
            assert text in squeezed, f"{path} is not in the notices"
assert own and seen == len(tree) - own, f"{seen} third-party crates in a tree of {len(tree)}"
# The C code in a crate has its own licence, which must be in the notices.
assert "Copyright (c) 2018-20" in notices and "Daan Leijen" in notices, "mimalloc"
assert re.search(r"^  ring \S+: third_party/fiat/LICENSE$", notices, re.M), "ring"
PY
pass "notices of third-party code"

# The programs must not contain folder names of this machine.
for program in "$folder/packages/wheel/"*.data/scripts/robotsd "$folder"/packages/{deb,rpm}/usr/bin/robotsd; do
    for place in "${CARGO_HOME:-$HOME/.cargo}/" "$project/"; do
        if grep -qaF "$place" "$program"; then fail "$program contains $place: build it with the flags of rustflags.sh"; fi
    done
done
pass "no folder names of this machine"

# The package must contain the pages of the handbook unchanged. CI checks their links.
diff -r "$project/docs/src" "$folder/packages/deb/usr/share/doc/robotsd/handbook" || fail "the deb contains other pages"
pass "handbook"
# Versions of Alpine packages are not pinned (DL3018), because Alpine soon removes old versions.
hadolint --failure-threshold style --ignore DL3018 "$project/config/Containerfile"
pass "hadolint"

mkdir "$folder/extras"
tar -C "$folder/extras" --strip-components=1 -xzf "$out"/*-man-and-completions.tar.gz
pages=("$folder"/extras/man1/*.1)
[ ${#pages[@]} -gt 15 ] || fail "there is no manual page for some commands"
mandoc -T lint -W warning "${pages[@]}" || fail "mandoc reports problems"
pass "manual pages"

# Completions for Elvish and PowerShell are not checked, because these shells are not installed.
completions=$folder/extras/completions
bash -n "$completions/robotsd.bash"
# Tests in each shell that the beginning of a command is completed.
bash -c 'source "$1"; COMP_WORDS=(robotsd rep) COMP_CWORD=1; _robotsd robotsd rep robotsd; [ "${COMPREPLY[*]}" = replay ]' - \
    "$completions/robotsd.bash" || fail "bash does not complete a command"
zsh -n "$completions/robotsd.zsh"
zsh -f -c 'autoload -Uz compinit && compinit -D -u && source "$1" && [ "$_comps[robotsd]" = _robotsd ]' - "$completions/robotsd.zsh" ||
    fail "zsh does not complete a command"
fish --no-execute "$completions/robotsd.fish"
fish --no-config -c "source '$completions/robotsd.fish'; complete --do-complete 'robotsd rep'" | grep '^replay' > /dev/null || fail "fish does not complete a command"
pass "completions"

# Runs the program in a root with the shipped config. The first argument is the root. The others are options for `chroot`. The program has
# its own network namespace, and is tested from outside of the root.
try_out() {
    local root=$1 arguments=("${@:2}")
    cp "$project/examples/access.log" "$root/tmp/access.log"
    mkdir -p "$root/run/robotsd" "$root/var/lib/robotsd"
    unshare --net bash -Eeuo pipefail -s "$root" "$version" "${arguments[@]}" <<'NET' || fail "$root: the program failed a check"
root=$1 version=$2
shift 2
inside() { chroot "${options[@]}" "$root" "$@" < /dev/null; }
options=("$@")
step() { echo "failed: $BASH_COMMAND" >&2; }
trap step ERR
ip link set lo up
[ "$(inside robotsd --version)" = "$version" ]
inside robotsd check /etc/robotsd/robots.txt > /dev/null
inside robotsd config check > /dev/null
inside robotsd replay /tmp/access.log --robots /etc/robotsd/robots.txt > "$root/tmp/replayed"
grep -q '^282 requests' "$root/tmp/replayed"
(exec chroot "${options[@]}" "$root" robotsd serve) > "$root/tmp/log" < /dev/null &
server=$!
trap 'kill "$server" 2> /dev/null || true' EXIT
ask() { curl --silent --fail --max-time 5 --header 'Host: example.com' --user-agent GPTBot/1.2 http://127.0.0.1:8080/robots.txt; }
for _ in $(seq 100); do
    if ask > "$root/tmp/served"; then break; fi
    sleep 0.1
done
cmp "$root/tmp/served" "$root/etc/robotsd/robots.txt"
inside robotsd status > "$root/tmp/status"
grep -q 'mode: *observe' "$root/tmp/status"
sleep 1
kill -TERM "$server"
wait "$server"
trap - EXIT
NET
}

# Prints the shell code in a section of a page, as one script.
section() { sed -n "/^## $2\$/,/^## [^#]/p" "$1" | sed -n '/^```sh$/,/^```$/{/^```/!p}'; }

# Debian: creates an empty system with apt, and runs the commands of the page exactly as written.
root=$folder/debian
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=minbase "$suite" "$root" > "$folder/mmdebstrap.log" 2>&1 || { cat "$folder/mmdebstrap.log" >&2; fail mmdebstrap; }
# Replaces systemctl by a script that logs its calls, because systemd does not run in this root file
# system.
mkdir -p "$root/run/systemd/system" "$root/var/www/html" "$root/var/log/nginx"
printf '#!/bin/sh\necho "$*" >> /tmp/systemctl.log\n' > "$root/usr/bin/systemctl"
chmod 755 "$root/usr/bin/systemctl"
cp "$deb" "$out/SHA256SUMS" "$root/root"
cp "$project/examples/access.log" "$root/var/log/nginx/access.log"
cp "$project/examples/site/robots.txt" "$root/var/www/html/robots.txt"
section "$project/docs/src/howto/install.md" "From a package to a report on your own log" > "$root/root/page.sh"
grep -q 'apt-get install' "$root/root/page.sh" || fail "the page does not install the package"
began=$SECONDS
chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -euc 'cd; . ./page.sh' > "$folder/page.log" 2>&1 ||
    { cat "$folder/page.log" >&2; fail "a command of the page failed"; }
grep -q '^36 of 165 requests by crawlers' "$folder/page.log" || fail "the report does not show what was disallowed"
grep -q '<title>' "$root/root/report.html" || fail "the report is not an HTML page"
pass "from a package to a report, in $((SECONDS - began)) s"

try_out "$root"
[ -s "$root/usr/share/man/man1/robotsd-replay.1.gz" ] || fail "the deb did not install the manual"
grep -q '^daemon-reload$' "$root/tmp/systemctl.log" || fail "the installation did not let systemd read the units"
if grep -q enable "$root/tmp/systemctl.log"; then fail "a first installation enabled a unit"; fi
mkdir "$folder/units"
for unit in robotsd.service robotsd.socket; do
    sed "s|/usr/bin/robotsd|$root/usr/bin/robotsd|" "$root/usr/lib/systemd/system/$unit" > "$folder/units/$unit"
done
# Adds the lines that the pages tell operators to add to the units.
for text in "$project"/docs/src/howto/{install,services}.md; do
    for kind in Socket Service; do
        unit=$folder/units/robotsd.$(echo "$kind" | tr '[:upper:]' '[:lower:]')
        mkdir -p "$unit.d"
        sed -n '/^```ini$/,/^```$/{/^```/!p}' "$text" | awk -v kind="[$kind]" '/^\[/ { on = $0 == kind } on' > "$unit.d/$(basename "$text" .md).conf"
    done
done
grep -q '^ListenStream=$' "$folder/units/robotsd.socket.d/install.conf" || fail "the page does not change the port"
grep -q '^LoadCredential=' "$folder/units/robotsd.service.d/services.conf" || fail "the page does not pass a secret to the service"
# systemd before 253 warns about `Type=notify-reload`. The comment in the unit explains this
# warning, so it is ignored.
systemd-analyze verify "$folder"/units/robotsd.{service,socket} 2>&1 | grep -v 'Failed to parse service type, ignoring: notify-reload' > "$folder/verify.log" || true
[ ! -s "$folder/verify.log" ] || { cat "$folder/verify.log" >&2; fail "systemd-analyze verify reports problems"; }
systemd-analyze security --offline=true --threshold=15 "$folder/units/robotsd.service" > "$folder/security.log" ||
    { tail -n 1 "$folder/security.log" >&2; fail "systemd-analyze security rates the exposure of the unit higher than 1.5 of 10"; }
# An upgrade must keep edited files, and restart a running service.
echo '# edited' >> "$root/etc/robotsd/robots.txt"
: > "$root/tmp/systemctl.log"
dpkg --root="$root" --install "$deb" > /dev/null 2>&1 || fail "the deb cannot be installed a second time"
tail -n 1 "$root/etc/robotsd/robots.txt" | grep '^# edited$' > /dev/null || fail "an upgrade overwrote the config"
diff "$root/tmp/systemctl.log" <(printf '%s\n' daemon-reload daemon-reload 'try-restart robotsd.service') || fail "an upgrade did not restart the service"
# The service may fail to start, for example because of an error in its config. Even then, dpkg must
# not consider the package broken.
cp "$root/usr/bin/systemctl" "$folder/systemctl"
printf 'exit 1\n' >> "$root/usr/bin/systemctl"
dpkg --root="$root" --install "$deb" > "$folder/failing" 2>&1 || { cat "$folder/failing" >&2; fail "the deb cannot be installed if systemctl fails"; }
grep -q 'robotsd config check' "$folder/failing" || fail "the message does not contain what to do"
dpkg --root="$root" --remove robotsd > "$folder/failing" 2>&1 || { cat "$folder/failing" >&2; fail "the deb cannot be removed if systemctl fails"; }
grep -q 'systemctl stop robotsd.socket' "$folder/failing" || fail "the message does not contain what remains to be done"
[ "$(dpkg --root="$root" --audit | wc -l)" = 0 ] || fail "dpkg finds a broken package"
dpkg --root="$root" --install "$deb" > /dev/null 2>&1 || fail "the deb cannot be installed again"
cp "$folder/systemctl" "$root/usr/bin/systemctl"
: > "$root/tmp/systemctl.log"
dpkg --root="$root" --remove robotsd > /dev/null
diff "$root/tmp/systemctl.log" <(printf '%s\n' '--no-reload disable --now robotsd.service robotsd.socket' daemon-reload) ||
    fail "a removal did not stop the service"
[ -e "$root/etc/robotsd/robots.txt" ] || fail "a removal deleted the config"
dpkg --root="$root" --purge robotsd > /dev/null
left=$(find "$root/etc" "$root/usr" "$root/var/lib" -name '*robotsd*' -not -path '*/dpkg/*')
[ -z "$left" ] || fail "a purge left these files: $left"
pass "deb: installed, run, upgraded, removed, purged"

# Fedora and distributions based on it: creates a root with a shell and the libraries that the program is linked with.
root=$folder/fedora
mkdir -p "$root"/{bin,lib64,tmp,usr/bin,run,var/lib}
cp "$(command -v busybox)" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
ldd "$robotsd" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$root/lib64/"; done
# Programs of this machine expect the dynamic loader at this path.
mkdir -p "$root/lib"
ln -s ../lib64 "$root/lib/$(uname -m)-linux-gnu"
rpm --root "$root" --initdb
rpm --root "$root" --install --nodeps "$rpm"
rpm --root "$root" --verify --nodeps robotsd || fail "the installed files differ from those in the rpm"
try_out "$root"
# If systemd fails, it must still be possible to remove the package.
mkdir -p "$root/run/systemd/system"
cp "$folder/systemctl" "$root/usr/bin/systemctl"
printf 'exit 1\n' >> "$root/usr/bin/systemctl"
rpm --root "$root" --erase robotsd 2> "$folder/failing" || { cat "$folder/failing" >&2; fail "the rpm cannot be removed if systemctl fails"; }
diff "$root/tmp/systemctl.log" <(printf '%s\n' '--no-reload disable --now robotsd.service robotsd.socket' daemon-reload) ||
    fail "a removal of the rpm did not stop the service"
left=$(find "$root/etc" "$root/usr" -name '*robotsd*')
[ -z "$left" ] || fail "a removal of the rpm left these files: $left"
pass "rpm: installed, run, removed"

# Containerfile builds the image from the files that Containerfile.dockerignore does not exclude. The image must contain the licences of
# everything in it.
excluded=()
while read -r pattern; do excluded+=(":(exclude,glob)$pattern" ":(exclude,glob)$pattern/**"); done < <(grep -v '^#' "$project/config/Containerfile.dockerignore")
mkdir -p "$folder/context"
(cd "$project" && git ls-files -z -- . "${excluded[@]}" | tar -cf - --null --files-from - --ignore-failed-read) | tar -C "$folder/context" -xf -
[ ! -e "$folder/context/fuzz" ] && [ ! -e "$folder/context/robotsd/tests" ] || fail "Containerfile.dockerignore does not exclude the tests and the fuzz targets"
mkdir "$folder/image-notices"
command=$(sed -n 's|^ *\(python3 .*third_party.py notices\) /root-of-image/usr/share/licenses/robotsd$|\1|p' "$project/config/Containerfile")
[ -n "$command" ] || fail "Containerfile does not create the notices"
(cd "$folder/context" && $command "$folder/image-notices") || fail "the command for the notices of the image failed"
diff -r "$folder/notices" "$folder/image-notices" || fail "the notices in the image differ from those in the packages"
pass "context of the image"

# Creates the content of the image: the files that its last stage copies, its user, and the libraries of the program, if it is not static.
root=$folder/image
file=$project/config/Containerfile
mkdir -p "$root"/{lib64,lib,tmp,etc/robotsd,usr/local/bin,run/robotsd,var/lib/robotsd}
ldd "$robotsd" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$root/lib64/"; done
ln -s ../lib64 "$root/lib/$(uname -m)-linux-gnu"
grep -qF 'COPY --from=build /robotsd /usr/local/bin/robotsd' "$file" || fail "Containerfile copies the program to another path"
cp "$robotsd" "$root/usr/local/bin/robotsd"
cp "$project/config/production.toml" "$root/etc/robotsd/robotsd.toml"
cp "$project/config/robots.txt" "$root/etc/robotsd/robots.txt"
user=$(sed -n 's/^USER //p' "$file")
chown -R "$user" "$root/run/robotsd" "$root/var/lib/robotsd"
try_out "$root" --userspec="$user"
pass "image: run as $user"

# Installs the wheel into a new environment, without a package index.
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
[ "$("$folder/venv/bin/robotsd" --version)" = "$version" ] || fail "the program in the wheel has another version"
(cd "$folder"/venv/lib/python3*/site-packages/robotsd-*.dist-info && ls . licenses sboms && cat METADATA) > "$folder/metadata"
for wanted in LICENSE-MIT LICENSE-APACHE THIRD-PARTY-NOTICES.txt 'License-File: THIRD-PARTY-NOTICES.txt' robotsd.cyclonedx.json; do
    grep -q "^$wanted\$" "$folder/metadata" || fail "the wheel lacks $wanted"
done
"$folder/venv/bin/robotsd" check "$project/config/robots.txt" > /dev/null
"$folder/venv/bin/robotsd" replay "$project/examples/access.log" --robots "$project/config/robots.txt" > "$folder/replayed"
grep -q '^282 requests' "$folder/replayed"
"$folder/venv/bin/robotsd" tester --output "$folder/tester.html"
cmp "$ROBOTSD_TESTER" "$folder/tester.html" || fail "the program in the wheel contains another page of the tester"
unshare --net bash -euc '
    ip link set lo up
    "$1" serve --config "$2/config/demo.toml" > /dev/null &
    for _ in $(seq 100); do
        if curl --silent --fail http://127.0.0.1:8080/robots.txt > "$3"; then break; fi
        sleep 0.1
    done
    kill -TERM $!
    wait $!
    cmp "$3" "$2/examples/site/robots.txt"' - "$folder/venv/bin/robotsd" "$project" "$folder/served" || fail "the program in the wheel does not serve robots.txt"
"$folder/venv/bin/python" -m pip uninstall --quiet --yes robotsd
[ ! -e "$folder/venv/bin/robotsd" ] || fail "the uninstalled wheel left the program behind"
pass "wheel: installed, run, removed"

echo "packages: $passed passed, 0 failed"
