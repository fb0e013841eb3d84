package ownership

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tool is a program that declares fields, as its users know it.
type tool struct {
	// next is when it writes what it declares, and in what one changes that.
	next, in string
}

// toolOf a manager. known says that it writes its fields again: what people
// did by hand once does not come back.
func toolOf(manager string, applies bool) (t tool, known bool) {
	switch manager {
	case "helm":
		return tool{"the next helm upgrade", "the chart or its values"}, true
	case "helm-controller":
		return tool{"the next upgrade by Flux", "the HelmRelease"}, true
	case "kustomize-controller":
		return tool{"the next reconciliation by Flux", "its source"}, true
	case "argocd-controller":
		return tool{"the next sync by Argo CD", "its source"}, true
	case "kubectl-client-side-apply":
		return tool{"the next kubectl apply", "the manifest"}, true
	case "kubectl":
		return tool{"the next kubectl apply", "the manifest"}, applies
	}
	if applies {
		return tool{"its next apply", "what it applies"}, true
	}
	return tool{}, false
}

// Notes say before a write who sets its fields back, and how to keep them.
func (t *Taken) Notes() (out []string) {
	for _, o := range t.Owners {
		tool, known := toolOf(o.Manager, o.Applies)
		if !known || len(o.Fields) == 0 {
			continue
		}
		it := "it"
		if len(o.Fields) > 1 {
			it = "them"
		}
		out = append(out, fmt.Sprintf("Note: %s owns %s; %s sets %s back. To keep %s, change %s as well.", o.Manager, some(o.Fields), tool.next, it, it, tool.in))
	}
	return out
}

// some of the fields by name, and the number of the others.
func some(fields []string) string {
	const most = 3
	if len(fields) > most {
		return fmt.Sprintf("%s and %d more fields", strings.Join(fields[:most], ", "), len(fields)-most)
	}
	return strings.Join(fields, ", ")
}

// NoteOfFlux says that Flux takes what the writer adds: it makes the fields of all
// managers its own whose names begin with kubectl, and removes what its source lacks.
func NoteOfFlux(before Entries, writer string) string {
	const flux = "kustomize-controller"
	applied := slices.ContainsFunc(before, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == flux && e.Operation == metav1.ManagedFieldsOperationApply
	})
	if !applied || !strings.HasPrefix(writer, "kubectl") {
		return ""
	}
	return fmt.Sprintf("Note: Flux removes what managers write whose names begin with kubectl, as %s does, and its source lacks. To keep it, change its source as well, or repeat this with --field-manager=by-hand.", writer)
}
