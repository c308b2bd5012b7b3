# Sourced by scripts that test other engines: gets programs from Debian, and changes nothing of this machine's own apt.
# They set `place`, a directory, and define `fail`, which says why they cannot go on and ends them.

# open_debian RELEASE: fetches its list of packages.
open_debian() {
  [ "$(id -u)" = 0 ] || fail "only root can start an engine"
  [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || fail "it needs Debian or Ubuntu on amd64"
  mkdir -p "$place"/apt/{lists,cache}/partial "$place"/apt/cache/archives/partial
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main" >"$place/apt/list"
  apt_options=(-o "Dir::Etc::sourcelist=$place/apt/list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$place/apt/lists"
    -o "Dir::Cache=$place/apt/cache" -o APT::Sandbox::User=root -o Acquire::http::Timeout=20 -o Acquire::Retries=1)
  apt_get update
}

apt_get() {
  timeout 300 apt-get "${apt_options[@]}" -q "$@" >"$place/apt.log" 2>&1 || fail "Debian's packages: $(tail -1 "$place/apt.log")"
}

# unpack_packages DIRECTORY NAME…: only these. Their programs use the libraries of this machine.
unpack_packages() {
  pushd "$place/apt" >/dev/null || fail "$place cannot be used"
  apt_get download "${@:2}"
  popd >/dev/null || fail "this directory cannot be used"
  unpack "$1" "$place"/apt/*.deb
}

# unpack_system DIRECTORY NAME…: these with all that they need, down to the C library.
unpack_system() {
  apt_get -o Dir::State::status=/dev/null -y --no-install-recommends --download-only install "${@:2}"
  unpack "$1" "$place"/apt/cache/archives/*.deb
}

# In contrast to dpkg -x, this keeps the links that lead from /bin and /lib to /usr.
unpack() {
  mkdir -p "$1"
  local package
  for package in "${@:2}"; do
    dpkg --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$1" || fail "$package cannot be unpacked"
  done
}

# wait_for_engine PROCESS COMMAND…: until the command succeeds, the process ends, or half a minute has passed.
wait_for_engine() {
  local _
  for _ in $(seq 150); do
    "${@:2}" >/dev/null 2>&1 && return
    kill -0 "$1" 2>/dev/null || break
    sleep 0.2
  done
  return 1
}
