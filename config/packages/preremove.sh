#!/bin/sh
# Before the files go. dpkg says "remove", and "upgrade" when others come in their
# place; rpm says how many versions stay. A systemctl that fails, as where the unit was
# deleted, says so, and keeps nobody from removing the package.
set -e

case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now otelcol-rdma.service || true
	else
		rm -f /etc/systemd/system/multi-user.target.wants/otelcol-rdma.service
	fi
	;;
esac
