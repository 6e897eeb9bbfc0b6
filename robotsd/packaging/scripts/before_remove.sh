#!/bin/sh
# Runs before the files are removed. dpkg passes `remove` or `upgrade`; rpm passes the number of versions that will be left, 0 or 1.
# The package is removed even if systemd fails.
set -e

case "${1:-}" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now robotsd.service robotsd.socket ||
                echo "robotsd: its service was not stopped: \`systemctl stop robotsd.socket robotsd.service\` does it, or the next boot" >&2
        fi
        ;;
esac
