#!/usr/bin/env bash
# `make test`: every check that there is, cheap ones first. It ends with the count of
# the tests that ran.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p dist
rm -f dist/count
export COUNT=$PWD/dist/count

finish() {
	local code=$? passed=0 failed=0 skipped=0
	if [ -f "$COUNT" ]; then
		read -r passed failed skipped < <(tr -c "0-9" " " <"$COUNT") || true # no newline at its end
	fi
	echo "$passed passed, $failed failed, $skipped skipped in $((SECONDS / 60)) min $((SECONDS % 60)) s"
	exit $code
}
trap finish EXIT

for step in vet lint unit chart-test devcluster-test certs-test admission-test shell-test plugin-test failover-test e2e nodes-test install-test; do
	echo "== make $step ($((SECONDS / 60)) min $((SECONDS % 60)) s)"
	make --no-print-directory "$step" || {
		echo "make $step failed" >&2
		exit 1
	}
done
