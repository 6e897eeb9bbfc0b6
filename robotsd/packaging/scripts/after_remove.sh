#!/bin/sh
# Runs after the files are removed. With dpkg's `purge`, this script also removes state and logs.
# rpm keeps them.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "${1:-}" = purge ]; then
    # The state and log folders are in `private`, because the service has a dynamic user. The other
    # two paths are symbolic links to these folders.
    rm -rf /var/lib/private/robotsd /var/lib/robotsd /var/log/private/robotsd /var/log/robotsd
fi
