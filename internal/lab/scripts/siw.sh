#!/usr/bin/env bash
# Compiles the kernel module siw, soft-iWARP, from Debian's packages, in a root that
# has a compiler and the headers of the kernel, and leaves it there in build/siw.ko.
# To be run in mount and PID namespaces of its own.
#
#   siw.sh RELEASE SOURCE_DEB ROOT
set -euo pipefail
release=$1 source_deb=$2 root=$3

# The package is an archive of one archive, compressed for itself.
version=$(basename "$source_deb")
version=${version%%_*}
mkdir "$root/build"
dpkg-deb --fsys-tarfile "$source_deb" | tar -xO "./usr/src/$version.tar.xz" |
	xz -dc -T0 | tar -x -C "$root/build" --strip-components=4 "$version/drivers/infiniband/sw/siw"

mount -t proc proc "$root/proc"
chroot "$root" /bin/bash -euc "
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin
	make -s -C /usr/src/linux-headers-$release M=/build/siw CONFIG_RDMA_SIW=m modules
	strip -g -o /build/siw.ko /build/siw/siw.ko"
