#!/usr/bin/env bash
# Compiles the kernel module siw, soft-iWARP, from Debian's packages and leaves it
# in siw.ko of the working directory, which is scratch.
#
#   siw.sh RELEASE SOURCE_DEB HEADERS_DEB...
set -euo pipefail
release=$1 source_deb=$2
shift 2

for deb in "$@"; do
	dpkg-deb -x "$deb" tree
done
headers=$PWD/tree/usr/src/linux-headers-$release
# It names the other package's place on an installed system.
sed -i "s|/usr/src/|$PWD/tree/usr/src/|" "$headers/Makefile"

# The package is an archive of one archive, compressed for itself.
version=$(basename "$source_deb")
version=${version%%_*}
dpkg-deb --fsys-tarfile "$source_deb" | tar -xO "./usr/src/$version.tar.xz" |
	xz -dc -T0 | tar -x --strip-components=4 "$version/drivers/infiniband/sw/siw"

make -s -C "$headers" M="$PWD/siw" CONFIG_RDMA_SIW=m CC=gcc modules
strip -g -o siw.ko siw/siw.ko
