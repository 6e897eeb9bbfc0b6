#!/bin/sh
# Runs after the files are removed. dpkg's `purge` also removes state and logs; rpm leaves them.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "${1:-}" = purge ]; then
    # A service with a dynamic user has its folders under private, and links to them.
    rm -rf /var/lib/private/robotsd /var/lib/robotsd /var/log/private/robotsd /var/log/robotsd
fi
