#!/bin/sh
# Prints the RUSTFLAGS for a published program. Panic messages contain the paths of source files. These flags remove the folders of the
# build machine from the paths. Folders with a space in their name are not supported. build.sh builds the wheel with these flags. The
# program that you pass to build.sh must be built with them, too:
#
#     RUSTFLAGS=$(robotsd/packaging/rustflags.sh) cargo build --profile dist --locked -p robotsd
set -eu
project=$(cd "$(dirname "$0")/../.." && pwd)
cargo=${CARGO_HOME:-$HOME/.cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-$project/target}")
echo "--remap-path-prefix=$project=/tower-robots --remap-path-prefix=$target=/target --remap-path-prefix=$cargo=/cargo"
