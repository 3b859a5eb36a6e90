#!/bin/busybox sh
# shellcheck shell=dash
# First stage of the guest: reach the root image and the shared directories.
B=/bin/busybox
$B mount -t proc p /proc
$B mount -t sysfs s /sys
$B mount -t devtmpfs d /dev
for m in $($B cat /m/order); do $B insmod "/m/$m"; done
$B mount -t ext4 /dev/vda /new
nine=trans=virtio,version=9p2000.L,msize=512000
$B mkdir -p /new/lib/modules /new/mnt /new/lab
$B mount -t 9p -o $nine,ro,cache=loose modules /new/lib/modules
$B mount -t 9p -o $nine,cache=none share /new/mnt
$B mount -t 9p -o $nine,cache=none control /new/lab
for d in proc sys dev; do $B mount --move /$d /new/$d; done
exec $B switch_root /new /bin/bash /lab/init
