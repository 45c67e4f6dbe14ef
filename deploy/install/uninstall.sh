#!/bin/sh
# Removes the Windlass agent that this file came with: service, program, settings, state, and the user that was made for it.
# It is told to stop first, and finishes what it executes.
#   windlass agent uninstall [--now] [--keep-state] [--yes]
set -eu

NAME=windlass-agent
# After this the agent has used up its ten minutes and the grace of its programs.
STOP_SECONDS=960

say() { printf '%s\n' "$@"; }
fail() {
  printf 'uninstall: %s\n' "$*" >&2
  exit 1
}

NOW='' KEEP_STATE='' YES=''
for option in "$@"; do
  case $option in
    --now) NOW=yes ;;
    --keep-state) KEEP_STATE=yes ;;
    --yes) YES=yes ;;
    --help | -h)
      say 'uninstall [--now: do not wait for runs] [--keep-state: leave identity and spool] [--yes: ask nothing]'
      exit 0
      ;;
    *) fail "$option is no option; --now, --keep-state and --yes are." ;;
  esac
done

here=$(dirname "$(readlink -f "$0")")
DIR=${here%/versions/*}
RECORD=$DIR/installed
[ -f "$RECORD" ] || fail "$RECORD is missing: this is no agent that install.sh has installed."

recorded() { sed -n "s/^$1=//p" "$RECORD"; }
MODE=$(recorded mode) CONFIG=$(recorded config) STATE=$(recorded state) UNIT=$(recorded unit) LINK=$(recorded link)
CREATED_USER=$(recorded created_user)
MADE=$(recorded made)
[ "$MODE" = user ] || [ "$(id -u)" -eq 0 ] || fail 'This agent belongs to the system: call this as root.'
RUNNER=$(sed -n 's/.*"runner": *"\([a-z0-9_]*\)".*/\1/p' "$STATE/identity.json" 2>/dev/null || :)

control() {
  if [ "$MODE" = system ]; then systemctl "$@"; else systemctl --user "$@"; fi
}

is_managed() {
  [ -f "$UNIT" ] && command -v systemctl >/dev/null 2>&1 && control show-environment >/dev/null 2>&1
}

# One that has ended and that nobody has taken note of is there in name only.
lives() { grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }

owner_of() { stat -c %u "$1" 2>/dev/null || :; }

# The process of an agent, whoever has started it. Programs of that user can write the file: only one of theirs counts.
agent_pid() {
  pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$STATE/agent.lock" 2>/dev/null || :)
  [ -n "$pid" ] && lives "$pid" && [ "$(owner_of "/proc/$pid")" = "$(owner_of "$STATE")" ] || return 0
  if grep -q windlass "/proc/$pid/cmdline" 2>/dev/null; then printf '%s' "$pid"; fi
}

ask() {
  [ -z "$YES" ] || return 0
  # Without a terminal nobody could answer.
  [ -t 0 ] || return 0
  if [ -n "$NOW" ]; then what='stops its programs at once'; else what='finishes what it executes'; fi
  printf 'The agent in %s %s and is removed%s. Go on? [y/N] ' "$DIR" "$what" "${KEEP_STATE:+, its state apart}"
  read -r answer
  case $answer in y | Y | yes) ;; *) fail 'Nothing was changed.' ;; esac
}

# Once: it finishes its runs. Twice: it asks them to stop. A third time: it kills them.
stop_agent() {
  pid=$(agent_pid)
  [ -n "$pid" ] || return 0
  say "Stopping the agent (process $pid) …"
  if [ -n "$MANAGED" ]; then control stop --no-block "$NAME"; else kill -TERM "$pid"; fi
  waited=0
  while lives "$pid"; do
    if [ -n "$NOW" ]; then
      if [ "$waited" -eq 1 ] || [ "$waited" -eq 12 ]; then kill -TERM "$pid" 2>/dev/null || :; fi
      if [ "$waited" -ge 30 ]; then kill -KILL "$pid" 2>/dev/null || :; fi
    elif [ "$waited" -ge "$STOP_SECONDS" ]; then
      fail "It still executes runs after $STOP_SECONDS s. Call this again, or with --now, which gives them up: they begin anew elsewhere."
    elif [ $((waited % 30)) -eq 5 ]; then
      say 'It finishes what it executes; --now would not wait.'
    fi
    sleep 1
    waited=$((waited + 1))
  done
}

remove_service() {
  [ -n "$MANAGED" ] || return 0
  control disable "$NAME" >/dev/null 2>&1 || :
  stop_agent
  # What a daemon that was killed may have left behind.
  control stop "$NAME" 2>/dev/null || :
  control kill --kill-who=all -s KILL "$NAME" 2>/dev/null || :
  rm -rf "$UNIT" "$UNIT.d"
  control daemon-reload || :
  control reset-failed "$NAME" 2>/dev/null || :
}

remove_files() {
  if [ "$(readlink "$LINK" 2>/dev/null || :)" = "$DIR/current/bin/windlass" ]; then rm -f "$LINK"; fi
  rm -f "$UNIT"
  [ -n "$KEEP_STATE" ] || rm -rf "$STATE"
  # By which agents of this machine keep off each other's users.
  uids=$(sed -n 's/^WINDLASS_AGENT_RUN_UIDS="*\([0-9-]*\)"*$/\1/p' "$CONFIG" 2>/dev/null || :)
  if [ -n "$uids" ]; then
    rm -rf "/run/windlass-uids/$uids"
    rmdir /run/windlass-uids 2>/dev/null || :
  fi
  rm -f "$CONFIG"
  if [ -n "$CREATED_USER" ] && [ -z "$KEEP_STATE" ]; then userdel "$CREATED_USER" || :; fi
  rm -rf "$DIR/versions" "$DIR/current"
  rm -f "$RECORD"
  rmdir "$DIR" 2>/dev/null || :
  # Those in which there is something of somebody else stay.
  printf '%s\n' "$MADE" | while read -r made; do
    if [ -n "$made" ]; then rmdir "$made" 2>/dev/null || :; fi
  done
}

ask
MANAGED=''
if is_managed; then MANAGED=yes; fi
remove_service
stop_agent
# The folder that we were called from may be one of those that go.
cd /
remove_files
say 'The agent is removed.'
[ -z "$KEEP_STATE" ] || say "Its state lies in $STATE: installed again, it is the same agent and needs no token."
if [ -n "$RUNNER" ] && [ -z "$KEEP_STATE" ]; then
  # Forced: to the coordinator it was there a moment ago.
  say "The coordinator still lists it. To forget it there: windlass runners deregister $RUNNER --force"
fi
