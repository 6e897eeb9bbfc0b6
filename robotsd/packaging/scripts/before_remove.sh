#!/bin/sh
# Before the files go. dpkg says `remove` or `upgrade`; rpm how many versions will be left, 0 or 1. The package goes also where
# systemd does not do what it is asked.
set -e

case "${1:-}" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now robotsd.service robotsd.socket ||
                echo "robotsd: its service was not stopped: \`systemctl stop robotsd.socket robotsd.service\` does it, or the next boot" >&2
        fi
        ;;
esac
