#!/bin/bash
# fetch.sh: downloads the Debian packages of packages.list into
# ${RDMARADAR_CACHE:-out/cache}/debs, for the table test of this package. The apt
# lists are private: the machine's own are left alone. DEBIAN_MIRROR names
# another mirror than the machine's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${RDMARADAR_CACHE:-$root/out/cache}/debs
command -v apt-get >/dev/null || { echo "fetch.sh: no apt-get here: the table test needs the packages of packages.list in $cache" >&2; exit 1; }
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT

mirror() {
  local found
  found=${DEBIAN_MIRROR:-$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)}
  [ -n "$found" ] || { echo "fetch.sh: no mirror in /etc/apt/sources.list.d/debian.sources: set DEBIAN_MIRROR" >&2; return 1; }
  echo "$found"
}

# pool SUITE ARCH: sets apt to the options for private lists of that suite.
pool() {
  local dir=$private/$1-$2
  apt=(-qq -o "Dir::Etc::sourcelist=$dir/list.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$dir/lists"
    -o Dir::State::status=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=
    -o "APT::Architecture=$2" -o "APT::Architectures=$2" -o Acquire::Languages=none)
  [ -e "$dir" ] && return
  mkdir -p "$dir/lists/partial"
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$(mirror)" "$1" >"$dir/list.sources"
  apt-get "${apt[@]}" update
}

intact() { echo "$2  $1" | sha256sum --check --status 2>/dev/null; }

failed=0
while read -r suite arch package version sum; do
  file=$cache/${package}_${version}_${arch}.deb
  intact "$file" "$sum" && continue
  pool "$suite" "$arch" || true
  (cd "$private" && apt-get "${apt[@]}" download "$package=$version" </dev/null) || true
  got=$private/${package}_${version}_${arch}.deb
  if [ -e "$got" ] && intact "$got" "$sum"; then
    mv "$got" "$file"
    continue
  fi
  echo "fetch.sh: $package $version ($arch) is not in $suite of $(mirror), or has another checksum" >&2
  [ "$suite" != bookworm ] || failed=1
done < <(grep -v '^#' "$here/packages.list")
[ $failed = 0 ] || { echo "fetch.sh: the packages of bookworm are required" >&2; exit 1; }
