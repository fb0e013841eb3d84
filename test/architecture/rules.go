// Package architecture says which room of the module may import which, and finds
// the imports that it does not allow. Tests are free to import what they need.
package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// module is the path of this module.
const module = "tkestack.io/tapp"

// room is a package and what it may import.
type room struct {
	// name is the package's path below the module. "/..." at the end stands for the
	// package and all below it, here and in may.
	name string
	// may are the packages of this module that it may import.
	may []string
	// only are the modules that it may import from; nil: all that go.mod has.
	only []string
}

var rooms = []room{
	{name: ".", may: []string{"api", "api/server", "api/page", "controller", "helm/engine", "webhook", "webhook/check", "plugin", "process", "crd/tapp/v1", "crd/app/v1"}},

	// Command lines, logs, metrics and health over HTTP: it knows none of the work.
	{name: "process"},
	{name: "process/parallel", only: []string{}},

	{name: "crd/tapp/v1", only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "crd/workload/v1beta1", only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "crd/app/v1", only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "crd/bases", only: []string{"k8s.io/apiextensions-apiserver", "sigs.k8s.io/yaml"}},
	{name: "crd/client", may: []string{"crd/tapp/v1", "crd/app/v1", "crd/workload/v1beta1"}},

	// The pure core: no client, no log, no metric, no clock.
	{name: "plan/template", may: []string{"crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery", "github.com/distribution/reference"}},
	// How long what a status says may be.
	{name: "plan/message", only: []string{}},
	{name: "plan/condition", may: []string{"plan/message"}, only: []string{"k8s.io/apimachinery"}},
	{name: "plan/inplace", may: []string{"plan/message", "plan/template", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/claim", may: []string{"plan/ids", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/ownership", may: []string{"crd/tapp/v1"}, only: []string{"k8s.io/apimachinery"}},
	// Which changes ask for another pod, although they could be made in place.
	{name: "plan/restart", may: []string{"plan/template", "crd/tapp/v1"}, only: []string{"k8s.io/api"}},
	{name: "plan/growth", may: []string{"plan/message"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	// Instance ids, and versions of templates: what each kind of TApp's reader needs.
	{name: "plan/ids", may: []string{"crd/tapp/v1"}, only: []string{}},
	{name: "plan/revision", may: []string{"plan/template", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	// Which statuses may wait, and the words for what a rollout does.
	{name: "plan/deferral", may: []string{"crd/tapp/v1"}, only: []string{"k8s.io/apimachinery"}},
	{name: "plan/effect", may: []string{"plan/ids"}, only: []string{}},
	// How a pod ended.
	{name: "plan/ending", may: []string{"plan/message"}, only: []string{"k8s.io/api"}},
	// What the planner of TApps answers in, and an answer that needs no more than the TApp.
	{name: "plan/terms", may: []string{"plan/spread", "plan/trial", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/prune", may: []string{"plan/terms", "crd/tapp/v1"}, only: []string{}},
	// What a budget of updates lets be unavailable, and what a spec gets wrong.
	{name: "plan/budget", only: []string{"k8s.io/apimachinery"}},
	{name: "plan/problem", may: []string{"plan/message"}, only: []string{}},
	// Claims that are being deleted while a pod mounts them.
	{name: "plan/termination", may: []string{"plan/ids", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	// What the API server refuses, and how it is told.
	{name: "plan/refusal", may: []string{"plan/ids", "plan/message", "crd/tapp/v1"}, only: []string{"k8s.io/apimachinery"}},
	// Why an instance is not available: one table.
	{name: "plan/unready", may: []string{"plan/ending", "plan/inplace", "plan/message"}, only: []string{"k8s.io/api"}},
	{name: "plan/evidence", only: []string{"k8s.io/apimachinery"}},
	// Which content a pod gets that is made anew.
	{name: "plan/kept", may: []string{"plan/ending", "plan/template", "crd/tapp/v1"}, only: []string{"k8s.io/api"}},
	// What may be interrupted, by what the API server says of what follows.
	{name: "plan/trial", may: []string{"plan/message", "plan/template", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	// How far instances are, in sentences.
	{name: "plan/tally", may: []string{"crd/tapp/v1"}, only: []string{}},
	// How new pods are spread over nodes and zones.
	{name: "plan/spread", may: []string{"crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/tapp", may: []string{"plan/condition", "plan/prune", "plan/terms", "plan/tally", "plan/trial", "plan/ids", "plan/spread", "plan/revision", "plan/kept", "plan/deferral", "plan/effect", "plan/ending", "plan/unready", "plan/evidence", "plan/message", "plan/budget", "plan/problem", "plan/refusal", "plan/termination", "plan/growth", "plan/restart", "plan/template", "plan/inplace", "plan/claim", "plan/ownership", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/view", may: []string{"plan/message", "plan/unready", "plan/effect", "plan/budget", "plan/refusal", "plan/ids", "plan/revision", "plan/tapp", "plan/template", "plan/inplace", "crd/tapp/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/podset", may: []string{"plan/message", "plan/rollout", "plan/template", "crd/workload/v1beta1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery", "github.com/distribution/reference"}},
	// Rollouts of units that know no kind.
	{name: "plan/rollout", may: []string{"plan/message"}, only: []string{"k8s.io/apimachinery"}},
	{name: "plan/manifest", only: []string{"k8s.io/apimachinery"}},
	{name: "plan/release", may: []string{"plan/podset", "plan/manifest", "plan/message", "crd/workload/v1beta1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery", "github.com/fluxcd/cli-utils/pkg/kstatus/status"}},
	{name: "plan/advdeployment", may: []string{"plan/condition", "plan/rollout", "plan/podset", "plan/release", "plan/manifest", "plan/message", "plan/template", "crd/workload/v1beta1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/appset", may: []string{"plan/condition", "plan/rollout", "plan/manifest", "plan/message", "plan/podset", "crd/workload/v1beta1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	// Composes the planners, to tell of a change beforehand.
	{name: "plan/foresight", may: []string{"plan/effect", "plan/ids", "plan/advdeployment", "plan/podset", "plan/rollout", "plan/tapp", "crd/tapp/v1", "crd/workload/v1beta1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "plan/app", may: []string{"plan/condition", "plan/manifest", "plan/message", "crd/app/v1"}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},

	// The kinds never import each other, nor the controller.
	{name: "controller", may: []string{"plan/spread", "controller/loop", "controller/tapp", "controller/app", "controller/advdeployment", "controller/appset", "controller/release", "controller/events", "controller/servedschema", "fleet", "fleet/kubeconfig", "helm", "helm/source", "crd/...", "process"}},
	{name: "controller/servedschema", may: []string{"crd/tapp/v1"}},
	{name: "controller/loop", may: []string{"process/parallel"}},
	// What their shells share: it knows no kind.
	{name: "controller/cache"},
	{name: "controller/write", may: []string{"process/parallel"}},
	{name: "controller/status", may: []string{"controller/write"}},
	{name: "controller/events", may: []string{"controller/write", "process/parallel"}},
	{name: "controller/tapp", may: []string{"plan/trial", "plan/refusal", "plan/termination", "plan/ids", "plan/claim", "plan/tapp", "plan/inplace", "plan/message", "plan/template", "controller/loop", "controller/cache", "controller/write", "controller/status", "controller/events", "crd/tapp/v1", "crd/client", "process/parallel"}},
	{name: "controller/revisions", may: []string{"controller/cache", "plan/podset", "crd/workload/v1beta1"}},
	{name: "controller/release", may: []string{"plan/release", "plan/podset", "plan/manifest", "crd/workload/v1beta1", "helm"}},
	{name: "controller/advdeployment", may: []string{"plan/advdeployment", "plan/manifest", "plan/podset", "plan/release", "controller/release", "controller/revisions", "controller/loop", "controller/cache", "controller/write", "controller/status", "controller/events", "crd/workload/v1beta1", "crd/client"}},
	{name: "controller/app", may: []string{"plan/app", "plan/manifest", "controller/loop", "controller/cache", "controller/write", "controller/status", "controller/events", "crd/app/v1", "crd/client"}},
	{name: "controller/appset", may: []string{"plan/appset", "plan/podset", "plan/release", "plan/template", "controller/revisions", "controller/loop", "controller/cache", "controller/write", "controller/status", "controller/events", "crd/workload/v1beta1", "crd/client", "process/parallel"}},

	// Clusters: it carries AdvDeployments, and knows no controller and no planner.
	{name: "fleet", may: []string{"fleet/...", "controller/cache", "controller/events", "crd/client", "crd/workload/v1beta1", "process/parallel"}},
	// Pure: what is made of a kubeconfig, and of what probes said.
	{name: "fleet/kubeconfig", only: []string{"k8s.io/client-go"}},
	{name: "fleet/health", only: []string{}},

	// Charts and releases: it knows no kind, and talks to no cluster. Nothing else
	// imports helm.sh.
	{name: "helm", only: []string{"helm.sh/helm/v4", "github.com/KimMachineGun/automemlimit", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/yaml"}},
	{name: "helm/source", may: []string{"helm"}, only: []string{"github.com/Masterminds/semver/v3", "github.com/opencontainers/image-spec", "oras.land/oras-go/v2", "sigs.k8s.io/yaml"}},
	{name: "helm/archive", only: []string{}},
	{name: "helm/engine", may: []string{"helm"}, only: []string{"helm.sh/helm/v4", "github.com/urfave/cli/v2"}},

	// Admission may only preview, by the planner. The kinds never import each other.
	{name: "webhook", may: []string{"webhook/...", "crd/...", "certs", "process"}},
	{name: "webhook/check", may: []string{"crd/...", "process"}},
	{name: "webhook/review"},
	{name: "webhook/rule", only: []string{"k8s.io/apimachinery"}},

	{name: "webhook/tapp", may: []string{"plan/trial", "plan/effect", "plan/budget", "plan/ids", "plan/spread", "plan/restart", "plan/tapp", "plan/view", "plan/template", "crd/tapp/v1", "crd/client", "webhook/review", "webhook/rule", "process/parallel", "plan/claim"}},
	{name: "webhook/advdeployment", may: []string{"helm/archive", "plan/message", "plan/podset", "crd/workload/v1beta1", "webhook/review", "webhook/rule"}},
	{name: "webhook/confirmation", may: []string{"crd/workload/v1beta1", "webhook/review", "webhook/rule"}},
	{name: "webhook/appset", may: []string{"helm/archive", "plan/foresight", "plan/message", "plan/podset", "crd/workload/v1beta1", "webhook/review", "webhook/rule"}},
	{name: "webhook/app", may: []string{"crd/app/v1", "crd/client", "webhook/review", "webhook/rule"}},
	// The web page: files, and the handler that serves them.
	{name: "api/page", only: []string{}},
	{name: "plugin/...", may: []string{"api", "api/access", "api/page", "api/server", "plugin/...", "crd/...", "plan/...", "fleet/kubeconfig"}},
	// The HTTP API reads, and asks about each caller. It knows no controller. What describes objects is pure,
	// what is shown of watches knows no kind, and access and answers know no more than HTTP.
	{name: "api", may: []string{"api/v1", "api/describe", "api/live", "api/access", "api/answer", "plan/...", "crd/...", "fleet/...", "process/parallel"}},
	{name: "api/v1", may: []string{"plan/view", "plan/foresight", "crd/workload/v1beta1"}, only: []string{"k8s.io/apimachinery"}},
	{name: "api/describe", may: []string{"api/v1", "api/answer", "plan/...", "crd/..."}, only: []string{"k8s.io/api", "k8s.io/apimachinery"}},
	{name: "api/live", may: []string{"api/v1", "api/answer", "process/parallel"}},
	{name: "api/access", may: []string{"api/answer", "process"}},
	{name: "api/answer"},
	{name: "api/server", may: []string{"api", "api/access", "certs", "process"}},
	// Certificates are cert-manager's business, and only this room talks to its packages.
	{name: "certs/...", may: []string{"certs/...", "process"}, only: []string{
		"github.com/cert-manager/cert-manager", "golang.org/x/sync", "github.com/urfave/cli/v2", "github.com/prometheus/client_golang",
		"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2",
	}},

	// What tests on a real cluster share.
	{name: "test/cluster", may: []string{"controller", "crd/...", "test/audit", "test/gen", "test/local"}},
	// Nothing of the product imports its tests: no other room may name test.
	{name: "test/...", may: []string{"test/...", "plan/...", "controller/...", "crd/...", "webhook/...", "certs/...", "plugin/...", "fleet/...", "api/...", "helm/...", "process"}},
}

// check judges the imports of every package: import path to the paths it imports.
func check(rooms []room, imports map[string][]string) []string {
	var wrong []string
	for importer, imported := range imports {
		r, ok := roomOf(rooms, importer)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s is in no room: say in the table what it may import", importer))
			continue
		}
		for _, path := range imported {
			if why := r.refuses(path); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", importer, path, why))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func roomOf(rooms []room, path string) (room, bool) {
	i := slices.IndexFunc(rooms, func(r room) bool { return matches(r.name, path) })
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

func (r room) refuses(path string) string {
	if inModule(path) {
		if !slices.ContainsFunc(r.may, func(name string) bool { return matches(name, path) }) {
			return fmt.Sprintf("of this module it may import %v", r.may)
		}
		return ""
	}
	standard := !strings.Contains(strings.Split(path, "/")[0], ".")
	if r.only != nil && !standard && !slices.ContainsFunc(r.only, func(m string) bool { return within(m, path) }) {
		return fmt.Sprintf("of other modules it may import %v", r.only)
	}
	return ""
}

// matches says whether the name of a room stands for the package with this path.
func matches(name, path string) bool {
	if name == "." {
		return path == module
	}
	if parent, all := strings.CutSuffix(name, "/..."); all {
		return within(module+"/"+parent, path)
	}
	return path == module+"/"+name
}

func inModule(path string) bool { return within(module, path) }

func within(parent, path string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}
