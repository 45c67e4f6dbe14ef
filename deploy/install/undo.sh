# Part of install.sh: what was made, so that a call that fails can undo it, and a killed one is undone by the next.

MADE='' FORMER='' UNDO='' WORK='' UNPACKED='' TARGET='' OLD='' DONE=''
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

# To the version and the settings that were there before.
back() {
  [ ! -f "$WORK/settings" ] || cat "$WORK/settings" >"$CONFIG"
  if [ "$TARGET" = "$OLD" ] || [ ! -e "$OLD/bin/windlass" ]; then return 0; fi
  if [ "$(readlink "$DIR/current")" = "$TARGET" ]; then
    warn "Going back to the version in $OLD."
    point "$OLD"
    if [ -n "$MANAGED" ] && [ -n "$START" ]; then
      write_unit "$OLD"
      control restart "$NAME" || warn "It could not be started again; \`$(status_command)\` says why."
    fi
  fi
  [ -z "$TARGET" ] || rm -rf "$TARGET"
}

# What `uninstall` has to know.
record() {
  before=$(recorded made)
  if [ -n "$NEW_USER" ]; then created=$RUN_AS; else created=$(recorded created_user); fi
  {
    printf 'mode=%s\nconfig=%s\nstate=%s\nunit=%s\nlink=%s\nrun_as=%s\ncreated_user=%s\n' \
      "$MODE" "$CONFIG" "$STATE" "$UNIT" "$LINK" "$RUN_AS" "$created"
    printf '%s%s\n' "$MADE" "$before" | sed -n 's/^./made=&/p' | awk '!seen[$0]++'
  } >"$RECORD.new"
  mv "$RECORD.new" "$RECORD"
}
