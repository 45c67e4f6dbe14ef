#!/bin/sh
# The units call this when the agent has ended. Programs may go on below the service's cgroup, and the kernel lets no
# process into a cgroup that hands controllers on: before version 254 systemd starts the next agent in there, and fails
# with 219/CGROUP for as long as one of them lives. So the controllers are switched off, and with them the limits of
# these programs, until the next agent switches them on again. A later systemd starts the agent in a group of its own
# (DelegateSubgroup), and the limits stay in force.
set -eu
ROOT=${1:-/sys/fs/cgroup}

version=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
[ "${version:-0}" -lt 254 ] || exit 0

# What is called after the end of a service is in a group of its own.
own=$(sed -n 's/^0:://p' "${2:-/proc/self/cgroup}")
# Those below first: a controller that one of them hands on cannot be taken from it. A program may have made groups of
# its own, to any depth and with any name but one of two lines. Where the kernel refuses one, or it has gone meanwhile,
# the others are released all the same.
find "$ROOT${own%/.control}" -depth -type d | while IFS= read -r group; do
  file=$group/cgroup.subtree_control
  [ -f "$file" ] || continue
  for name in $(cat "$file" || :); do printf -- '-%s' "$name" >"$file" || :; done
done
