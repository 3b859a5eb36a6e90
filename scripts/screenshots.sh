#!/usr/bin/env bash
# Takes the pictures of the documents from what the tests of the radar page left in
# out/browser, with fewer colours: they are in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

most=150000 # bytes of a picture

mkdir -p docs/images
for name in window-incident part-topology window-collector; do
	picture=docs/images/${name#*-}.png
	pngquant --force --speed 1 --strip --output "$picture" 64 "out/browser/$name.png"
	if (($(stat --format %s "$picture") > most)); then
		echo "screenshots: $picture has more than $most bytes" >&2
		exit 1
	fi
done
