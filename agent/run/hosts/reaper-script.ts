import { DONE } from '../../isolation/end-users.ts'

/**
 * Shell script of the reaper; `reaper.ts` says what it is for. Words come line by line on its stdin. Arguments: what
 * the environment of each program has, the start of the names of our cgroups, first and last user of runs; then what
 * would be told by words otherwise: all groups, those that are kept, the end of the lease in seconds, the fence, and
 * the first processes of pid namespaces with their start times (`pid:start`); from the tenth on, where runs have users,
 * the command that kills as each of these (`killerOf`).
 *
 * `read` waits without an end: a timer of its own signals the script when the fence is due, in case the agent stands
 * still and neither speaks nor closes its pipe. The timer rings each second until it is heard, as `read` misses a
 * signal that comes just before it waits. All times are hundredths of a second since the machine's start.
 */
export const REAPER_SCRIPT = `
list=" \${5:+$5 }" kept=" \${6:+$6 }" until=\${7:-0} fence=\${8:-0} inits=" \${9:+$9 }" timer= aim=0 rang=
now() { read -r up idle < /proc/uptime && up=\${up%.*}\${up#*.}; }
stop_timer() { [ -z "$timer" ] || kill "$timer"; timer=; }
start_timer() {
  now || return 0
  left=$((fence - up))
  [ "$left" -gt 0 ] || left=1
  # The clock of a sleep stands still while the machine sleeps: it looks again.
  [ "$left" -lt 1000 ] || left=1000
  aim=$((up + left)) part=$((left % 100 + 100))
  (
    trap 'kill $nap; exit 0' TERM
    sleep "$((left / 100)).\${part#1}" & nap=$!
    wait $nap || { sleep $((left / 100 + 1)) & nap=$!; wait $nap; }
    while read -r own name state parent others < /proc/self/stat && [ "$parent" = $$ ]; do
      kill -s USR1 $$
      sleep 1 & nap=$!
      wait $nap
    done
  ) > /dev/null 2>&1 &
  timer=$!
}
ring() {
  rang=1
  stop_timer
  [ "$fence" -gt 0 ] && now || return 0
  [ "$up" -ge "$fence" ] || { start_timer; return 0; }
  fence=0
  end_all "$@"
  # Numbers of what is gone may be those of others one day.
  list=' ' kept=' ' inits=' '
}
# Number and start time: another process may have the number by now. Where processes are hidden nobody can tell.
is_replaced() {
  read -r stat < "/proc/$1/stat" || return 1
  set -- "$2" \${stat##*) }
  [ "$1" != "\${21}" ]
}
end_inits() {
  for each in $inits; do
    is_replaced "\${each%:*}" "\${each#*:}" || kill -9 "\${each%:*}"
  done 2>/dev/null
}
# Whether or not a look sees any. Where a program has killed or stopped what kills, that has come further than before.
end_users() {
  [ "$#" -gt 9 ] || return 0
  shift 9
  for try in 1 2 3 4 5 6; do
    "$@" < /dev/null > /dev/null 2>&1 & killer=$!
    (
      trap 'kill $nap; exit 0' TERM
      sleep 10 & nap=$!
      wait $nap
      # Another process may have the number by now.
      read -r own name state parent others < "/proc/$killer/stat" && [ "$parent" = $$ ] && kill -9 "$killer"
    ) > /dev/null 2>&1 & guard=$!
    wait "$killer"
    how=$?
    kill "$guard"
    [ "$how" != ${DONE} ] || break
  done 2>/dev/null
}
end_all() {
  end_inits
  for each in $list; do kill -s KILL -- "-$each" 2>/dev/null; done
  [ -z "$2" ] || for file in "$2".*/cgroup.kill; do echo 1 > "$file"; done 2>/dev/null
  [ -d /proc/self ] || return 0
  [ -z "$3" ] || for file in /proc/[0-9]*/status; do
    while read -r field real others; do
      [ "$field" = Uid: ] || continue
      if [ "$real" -ge "$3" ] && [ "$real" -le "$4" ]; then
        each=\${file#/proc/}
        kill -9 "\${each%/status}"
      fi
      break
    done < "$file"
  done 2>/dev/null
  # Who waits for a file system of FUSE is ended by no signal, and may keep the agent waiting as well.
  fuse=/sys/fs/fuse/connections
  [ -z "$3" ] || [ ! -d "$fuse" ] || {
    grep -q " $fuse " /proc/self/mountinfo || mount -t fusectl fusectl "$fuse"
    for each in "$fuse"/[0-9]*; do
      ls -dn "$each" | while read -r mode links owner others; do
        [ "$owner" -lt "$3" ] || [ "$owner" -gt "$4" ] || echo 1 > "$each/abort"
      done
    done
  } 2>/dev/null
  for round in 1 2 3; do
    # A process of another user may keep whoever reads this waiting for as long as it lives.
    files=
    for each in /proc/[0-9]*; do [ ! -O "$each" ] || files="$files $each/environ"; done
    for file in $(grep -lsa "$1" $files /dev/null); do
      each=\${file#/proc/}
      each=\${each%/environ}
      [ "$each" = $$ ] || kill -9 "$each" 2>/dev/null
    done
  done
  # The agent says of each group that nothing is left of it, nor of its user.
  [ "$list" = ' ' ] || end_users "$@"
}
trap 'ring "$@"' USR1
[ "$fence" -eq 0 ] || start_timer
while rang=; do
  # What a signal has cut off is no line.
  read -r word pid start || { [ -n "$rang" ] && continue; break; }
  # With 1 or nothing in its place, a kill would mean every process there is.
  case $pid in '' | *[!0-9]*) continue ;; esac
  [ "$word" = lease ] || [ "$word" = fence ] || [ "$pid" -gt 1 ] || continue
  case $word in
    add) list="$list$pid " ;;
    keep) kept="$kept$pid " ;;
    init) inits="$inits$pid:$start " ;;
    over) case $inits in *" $pid:$start "*) inits="\${inits%%" $pid:$start "*} \${inits#*" $pid:$start "}" ;; esac ;;
    del) case $list in *" $pid "*) list="\${list%%" $pid "*} \${list#*" $pid "}" ;; esac ;;
    drop) case $kept in *" $pid "*) kept="\${kept%%" $pid "*} \${kept#*" $pid "}" ;; esac ;;
    lease) until=$pid ;;
    fence)
      fence=$pid
      [ -z "$timer" ] || [ "$fence" -ge "$aim" ] || stop_timer
      [ -n "$timer" ] || [ "$fence" -eq 0 ] || start_timer
      ;;
  esac
done
trap '' USR1
stop_timer
end_inits
for pid in $list; do
  case $kept in *" $pid "*) ;; *) kill -s KILL -- "-$pid" 2>/dev/null ;; esac
done
while [ "$kept" != ' ' ] && read -r up idle < /proc/uptime && [ "\${up%.*}" -lt "$until" ]; do
  left=
  for pid in $kept; do kill -s 0 -- "-$pid" 2>/dev/null && left=1; done
  [ -n "$left" ] || break
  sleep 1
done
end_all "$@"
[ -z "$2" ] || rmdir "$2".* "\${2%/*}" 2>/dev/null
`
