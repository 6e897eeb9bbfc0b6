#!/bin/sh
# After the files of a new version are there, of both kinds of package. The service is not started by a first installation: its
# config has to name the site first.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # Only a service that runs: robotsd.socket goes on listening, so no connection is refused.
    systemctl try-restart robotsd.service
fi
