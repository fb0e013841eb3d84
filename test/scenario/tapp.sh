# How TApp does what test/scenario/run.sh asks for. The application is an AppSet.

# manifest VERSION STRATEGY MEMBER... prints it.
manifest() {
	local version=$1 strategy=$2 member selector='{}'
	shift 2
	if [ "$version" = bad ]; then selector='{nowhere: here}'; fi
	cat <<-END
		apiVersion: workload.dmall.com/v1beta1
		kind: AppSet
		metadata: {name: scenario, namespace: default}
		spec:
		  progressDeadlineSeconds: 15
		  updateStrategy: {maxUnavailable: 3, maxConcurrentClusters: 3$strategy}
		  podSpec:
		    deployType: InPlaceSet
		    template:
		      spec: {terminationGracePeriodSeconds: 0, nodeSelector: $selector, containers: [{name: scenario, image: 'nginx:$version'}]}
		  clusterTopology:
		    clusters:
	END
	for member in "$@"; do printf '    - {name: %s, podSets: [{name: scenario-blue, replicas: 10}]}\n' "$member"; done
}

deploy() {
	local version=$1
	shift
	asked=$#
	manifest "$version" "" "$@" | on hub kubectl apply --filename - >/dev/null
}

field() { on hub kubectl get appset scenario --ignore-not-found --output "jsonpath=$1"; }
columns='{.status.aggrStatus.status} {.status.aggrStatus.desired} {.status.aggrStatus.available} {.status.aggrStatus.version}'

reached() { [ "$(field "$columns")" = "Running $((asked * 10)) $((asked * 10)) $1" ]; }
again() { on hub kubectl tapp fleet retry scenario --namespace default >/dev/null 2>&1 || true; } # it may not have stopped
stopped() { [ "$(field '{.status.aggrStatus.status}')" = Halted ]; }
saying() {
	local said
	said=$(field "{.status.aggrStatus.status}, {.status.aggrStatus.available} of {.status.aggrStatus.desired} available, {.status.conditions[?(@.status=='True')].reason}")
	echo "${said:-nothing}"
}
saying_of() { field "{.status.aggrStatus.clusters[?(@.name=='$1')].state}, as of {.status.aggrStatus.clusters[?(@.name=='$1')].asOf}"; }

gated() {
	asked=3
	manifest "$1" ", stages: [{name: first, clusters: [member1, member2], confirm: true}]" "${members[@]}" | on hub kubectl apply --filename - >/dev/null
	on hub kubectl wait --for=condition=AwaitingConfirmation appset/scenario --namespace default --timeout=120s >/dev/null
}

confirm() {
	on hub kubectl tapp fleet confirm scenario --namespace default >/dev/null
	kept=$(on hub kubectl get confirmations --namespace default --sort-by=.metadata.creationTimestamp --output 'jsonpath={.items[-1:].spec}')
}

replay() {
	printf '{"apiVersion": "workload.dmall.com/v1beta1", "kind": "Confirmation", "metadata": {"name": "scenario-%s", "namespace": "default"}, "spec": %s}' \
		"$(sed 's/.*"token":"\([0-9a-f]*\)".*/\1/' <<<"$kept")" "$kept" | on hub kubectl create --filename -
}

forget() { on hub kubectl delete secret "$1" --namespace tapp-system >/dev/null; }
learn() {
	on hub kubectl get secret "$1" --namespace tapp-system >/dev/null 2>&1 && return
	on "$1" kubectl tapp fleet join "$1" --hub-kubeconfig "$state/hub/kubeconfig" --allow-local >/dev/null
}
remove() { on hub kubectl delete appset scenario --namespace default --ignore-not-found --wait=false >/dev/null; }

restart() {
	kill "$(cat "$state/hub/tapp.pid")" 2>/dev/null || true
	setsid bin/tapp controller --kubeconfig "$state/hub/tapp.kubeconfig" --create-crd=false --metrics-address "" --leader-elect-resource-name tapp-controller \
		--leader-elect-resource-namespace tapp-system --controllers appset --cluster-namespace tapp-system --allow-local-clusters >>"$state/hub/tapp.log" 2>&1 </dev/null &
	echo $! >"$state/hub/tapp.pid"
}
