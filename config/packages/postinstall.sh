#!/bin/sh
# After the files are in place. dpkg says "configure" and the version before, if there
# was one; rpm says how many versions are installed.
set -e

# Without the command, systemd makes the user at boot.
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers otelcol-rdma.conf
fi

# A changed unit is read, and its generator run. Whoever upgrades has the agent
# running; a new one has no gateway yet. systemctl fails where the service is masked, or
# systemd does not answer, and says so: no reason to leave the package half installed.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	systemctl try-restart otelcol-rdma.service || true
fi

if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
	echo "otelcol-rdma: set GATEWAY in /etc/otelcol-rdma/environment, then: systemctl enable --now otelcol-rdma"
fi
