#!/bin/sh
# Use every stage once, on as little as will do, so that its kernels are compiled and kept.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec >/dev/null
influx-calib simulate canon17 --cells z6f5 --images --views 4 --jobs 1 --out "$work/pictures"
influx-calib run canon17 --data "$work/pictures" --rollouts 1 --jobs 1 --out "$work/influx"
influx-calib run canon17 --cells z6f5 --recipe stock --rollouts 1 --jobs 1 --out "$work/stock"
# A cell in the middle of others, for the table to be judged by.
block=z5f4,z5f5,z5f6,z6f4,z6f5,z6f6,z7f4,z7f5,z7f6
influx-calib run canon17 --cells $block --recipe batch --jobs 1 --out "$work/batch"
