#!/bin/sh
# After the files are gone. dpkg says "purge" when the configuration is, too: then what
# the agent kept and its user go as well. rpm knows no such thing, and leaves them.
set -e

if [ "$1" = purge ]; then
	rm -rf /etc/otelcol-rdma /var/lib/otelcol-rdma /var/cache/otelcol-rdma
	if command -v userdel >/dev/null && grep -q ^otelcol-rdma: /etc/passwd; then
		userdel otelcol-rdma || true # It says why, such as that a process still runs.
	fi
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
