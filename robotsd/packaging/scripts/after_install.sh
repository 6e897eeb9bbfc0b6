#!/bin/sh
# After the files of a new version are there, of both kinds of package. The service is not started by a first installation: its
# config has to name the site first. A service that does not start is no fault of the package: an installation that failed would
# leave dpkg with a broken package, which keeps it from installing others.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # Only a service that runs: robotsd.socket goes on listening, so no connection is refused.
    systemctl try-restart robotsd.service ||
        echo "robotsd: the new version is installed, but its service was not restarted: see what \`robotsd config check\` and" \
            "\`systemctl status robotsd\` say, then \`systemctl restart robotsd\`" >&2
fi
