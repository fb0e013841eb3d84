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
	wait # for those that still start
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

# Beside each other: most of the time they wait.
ups=()
for cluster in "${clusters[@]}"; do
	read -ra up <<<"$cluster"
	mkdir -p "$dir/${up[0]}"
	bin/devcluster up --dir "$dir/${up[0]}" "${up[@]:1}" >"$dir/${up[0]}.up.log" 2>&1 &
	ups+=("$!")
done
for i in "${!ups[@]}"; do
	name=${clusters[i]%% *}
	wait "${ups[i]}" || { cat "$dir/$name.up.log" >&2 && exit 1; }
	sed -n "s|^The cluster|$name|; s| To use it:$||; /is up after/p" "$dir/$name.up.log"
done
export TAPP_FLEET=$dir TAPP_BIN=$PWD/bin/tapp TAPP_DEVCLUSTER=$PWD/bin/devcluster
"$@"
