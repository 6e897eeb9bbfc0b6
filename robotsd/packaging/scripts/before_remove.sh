#!/bin/sh
# Before the files go. dpkg says `remove` or `upgrade`; rpm how many versions will be left, 0 or 1.
set -e

case "${1:-}" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now robotsd.service robotsd.socket
        fi
        ;;
esac
