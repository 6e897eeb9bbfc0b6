#!/bin/sh
# Prints the RUSTFLAGS for a published program. They remove the folders of the build machine from the names of source files, which
# panic messages contain. Folders with a space in their name are not supported. build.sh builds the wheel with these flags; also use
# them to build the program that you pass to build.sh:
#
#     RUSTFLAGS=$(robotsd/packaging/rustflags.sh) cargo build --profile dist --locked -p robotsd
set -eu
project=$(cd "$(dirname "$0")/../.." && pwd)
cargo=${CARGO_HOME:-$HOME/.cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-$project/target}")
echo "--remap-path-prefix=$project=/tower-robots --remap-path-prefix=$target=/target --remap-path-prefix=$cargo=/cargo"
