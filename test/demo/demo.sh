#!/usr/bin/env bash
# `make demo`: installs TApp on a running cluster as its users do, and shows what it
# does. It may be run again.
#
#   STATE=DIR test/demo/demo.sh
#
# The cluster is the one of `make up`, with cert-manager; DIR is its state directory.
# The image is the one of `make image`.
set -Eeuo pipefail
cd "$(dirname "$0")/../.."

here=test/demo
state=${STATE:?the directory of the cluster}
space=tapp-system
export KUBECONFIG=$state/kubeconfig PATH=$state/bin:$PATH

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' yellow=$'\e[33m' red=$'\e[31m' plain=$'\e[0m'
else
	bold='' dim='' green='' yellow='' red='' plain=''
fi

doing=starting
try="look at the messages above"
step() {
	doing=$1
	printf '\n%s%s%s\n' "$bold" "$1" "$plain"
}
run() { # shows a command as a user would type it, and runs it
	printf '%s$' "$dim"
	local word
	for word in "$@"; do
		case $word in
		*[!a-zA-Z0-9_./=:-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	printf '%s\n' "$plain"
	"$@"
}
failed() {
	printf '\n%sThe demo failed at this step: %s%s\n' "$red" "$doing" "$plain" >&2
	printf 'To go on, try: %s\n' "$try" >&2
	exit 1
}
trap failed ERR

advice() { echo "KUBECONFIG=$KUBECONFIG $state/bin/kubectl describe tapp $1; ... -n $space logs deployment/tapp --all-pods"; }

# rolled_out TAPP [SECONDS] waits until all instances follow the spec and are available.
rolled_out() {
	try=$(advice "$1")
	kubectl wait tapp "$1" --for=condition=Ready --timeout="${2:-120}s" >/dev/null
}

# instances TAPP prints a line for each instance.
instances() {
	local row='%-7s %-9.8s %-13s %-6s %-11s %12v %16v'
	# shellcheck disable=SC2059
	printf "${row//v/s}\n" POD UID IP NODE IMAGE 'WEB RESTARTS' 'SIDECAR RESTARTS'
	kubectl get pods -l "app=$1" --sort-by=.metadata.name -o go-template='{{range .items}}{{$web := 0}}{{$sidecar := 0}}
{{- range .status.containerStatuses}}{{if eq .name "web"}}{{$web = .restartCount}}{{else}}{{$sidecar = .restartCount}}{{end}}{{end}}
{{- printf "'"$row"'\n" .metadata.name .metadata.uid .status.podIP .spec.nodeName (index .spec.containers 0).image $web $sidecar}}
{{- end}}'
}

# picture TAPP prints one sign per instance: old, new, or away.
picture() {
	kubectl get pods -l "app=$1" --sort-by=.metadata.name -o go-template='{{range .items}}
{{- $ready := "False"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{$ready = .status}}{{end}}{{end}}
{{- if .metadata.deletionTimestamp}}{{$ready = "False"}}{{end}}
{{- index .metadata.labels "tapp_instance_key"}} {{index .metadata.labels "tapp_template_hash_key"}} {{$ready}}
{{end}}' | awk -v n="$2" -v old="$3" -v g="$green" -v y="$yellow" -v d="$dim" -v p="$plain" '
		{ sign[$1] = $3 != "True" ? y "." p : $2 == old ? d "o" p : g "*" p; ready += $3 == "True" }
		END { for (i = 0; i < n; i++) printf "  %d %s", i, i in sign ? sign[i] : y "." p; printf "   %d of %d ready\n", ready, n }'
}

# follow TAPP COUNT OLD-HASH prints a picture whenever it changes, until TAPP is rolled out.
follow() {
	local last='' now waiting
	try=$(advice "$1")
	printf '%s  o old   * new   . away%s\n' "$dim" "$plain"
	(trap - ERR; rolled_out "$1") &
	waiting=$!
	while now=$(picture "$@"); do
		if [ "$now" != "$last" ]; then
			printf '%s\n' "$now"
			last=$now
		fi
		kill -0 $waiting 2>/dev/null || break
	done
	wait $waiting
}

# hash_of TAPP is the template hash of its first instance.
hash_of() { kubectl get pod "$1-0" -o jsonpath='{.metadata.labels.tapp_template_hash_key}'; }
# uids TAPP are those of its pods.
uids() { kubectl get pods -l "app=$1" -o jsonpath='{.items[*].metadata.uid}'; }

[ -f "$KUBECONFIG" ] || {
	echo "There is no cluster in $state: start it with make demo, or make up" >&2
	exit 1
}
[ -n "$(kubectl get nodes -l devcluster.tkestack.io/node=real -o name)" ] || {
	echo "The cluster in $state has only simulated nodes, and TApp is to run in it: start it with make demo NODES=2 (Linux, root)" >&2
	exit 1
}
kubectl get crd certificates.cert-manager.io >/dev/null 2>&1 || {
	echo "The cluster in $state has no cert-manager: start it with make demo" >&2
	exit 1
}

step "TApp comes into the cluster's registry, and is installed by Helm"
try="KUBECONFIG=$KUBECONFIG $state/bin/kubectl -n $space get events,pods,certificates"
pushed=$(bin/devcluster push --dir "$state" dist/tapp-image.tar tapp:demo)
run helm upgrade --install tapp ./chart --namespace $space --create-namespace --take-ownership --force-conflicts --set "image.repository=tapp,image.digest=sha256:${pushed##*sha256:}" |
	sed -n '1p; /^STATUS/p; /^TApp /,/certificate/p'
kubectl -n $space rollout status deployment/tapp --timeout=180s >/dev/null
run kubectl -n $space get pods,certificates
kubectl delete tapp web hundred --ignore-not-found --wait >/dev/null
kubectl wait pods -l 'app in (web, hundred)' --for=delete --timeout=60s >/dev/null

step "A bad spec is refused, with all that is wrong and what to do"
if run kubectl apply -f $here/bad.yaml 2>&1; then false; fi

step "Three instances of a web server, each with an id of its own"
run kubectl apply -f $here/web.yaml
rolled_out web
instances web

step "Scale to five"
run kubectl scale tapp web --replicas 5
rolled_out web
run kubectl get tapp web

step "What would a new image and a new environment variable do? Nothing happens yet"
run kubectl patch tapp web --dry-run=server --type json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.27"}]'
run kubectl patch tapp web --dry-run=server --type json -p '[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "COLOUR", "value": "green"}]}]'

step "A new image: each pod is changed in place, one at a time"
before=$(uids web)
instances web
old=$(hash_of web)
run kubectl patch tapp web --type json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.27"}]'
follow web 5 "$old"
instances web
doing="the pods are still the same"
[ "$before" = "$(uids web)" ]
echo "Same pods, same addresses; the web container restarted once, the sidecar did not."

step "A new environment variable: that takes new pods, again one at a time"
old=$(hash_of web)
run kubectl patch tapp web --type json -p '[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "COLOUR", "value": "green"}]}]'
follow web 5 "$old"
instances web

step "Stop instance 1: its pod goes, its id and its claims would stay"
try=$(advice web)
run kubectl patch tapp web --type merge -p '{"spec": {"statuses": {"1": "Killed"}}}'
kubectl wait pod web-1 --for=delete --timeout=60s >/dev/null
kubectl wait tapp web --for=jsonpath='{.status.statuses.1}'=Killed --timeout=60s >/dev/null
instances web
run kubectl get tapp web -o 'jsonpath={.status.statuses}{"\n"}'

step "Start it again"
run kubectl patch tapp web --type merge -p '{"spec": {"statuses": null}}'
rolled_out web
instances web

step "A hundred instances on simulated nodes, then a new image for all of them, a fifth at a time"
run kubectl apply -f $here/hundred.yaml
rolled_out hundred 300
run kubectl get tapp hundred
run kubectl patch tapp hundred --type json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.27"}]'
rolled_out hundred 300
run kubectl get tapp

trap - ERR
cat <<END

${bold}The cluster goes on running, and TApp in it. To look around:${plain}
  export KUBECONFIG=$KUBECONFIG PATH=$state/bin:\$PATH
  kubectl get tapp,pods -o wide
  kubectl explain tapp.spec.updateStrategy
  kubectl -n $space logs deployment/tapp --all-pods
  helm -n $space get notes tapp
To end everything: make down
END
