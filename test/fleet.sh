#!/usr/bin/env bash
# Runs a command on several clusters, and takes them down afterwards, however the command
# ended:
#
#   test/fleet.sh DIR "NAME [flags of devcluster up]"... -- COMMAND...
#
# The command finds in its environment TAPP_FLEET, the directory that has a directory of
# each of the names, and TAPP_BIN and TAPP_DEVCLUSTER.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
shift
clusters=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	clusters+=("$1")
	shift
done
shift
mkdir -p "$dir"

finish() {
	local code=$? cluster
	trap - EXIT INT TERM
	if [ $code -ne 0 ]; then
		echo "It failed ($code). The logs of the clusters are in $dir/*/logs." >&2
	fi
	# Quiet when it works: the last lines to read are those of the command.
	for cluster in "${clusters[@]%% *}"; do
		if ! bin/devcluster down --dir "$dir/$cluster" >"$dir/$cluster.down.log" 2>&1; then
			cat "$dir/$cluster.down.log" >&2
			code=1
		fi
	done
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

for cluster in "${clusters[@]}"; do
	read -ra up <<<"$cluster"
	bin/devcluster up --dir "$dir/${up[0]}" "${up[@]:1}"
done
export TAPP_FLEET=$dir TAPP_BIN=$PWD/bin/tapp TAPP_DEVCLUSTER=$PWD/bin/devcluster
"$@"
