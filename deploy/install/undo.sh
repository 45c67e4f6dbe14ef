# Part of install.sh: what was made, so that a call that fails can undo it, and a killed one is undone by the next; and
# what goes when a call has done its work.

MADE='' FORMER='' UNDO='' WORK='' UNPACKED='' TARGET='' OLD='' POINTED='' DONE=''
NEW_CONFIG='' NEW_STATE='' NEW_USER=''

# A folder with those above it that are missing; each is remembered.
folder() {
  [ ! -d "$1" ] || return 0
  folder "$(dirname "$1")"
  mkdir -m "${2:-755}" "$1"
  MADE="$1
$MADE"
}

# Those of a folder and the ones above it that are missing, the innermost first.
missing() { [ -d "$1" ] || { printf '%s\n' "$1" && missing "$(dirname "$1")"; }; }

# Before something is made: a call that is killed then is undone by the next one.
note() { record "$(recorded run_as)"; }

# For the way back. What is there under this name is whole, also where no room was left.
keep_copy() {
  cat "$1" >"$WORK/$2.new" || fail "There is no room in $WORK for a copy of $1, which stays as it is."
  mv "$WORK/$2.new" "$WORK/$2"
}

finish() {
  code=$?
  trap - EXIT INT TERM HUP
  [ -z "$UNPACKED" ] || rm -rf "$UNPACKED"
  [ -n "$DONE" ] || undo
  [ -z "$WORK" ] || rm -rf "$WORK"
  exit "$code"
}

# What calls have begun to unpack that were killed.
abandoned() {
  for each in "$DIR"/versions/.unpacking-*; do
    kill -0 "${each##*/.unpacking-}" 2>/dev/null || rm -rf "$each"
  done
}

undo() {
  if [ -n "$OLD" ]; then
    back
  elif [ -n "$UNDO" ]; then
    rm -rf "$TARGET"
    abandoned
    settings_back
    [ -z "$NEW_CONFIG$(recorded new_config)" ] || rm -f "$CONFIG"
    # The answer to a registration may have been lost: the token serves once, and with this key once more.
    [ -z "$NEW_STATE$(recorded new_state)" ] || [ -s "$STATE/first-key.json" ] || [ -s "$STATE/identity.json" ] ||
      rm -rf "$STATE"
    for user in ${NEW_USER:+"$RUN_AS"} $(recorded created_user); do userdel "$user" >/dev/null 2>&1 || :; done
    FORMER=$(recorded made)
    rm -f "$RECORD"
  fi
  # Those that somebody else has put something into meanwhile stay.
  printf '%s%s\n' "$MADE" "$FORMER" | while read -r made; do rmdir "$made" 2>/dev/null || :; done
}

settings_back() { [ ! -f "$WORK/settings" ] || cat "$WORK/settings" >"$CONFIG"; }

# To the version, the settings and the user that were there before.
back() {
  wanted=$RUN_AS
  settings_back
  if [ -f "$WORK/record" ]; then
    cat "$WORK/record" >"$RECORD"
    RUN_AS=$(recorded run_as)
  fi
  if [ ! -e "$OLD/bin/windlass" ]; then return 0; fi
  [ -z "$POINTED" ] || [ "$TARGET $wanted" = "$OLD $RUN_AS" ] || return_to_old
  [ -z "$NEW_USER" ] || userdel "$wanted" >/dev/null 2>&1 || :
  # One that was there before may have programs.
  [ -z "$UNPACKED" ] || rm -rf "$TARGET"
}

point() {
  ln -s "$1" "$DIR/current.$$"
  # Onto the link, not into the folder that it points to; not every `mv` can do that at once.
  mv -fT "$DIR/current.$$" "$DIR/current" 2>/dev/null || {
    rm -f "$DIR/current" && mv "$DIR/current.$$" "$DIR/current"
  }
}

return_to_old() {
  warn "Going back to the version in $OLD${wanted:+, as user ${RUN_AS:-root}}."
  point "$OLD"
  restarts=''
  if [ -n "$MANAGED" ] && [ -n "$START" ]; then restarts=yes; fi
  if [ "$RUN_AS" != "$wanted" ]; then
    # What it writes to the end is handed over too.
    [ -z "$restarts" ] || control stop "$NAME" || :
    hand_over || :
  fi
  [ -n "$restarts" ] || return 0
  write_unit "$OLD"
  control restart "$NAME" || warn "It could not be started again; \`$(status_command)\` says why."
}

# State and settings, to the agent's user. Root goes by the settings too: no program is to change them.
hand_over() {
  chown -R "${RUN_AS:-root}": "$STATE"
  chown "root:$(id -g "${RUN_AS:-root}")" "$CONFIG"
  if [ -n "$RUN_AS" ]; then chmod 640 "$CONFIG"; else chmod 600 "$CONFIG"; rm -f "$UNIT.d/user.conf"; fi
}

# What `uninstall` has to know, and the user by whom the next call goes: the former one, until the agent is handed over.
record() {
  before=$(recorded made)
  fresh_config=${NEW_CONFIG:-$(recorded new_config)} fresh_state=${NEW_STATE:-$(recorded new_state)}
  if [ -n "$NEW_USER" ]; then created=$RUN_AS; else created=$(recorded created_user); fi
  {
    printf 'mode=%s\nconfig=%s\nstate=%s\nunit=%s\nlink=%s\nrun_as=%s\ncreated_user=%s\n' \
      "$MODE" "$CONFIG" "$STATE" "$UNIT" "$LINK" "$1" "$created"
    # Until there is an agent.
    [ -z "$UNDO" ] || printf 'new_config=%s\nnew_state=%s\n' "$fresh_config" "$fresh_state"
    {
      for each in "$DIR/versions" "$(dirname "$CONFIG")" "$(dirname "$STATE")"; do missing "$each"; done
      printf '%s%s\n' "$MADE" "$before"
    } | sed -n 's/^./made=&/p' | awk '!seen[$0]++'
  } >"$RECORD.new"
  mv "$RECORD.new" "$RECORD"
}

# Only an agent that was started by hand, and programs that were taken back, may start something from an older version.
tidy() {
  if [ -z "$MANAGED" ] && runs_by_hand; then
    say 'The agent that runs here goes on with its old version until it is started again.'
    return 0
  fi
  abandoned
  used=$(executed)
  for each in "$DIR"/versions/*; do
    case $used in *"-> $each/"* | *"-> $(readlink -f "$each")/"*) continue ;; esac
    # Of the npm package nobody can tell, whose Node is that of the machine: the last one stays until the next upgrade.
    [ "$each" = "$TARGET" ] || { [ -L "$each/bin/node" ] && is_old "$each"; } || rm -rf "$each"
  done
}

is_old() { [ -n "$OLD" ] && [ "$(readlink -f "$1")" = "$OLD" ]; }

# What processes are executed from. A command takes 80,000 names at most, and `readlink` of busybox a single one.
executed() {
  for digit in 1 2 3 4 5 6 7 8 9; do ls -l /proc/$digit*/exe 2>/dev/null || :; done | grep -F /versions/ || :
}

runs_by_hand() {
  pid=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' "$STATE/agent.lock" 2>/dev/null || :)
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null
}
