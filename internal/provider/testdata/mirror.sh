#!/bin/bash
# mirror.sh: prints the address of the Debian archive that this machine uses, in
# whatever form apt has it: the one of bookworm, else the first. DEBIAN_MIRROR names
# another one.
set -euo pipefail
# Without the release information no "apt-get update" is needed. apt fills in the fields.
# shellcheck disable=SC2016
found=${DEBIAN_MIRROR:-$(apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
  awk '$2 != "main" || $3 !~ /\/debian\/?$/ { next }
    $1 == "bookworm" && !own { own = $3 }
    !first { first = $3 }
    END { print own ? own : first }')}
[ -n "$found" ] || { echo "mirror.sh: apt has no Debian archive (component main) here: set DEBIAN_MIRROR" >&2; exit 1; }
echo "$found"
