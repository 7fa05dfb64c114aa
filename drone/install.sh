#!/bin/sh
# Install the drone's server on a Raspberry Pi, and start it now and at every boot.
#
#   sudo ./install.sh [--gps /dev/ttyACM0] [--pin 17] [--active-high] [--user pi]
#                     [--prefix /opt/influx-drone]
#   ./install.sh --dry-run        show what would be done
#
# --active-high is for a relay that closes at a high level; most close at a low one.
set -eu
umask 022

gps=/dev/ttyACM0
pin=17
user=${SUDO_USER:-pi}
prefix=/opt/influx-drone
dry_run=
active_high=

stop() { echo "install.sh: $1" >&2; exit 2; }

while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes; shift; continue ;;
        --active-high) active_high=' --active-high'; shift; continue ;;
        --help|-h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
        --gps|--pin|--user|--prefix) [ $# -ge 2 ] || stop "$1 needs a value." ;;
        *) stop "there is no option $1; see --help." ;;
    esac
    case $1 in
        --gps) gps=$2 ;;
        --pin) pin=$2 ;;
        --user) user=$2 ;;
        --prefix) prefix=$2 ;;
    esac
    shift 2
done

case $pin in ''|*[!0-9]*) stop "--pin must be a number, got '$pin'." ;; esac
case $gps$user$prefix in *[!A-Za-z0-9_./:@,-]*) stop "a value has a character that does not belong there." ;; esac

here=$(cd "$(dirname "$0")" && pwd)
unit=/etc/systemd/system/influx-drone.service
filled=$(sed -e "s|@USER@|$user|; s|@BIN@|$prefix/bin|; s|@GPS@|$gps|; s|@LED@|--pin $pin$active_high|" "$here/influx-drone.service")

run() {
    echo "+ $*"
    [ -n "$dry_run" ] || "$@"
}

if [ -z "$dry_run" ]; then
    [ "$(id -u)" -eq 0 ] || stop "this writes to /etc and $prefix: run it with sudo, or with --dry-run to look."
    id "$user" >/dev/null 2>&1 || stop "there is no user $user; name one with --user."
    command -v systemctl >/dev/null || stop "there is no systemd here. Run $prefix/bin/influx-drone-server by hand."
fi

run python3 -m venv "$prefix"
run "$prefix/bin/pip" install --quiet --disable-pip-version-check "$here[pi]"
echo "+ write $unit:"
echo "$filled" | sed 's/^/    /'
[ -n "$dry_run" ] || echo "$filled" > "$unit"
run systemctl daemon-reload
run systemctl enable --now influx-drone.service
echo "See what it does with: journalctl -fu influx-drone"
