#!/usr/bin/env bash
# What happens to an application of 30 instances in three clusters, of which 3 may be out of
# service, when something goes wrong. Any system that rolls out over clusters can be put
# through it, on the clusters of `make demo-fleet`:
#
#   STATE=DIR test/scenario/run.sh DRIVER [SCENARIO...]
#
# It prints a table in Markdown. The most that was unavailable at once is seen from outside,
# by the pods in all clusters, once in a second or so.
#
# DRIVER is a file of functions, which say how a system does these:
#
#   deploy VERSION MEMBER...  asks for 10 instances of the version in each of these clusters,
#                             with pods that have the label app=scenario. The version "bad"
#                             has pods that no node takes.
#   reached VERSION           succeeds once all of that is so
#   again                     has a rollout that stopped go on
#   stopped                   succeeds once the system says that the rollout stopped, or failed
#   saying                    prints what the system says of the application, in one line
#   saying_of MEMBER          prints what it says of its instances in that cluster
#   gated VERSION             asks for the version in all clusters, to wait for a human before
#                             the last of them; succeeds once it waits
#   confirm                   lets it pass, and keeps what did so
#   replay                    hands in again what confirm kept
#   forget MEMBER             takes a cluster out of the system
#   learn MEMBER              registers a cluster
#   remove                    deletes the application, and does not wait
#   restart                   restarts the system's programs on the hub
#
# and what it has to have of it all: the clusters' kubeconfigs at $state/hub/kubeconfig and
# $state/member1/kubeconfig to member3, and `on CLUSTER COMMAND...`.
set -euo pipefail
cd "$(dirname "$0")/../.."

state=${STATE:?the directory of the clusters of make demo-fleet}
driver=${1:?a file with a driver}
shift
members=(member1 member2 member3)
patience=${PATIENCE:-180} # seconds
export PATH=$state/bin:$PATH

on() { KUBECONFIG=$state/$1/kubeconfig "${@:2}"; }
# shellcheck source=/dev/null
source "$driver"

# within has a command succeed in time.
within() {
	local end=$((SECONDS + patience))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "after $patience s this is not so: $*" >&2 && return 1; }
		sleep 0.5
	done
}

# pods of the application in a cluster: their images, and whether they are ready.
pods() { on "$1" kubectl get pods --all-namespaces --selector=app=scenario --output 'jsonpath={range .items[*]}{.spec.containers[0].image} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' 2>/dev/null; }

# watching notes the fewest available instances until it is killed. Of a cluster that does
# not answer it goes on with what it saw last.
watching() {
	local fewest=30 sum c
	local -A last=()
	while :; do
		sum=0
		for c in "${members[@]}"; do
			if out=$(pods "$c"); then last[$c]=$(grep -c 'True$' <<<"$out" || true); fi
			sum=$((sum + ${last[$c]:-0}))
		done
		if [ $sum -lt $fewest ]; then fewest=$sum; fi
		echo $((30 - fewest)) >"$state/scenario.most"
		sleep 0.3
	done
}

bad() { for c in "${members[@]}"; do pods "$c"; done | grep -c ':bad ' || true; }
count() { for c in "${members[@]}"; do pods "$c"; done | wc -l; }
none() { [ "$(count)" = 0 ]; }
dead() { bin/devcluster stop --dir "$state/$1" kube-apiserver >/dev/null; }
alive() { bin/devcluster up --dir "$state/$1" >/dev/null; }

bad_image() {
	deploy bad "${members[@]}"
	within stopped
	note="stopped; $(bad) of 30 instances had the bad version"
	deploy v1 "${members[@]}"
	within reached v1
}

member_dies() {
	deploy v2 "${members[@]}"
	dead member2
	sleep 25 # by then it is to be noticed
	note="said: $(saying); of the dead member: $(saying_of member2)"
	alive member2
	within reached_again v2
	note+="; once it was back all had the new version"
}
# reached_again is reached by a rollout that goes on whenever it has stopped: as long as the
# member has not answered for a while it stops again.
reached_again() { reached "$1" || { again && false; }; }

member_joins() {
	deploy v1 member1 member2
	within reached v1
	forget member3
	deploy v2 "${members[@]}"
	within reached_known v2
	learn member3
	within reached v2
	note="it got the new version, once it was registered; said before: $known"
}
# reached_known is reached, but for the cluster that is not registered.
reached_known() { [ "$(for c in member1 member2; do pods "$c"; done | grep -c ':v2 True$')" = 20 ] && known=$(saying); }

replayed() {
	gated v3
	confirm
	within reached v3
	gated v4
	if out=$(replay 2>&1); then how=accepted; else how="refused: $(head -c 160 <<<"$out" | tr '\n|' '  ')"; fi
	sleep 5
	note="the replay was $how; afterwards: $(saying)"
	confirm
	within reached v4
}

hub_lost() {
	local store=$state/hub/data/etcd pid
	pid=$(bin/devcluster status --dir "$state/hub" | sed -n 's/.*etcd *runs, process \([0-9]*\).*/\1/p')
	kill -STOP "$pid" && cp -r "$store" "$store.backup" && kill -CONT "$pid"
	deploy v2 "${members[@]}"
	within reached v2
	for c in kube-apiserver etcd; do bin/devcluster stop --dir "$state/hub" $c >/dev/null; done
	rm -r "$store" && mv "$store.backup" "$store"
	alive hub
	restart
	sleep 20
	note="restored from before the last rollout; said: $(saying); instances on the version before: $(for c in "${members[@]}"; do pods "$c"; done | grep -c ':v1 ' || true)"
	deploy v2 "${members[@]}"
	within reached v2
}

delete_away() {
	dead member2
	sleep 25
	remove
	sleep 10
	note="while a member was away, said: $(saying)"
	alive member2
	within none
	note+="; once it was back nothing was left"
}

all=(bad_image member_dies member_joins replayed hub_lost delete_away)
[ $# -gt 0 ] || set -- "${all[@]}"
echo "| scenario | seconds | most unavailable at once | what happened |"
echo "| --- | ---: | ---: | --- |"
for scenario in "$@"; do
	note=''
	learn member3
	deploy v1 "${members[@]}"
	within reached v1
	began=$SECONDS
	watching &
	watcher=$!
	trap 'kill $watcher 2>/dev/null || true' EXIT
	sleep 2
	$scenario
	kill $watcher
	wait $watcher 2>/dev/null || true
	echo "| $scenario | $((SECONDS - began)) | $(cat "$state/scenario.most") | ${note//|/ } |"
	remove
	within none
done
