#!/usr/bin/env bash
# Stops the controller that demo.sh left running for the cluster in this directory.
set -euo pipefail
file=$1/demo/controller.pid
[ -f "$file" ] || exit 0
pid=$(cat "$file")
# The number may belong to another program by now.
case $(ps -o command= -p "$pid" 2>/dev/null || true) in
*"controller --kubeconfig $1/kubeconfig"*)
	kill "$pid"
	for _ in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	;;
esac
rm -f "$file"
