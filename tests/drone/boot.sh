#!/bin/sh
# Run systemd as the first process of namespaces of its own; ends when it is told to exit.
#
#   boot.sh FOLDER UNIT READABLE...
#
# The root is a copy-on-write view of this machine's, without its configuration of systemd. Of
# FOLDER, units/ are the units, opt/ is /opt/influx-drone, state/ its StateDirectory, and
# pin/ is /srv/pin. READABLE are folders that may be mounts of their own.
set -eu

if [ -z "${CGROUP:-}" ]; then
    mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    CGROUP=$mounted$(sed -n 's/^0:://p' /proc/self/cgroup)/influx-drone-test.$$
    export CGROUP
    mkdir "$CGROUP"
    trap 'find "$CGROUP" -depth -type d -exec rmdir {} +' EXIT
    # Only the copy goes into the group, so that this shell can remove it.
    sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec unshare --mount --pid --fork --kill-child \
        --uts --ipc --cgroup sh "$@"' boot "$0" "$@"
    exit
fi

folder=$1 unit=$2
shift 2
mount --make-rprivate /
root=$folder/root
mkdir "$root" "$folder/layers"
mount -t tmpfs tmpfs "$folder/layers"
mkdir "$folder/layers/upper" "$folder/layers/work"
mount -t overlay -o "lowerdir=/,upperdir=$folder/layers/upper,workdir=$folder/layers/work" \
    overlay "$root"
for readable in "$@"; do
    mkdir -p "$root$readable"
    mount --rbind "$readable" "$root$readable"
done
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
touch "$root/dev/console"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/opt/influx-drone" "$root/var/lib/influx-drone" "$root/srv/pin"
mount --bind "$folder/opt" "$root/opt/influx-drone"
mount --bind "$folder/state" "$root/var/lib/influx-drone"
mount --bind "$folder/pin" "$root/srv/pin"
rm -rf "$root/etc/systemd/system"
cp -r "$folder/units" "$root/etc/systemd/system"
mount -t tmpfs tmpfs "$root/tmp"
cd "$root"
pivot_root . mnt
umount -l mnt 2>/dev/null || true
exec chroot . env -i container=test PATH=/usr/sbin:/usr/bin \
    /lib/systemd/systemd --unit="$unit" --log-target=console --log-level=notice
