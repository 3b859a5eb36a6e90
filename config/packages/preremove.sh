#!/bin/sh
# Before the files go. dpkg says "remove", and "upgrade" when others come in their
# place; rpm says how many versions stay.
set -e

case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now otelcol-rdma.service
	else
		rm -f /etc/systemd/system/multi-user.target.wants/otelcol-rdma.service
	fi
	;;
esac
