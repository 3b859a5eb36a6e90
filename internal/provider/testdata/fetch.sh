#!/bin/bash
# fetch.sh: downloads the Debian packages of packages.list and the sources of
# sources.list into ${RDMARADAR_CACHE:-out/cache}/debs, for the tests of this
# package. The apt lists are private: the machine's own are left alone.
# DEBIAN_MIRROR names another mirror than the machine's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${RDMARADAR_CACHE:-$root/out/cache}/debs
command -v apt-get >/dev/null || { echo "fetch.sh: no apt-get here: the tests need the packages of packages.list in $cache" >&2; exit 1; }
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT

mirror() { "$here/mirror.sh"; }

# pool TYPE SUITE ARCH: sets apt to the options for private lists of that suite.
# TYPE is deb or deb-src.
pool() {
  local dir=$private/$1-$2-$3
  apt=(-qq -o "Dir::Etc::sourcelist=$dir/list.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$dir/lists"
    -o Dir::State::status=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=
    -o "APT::Architecture=$3" -o "APT::Architectures=$3" -o Acquire::Languages=none)
  [ -e "$dir" ] && return
  mkdir -p "$dir/lists/partial"
  printf 'Types: %s\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$1" "$(mirror)" "$2" >"$dir/list.sources"
  apt-get "${apt[@]}" update
}

intact() { echo "$2  $1" | sha256sum --check --status 2>/dev/null; }

# newest SUITE ARCH PACKAGE: whatever the suite has now.
newest() {
  local file=$cache/$3_$1_$2.deb
  [ ! -e "$file" ] || return 0
  pool deb "$1" "$2" && (cd "$private" && apt-get "${apt[@]}" download "$3" </dev/null) && mv "$private/$3"_*_"$2".deb "$file"
}

# package SUITE ARCH PACKAGE VERSION SUM: a package of that content. It fails
# where the suite must have it: in bookworm, or because it lists it.
package() {
  local name=$3_$4_$2.deb
  intact "$cache/$name" "$5" && return
  pool deb "$1" "$2" || true
  (cd "$private" && apt-get "${apt[@]}" download "$3=$4" </dev/null) || true
  if intact "$private/$name" "$5"; then
    mv "$private/$name" "$cache/$name"
    return
  fi
  echo "fetch.sh: $3 $4 ($2) cannot be had from $1 of $(mirror), or has another checksum" >&2
  [ "$1" != bookworm ] && ! apt-cache "${apt[@]}" show "$3=$4" >/dev/null 2>&1
}

# source_of SUITE PACKAGE VERSION FILE SUM: the upstream source of a package. What
# cannot be had is tried again after a day.
source_of() {
  intact "$cache/$4" "$5" && return
  [ -z "$(find "$cache" -name "$4.missing" -mtime -1)" ] || return 0
  pool deb-src "$1" amd64 || true
  (cd "$private" && apt-get "${apt[@]}" source --download-only --tar-only "$2=$3" </dev/null) || true
  if intact "$private/$4" "$5"; then
    mv "$private/$4" "$cache/$4"
    return
  fi
  touch "$cache/$4.missing"
  echo "fetch.sh: $4 cannot be had from $1 of $(mirror), or has another checksum: its layouts stay unconfirmed" >&2
}

failed=0
while read -r suite arch name version sum; do
  if [ "$version" = - ]; then
    newest "$suite" "$arch" "$name" || failed=1
  else
    package "$suite" "$arch" "$name" "$version" "$sum" || failed=1
  fi
done < <(grep -v '^#' "$here/packages.list")
while read -r suite name version file sum; do
  source_of "$suite" "$name" "$version" "$file" "$sum"
done < <(grep -v '^#' "$here/sources.list")
[ $failed = 0 ] || { echo "fetch.sh: packages that the archive lists are required" >&2; exit 1; }
