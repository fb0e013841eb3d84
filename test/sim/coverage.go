package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// Coverage counts how often a write site was visited, and with which fault.
type Coverage map[string]int

func (c Coverage) visit(site, fault string) {
	c[site]++
	if fault != "" {
		c[site+" | "+fault]++
	}
}

// Add counts what another run visited.
func (c Coverage) Add(other Coverage) {
	for k, n := range other {
		c[k] += n
	}
}

// site is the place of the controller that a write comes from, as far as the write
// and what it is about tell.
func site(s *apiserver.Store, r *request) string {
	what := r.Resource
	if r.IsDry() {
		return "try " + r.Verb + " " + what
	}
	if r.Sub != "" {
		what += "/" + r.Sub
	}
	why := ""
	switch what {
	case "pods":
		why = podSite(s, r)
	case "pods/status":
		why = gateSite(r.Body)
	case claims:
		if r.Verb == "patch" {
			why = claimSite(r.Body)
		}
	}
	return strings.TrimSpace(r.Verb + " " + what + " " + why)
}

func gateSite(body []byte) string {
	switch {
	case bytes.Contains(body, []byte(`"status":"False"`)):
		return "drain"
	case bytes.Contains(body, []byte(`"uid"`)):
		return "undrain"
	}
	return "open"
}

func claimSite(body []byte) string {
	switch {
	case bytes.Contains(body, []byte("ownerReferences")):
		return "owner"
	case bytes.Contains(body, []byte("storage")):
		return "size"
	case bytes.Contains(body, []byte("labels")):
		return "label"
	}
	return ""
}

func podSite(s *apiserver.Store, r *request) string {
	switch r.Verb {
	case "patch":
		return patchSite(r.Body)
	case "delete":
		o, err := apiserver.DecodeDelete(r.Body)
		if err == nil && o.GracePeriodSeconds != nil {
			return "by force"
		}
		return deleteSite(s, r.Key())
	}
	return ""
}

func patchSite(body []byte) string {
	switch {
	case bytes.Contains(body, []byte(`"$patch":"delete"`)):
		return "release"
	case bytes.Contains(body, []byte("ownerReferences")):
		return "adopt"
	case bytes.Contains(body, []byte("inplace-update-state")) && bytes.Contains(body, []byte(`"spec"`)):
		return "in place"
	}
	return "relabel"
}

// deleteSite is why a pod is deleted, as the TApp has it now.
func deleteSite(s *apiserver.Store, key string) string {
	app, id := stem(key)
	t, ok := apiserver.Find[*tappv1.TApp](s, tapps, app)
	pod, exists := apiserver.Find[*corev1.Pod](s, pods, key)
	num, known := number(id)
	switch {
	case !ok || !known:
		return "of nobody"
	case t.Spec.Replicas != nil && num >= int(*t.Spec.Replicas):
		return "scaled down"
	case t.Spec.Statuses[id] == tappv1.InstanceKilled:
		return "killed"
	case exists && isFinished(pod):
		return "ended"
	}
	return "to recreate"
}

// expected are the write sites of the paths that update, kill, scale and keep claims.
func expected() []string {
	return []string{
		"create pods", "patch pods/status open", // scale up, start, recreate
		"patch pods/status drain", "patch pods in place", "patch pods/status undrain", "delete pods to recreate", "patch pods relabel", // update
		"delete pods killed", "delete pods scaled down", "delete pods ended", // kill, scale, ends
		"create persistentvolumeclaims", "patch persistentvolumeclaims owner", "patch persistentvolumeclaims size", "delete persistentvolumeclaims", // claims
		"patch tapps/status", "create controllerrevisions", "patch controllerrevisions", "delete controllerrevisions",
		"delete pods by force", "patch pods adopt", "patch pods release", "patch pods/resize",
	}
}

// Visited says how many of the expected pairs of a write site and a crash point were
// visited, and which were not.
func (c Coverage) Visited() (visited, of int, missing []point) {
	all := points()
	for _, p := range all {
		if c[p.String()] == 0 {
			missing = append(missing, p)
		}
	}
	return len(all) - len(missing), len(all), missing
}

func (c Coverage) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%8d %s\n", c[k], k)
	}
	return b.String()
}
