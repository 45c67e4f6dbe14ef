#!/bin/sh
# Installs the Windlass agent on this machine, from the coordinator that served this script:
#   curl -fsSL @BASE@/install.sh | sh -s -- --token wlr_…
# POSIX sh; wants tar, gzip, sha256sum, and curl or wget. Nothing is fetched from anywhere else.
set -eu

BASE='@BASE@'
VERSION='@VERSION@'
NAME=windlass-agent
# So long an agent that was started may take until the coordinator has welcomed it.
ONLINE_SECONDS=60

usage() {
  cat <<USAGE
Installs the Windlass agent $VERSION from $BASE, or brings an installed one to this version.

  curl -fsSL $BASE/install.sh | sh -s -- --token wlr_…

As root it becomes a service of the system, else one of your user. Called again it repairs; the agent stays who it is.

  --token TOKEN       registration token, from \`windlass pools token <pool>\`; also as WINDLASS_AGENT_TOKEN
  --token-file FILE   the same, read from a file
  --name NAME         how the agent is listed; the name of the host when left out
  --labels LIST       labels that workflows may ask for, separated by commas
  --slots NUMBER      runs at once
  --isolation LEVEL   process or bubblewrap: the least by which runs are kept apart here
  --user NAME         as root: the agent runs as this user, who is made when missing. Without it the agent is root, and
                      each run gets a user of its own
  --dir FOLDER        where the program goes; /opt/$NAME, or ~/.local/share/$NAME
  --allow-http        plain http with a coordinator on another machine, on a network that you trust
  --ca-file FILE      certificates (PEM) by which the coordinator is known, beside those of the system
  --no-start          install the service, but do not start it
  --no-service        no service at all; how to start it by hand is printed
  --upgrade           only to this version; needs no token
  --uninstall         remove everything; with --now at once, with --keep-state all but the state
  --help              this text
USAGE
}

say() { printf '%s\n' "$@"; }
warn() { printf 'install.sh: %s\n' "$*" >&2; }
fail() { warn "$1"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# --- what was asked for ---------------------------------------------------------------------------------------------

parse() {
  TOKEN=${WINDLASS_AGENT_TOKEN-}
  unset WINDLASS_AGENT_TOKEN
  AGENT_NAME='' LABELS='' SLOTS='' ISOLATION='' RUN_AS='' DIR='' CA_FILE=''
  ALLOW_HTTP='' START=yes SERVICE=yes ACTION=install NOW='' KEEP_STATE=''
  while [ $# -gt 0 ]; do
    case $1 in
      --*=*) option=${1%%=*} value=${1#*=}; shift; set -- "$option" "$value" "$@" ;;
    esac
    case $1 in
      --token | --token-file | --name | --labels | --slots | --isolation | --user | --dir | --ca-file)
        [ $# -gt 1 ] || fail "$1 needs a value; --help lists all options."
        take "$1" "$2"
        shift
        ;;
      --allow-http) ALLOW_HTTP=yes ;;
      --no-start) START='' ;;
      --no-service) SERVICE='' ;;
      --upgrade) ACTION=upgrade ;;
      --uninstall) ACTION=uninstall ;;
      --now) NOW=--now ;;
      --keep-state) KEEP_STATE=--keep-state ;;
      --help | -h) usage; exit 0 ;;
      *) fail "$1 is no option; --help lists all." ;;
    esac
    shift
  done
}

take() {
  case $1 in
    --token) TOKEN=$2 ;;
    --token-file) [ -r "$2" ] || fail "--token-file: $2 cannot be read."; TOKEN=$(cat "$2") ;;
    --name) AGENT_NAME=$(plain "$1" "$2") ;;
    --labels) LABELS=$(plain "$1" "$2") ;;
    --slots) SLOTS=$(matching "$1" "$2" '^[1-9][0-9]\{0,3\}$' 'a number from 1 to 1024') ;;
    --isolation) ISOLATION=$(matching "$1" "$2" '^\(process\|bubblewrap\)$' 'process or bubblewrap') ;;
    --user) RUN_AS=$(matching "$1" "$2" '^[a-z_][a-z0-9_-]\{0,30\}$' 'the name of a user') ;;
    --dir) DIR=$(matching "$1" "$2" '^/[A-Za-z0-9/._+-]*[A-Za-z0-9._+-]$' 'an absolute path without spaces') ;;
    --ca-file) CA_FILE=$2 ;;
  esac
}

# Values go between double quotes into the agent's file of settings.
plain() {
  case $2 in
    '' | *[\"\\\$\`]* | *"
"*) fail "$1 must not be empty, and have no quotes, \$, \` or \\." ;;
  esac
  printf '%s' "$2"
}

matching() {
  printf '%s\n' "$2" | grep -q "$3" || fail "$1 must be $4, and is \`$2\`."
  printf '%s' "$2"
}

# --- where it goes ----------------------------------------------------------------------------------------------------

places() {
  if [ "$(id -u)" -eq 0 ]; then
    MODE=system
    DIR=${DIR:-/opt/$NAME} CONFIG=/etc/$NAME/agent.env STATE=/var/lib/$NAME
    UNIT=/etc/systemd/system/$NAME.service LINK=/usr/local/bin/windlass
  else
    MODE=user
    [ -z "$RUN_AS" ] || fail '--user is for root: call this as root, or leave it out to install for yourself.'
    FOLDER='^/[A-Za-z0-9/._+@-]*$' IS='an absolute path without spaces'
    matching HOME "${HOME:-}" "$FOLDER" "$IS" >/dev/null
    DIR=${DIR:-$HOME/.local/share/$NAME}
    CONFIG=${XDG_CONFIG_HOME:-$HOME/.config}/$NAME/agent.env STATE=${XDG_STATE_HOME:-$HOME/.local/state}/$NAME
    UNIT=$(systemctl --user show-environment 2>/dev/null | sed -n 's/^XDG_CONFIG_HOME=//p') # Its own may be another.
    UNIT=${UNIT:-$HOME/.config}/systemd/user/$NAME.service LINK=$HOME/.local/bin/windlass
    for each in "$CONFIG" "$STATE" "$UNIT"; do matching 'A folder of XDG' "$each" "$FOLDER" "$IS" >/dev/null; done
  fi
  RECORD=$DIR/installed
  [ ! -L "$DIR/current" ] || RUN_AS=${RUN_AS:-$(recorded run_as)}
}

recorded() { [ ! -f "$RECORD" ] || sed -n "s/^$1=//p" "$RECORD"; }

control() { if [ "$MODE" = system ]; then systemctl "$@"; else systemctl --user "$@"; fi; }

# Whether there is a systemd that would take the service.
manages() {
  has systemctl || return 1
  if [ "$MODE" = system ]; then [ -d /run/systemd/system ]; else control show-environment >/dev/null 2>&1; fi
}

# --- before anything is changed -----------------------------------------------------------------------------------

check() {
  [ "$(uname -s)" = Linux ] || fail "The agent runs on Linux; this is $(uname -s)."
  for tool in tar gzip sha256sum mktemp readlink sed grep awk; do
    has "$tool" || fail "\`$tool\` is missing here; install it first."
  done
  private
  has curl || has wget || fail 'Neither curl nor wget is here; install one of them.'
  [ -z "$CA_FILE" ] || { [ -r "$CA_FILE" ] && CA_FILE=$(readlink -f "$CA_FILE"); } || fail "$CA_FILE cannot be read."
  [ "$ISOLATION" != bubblewrap ] || has bwrap || fail "There is no bwrap here: install the package bubblewrap."
  if [ -L "$DIR/current" ]; then IS_INSTALLED=yes; else IS_INSTALLED=''; fi
  [ "$ACTION" != upgrade ] || [ -n "$IS_INSTALLED" ] ||
    fail "There is no agent in $DIR to be upgraded. Call this with --token, or name its folder by --dir."
  [ -n "$TOKEN" ] || [ -s "$STATE/identity.json" ] ||
    fail "A registration token is needed: --token wlr_…, from \`windlass pools token <pool>\`."
  if [ -n "$SERVICE" ] && manages; then MANAGED=yes; else MANAGED=''; fi
}

# What is fetched becomes a program here, and the agent is handed secrets: neither over a wire that others read.
private() {
  if [ -n "$ALLOW_HTTP" ] || grep -Eqs '^WINDLASS_AGENT_ALLOW_HTTP="?true"?$' "$CONFIG"; then return 0; fi
  is_private "$BASE" || fail "$BASE is the address that
the coordinator gives, and plain http to another machine: nothing was fetched. Behind a proxy with TLS set
WINDLASS_BASE_URL=https://… on the coordinator. On a network that you trust add --allow-http."
  [ "$ACTION" != upgrade ] || is_private "$(address)" || fail "WINDLASS_URL in $CONFIG is $(address), plain http
to another machine: nothing was fetched. Put its https address there, or add --allow-http on a network that you trust."
}

is_private() {
  printf '%s\n' "$1" | grep -Eq '^(https:|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]+)?(/.*)?$|$)'
}

# Of the agent that is there, which an upgrade leaves to it.
address() {
  sed -n "s/^\(export  *\)\{0,1\}WINDLASS_URL=[\"']\{0,1\}\([^\"']*\).*/\2/p" "$CONFIG" 2>/dev/null | tail -n 1
}

# What was made, and how it is undone. The coordinator puts the file in here.
# shellcheck source=undo.sh
. ./undo.sh

# --- the program -----------------------------------------------------------------------------------------------------

fetch() {
  if has curl; then
    set -- "$BASE/downloads/$1" -o "$2"
    [ -z "$CA_FILE" ] || set -- --cacert "$CA_FILE" "$@"
    # The first request after a new version waits until the archives are made.
    set -- curl -fsS --retry 3 --connect-timeout 15 --speed-limit 1 --speed-time 200 "$@"
  else
    set -- -O "$2" "$BASE/downloads/$1"
    [ -z "$CA_FILE" ] || set -- --ca-certificate="$CA_FILE" "$@"
    # Both kinds of wget give up by themselves after 15 minutes; the static busybox of Debian 12 dies of `-T`.
    set -- wget -q "$@"
  fi
  "$@" || { sleep 5 && "$@"; } # A proxy that has just started says for some seconds that there is nothing.
}

platform() {
  case $(uname -m) in
    x86_64 | amd64) printf linux-x64 ;;
    aarch64 | arm64) printf linux-arm64 ;;
    *) printf 'linux-%s' "$(uname -m)" ;;
  esac
}

# A Node of the machine that is new enough.
own_node() {
  has node && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 18) ? 0 : 1)' 2>/dev/null
}

choose() {
  fetch SHA256SUMS "$WORK/sums" || fail "$BASE/downloads/SHA256SUMS cannot be fetched."
  grep -Eq '^[0-9a-f]{64}  ' "$WORK/sums" || fail "$BASE/downloads/SHA256SUMS is not of a coordinator: of a proxy?"
  ARCHIVE=$NAME-$VERSION-$(platform).tar.gz
  grep -q "  $ARCHIVE\$" "$WORK/sums" && return
  own_node || fail "The coordinator has no agent for $(platform). Install Node 22.18 or newer here and call this again, or put
$ARCHIVE into the coordinator's folder WINDLASS_DOWNLOADS (node deploy/tools/package-agent.ts makes it on such a machine)."
  ARCHIVE=$NAME-$VERSION.tgz
}

# Fetches, checks and unpacks; TARGET is where the program will be.
obtain() {
  choose
  fetch "$ARCHIVE" "$WORK/$ARCHIVE" || fail "$BASE/downloads/$ARCHIVE cannot be fetched."
  sum=$(sed -n "s/^\([0-9a-f]*\)  $ARCHIVE\$/\1/p" "$WORK/sums")
  (cd "$WORK" && printf '%s  %s\n' "$sum" "$ARCHIVE" | sha256sum -c >/dev/null 2>&1) ||
    fail "$ARCHIVE is not what SHA256SUMS says: it was changed on the way, or cut. Nothing was installed."
  folder "$DIR/versions"
  TARGET=$DIR/versions/$VERSION-$(printf '%s' "$sum" | cut -c 1-12)
  [ ! -e "$TARGET" ] || return 0
  # Beside its place, so that it appears there whole or not at all.
  UNPACKED=$DIR/versions/.unpacking-$$
  mkdir "$UNPACKED"
  tar -xzf "$WORK/$ARCHIVE" -C "$UNPACKED" || fail "$ARCHIVE could not be unpacked in $DIR; is there room (250 MB)?"
  inside=$UNPACKED/$(ls "$UNPACKED")
  # The npm package has no Node: that of the machine is used.
  [ -e "$inside/bin/node" ] || ln -s "$(command -v node)" "$inside/bin/node"
  "$inside/bin/node" --version >/dev/null 2>&1 ||
    fail "The Node in $ARCHIVE does not start here: it wants glibc 2.28 or newer, and libstdc++. On musl (Alpine) install Node 22.18
or newer, then \`npm install -g $BASE/downloads/$NAME-$VERSION.tgz\`."
  mv "$inside" "$TARGET"
}

# --- its settings ------------------------------------------------------------------------------------------------------

settings() {
  folder "$(dirname "$CONFIG")"
  if [ ! -f "$CONFIG" ]; then
    NEW_CONFIG=yes
    note
    (umask 077 && say "# Settings of the Windlass agent, as environment variables are written; read when it starts." >"$CONFIG")
  fi
  keep_copy "$CONFIG" settings
  # What is there already is the owner's, apart from what he names now.
  if [ "$ACTION" = upgrade ]; then keep_value WINDLASS_URL "$BASE"; else set_value WINDLASS_URL "$BASE"; fi
  keep_value WINDLASS_AGENT_HOME "$STATE"
  [ -z "$AGENT_NAME" ] || set_value WINDLASS_AGENT_NAME "$AGENT_NAME"
  [ -z "$LABELS" ] || set_value WINDLASS_AGENT_LABELS "$LABELS"
  [ -z "$SLOTS" ] || set_value WINDLASS_AGENT_SLOTS "$SLOTS"
  [ -z "$ISOLATION" ] || set_value WINDLASS_AGENT_ISOLATION "$ISOLATION"
  [ -z "$CA_FILE" ] || set_value WINDLASS_AGENT_CA_FILE "$CA_FILE"
  [ -z "$ALLOW_HTTP" ] || set_value WINDLASS_AGENT_ALLOW_HTTP true
  if [ -n "$RUN_AS" ]; then
    # Only root can give a run a user of its own.
    drop_value WINDLASS_AGENT_RUN_UIDS
  elif [ "$MODE" = system ]; then
    uids=$(free_uids)
    if [ -n "$uids" ]; then keep_value WINDLASS_AGENT_RUN_UIDS "$uids"; fi
  fi
}

keep_value() { grep -q "^$1=" "$CONFIG" || printf '%s="%s"\n' "$1" "$2" >>"$CONFIG"; }

# In place: the file keeps its owner and mode.
drop_value() {
  kept=$(grep -v "^$1=" "$CONFIG" || :)
  printf '%s\n' "$kept" >"$CONFIG"
}

set_value() { drop_value "$1"; printf '%s="%s"\n' "$1" "$2" >>"$CONFIG"; }

# A thousand user ids that nobody has, one for each live process of a run. Where user ids are mapped (in a container of an ordinary
# user), they must be among those that are.
free_uids() {
  for first in 700000 1700000 2700000 50000 30000; do
    last=$((first + 999))
    awk -v a="$first" -v b="$last" '$1 <= a && $1 + $3 > b { ok = 1 } END { exit !ok }' /proc/self/uid_map || continue
    awk -F: -v a="$first" -v b="$last" '$3 >= a && $3 <= b { bad = 1 } END { exit bad }' /etc/passwd || continue
    if [ -f /etc/subuid ]; then
      awk -F: -v a="$first" -v b="$last" '$2 <= b && $2 + $3 > a { bad = 1 } END { exit bad }' /etc/subuid || continue
    fi
    printf '%s-%s' "$first" "$last"
    return
  done
}

state() {
  if [ ! -d "$STATE" ]; then
    NEW_STATE=yes
    note
    folder "$(dirname "$STATE")"
    mkdir -m 700 "$STATE"
  fi
  [ -n "$RUN_AS" ] || return 0
  if ! id "$RUN_AS" >/dev/null 2>&1; then
    has useradd || fail "There is no user $RUN_AS, and no \`useradd\` to make one."
    NEW_USER=yes
    note
    useradd --system --no-create-home --home-dir "$STATE" --shell /usr/sbin/nologin "$RUN_AS"
  fi
}

register() {
  if [ -n "$TOKEN" ]; then
    # By a pipe: what stands on a command line is seen by everybody on the machine.
    printf '%s' "$TOKEN" | WINDLASS_AGENT_CONFIG=$CONFIG "$TARGET/bin/windlass" agent register --token-stdin ||
      fail 'The agent was not registered; the reason stands above. After no answer call this again as it is.'
    TOKEN=''
  fi
}

# --- its service -------------------------------------------------------------------------------------------------------

write_unit() {
  if [ "$MODE" = system ]; then kind=service; else kind=user.service; fi
  sed -e "s|@DIR@|$DIR|g" -e "s|@CONFIG@|$CONFIG|g" -e "s|@STATE@|$STATE|g" "$1/systemd/$NAME.$kind" >"$UNIT"
  if [ -n "$RUN_AS" ]; then
    mkdir -p "$UNIT.d"
    printf '[Service]\nUser=%s\nCapabilityBoundingSet=\n' "$RUN_AS" >"$UNIT.d/user.conf"
  fi
  control daemon-reload
}

service() {
  write_unit "$TARGET"
  control enable "$NAME" >/dev/null 2>&1 || warn "The service could not be enabled: it will not start by itself after a reboot."
  [ -n "$START" ] || return 0
  [ -z "$OLD" ] || say 'The agent that runs here finishes what it executes (up to ten minutes), then the new one takes over.'
  control restart "$NAME" || fail "The service could not be started. \`$(status_command)\` says why."
  online && return
  [ -z "$OLD" ] || fail "The agent has not come online within $ONLINE_SECONDS s: \`$(status_command)\` says why."
  fail "The agent is installed and registered, but has not come online within $ONLINE_SECONDS s: \`$(status_command)\` says why.
Called again this tries anew; \`$COMMAND agent uninstall\` removes it."
}

status_command() {
  if [ "$MODE" = system ]; then printf 'journalctl -u %s' "$NAME"; else printf 'journalctl --user -u %s' "$NAME"; fi
}

# The agent writes how it is into its state; what its predecessor wrote has another process number.
online() {
  waited=0
  while [ "$waited" -lt "$ONLINE_SECONDS" ]; do
    pid=$(control show "$NAME" -p MainPID --value)
    if grep -q "\"pid\": *$pid," "$STATE/status.json" 2>/dev/null &&
      grep -q '"state": *"connected"' "$STATE/status.json"; then return 0; fi
    if control is-failed "$NAME" >/dev/null 2>&1; then return 1; fi
    sleep 1
    waited=$((waited + 1))
  done
  return 1
}

command_link() {
  COMMAND=$DIR/current/bin/windlass
  target=$(readlink "$LINK" 2>/dev/null || :)
  if [ "$target" != "$COMMAND" ]; then
    # Somebody else's command of the same name stays what it is.
    if [ -e "$LINK" ] || [ -n "$target" ]; then return 0; fi
    folder "$(dirname "$LINK")"
    ln -s "$COMMAND" "$LINK"
  fi
  case ":$PATH:" in *":$(dirname "$LINK"):"*) COMMAND=windlass ;; *) COMMAND=$LINK ;; esac
}

# --- all of it ---------------------------------------------------------------------------------------------------------

install() {
  check
  trap finish EXIT
  trap 'exit 130' INT; trap 'exit 143' TERM HUP; umask 022
  WORK=$(umask 077 && mktemp -d)
  say "Fetching the agent $VERSION from $BASE …"
  if [ -n "$IS_INSTALLED" ]; then OLD=$(readlink -f "$DIR/current"); else UNDO=yes; fi
  if [ -n "$OLD" ] && [ -f "$RECORD" ]; then keep_copy "$RECORD" record; fi
  folder "$DIR"
  note
  obtain
  settings
  state
  register
  # From here on there is an agent; what goes wrong can be mended by calling this again.
  UNDO='' POINTED=yes
  [ -z "$RUN_AS" ] || hand_over
  point "$TARGET"
  command_link
  [ -z "$MANAGED" ] || folder "$(dirname "$UNIT")"
  record "$RUN_AS"
  [ -z "$MANAGED" ] || service
  DONE=yes
  tidy
  summary
}

summary() {
  printf "\nThe Windlass agent %s is installed.\n" "$VERSION"
  cat <<SUMMARY
  program   $TARGET
  settings  $CONFIG
  state     $STATE
SUMMARY
  if [ -n "$MANAGED" ] && [ -n "$START" ]; then
    say "  service   $UNIT" '' 'It is online and takes runs.' "How it is: $COMMAND agent status"
    [ "$MODE" = system ] || linger
  elif [ -n "$MANAGED" ]; then
    say "  service   $UNIT" '' "It is not started, as was asked for: $(starting) starts it."
  else
    [ -z "$SERVICE" ] || say '' 'There is no systemd here that would start it.'
    say '' "Start it by: ${RUN_AS:+runuser -u $RUN_AS -- }$COMMAND agent start" 'It goes on until SIGTERM, by which it finishes its runs first.'
  fi
  say "Remove it by: $COMMAND agent uninstall"
}

starting() { if [ "$MODE" = system ]; then say "\`systemctl start $NAME\`"; else say "\`systemctl --user start $NAME\`"; fi; }

# A service of a user ends with his last session, unless he lingers; user@.service has two minutes for all of them.
linger() {
  say "A reboot gives it two minutes; \`sudo systemctl edit user@$(id -u)\`, [Service] TimeoutStopSec=16min, more."
  [ "$(loginctl show-user "$(id -un)" -p Linger --value 2>/dev/null || :)" != yes ] || return 0
  say "It stops when you log out. \`loginctl enable-linger $(id -un)\` lets it go on, and start with the machine."
}

uninstall() {
  [ -x "$DIR/current/uninstall.sh" ] || fail "There is no agent in $DIR; name its folder by --dir."
  # The flags are ours: empty, or a word.
  # shellcheck disable=SC2086
  exec "$DIR/current/uninstall.sh" $NOW $KEEP_STATE
}

main() {
  parse "$@"
  places
  if [ "$ACTION" = uninstall ]; then uninstall; else install; fi
}

# At the very end: of a script that was cut on its way nothing has happened yet.
main "$@"
