package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/plan/manifest"
)

func controlledBy(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "other", Controller: &yes}}
}

// TestForeign: what belongs to somebody else is not touched, the condition says
// whose it is, and the event is told once; the other child is there all the same.
func TestForeign(t *testing.T) {
	const exists = `Resource "web" already exists and is not managed by App`
	for name, f := range map[string]struct {
		change func(*appsv1.Deployment)
		whose  string
	}{
		"nobody's":           {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, "nobody controls it"},
		"a user's, labelled": {func(d *appsv1.Deployment) { d.OwnerReferences, d.Annotations = nil, nil }, "nobody controls it"},
		"nobody's, other pods": {func(d *appsv1.Deployment) {
			d.OwnerReferences, d.Spec.Selector.MatchLabels = nil, map[string]string{"a": "b"}
		}, "nobody controls it"},
		"another controller's": {func(d *appsv1.Deployment) { d.OwnerReferences = controlledBy("Other", "x") }, `Other "x" controls it`},
		"another App's": {func(d *appsv1.Deployment) { d.OwnerReferences = controlledBy("App", "x") },
			`App "x" controls it; if that App waits for a name that this one has, give one of them a third name first`},
		"an earlier App's": {func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "earlier" }, `App "web" controls it`},
		"only owned by us": {func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }, "nobody controls it"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(spec())
			c.settle(t)
			c.app.Status = appv1.AppStatus{}
			d := c.deployments["web"]
			if name == "nobody's" || name == "only owned by us" {
				d.Labels = nil // with it, it would be an orphan
			}
			f.change(d)
			delete(c.services, "web-svc")

			p := c.step()
			if got := actions(p); !slices.Equal(got, []string{`Create Service "web-svc"`}) {
				t.Errorf("got %q", got)
			}
			if want := []Event{{corev1.EventTypeWarning, appv1.ReasonResourceExists, exists}}; !slices.Equal(p.Events, want) {
				t.Errorf("got the events %v, want %v", p.Events, want)
			}
			message := fmt.Sprintf("%s: there is a Deployment of this name, and %s", exists, f.whose)
			want := []string{
				"Ready=False ErrResourceExists: " + message,
				"Reconciling=False ErrResourceExists: nothing is on its way",
				"Stalled=True ErrResourceExists: " + message,
			}
			if got := conditions(p.Status); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if p.Status.DeploymentStatus != nil || p.Status.Ready != "0/2" || p.Moving {
				t.Errorf("it tells of what is not its own: %+v", p.Status)
			}
			c.apply(t, p)
			if p = c.step(); len(p.Events) > 0 || len(p.Actions) > 0 {
				t.Errorf("the next plan has %v, %v", p.Events, actions(p))
			}

			delete(c.deployments, "web") // the name is free
			if got := c.settle(t); !slices.Equal(got, []string{`Create Deployment "web"`}) {
				t.Errorf("when the name is free: %q", got)
			}
			c.isRight(t)
		})
	}
}

// TestWait: a name that is taken is looked at again, less often with time.
func TestWait(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	c.deployments["web"].OwnerReferences = controlledBy("Other", "x")
	for _, s := range []struct{ later, want time.Duration }{
		{0, time.Second}, {time.Second, time.Second}, {3 * time.Second, 3 * time.Second}, {time.Hour, 5 * time.Second},
	} {
		c.now = now.Add(s.later)
		if p := c.step(); p.Wait != s.want {
			t.Errorf("after %v it waits %v, want %v", s.later, p.Wait, s.want)
		}
	}
	delete(c.deployments, "web")
	if p := c.step(); p.Wait != 0 {
		t.Errorf("it waits %v for a name that is free", p.Wait)
	}
}

// TestOrphans: what an App of this name left behind is taken up as it is.
func TestOrphans(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	c.deployments["web"].OwnerReferences, c.services["web-svc"].OwnerReferences = nil, nil
	c.app = newCluster(spec()).app
	c.app.UID = "second"
	before := c.deployments["web"].UID
	if got, want := c.settle(t), []string{`Adopt Deployment "web"`, `Adopt Service "web-svc"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if d := c.deployments["web"]; d.UID != before || d.OwnerReferences[0].UID != "second" {
		t.Errorf("it is %s of %v", d.UID, d.OwnerReferences)
	}
	c.isRight(t)
}

// TestDrift: whatever others change of what the App says is put right, what the App
// does not speak of is left to them, and a child that is going is waited for.
func TestDrift(t *testing.T) {
	for name, f := range map[string]struct {
		change func(*cluster)
		does   []string
		why    string
	}{
		"image": {func(c *cluster) { c.deployments["web"].Spec.Template.Spec.Containers[0].Image = "bad" }, applyD,
			`Deployment "web" is not as the App says: spec.template.spec.containers[app-deploy-container].image is bad instead of nginx`},
		"scale": {func(c *cluster) { *c.deployments["web"].Spec.Replicas = 9 }, applyD,
			`Deployment "web" is not as the App says: spec.replicas is 9 instead of 2`},
		"label": {func(c *cluster) { c.deployments["web"].Labels = nil }, applyD,
			`Deployment "web" is not as the App says: metadata.labels is missing`},
		"note": {func(c *cluster) { c.services["web-svc"].Annotations = nil }, applyS,
			`Service "web-svc" is not as the App says: metadata.annotations is missing`},
		"service port": {func(c *cluster) { c.services["web-svc"].Spec.Ports[0].Port = 1 }, []string{`Correct Service "web-svc"`},
			`Service "web-svc" is not as the App says: spec.ports[8080/TCP] is missing; spec.ports[1/TCP] has the name app-service`},
		"service selector": {func(c *cluster) { c.services["web-svc"].Spec.Selector[appv1.LabelApp] = "x" }, applyS,
			`Service "web-svc" is not as the App says: spec.selector.appcontroller.k8s.io/app is x instead of web`},
		"container renamed": {func(c *cluster) { c.deployments["web"].Spec.Template.Spec.Containers[0].Name = "x" }, applyD,
			`Deployment "web" is not as the App says: spec.template.spec.containers[app-deploy-container] is missing`},
		"deleted": {func(c *cluster) { delete(c.services, "web-svc") }, []string{`Create Service "web-svc"`},
			`Service "web-svc" does not exist`},
		"going": {func(c *cluster) { c.deployments["web"].DeletionTimestamp = &metav1.Time{Time: now} }, nil, ""},
		"another's fields": {func(c *cluster) {
			d := c.deployments["web"]
			d.Annotations["a"], d.Labels["b"], d.Spec.Paused, d.Spec.MinReadySeconds = "a", "b", true, 5
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "INJECTED"}}
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar"})
			c.services["web-svc"].Spec.Ports = append(c.services["web-svc"].Spec.Ports, corev1.ServicePort{Name: "more", Port: 9})
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(spec())
			c.settle(t)
			f.change(c)
			p := c.step()
			if got := actions(p); !slices.Equal(got, f.does) {
				t.Fatalf("got %q, want %q", got, f.does)
			}
			if len(f.does) > 0 && p.Actions[0].Why != f.why {
				t.Errorf("got %q, want %q", p.Actions[0].Why, f.why)
			}
			if len(f.does) > 0 && p.Actions[0].Op == Apply && (p.Actions[0].UID == "" || p.Actions[0].Version == "") {
				t.Error("the write is not conditional")
			}
			if name == "going" && conditions(p.Status)[0] != `Ready=False Progressing: Deployment "web" is being deleted, and will be created again` {
				t.Errorf("got %q", conditions(p.Status))
			}
		})
	}
}

// TestOverruled: what admission of the cluster makes of a child is left so, and
// told; any other difference is not.
func TestOverruled(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	container := &c.deployments["web"].Spec.Template.Spec.Containers[0]
	container.Image = "mirror/nginx"
	c.overruled = map[Child][]string{{Deployment, "web"}: manifest.Differences(manifest.Stamp(deploymentManifest(c.app), appv1.AnnotationApplied), c.deployments["web"])}
	p := c.step()
	const want = `Ready=True Synced: App synced successfully; the cluster overrules Deployment "web": ` +
		`spec.template.spec.containers[app-deploy-container].image is mirror/nginx instead of nginx`
	if got := conditions(p.Status)[0]; len(p.Actions) > 0 || got != want {
		t.Errorf("got %q, %q", actions(p), got)
	}
	container.Image = "bad"
	if p = c.step(); !slices.Equal(actions(p), applyD) {
		t.Errorf("got %q", actions(p))
	}
}

// TestRefused: the API server's words reach the condition, and an event once.
func TestRefused(t *testing.T) {
	c := newCluster(spec(func(s *appv1.AppSpec) { s.DeploymentTemplate.Image = "" }))
	c.refused = map[Child]string{{Deployment, "web"}: "image is required"}
	const message = `the cluster refuses Deployment "web": image is required`
	p := c.step()
	if got, want := conditions(p.Status)[2], "Stalled=True Refused: "+message; got != want || p.Moving {
		t.Errorf("got %q, moving %v", got, p.Moving)
	}
	if want := []Event{{corev1.EventTypeWarning, "Refused", message}}; !slices.Equal(p.Events, want) {
		t.Errorf("got %v", p.Events)
	}
	if p = c.step(); len(p.Events) > 0 || len(p.Actions) != 2 {
		t.Errorf("the next plan has %v, %q", p.Events, actions(p))
	}
}

// TestDeploymentStuck: what keeps the Deployment from getting on stalls the App.
func TestDeploymentStuck(t *testing.T) {
	for _, condition := range []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "it has timed out"},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "quota"},
	} {
		c := newCluster(spec())
		c.settle(t)
		d := c.deployments["web"]
		d.Status.AvailableReplicas, d.Status.Conditions = 0, []appsv1.DeploymentCondition{condition}
		want := []string{
			fmt.Sprintf(`Ready=False %s: Deployment "web": %s`, condition.Reason, condition.Message),
			fmt.Sprintf(`Reconciling=False %s: nothing is on its way`, condition.Reason),
			fmt.Sprintf(`Stalled=True %s: Deployment "web": %s`, condition.Reason, condition.Message),
		}
		if got := conditions(c.step().Status); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRenameInto: the old child stays while the new name is taken.
func TestRenameInto(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	taken := c.deployments["web"].DeepCopy()
	taken.Name, taken.OwnerReferences = "taken", controlledBy("Other", "x")
	c.deployments["taken"] = taken
	c.app.Spec.DeploymentTemplate.Name, c.app.Generation = "taken", 2
	p := c.step()
	if got := conditions(p.Status)[2]; len(p.Actions) > 0 || !strings.Contains(got, `Resource "taken" already exists`) {
		t.Errorf("got %q, %q", actions(p), got)
	}
	delete(c.deployments, "taken")
	if got, want := c.settle(t), []string{`Create Deployment "taken"`, `Delete Deployment "web"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.isRight(t)
}

// TestForeignSelector: a Deployment that app-controller made keeps its selector, which
// cannot be changed, and its pods get our label too.
func TestForeignSelector(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	d := c.deployments["web"]
	d.Labels, d.Annotations = nil, nil
	d.Spec.Selector.MatchLabels = map[string]string{"app-key": "app-value"}
	d.Spec.Template.Labels = map[string]string{"app-key": "app-value"}
	if got := c.settle(t); !slices.Equal(got, applyD) {
		t.Errorf("got %q", got)
	}
	d = c.deployments["web"]
	if got := fmt.Sprint(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels); got != "map[app-key:app-value] map[app-key:app-value appcontroller.k8s.io/app:web]" {
		t.Errorf("got %s", got)
	}
}
