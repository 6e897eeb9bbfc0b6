#!/bin/sh
# Runs after the files are removed. dpkg's `purge` also removes state and logs; rpm keeps them.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "${1:-}" = purge ]; then
    # The folders of a service with a dynamic user are in `private`, and symbolic links point to them.
    rm -rf /var/lib/private/robotsd /var/lib/robotsd /var/log/private/robotsd /var/log/robotsd
fi
