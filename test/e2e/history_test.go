//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/gen"
)

// revisions of a TApp, oldest first.
func revisions(ctx context.Context, ns, name string) ([]appsv1.ControllerRevision, error) {
	list, err := suite.Kube.AppsV1().ControllerRevisions(ns).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + name})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items, nil
}

// historyIs waits until the TApp has these revisions by number, and runs the last.
func historyIs(t *testing.T, ns, name string, numbers ...int64) []appsv1.ControllerRevision {
	t.Helper()
	settled(t, ns, name)
	var list []appsv1.ControllerRevision
	eventually(t, fmt.Sprintf("the revisions are %v", numbers), func(ctx context.Context) error {
		var err error
		if list, err = revisions(ctx, ns, name); err != nil {
			return err
		}
		var has []int64
		for _, r := range list {
			has = append(has, r.Revision)
		}
		if !slices.Equal(has, numbers) {
			return fmt.Errorf("they are %v", has)
		}
		return nil
	})
	newest := list[len(list)-1].Name
	tappWhere(t, ns, name, "runs revision "+newest, func(tapp *tappv1.TApp) string {
		if s := tapp.Status; s.CurrentRevision != newest || s.UpdateRevision != newest {
			return "current revision " + s.CurrentRevision + ", update revision " + s.UpdateRevision
		}
		return ""
	})
	return list
}

// Every version of the templates is recorded once, and only so many are kept. What
// does not concern the templates makes no revision. Going back to an old version
// ends on its very hash (S6), and takes its revision along.
func TestHistory(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", func(tapp *tappv1.TApp) { tapp.Spec.RevisionHistoryLimit = new(int32(2)) }))
	first := historyIs(t, ns, "app", 1)[0]
	was := pods(t, ns)["app-0"].Labels[tappv1.LabelTemplateHash]
	version, err := revision.Read(&first)
	if err != nil {
		t.Fatal(err)
	}

	scaled := func(tapp *tappv1.TApp) { tapp.Spec.Replicas = new(int32(4)) }
	change(t, ns, "app", scaled)
	historyIs(t, ns, "app", 1)

	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	list := historyIs(t, ns, "app", 1, 2)
	if list[0].UID != first.UID {
		t.Error("the first revision was made anew")
	}
	during := pods(t, ns)

	change(t, ns, "app", func(tapp *tappv1.TApp) { tapp.Spec.Template = version.Template })
	list = historyIs(t, ns, "app", 2, 3)
	if list[1].UID != first.UID {
		t.Error("the version that came back is not recorded by its first revision")
	}
	after := pods(t, ns)
	if hash := after["app-0"].Labels[tappv1.LabelTemplateHash]; hash != was {
		t.Errorf("it was rolled back to hash %s, not %s", hash, was)
	}
	if after["app-0"].UID != during["app-0"].UID {
		t.Error("an image was rolled back by a new pod")
	}

	for n, image := range []string{"demo:v2", "demo:v3"} {
		change(t, ns, "app", gen.Default(gen.Image(image)), func(tapp *tappv1.TApp) {
			tapp.Spec.Template.Annotations = map[string]string{"round": fmt.Sprint(n)}
		})
		settled(t, ns, "app")
	}
	historyIs(t, ns, "app", 3, 4, 5) // two old ones, and the current
}

// A template that nobody names is dropped where no webhook did it. That is the one
// write of the controller to a spec of its user, and it is a patch: nothing that it
// does not know of is written back without it (fault 16).
func TestAutoDeleteUnusedTemplate(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", func(tapp *tappv1.TApp) {
		tapp.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{"blue": tapp.Spec.Template, "green": tapp.Spec.Template}
		tapp.Spec.Templates = map[string]string{"1": "blue"}
	}))
	settled(t, ns, "app")
	before := pods(t, ns)
	log := follow(t)
	change(t, ns, "app", func(tapp *tappv1.TApp) { tapp.Spec.AutoDeleteUnusedTemplate = true })
	tappWhere(t, ns, "app", "the unused template has gone", func(tapp *tappv1.TApp) string {
		if _, kept := tapp.Spec.TemplatePool["blue"]; !kept || len(tapp.Spec.TemplatePool) != 1 {
			return fmt.Sprintf("%d templates, blue kept: %t", len(tapp.Spec.TemplatePool), kept)
		}
		return ""
	})
	settled(t, ns, "app")
	for name, pod := range pods(t, ns) {
		if pod.UID != before[name].UID {
			t.Errorf("pod %s was made anew", name)
		}
	}
	specs := audit.Select(ourRequests(t, log, ns), audit.Filter{Verbs: []string{"create", "update", "patch", "delete"}, Resource: "tapps"})
	if len(specs) != 1 || specs[0].Verb != "patch" {
		t.Errorf("the controller wrote spec by %v, want one patch", specs)
	}
	hasEvent(t, ns, "app", corev1.EventTypeNormal, "SuccessfulPrune", "spec.autoDeleteUnusedTemplate is true, and nothing names green")
}
