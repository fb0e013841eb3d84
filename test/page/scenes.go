//go:build cluster

package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }

func version(name, hash string, instances int) object {
	if hash == "" { // versions of an AppSet have names alone
		return object{"name": name, "instances": instances}
	}
	return object{"name": name, "hash": hash, "instances": instances}
}

func tappSummary(key, status string, desired, available int, versions []object, more object) entry {
	ns, name, _ := strings.Cut(key, "/")
	o := object{"kind": "TApp", "namespace": ns, "name": name, "state": status, "desired": desired, "available": available, "updated": available,
		"versions": versions, "maxUnavailable": max(1, desired/10), "unavailable": desired - available, "created": ago(9 * 24 * time.Hour)}
	for k, v := range more {
		o[k] = v
	}
	return entry{key, o}
}

// fleetScene is a fleet with one of everything that needs a human.
func fleetScene(f *fake) {
	v := version
	f.put("/api/v1/appsets",
		entry{"shop/checkout", object{"namespace": "shop", "name": "checkout", "state": "Waiting", "desired": 40, "available": 40, "created": ago(300 * time.Hour),
			"versions": []object{v("v8", "", 36), v("v9", "", 4)}, "maxUnavailable": 4, "unavailable": 0,
			"stages":    []object{{"name": "canary", "state": "Waiting", "podSets": 2, "done": 2}, {"name": "blue", "state": "Pending", "podSets": 3}, {"name": "rest", "state": "Pending", "podSets": 5}},
			"attention": []object{{"reason": "AwaitingConfirmation", "command": "kubectl tapp fleet confirm -n shop checkout --stage canary", "since": ago(12 * time.Minute), "message": "Stage canary is done and well for 10 minutes: 4 instances in gz1 and rz1 run v9. The next stage, blue, has 16 instances in 3 clusters; it begins when stage canary is confirmed."}}}},
		entry{"shop/search", object{"namespace": "shop", "name": "search", "state": "Stalled", "desired": 120, "available": 117, "created": ago(3000 * time.Hour),
			"versions": []object{v("2.14.0", "", 104), v("2.15.0", "", 16)}, "maxUnavailable": 6, "unavailable": 3,
			"stages":    []object{{"name": "canary", "state": "Done", "podSets": 1, "done": 1}, {"name": "blue", "state": "Halted", "podSets": 4, "done": 1, "failed": 1}, {"name": "green", "state": "Pending", "podSets": 4}},
			"attention": []object{{"reason": "RolloutHalted", "command": "kubectl tapp fleet explain -n shop search", "since": ago(47 * time.Minute), "message": "Instance 7 of podSet search-bj2-blue in cluster bj-2 made no progress for 10m0s: container search waits: CrashLoopBackOff, back-off 5m0s restarting failed container."}}}},
		entry{"pay/ledger", object{"namespace": "pay", "name": "ledger", "state": "Unknown", "desired": 18, "available": 12, "created": ago(800 * time.Hour),
			"versions": []object{v("v31", "", 12)}, "unavailable": 6, "unknown": 6, "rollout": object{"budget": 2, "charged": 6},
			"attention": []object{{"reason": "ClusterOffline", "since": ago(9 * time.Minute), "message": "Cluster sh-1 is silent: 6 instances are unknown."}}}},
	)
	f.put("/api/v1/tapps",
		tappSummary("default/web", "Ready", 12, 12, []object{v("nginx:1.27", "a1", 12)}, nil),
		tappSummary("default/worker", "Progressing", 60, 55, []object{v("v3", "w3", 22), v("v4", "w4", 38)}, nil),
		tappSummary("data/kafka", "Stalled", 9, 8, []object{v("3.9.1", "k1", 9)}, object{"states": object{"Running": 8, "Pending": 1},
			"attention": []object{{"command": "kubectl tapp explain -n data kafka 4", "since": ago(26 * time.Minute), "reason": "ProgressDeadlineExceeded", "message": "Instance 4 is Pending for 26m: 0/12 nodes are available: 12 node(s) didn't match the volume's node affinity."}}}),
		tappSummary("data/zk", "Progressing", 5, 4, []object{v("3.8", "z1", 5)}, object{"states": object{"Running": 4, "Unknown": 1},
			"attention": []object{{"reason": "NodeLost", "command": "kubectl tapp explain -n data zk 2", "since": ago(4 * time.Minute), "message": "Node worker-17 does not answer: the pod of instance 2 is not replaced before the node is known to be gone, or spec.forceDeletePod allows it."}}}),
		tappSummary("pay/gateway", "Paused", 24, 24, []object{v("v7", "g7", 20), v("v8", "g8", 4)}, object{"paused": true,
			"attention": []object{{"reason": "Paused", "command": "kubectl tapp resume -n pay gateway", "since": ago(3 * time.Hour), "message": "Updates are paused: 20 instances keep v7."}}}),
		tappSummary("pay/batch", "Ready", 200, 200, []object{v("2024-11", "b1", 200)}, nil),
	)
	f.put("/api/v1/apps",
		entry{"default/site", object{"namespace": "default", "name": "site", "state": "Ready", "desired": 3, "available": 3, "versions": []object{v("nginx:1.25", "x1", 3)}, "created": ago(50 * time.Hour)}})
	f.put("/api/v1/clusters",
		entry{"gz-1", object{"name": "gz-1", "state": "Ready", "meta": object{"sym-available-zone": "gz"}}},
		entry{"bj-2", object{"name": "bj-2", "state": "Ready", "meta": object{"sym-available-zone": "bj"}}},
		entry{"sh-1", object{"name": "sh-1", "state": "Offline", "asOf": ago(9 * time.Minute), "reason": "Unreachable", "message": "Its API server has not answered for 9m: dial tcp 10.3.0.1:6443: i/o timeout."}},
	)
	f.put("/api/v1/clusters/sh-1/advdeployments",
		entry{"sh-1/pay/ledger", partOf("pay/ledger", "v31", 6, 6)}, entry{"sh-1/shop/search", partOf("shop/search", "2.14.0", 24, 21)})
	f.sum("/api/v1/clusters/sh-1/advdeployments", object{"degraded": "1 of 1 clusters do not answer: sh-1"})
	appsetScene(f)
}

// partOf an AppSet in a cluster that is silent.
func partOf(appSet, version string, desired, available int) object {
	_, name, _ := strings.Cut(appSet, "/")
	return object{"cluster": "sh-1", "state": "Offline", "message": "its API server does not answer", "asOf": ago(9 * time.Minute), "appSet": appSet, "name": name,
		"phase": "Running", "version": version, "desired": desired, "available": available}
}

// appsetScene is the page of one of them.
func appsetScene(f *fake) {
	set := func(name, version string, desired, available int, more ...string) object {
		o := object{"name": name, "version": version, "desired": desired, "available": available}
		if len(more) > 0 {
			o["reason"], o["message"] = more[0], more[1]
		}
		return o
	}
	f.mu.Lock()
	search := object{}
	for k, v := range f.lists["/api/v1/appsets"][1].object {
		search[k] = v
	}
	f.mu.Unlock()
	search["clusterStatuses"] = []object{
		{"name": "gz-1", "state": "Ready", "desired": 48, "available": 48, "podSets": []object{set("search-canary", "2.15.0", 4, 4), set("search-gz1-blue", "2.15.0", 22, 22), set("search-gz1-green", "2.14.0", 22, 22)}},
		{"name": "bj-2", "state": "Ready", "desired": 48, "available": 45, "podSets": []object{set("search-bj2-blue", "2.14.0/2.15.0", 24, 21, "Failed", "Instance 7 made no progress for 10m0s: CrashLoopBackOff."), set("search-bj2-green", "2.14.0", 24, 24)}},
		{"name": "sh-1", "state": "Offline", "asOf": ago(9 * time.Minute), "message": "silent: as last seen", "desired": 24, "available": 24, "podSets": []object{set("search-sh1-green", "2.14.0", 24, 24, "Waits", "waits for stage blue")}},
	}
	base := "/api/v1/namespaces/shop/appsets/search"
	f.put(base, entry{"", search})
	f.put(base+"/history", entry{"2", object{"revision": 2, "created": ago(time.Hour), "update": true, "change": "image search:2.14.0 -> search:2.15.0"}},
		entry{"1", object{"revision": 1, "created": ago(3000 * time.Hour), "current": true, "change": "search runs search:2.14.0"}})
	f.put(base+"/events", entry{"1", object{"type": "Warning", "reason": "RolloutHalted", "message": "Stage blue: podSet search-bj2-blue in cluster bj-2 failed.", "last": ago(47 * time.Minute), "count": 1}},
		entry{"2", object{"type": "Normal", "reason": "StageDone", "message": "Stage canary is done.", "last": ago(2 * time.Hour), "count": 1}})
	f.sum(base+"/instances", object{"clusters": []object{{"cluster": "bj-2", "instances": 24}}})
	for i := range 24 {
		f.put(base+"/instances", entry{strconv.Itoa(i), podOf("search-bj2-blue", i)})
	}
}

// podOf a podSet. The one of instance 7 does not start.
func podOf(podSet string, i int) object {
	name := fmt.Sprintf("%s-%d", podSet, i)
	o := object{"cluster": "bj-2", "namespace": "shop", "name": name, "uid": name, "podSet": podSet, "group": "blue", "id": strconv.Itoa(i), "version": "2.14.0",
		"phase": "Running", "ready": true, "node": fmt.Sprintf("bj-node-%d", i%7), "created": ago(200 * time.Hour), "containers": []object{{"name": "search", "ready": true, "state": "running", "restarts": 0}}}
	if i < 8 {
		o["version"], o["created"] = "2.15.0", ago(50*time.Minute)
	}
	if i == 7 {
		o["ready"], o["containers"] = false, []object{{"name": "search", "ready": false, "state": "waiting, CrashLoopBackOff, back-off 5m0s restarting failed container", "restarts": 9}}
	}
	return o
}

// tappScene is the page of a TApp with so many instances, some of them in every state.
func tappScene(f *fake, ns, name string, size int, trouble bool) {
	base := "/api/v1/namespaces/" + ns + "/tapps/" + name
	more := object{"waiting": []object{{"instances": fmt.Sprintf("%d-%d", size*2/3, size-1), "count": size - size*2/3, "reason": "WaitsForBudget", "why": "the budget of 6 unavailable instances is used up by 14, 15, 31"}}}
	available := size
	instances := make([]entry, size)
	for i := range instances {
		o := instance(i, "w4")
		if i >= size*2/3 {
			o = instance(i, "w3")
			o["current"], o["reason"], o["why"] = false, "WaitsForBudget", "the budget of 6 unavailable instances is used up by 14, 15, 31"
		}
		if trouble {
			if spoil(i, o) {
				available--
			}
		}
		instances[i] = entry{strconv.Itoa(i), o}
	}
	if trouble {
		more["attention"] = []object{{"command": "kubectl tapp explain -n default worker 15", "since": ago(11 * time.Minute), "reason": "ProgressDeadlineExceeded", "message": "Instance 15 made no progress for 11m: container main waits: ErrImagePull, manifest for shop/worker:v4 not found."}}
	}
	s := tappSummary(ns+"/"+name, "Progressing", size, available, []object{version("v4", "w4", size*2/3), version("v3", "w3", size-size*2/3)}, more)
	s.key = ""
	f.put(base, s)
	f.mu.Lock()
	f.sums[base+"/instances"] = object{"versions": []object{{"hash": "w4", "images": []string{"main=shop/worker:v4"}, "instances": size * 2 / 3}, {"hash": "w3", "images": []string{"main=shop/worker:v3"}, "instances": size - size*2/3}}}
	f.mu.Unlock()
	f.put(base+"/instances", instances...)
	f.put(base+"/history", entry{"2", object{"revision": 2, "created": ago(20 * time.Minute), "update": true, "change": "spec.template.spec.containers[0].image: v3 -> v4",
		"changes": []object{{"path": "spec.template.spec.containers[0].image", "from": "shop/worker:v3", "to": "shop/worker:v4"}}}},
		entry{"1", object{"revision": 1, "created": ago(9 * 24 * time.Hour), "current": true, "change": "main runs shop/worker:v3", "command": "kubectl tapp undo " + name + " --to-revision=1 -n " + ns}})
	f.put(base+"/events", entry{"1", object{"type": "Warning", "reason": "ProgressDeadlineExceeded", "message": "Instance 15 made no progress for 10m.", "last": ago(time.Minute), "count": 3}},
		entry{"2", object{"type": "Normal", "reason": "UpdateInPlace", "message": "Updated pods of instances 0-39 in place.", "last": ago(12 * time.Minute), "count": 40}})
}

func instance(i int, hash string) object {
	id := strconv.Itoa(i)
	return object{"id": id, "template": "default", "state": "Running", "since": ago(time.Duration(i%40+1) * time.Minute), "available": true, "desired": true, "current": true,
		"version": hash, "pod": "worker-" + id, "node": fmt.Sprintf("node-%d", i%17)}
}

// spoil gives some instances another state. It says whether one is not available.
func spoil(i int, o object) bool {
	change := func(state, reason, why string) bool {
		o["state"], o["available"], o["reason"], o["why"] = state, false, reason, why
		return true
	}
	switch i % 60 {
	case 14:
		return change("Updating", "", "its image changes in place")
	case 15:
		return change("Pending", "ProgressDeadlineExceeded", "container main waits: ErrImagePull, manifest for shop/worker:v4 not found")
	case 31:
		return change("PodFailed", "BackOff", "its pod failed 3 times; the next one comes in 40s")
	case 44:
		return change("Killed", "", "")
	case 52:
		return change("Unknown", "NodeLost", "node node-1 does not answer since 4m; its pod is not replaced before the node is known to be gone")
	}
	return false
}
