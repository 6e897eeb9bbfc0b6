#!/bin/sh
# Runs after the files are removed. With dpkg's `purge`, state and logs are removed, too. rpm keeps them.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "${1:-}" = purge ]; then
    # The state and log folders are in `private`, because the service has a dynamic user. The other paths are symbolic links to them.
    rm -rf /var/lib/private/robotsd /var/lib/robotsd /var/log/private/robotsd /var/log/robotsd
fi
