#!/usr/bin/env bash
# `make test`: every check that there is, cheap ones first. It ends with the count of
# the tests that ran.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf dist/counts dist/logs dist/failures
mkdir -p dist/counts dist/logs
export FAILURES=$PWD/dist/failures # told again at the end, where it is read

finish() {
	local code=$? passed=0 failed=0 skipped=0 p f s file
	for file in dist/counts/*; do
		[ -f "$file" ] || continue
		read -r p f s < <(tr -c "0-9" " " <"$file") || true # no newline at its end
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	done
	if [ -f "$FAILURES" ]; then
		echo "What failed:"
		cat "$FAILURES"
	fi
	echo "$passed passed, $failed failed, $skipped skipped in $((SECONDS / 60)) min $((SECONDS % 60)) s"
	exit $code
}
trap finish EXIT

run() { # STEP...
	local step log
	for step in "$@"; do
		log=dist/logs/${step//\//-}
		echo "== make $step ($((SECONDS / 60)) min $((SECONDS % 60)) s)"
		COUNT=$PWD/dist/counts/$step make --no-print-directory "$step" 2>&1 | tee "$log" || {
			{ echo "make $step failed. Its last lines:" && tail -n 5 "$log" | cut -c1-300; } >>"$FAILURES"
			return 1
		}
	done
}

# lane NAME STEP... runs steps beside those of other lanes.
lane() {
	local name=$1
	shift
	run "$@" > >(sed -u "s/^/[$name] /") 2>&1
}

run vet unit sim sim-app sim-release sim-fleet build bin/devcluster
bin/devcluster build
code=0 lanes=
# These need no cluster, and with cold caches minutes of one processor, which the others leave them: those wait for nodes and
# leaders to be given up.
{ renice -n 19 $BASHPID >/dev/null && GOMAXPROCS=1 GOFLAGS="${GOFLAGS:-} -p=1" lane 3 lint chart-test devcluster-test argocd-test; } &
lanes+=" $!"
# The seven API servers of fleets leave no processor for another lane: clusters would be lost.
lane 1 fleet-test || code=1
# Two lanes keep two processors busy. A third one ends nothing sooner, and has leaders lose their leases.
# The browser goes first: it drops its connections when real nodes come and go, as those of the others do. Install and pair make the image.
lane 1 page-test e2e install-test pair-test &
lanes+=" $!"
lane 2 shell-test failover-test certs-test app-test plugin-test api-test release-test nodes-test app-nodes-test admission-test &
lanes+=" $!"
for lane in $lanes; do
	wait "$lane" || code=1
done
exit $code
