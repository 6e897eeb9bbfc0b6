# The additional steps of `.ci/run --full` that need the published program, or mostly wait. `.ci/run`
# sources this file.

# Tests the published program with files that are expensive to parse. `-p robotsd` would build the
# tests again with other features of the dependencies.
step env ROBOTSD_HOSTILE="$robotsd" cargo test --locked --all-features --test it -- commands_need_bounded_time_and_memory

# The published cases must be those that make.py selects. The handbook's page must contain the
# current answers of the pinned parsers.
if needs "$shared/cases"; then step python3 tests/conformance/make.py --check; fi
if needs "$conformance/node_modules" node; then begin python3 tests/conformance/run.py --check; fi

# Packages the extension for VS Code, without a network. `robotsd.vsix` must contain the bundle.
package_vscode() {
    cp -r editors/vscode/. "$vscode"
    unshare --net npm run package --prefix "$vscode"
    unzip -l "$vscode/robotsd.vsix" extension/dist/extension.js
}
if [ "$(id -u)" = 0 ] && needs "$vscode/node_modules/.bin/vsce" unzip; then step package_vscode; fi

# The test suite for HTTP caches. With robotsd as the proxy, all results must be the same as without
# a proxy, except for the listed ones.
if needs "$cache_suite/cli.mjs" node; then begin robotsd/tests/cache_suite.sh "$robotsd" "$cache_suite"; fi
# Validates the SARIF output, which is for code scanning, with real files as input.
if needs "$multitool" "$shared/cases"; then
    begin robotsd/tests/sarif.sh "$robotsd" "$multitool" "$shared/cases/robots_files.jsonl.gz"
fi
finish

# Tests with slow clients and at saturation. Then a test of one minute with load and every kind of
# failure: robotsd must count the same responses as the clients.
if needs slowhttptest wrk h2load curl; then step robotsd/tests/endurance.sh "$robotsd" 6; fi
if needs openssl; then step robotsd/tests/soak.sh 1 --idle 2000 --robotsd "$robotsd"; fi

# Packages the crates as for publishing, but does not upload them. The code in them was built and tested above.
step cargo publish --locked --workspace --dry-run --no-verify --allow-dirty --quiet

# Runs the commands of the README without a network, including `cargo install`. Builds the packages, installs them into empty root file
# systems, and runs the program there. Runs the example jobs in config/ci with the wheel that was built.
readme() { unshare --net bash -c 'ip link set lo up; exec python3 robotsd/tests/readme.py'; }
if [ "$(id -u)" = 0 ] && needs "$packaging/bin/pre-commit" mmdebstrap lintian rpmlint mandoc fish zsh jq; then
    CARGO_NET_OFFLINE=true RUSTFLAGS=$published begin readme
    PATH="$packaging/bin:$PATH" ROBOTSD_TESTER=$tester step robotsd/packaging/test.sh "$robotsd" "$peers/packages"
    PATH="$packaging/bin:$PATH" step python3 robotsd/tests/ci_pieces.py "$robotsd" "$peers/packages"
    finish
elif [ -n "${CI:-}" ]; then
    echo "not root: CI must test the packages as root" >&2
    exit 1
fi
