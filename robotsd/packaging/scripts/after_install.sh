#!/bin/sh
# Runs after the files of a new version are installed, for both kinds of package. A first installation does not start the service,
# because its config has to name the site first. A service that does not start does not fail the installation: that would leave
# dpkg with a broken package and prevent it from installing others.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # Only restarts a running service. robotsd.socket continues to listen, so no connection is refused.
    systemctl try-restart robotsd.service ||
        echo "robotsd: the new version is installed, but its service was not restarted: see what \`robotsd config check\` and" \
            "\`systemctl status robotsd\` say, then \`systemctl restart robotsd\`" >&2
fi
