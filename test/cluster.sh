#!/usr/bin/env bash
# Runs a command on a cluster of its own, and takes the cluster down afterwards,
# however the command ended:
#
#   test/cluster.sh DIR [flags of devcluster up] -- COMMAND...
#
# The command finds in its environment TAPP_KUBECONFIG, TAPP_BIN and TAPP_DEVCLUSTER.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
shift
up=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	up+=("$1")
	shift
done
shift
mkdir -p "$dir"

finish() {
	local code=$?
	trap - EXIT INT TERM
	if [ $code -ne 0 ]; then
		echo "It failed ($code). The logs of the cluster are in $dir/logs." >&2
	fi
	# Quiet when it works: the last lines to read are those of the command.
	if ! bin/devcluster down --dir "$dir" >"$dir/down.log" 2>&1; then
		cat "$dir/down.log" >&2
		code=1
	fi
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

bin/devcluster up --dir "$dir" "${up[@]}"
export TAPP_KUBECONFIG=$dir/kubeconfig TAPP_BIN=$PWD/bin/tapp TAPP_DEVCLUSTER=$PWD/bin/devcluster
"$@"
