#!/usr/bin/env bash
# `make demo-fleet`: a hub and three member clusters on this machine, and one application
# in all of them. It may be run again, and leaves the clusters running.
#
#   STATE=DIR test/demo/fleet.sh        start, and show
#   STATE=DIR test/demo/fleet.sh down   end all four
#
# Each cluster is a directory below DIR, with its kubeconfig; DIR/bin has kubectl,
# kubectl-tapp and helm. The nodes are simulated, so that the programs run beside the
# clusters, as the accounts and with the rights that the chart gives them.
set -Eeuo pipefail
cd "$(dirname "$0")/../.."

state=${STATE:?the directory of the clusters}
here=test/demo
space=tapp-system
members=(member1 member2 member3)

# ended stops the program beside a cluster.
ended() {
	local file=$state/$1/tapp.pid
	[ -f "$file" ] || return 0
	if kill "$(cat "$file")" 2>/dev/null; then
		while kill -0 "$(cat "$file")" 2>/dev/null; do sleep 0.1; done
	fi
	rm -f "$file"
}

if [ "${1:-}" = down ]; then
	for name in hub "${members[@]}"; do
		ended "$name"
		bin/devcluster down --dir "$state/$name"
		rm -f "$state/$name/"*.kubeconfig
	done
	exit 0
fi

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'
else
	bold='' dim='' red='' plain=''
fi

doing=starting
step() {
	doing=$1
	printf '\n%s%s%s\n' "$bold" "$1" "$plain"
}
failed() {
	printf '\n%sThe demo failed at this step: %s%s\n' "$red" "$doing" "$plain" >&2
	printf 'What the programs say: %s/*/tapp.log. To begin anew: make down-fleet demo-fleet\n' "$state" >&2
	exit 1
}
trap failed ERR

# on CLUSTER COMMAND... shows a command as a user would type it, and runs it there.
on() {
	local cluster=$1
	shift
	printf '%s%s$ %s%s\n' "$dim" "$cluster" "$*" "$plain"
	KUBECONFIG=$state/$cluster/kubeconfig "$@"
}
# quiet CLUSTER COMMAND... does so without a word.
quiet() { KUBECONFIG=$state/$1/kubeconfig "${@:2}" >/dev/null; }

step "Four clusters: a hub, which is an API server alone, and three members"
for name in hub "${members[@]}"; do
	# The line that tells of one cluster's environment would mislead beside three others.
	nodes=(--nodes sim --sim 3)
	if [ "$name" = hub ]; then nodes=(--nodes api); fi
	printf '%s\n' "$name"
	bin/devcluster up --dir "$state/$name" "${nodes[@]}" | grep -v 'export KUBECONFIG\|The cluster is up'
done
mkdir -p "$state/bin"
for program in kubectl helm; do ln -sf "$(readlink -f "$state/hub/bin/$program")" "$state/bin/$program"; done
ln -sf "$PWD/bin/tapp" "$state/bin/kubectl-tapp"
export PATH=$state/bin:$PATH

# account CLUSTER NAME writes a kubeconfig of a service account of the release.
account() {
	local cluster=$1 name=$2 config=$state/$1/$2.kubeconfig server token
	server=$(KUBECONFIG=$state/$cluster/kubeconfig kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')
	token=$(KUBECONFIG=$state/$cluster/kubeconfig kubectl create token "$name" --namespace $space --duration 24h)
	KUBECONFIG=$state/$cluster/kubeconfig kubectl config view --raw --minify --output 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$config.ca"
	rm -f "$config"
	kubectl config --kubeconfig "$config" set-cluster c --server "$server" --certificate-authority "$config.ca" --embed-certs >/dev/null
	kubectl config --kubeconfig "$config" set-credentials c --token "$token" >/dev/null
	kubectl config --kubeconfig "$config" set-context c --cluster c --user c >/dev/null
	kubectl config --kubeconfig "$config" use-context c >/dev/null
	rm -f "$config.ca"
}

# program CLUSTER VALUE FLAGS... gives a cluster what the chart has with a value, and runs
# the program beside it.
program() {
	local cluster=$1 value=$2
	shift 2
	KUBECONFIG=$state/$cluster/kubeconfig kubectl create namespace $space --dry-run=client --output yaml | quiet "$cluster" kubectl apply --server-side --filename -
	helm template tapp chart --namespace $space --set "$value=true" --show-only templates/crds.yaml --show-only templates/rbac.yaml \
		--show-only templates/serviceaccount.yaml --show-only templates/userroles.yaml | quiet "$cluster" kubectl apply --server-side --filename -
	# kubectl refuses to wait for a definition that has no conditions yet.
	for _ in {1..50}; do
		quiet "$cluster" kubectl wait --for=condition=Established crd --all --timeout=60s 2>/dev/null && break
		sleep 0.2
	done
	account "$cluster" tapp
	ended "$cluster"
	setsid bin/tapp controller --kubeconfig "$state/$cluster/tapp.kubeconfig" --create-crd=false --metrics-address "" \
		--leader-elect-resource-name tapp-controller --leader-elect-resource-namespace $space "$@" >"$state/$cluster/tapp.log" 2>&1 </dev/null &
	echo $! >"$state/$cluster/tapp.pid"
}

step "TApp in each of them: the controller of AppSets on the hub, that of AdvDeployments in the members"
program hub controllers.appset.enabled --controllers appset --cluster-namespace $space --allow-local-clusters
for name in "${members[@]}"; do program "$name" controllers.advdeployment.enabled --controllers tapp,advdeployment; done
echo "they run; what they say is in $state/*/tapp.log"

step "The members join: an account with few rights there, and a Secret with its kubeconfig on the hub"
for name in "${members[@]}"; do
	on "$name" kubectl tapp fleet join "$name" --hub-kubeconfig "$state/hub/kubeconfig" --allow-local
done
on hub kubectl tapp fleet clusters

step "One application in all of them: as TApps, as StatefulSets, as Deployments"
for kind in InPlaceSet StatefulSet deployment; do
	name=bbcc-$(tr '[:upper:]' '[:lower:]' <<<"$kind")
	sed "s/NAME/$name/g; s/TYPE/$kind/" $here/appset.yaml | on hub kubectl apply --filename -
done
quiet hub kubectl wait appsets --all --for=condition=Ready --timeout=120s
on hub kubectl get as
on member2 kubectl get ad,tapp,statefulset,deployment

step "A Helm chart in all of them: each podSet is a release, which helm knows"
for name in "${members[@]}"; do
	# By whose rights charts are applied: somebody of the member says so, once for each namespace.
	KUBECONFIG=$state/$name/kubeconfig kubectl create rolebinding tapp-release --clusterrole=admin --serviceaccount=default:tapp-release \
		--dry-run=client --output yaml | quiet "$name" kubectl apply --filename -
done
charts=$(mktemp -d)
quiet hub helm create "$charts/shop"
quiet hub helm package "$charts/shop" --destination "$charts"
sed "s|ARCHIVE|$(base64 -w 0 "$charts"/shop-*.tgz)|" $here/release.yaml | on hub kubectl apply --server-side --filename -
rm -rf "$charts"
quiet hub kubectl wait as/shop --for=condition=Ready --timeout=120s
on hub kubectl get as shop
on member1 helm list
on member1 helm get values shop-blue

step "A member is cut off: it is silent, not empty and not well"
bin/devcluster stop --dir "$state/member2" kube-apiserver >/dev/null
quiet hub kubectl wait as/bbcc-inplaceset --for=condition=ClustersReachable=False --timeout=120s
on hub kubectl get as bbcc-inplaceset --output wide
on hub kubectl get as bbcc-inplaceset --output 'jsonpath={.status.conditions[?(@.type=="ClustersReachable")].message}{"\n"}'

step "It comes back"
bin/devcluster start --dir "$state/member2" kube-apiserver >/dev/null
quiet hub kubectl wait as/bbcc-inplaceset --for=condition=Ready --timeout=180s
on hub kubectl get as bbcc-inplaceset

step "An AppSet is deleted, and leaves nothing anywhere"
on hub kubectl delete as bbcc-statefulset --timeout=120s
for name in "${members[@]}"; do on "$name" kubectl get advdeployments,statefulsets,services,pods --selector app=bbcc-statefulset; done

cat <<END

The clusters stay. To look around:
  export PATH=$state/bin:\$PATH KUBECONFIG=$state/hub/kubeconfig     # or member1 to member3
  kubectl get as; kubectl describe as bbcc-inplaceset
To end them: make down-fleet
END
