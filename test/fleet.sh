#!/usr/bin/env bash
# Runs a command on a hub and three member clusters, and takes them down afterwards,
# however the command ended:
#
#   test/fleet.sh DIR -- COMMAND...
#
# The hub is an API server alone, the members have simulated nodes. The command finds in
# its environment TAPP_FLEET, the directory with hub, member1, member2 and member3, and
# TAPP_BIN and TAPP_DEVCLUSTER.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
shift 2
members=(member1 member2 member3)
mkdir -p "$dir"

finish() {
	local code=$?
	trap - EXIT INT TERM
	if [ $code -ne 0 ]; then
		echo "It failed ($code). The logs of the clusters are in $dir/*/logs." >&2
	fi
	# Quiet when it works: the last lines to read are those of the command.
	for name in hub "${members[@]}"; do
		if ! bin/devcluster down --dir "$dir/$name" >"$dir/$name.down.log" 2>&1; then
			cat "$dir/$name.down.log" >&2
			code=1
		fi
	done
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

bin/devcluster up --dir "$dir/hub" --nodes api
for name in "${members[@]}"; do
	bin/devcluster up --dir "$dir/$name" --nodes sim --sim 3
done
export TAPP_FLEET=$dir TAPP_BIN=$PWD/bin/tapp TAPP_DEVCLUSTER=$PWD/bin/devcluster
"$@"
