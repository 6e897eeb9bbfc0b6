#!/bin/sh
# Runs before the files are removed. dpkg passes `remove` or `upgrade`; rpm passes the number of versions that remain, 0 or 1. If systemd
# fails, the package is removed nevertheless.
set -e

case "${1:-}" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now robotsd.service robotsd.socket ||
                echo "robotsd: the service was not stopped: run \`systemctl stop robotsd.socket robotsd.service\`, or reboot" >&2
        fi
        ;;
esac
