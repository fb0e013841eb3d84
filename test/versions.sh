#!/usr/bin/env bash
# `make test-versions`: tests TApp on each version of Kubernetes that devcluster has a
# go.mod for, and on the usual one, with simulated nodes, and prints what passed as the
# table of docs/operations.md.
#
#	test/versions.sh STATE [VERSION...]
set -euo pipefail
cd "$(dirname "$0")/.."

state=$1
shift
own=$(sed -n 's|^\tk8s.io/kubernetes v\([0-9]*\.[0-9]*\)\..*|\1|p' devcluster/go.mod)
[ $# -gt 0 ] || set -- $(basename -s .mod devcluster/kubernetes/*.mod | sort -V) "$own"
steps="admission-test shell-test e2e-sim-test"

rm -rf dist/versions
mkdir -p dist/versions
failed=0
{
	echo "| Kubernetes |$(printf ' `make %s` |' $steps)"
	echo "|---|$(printf -- '---|%.0s' $steps)"
} >dist/versions/table.md
for version in "$@"; do
	file=devcluster/kubernetes/$version.mod other=$version
	[ "$version" != "$own" ] || file=devcluster/go.mod other=
	row="| $(sed -n 's|^\tk8s.io/kubernetes v||p' "$file") |"
	for step in $steps; do
		echo "== Kubernetes $version: make $step ($((SECONDS / 60)) min $((SECONDS % 60)) s)"
		count=$PWD/dist/versions/$version-$step
		if COUNT=$count FAILURES=$count.failures make "$step" KUBERNETES="$other" STATE="$state/versions"; then
			read -r passed _ _ < <(tr -c "0-9" " " <"$count") || true # no newline at its end
			row+=" $passed passed |"
		else
			row+=" failed |" failed=1
			tail -n 20 "$count.failures" 2>/dev/null || true
		fi
	done
	echo "$row" >>dist/versions/table.md
done
cat dist/versions/table.md
exit $failed
