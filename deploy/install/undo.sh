# Part of install.sh: what was made, so that a call that fails can undo it, and a killed one is undone by the next.

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

undo() {
  if [ -n "$OLD" ]; then
    back
  elif [ -n "$UNDO" ]; then
    rm -rf "$TARGET"
    [ -z "$NEW_CONFIG" ] || rm -f "$CONFIG"
    # The answer to a registration may have been lost: the token serves once, and with this key once more.
    [ -z "$NEW_STATE" ] || [ -s "$STATE/first-key.json" ] || rm -rf "$STATE"
    for user in ${NEW_USER:+"$RUN_AS"} $(recorded created_user); do userdel "$user" >/dev/null 2>&1 || :; done
    FORMER=$(recorded made)
    rm -f "$RECORD"
  fi
  # Those that somebody else has put something into meanwhile stay.
  printf '%s%s\n' "$MADE" "$FORMER" | while read -r made; do rmdir "$made" 2>/dev/null || :; done
}

# To the version, the settings and the user that were there before.
back() {
  wanted=$RUN_AS
  [ ! -f "$WORK/settings" ] || cat "$WORK/settings" >"$CONFIG"
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
  if [ -n "$NEW_USER" ]; then created=$RUN_AS; else created=$(recorded created_user); fi
  {
    printf 'mode=%s\nconfig=%s\nstate=%s\nunit=%s\nlink=%s\nrun_as=%s\ncreated_user=%s\n' \
      "$MODE" "$CONFIG" "$STATE" "$UNIT" "$LINK" "$1" "$created"
    printf '%s%s\n' "$MADE" "$before" | sed -n 's/^./made=&/p' | awk '!seen[$0]++'
  } >"$RECORD.new"
  mv "$RECORD.new" "$RECORD"
}
