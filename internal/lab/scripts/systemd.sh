# shellcheck shell=bash
# Second stage of a guest with systemd, which mounts the usual file systems itself
# and then runs the command of this boot as a service.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# On Debian /lib is /usr/lib, where packages have their generators; here it is not, as
# the root was only unpacked.
ln -sT /lib/systemd/system-generators /usr/lib/systemd/system-generators
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
cp /lab/lab.service /run/systemd/system/
exec /lib/systemd/systemd --unit=lab.service
