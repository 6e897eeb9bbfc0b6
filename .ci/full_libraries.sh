# The additional steps of `.ci/run --full` that do not need the published program, so they run while
# it is built. `.ci/run` sources this file.

# Compiles everything with the oldest supported Rust, if rustup has installed it.
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
if has rustup && rustup toolchain list | grep "^${oldest}[.-]" > /dev/null; then
    step env CARGO_TARGET_DIR="$target/oldest" cargo "+$oldest" check --locked --workspace --all-features
else
    echo "skipped: compiling with Rust $oldest, which is not installed"
fi

# The fuzz targets are in a separate workspace. They are built at a lower priority than the published
# program, because more steps wait for that. The argument is the time for each target, in seconds.
begin nice -n 19 fuzz/run 20

# Checks that the libraries compile for macOS. The features that use ring (signatures, TLS) are left out, because ring needs Apple's C
# compiler there. robotsd always uses ring, so it is not checked.
mac=x86_64-apple-darwin
step install_target "$mac"
if needs "$(rustc --print sysroot)/lib/rustlib/$mac"; then
    step cargo check --locked -p robots-core --target "$mac" --features identity,rate,serde
    step cargo check --locked -p tower-robots --target "$mac" --no-default-features --features layer,watch,fetch,idn,serde,tracing,axum08
fi

# Tests the libraries without features. In `rules`, `agent` and `check`, features only add items. So
# the tests with large case sets are left out here.
step cargo test --locked -p robots-core --no-default-features --lib
library=(-p tower-robots --no-default-features)
step cargo test --locked "${library[@]}" --lib --test it -- \
    --skip properties --skip real_files --skip drawn_files --skip generated_files --skip every_file_with_an_error
# Without the feature `tls`, https URLs are an error, and other URLs are fetched.
step cargo test --locked "${library[@]}" --features fetch --lib --test it fetch
