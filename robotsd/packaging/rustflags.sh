#!/bin/sh
# Prints what RUSTFLAGS has to say for a program that is published: names of source files, which messages of a panic contain, without
# the folders of the machine that built it. A folder whose name has a space cannot be said so. build.sh builds the wheel with it; the program that it is given is built with it, too:
#
#     RUSTFLAGS=$(robotsd/packaging/rustflags.sh) cargo build --profile dist --locked -p robotsd
set -eu
project=$(cd "$(dirname "$0")/../.." && pwd)
cargo=${CARGO_HOME:-$HOME/.cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-$project/target}")
echo "--remap-path-prefix=$project=/tower-robots --remap-path-prefix=$target=/target --remap-path-prefix=$cargo=/cargo"
