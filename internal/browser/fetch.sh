#!/usr/bin/env bash
# Fetches axe-core, which checks accessibility in the tests, from npm into
# out/cache. It is under the MPL-2.0 and no part of what is shipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=4.14.1
integrity=sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==
directory=out/cache/npm
archive=$directory/axe-core-$version.tgz

verified() {
	local sum
	sum=sha512-$(openssl dgst -sha512 -binary "$1" | base64 --wrap=0)
	[[ $sum == "$integrity" ]] && return
	echo "fetch: $1 is $sum, not the axe-core $version that the tests were written with, $integrity" >&2
	return 1
}

mkdir -p "$directory"
if [[ ! -f $archive ]]; then
	npm pack --silent --pack-destination "$directory" "axe-core@$version" >/dev/null
fi
verified "$archive"
tar --extract --gzip --file "$archive" --directory "$directory" package/axe.min.js
