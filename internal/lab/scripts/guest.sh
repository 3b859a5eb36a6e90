# shellcheck shell=bash
# Second stage of the guest: the usual file systems, then the one command of
# this boot with the shared directory as its working directory, then power-off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux LC_ALL=C
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/pts
ln -s /proc/self/fd /dev/fd
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t configfs configfs /sys/kernel/config 2>/dev/null
ip link set lo up
hostname rdma-lab
ulimit -l unlimited
cd /mnt && setsid bash /lab/command </dev/null
echo $? >/lab/status.tmp
mv /lab/status.tmp /lab/status
sync
echo o >/proc/sysrq-trigger
sleep 20
