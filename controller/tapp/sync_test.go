package tapp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/loop"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestSyncTellsOfErrors: a sync is done only if all of its writes are. What failed is
// its error, and what came too late is looked at again soon.
func TestSyncTellsOfErrors(t *testing.T) {
	const statuses = "/apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/status"
	for name, c := range map[string]struct {
		fails  string // "METHOD path" of the write that fails
		code   int
		reason metav1.StatusReason
		err    string
		soon   bool
	}{
		"all is well":         {"", 0, "", "", false},
		"no pod":              {"POST " + pods, 403, metav1.StatusReasonForbidden, "cannot create instance 0: exceeded quota", false},
		"no status":           {"PATCH " + statuses, 403, metav1.StatusReasonForbidden, "writing the status: exceeded quota", false},
		"a pod that is there": {"POST " + pods, 409, metav1.StatusReasonAlreadyExists, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			tapp := wantsPods(someTApp("a"))
			s := &stub{answer: func(method, path, _ string) (int, any) {
				switch {
				case method+" "+path == c.fails:
					return apiError(c.code, c.reason, "exceeded quota")
				case strings.HasPrefix(path, pods):
					return 200, ownedBy(somePod("a-0", "u0", "50"), "TApp", "a", "uid-a")
				case strings.HasPrefix(path, revisions):
					return 201, someRevision("a-1")
				case method == http.MethodPatch:
					return 200, tapp
				}
				return 201, nil // events
			}}
			controller := s.newController(t)
			if err := controller.tapps.GetStore().Add(tapp); err != nil {
				t.Fatal(err)
			}
			result, err := controller.sync(t.Context(), keyOf("a"))
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			if soon := result.After > 0 && result.After <= time.Second; soon != c.soon {
				t.Errorf("looks again after %s", result.After)
			}
		})
	}
}

// TestPanicsOfASync: what panics beside a sync is a panic of the sync, which the loop
// contains and counts. Nothing of the sync is under way after it.
func TestPanicsOfASync(t *testing.T) {
	for name, at := range map[string]string{
		"a write":    "POST " + pods,
		"the status": "PATCH /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/status",
	} {
		t.Run(name, func(t *testing.T) {
			tapp := wantsPods(someTApp("a"))
			s := &stub{answer: func(method, path, _ string) (int, any) {
				switch {
				case method+" "+path == at:
					panic("on purpose")
				case strings.HasPrefix(path, pods):
					return 200, ownedBy(somePod("a-0", "u0", "50"), "TApp", "a", "uid-a")
				case method == http.MethodPatch:
					return 200, tapp
				}
				return 201, someRevision("a-1")
			}}
			controller := s.newController(t)
			if err := controller.tapps.GetStore().Add(tapp); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if cause := fmt.Sprint(recover()); !strings.HasPrefix(cause, "on purpose\n") {
					t.Errorf("the sync's panic is %v", cause)
				}
			}()
			_, err := controller.sync(t.Context(), keyOf("a"))
			t.Errorf("the sync ended with %v", err)
		})
	}
}

// TestPanicsOfReads: as above.
func TestPanicsOfReads(t *testing.T) {
	s := &stub{answer: func(string, string, string) (int, any) { panic("on purpose") }}
	defer func() {
		if cause := fmt.Sprint(recover()); !strings.HasPrefix(cause, "on purpose\n") {
			t.Errorf("the panic is %v", cause)
		}
	}()
	_, err := s.newController(t).readNodes(t.Context(), []string{"n1", "n2"})
	t.Errorf("the reads ended with %v", err)
}

// wantsPods gives a TApp a template that the planner accepts.
func wantsPods(t *tappv1.TApp) *tappv1.TApp {
	t.Spec.Template.Labels = map[string]string{"app": t.Name}
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: t.Spec.Template.Labels}
	t.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "demo:1"}}
	return t
}

// TestEditBeforeStatus: dropping templates is on condition of the TApp's version, which
// a status that is written beside it would change.
func TestEditBeforeStatus(t *testing.T) {
	for name, refused := range map[string]bool{"done": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			tapp := wantsPods(someTApp("a"))
			tapp.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{"blue": tapp.Spec.Template}
			tapp.Spec.AutoDeleteUnusedTemplate = true
			synctest.Test(t, func(t *testing.T) {
				const path = "/apis/apps.tkestack.io/v1/namespaces/ns/tapps/a"
				var told, edited, conflict atomic.Bool
				s := &stub{answer: func(method, at, _ string) (int, any) {
					switch {
					case at == path+"/status":
						told.Store(true)
					case at == path && refused:
						return apiError(403, metav1.StatusReasonForbidden, "not that one")
					case at == path:
						time.Sleep(time.Second) // of the bubble
						edited.Store(true)
						conflict.Store(told.Load())
					case at == revisions:
						return 201, someRevision("a-1")
					case strings.HasPrefix(at, pods):
						return 201, ownedBy(somePod("a-0", "u0", "50"), "TApp", "a", "uid-a")
					case method == http.MethodPost:
						return 201, nil // events
					}
					return 200, tapp
				}}
				controller := s.newController(t)
				if err := controller.tapps.GetStore().Add(tapp); err != nil {
					t.Fatal(err)
				}
				_, err := controller.sync(t.Context(), keyOf("a"))
				if want := "cannot drop unused templates: not that one"; refused != (err != nil) || refused && err.Error() != want {
					t.Errorf("got error %v", err)
				}
				if !told.Load() || edited.Load() == refused || conflict.Load() {
					t.Errorf("status written: %v, edited: %v, in the meantime: %v", told.Load(), edited.Load(), conflict.Load())
				}
			})
		})
	}
}

// TestBegunGoesFirst: a rollout that has begun is gone on with before the next one
// begins, and a TApp with which nothing is to be done waits for its turn.
func TestBegunGoesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		want     string
	}{
		"rollouts":      {1, "a a b b"},
		"nothing to do": {0, "a b a b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{answer: func(method, at, _ string) (int, any) {
					switch {
					case at == revisions:
						return 201, someRevision("r-1")
					case method == http.MethodPost && at == pods:
						return 201, somePod("a-0", "u0", "50")
					case method == http.MethodPost:
						return 201, nil // events
					}
					return 200, someTApp("a")
				}}
				controller := s.newController(t)
				var order []string
				var l *loop.Loop
				l = &loop.Loop{Name: "test", Workers: 1, Seed: func() []loop.Key { return nil }, Sync: func(ctx context.Context, k loop.Key) (loop.Result, error) {
					again := slices.Contains(order, k.Name)
					order = append(order, k.Name)
					result, err := controller.sync(ctx, k)
					if !again {
						l.Enqueue(k) // an event tells of what was written
					}
					time.Sleep(time.Second) // of the bubble
					return loop.Result{Progress: result.Progress}, err
				}}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { l.Run(ctx, t.Context()); close(done) }()
				synctest.Wait()
				for _, name := range []string{"a", "b"} {
					tapp := wantsPods(someTApp(name))
					tapp.Spec.Replicas = &c.replicas
					if err := controller.tapps.GetStore().Add(tapp); err != nil {
						t.Fatal(err)
					}
					l.Enqueue(keyOf(name))
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				cancel()
				<-done
				if got := strings.Join(order, " "); got != c.want {
					t.Errorf("worked on %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestReadNodes: what each node is evidence of. One that cannot be read is none, and
// an error.
func TestReadNodes(t *testing.T) {
	s := &stub{answer: func(_, path, _ string) (int, any) {
		switch {
		case strings.HasSuffix(path, "/gone"):
			return apiError(404, metav1.StatusReasonNotFound, "gone")
		case strings.HasSuffix(path, "/unknown"):
			return apiError(403, metav1.StatusReasonForbidden, "no")
		}
		n := &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}}
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}
		if strings.HasSuffix(path, "/silent") {
			ready.Status = corev1.ConditionUnknown
		}
		n.Status.Conditions = []corev1.NodeCondition{ready}
		return 200, n
	}}
	nodes, err := s.newController(t).readNodes(t.Context(), []string{"gone", "unknown", "well", "silent"})
	if err == nil || err.Error() != "cannot read a node: unknown: no" {
		t.Errorf("got error %v", err)
	}
	want := map[string]plan.NodeState{"gone": {}, "well": {Exists: true}, "silent": {Exists: true, NotReadySince: time.Unix(1, 0)}}
	if !maps.EqualFunc(nodes, want, func(a, b plan.NodeState) bool {
		return a.Exists == b.Exists && a.OutOfService == b.OutOfService && a.NotReadySince.Equal(b.NotReadySince)
	}) {
		t.Errorf("got %+v, want %+v", nodes, want)
	}
}
