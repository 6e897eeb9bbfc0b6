#!/bin/sh
# After the files are gone. State and logs go with `purge`, as dpkg has it; rpm leaves them.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "${1:-}" = purge ]; then
    # A service with a user of its own has its folders under private, and links to them.
    rm -rf /var/lib/private/robotsd /var/lib/robotsd /var/log/private/robotsd /var/log/robotsd
fi
