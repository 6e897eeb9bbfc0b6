#!/bin/sh
# Runs after the files of a new version are installed, for both kinds of package. A first installation does not start the service, because
# an operator must first write the site into the config. If the service cannot be restarted, the installation succeeds nevertheless.
# Otherwise the package would be broken for dpkg, which would then refuse to install other packages.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # Restarts the service only if it is running. robotsd.socket continues to listen meanwhile, so no connection is refused.
    systemctl try-restart robotsd.service ||
        echo "robotsd: the new version is installed, but the service was not restarted: look at \`robotsd config check\` and" \
            "\`systemctl status robotsd\`, then run \`systemctl restart robotsd\`" >&2
fi
