#!/bin/sh
# After the files are gone. dpkg says "purge" when the configuration is, too: then what
# the agent kept goes as well. rpm knows no such thing, and leaves it.
set -e

if [ "$1" = purge ]; then
	for kind in lib cache; do
		rm -rf "/var/$kind/private/otelcol-rdma" "/var/$kind/otelcol-rdma"
	done
	rm -rf /etc/otelcol-rdma
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
