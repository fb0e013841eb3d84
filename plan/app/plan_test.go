package app

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/plan/manifest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster is a small one: what is applied is there, and a Deployment rolls out
// when it is told to.
type cluster struct {
	app         *appv1.App
	deployments map[string]*appsv1.Deployment
	services    map[string]*corev1.Service
	uids        int
	overruled   map[Child][]string
	refused     map[Child]string
	now         time.Time
}

func newCluster(spec appv1.AppSpec) *cluster {
	return &cluster{
		app:         &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "app", Generation: 1}, Spec: spec},
		deployments: map[string]*appsv1.Deployment{}, services: map[string]*corev1.Service{}, now: now,
	}
}

func (c *cluster) input() Input {
	in := Input{App: c.app, Overruled: c.overruled, Refused: c.refused, Now: c.now}
	for _, d := range c.deployments {
		in.Deployments = append(in.Deployments, d)
	}
	for _, s := range c.services {
		in.Services = append(in.Services, s)
	}
	return in
}

// step computes one plan, and stores its status.
func (c *cluster) step() Plan {
	p := Compute(c.input())
	c.app.Status = p.Status
	return p
}

// apply carries out a plan as an API server does, as far as we apply things.
func (c *cluster) apply(t *testing.T, p Plan) {
	t.Helper()
	for _, a := range p.Actions {
		if a.Op == Delete {
			if a.Child.Kind == Deployment {
				delete(c.deployments, a.Child.Name)
			} else {
				delete(c.services, a.Child.Name)
			}
			continue
		}
		content, err := json.Marshal(a.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		c.uids++
		uid, version := types.UID(fmt.Sprintf("uid-%d", c.uids)), fmt.Sprint(c.uids)
		if a.Op != Create {
			uid = a.UID
		}
		if a.Child.Kind == Deployment {
			d := &appsv1.Deployment{}
			if err := json.Unmarshal(content, d); err != nil {
				t.Fatal(err)
			}
			if old := c.deployments[a.Child.Name]; old != nil {
				d.Status, d.Generation = old.Status, old.Generation
			}
			d.UID, d.ResourceVersion, d.Generation = uid, version, d.Generation+1
			c.deployments[d.Name] = d
			continue
		}
		s := &corev1.Service{}
		if err := json.Unmarshal(content, s); err != nil {
			t.Fatal(err)
		}
		s.UID, s.ResourceVersion = uid, version
		c.services[s.Name] = s
	}
}

// rollOut ends the rollouts of all Deployments.
func (c *cluster) rollOut() {
	for _, d := range c.deployments {
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	}
}

// settle takes the cluster to rest and returns all actions on the way.
func (c *cluster) settle(t *testing.T) []string {
	t.Helper()
	var out []string
	for range 10 {
		p := c.step()
		out = append(out, actions(p)...)
		c.apply(t, p)
		c.rollOut()
		if len(p.Actions) == 0 && !p.Moving {
			return out
		}
	}
	t.Fatalf("it does not come to rest: %v", out)
	return nil
}

func actions(p Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, fmt.Sprintf("%s %s", a.Op, a.Child))
	}
	return out
}

// conditions in short: "Ready=True Synced: message".
func conditions(s appv1.AppStatus) []string {
	var out []string
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

func spec(change ...func(*appv1.AppSpec)) appv1.AppSpec {
	s := appv1.AppSpec{
		DeploymentTemplate: appv1.DeploymentTemplate{Name: "web", Image: "nginx", Replicas: ptr.To(int32(2))},
		ServiceTemplate:    appv1.ServiceTemplate{Name: "web-svc"},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// TestLife: creation, rollout, rest, and the end.
func TestLife(t *testing.T) {
	c := newCluster(spec())
	p := c.step()
	if got, want := actions(p), []string{`Create Deployment "web"`, `Create Service "web-svc"`}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if !p.Moving || p.Status.Ready != "0/2" || p.Status.ObservedGeneration != 1 || p.Status.Selector != "appcontroller.k8s.io/app=web" {
		t.Errorf("moving %v, status %+v", p.Moving, p.Status)
	}
	c.apply(t, p)

	p = c.step()
	want := []string{
		`Ready=False Progressing: Deployment "web" has not been looked at yet`,
		`Reconciling=True Progressing: Deployment "web" has not been looked at yet`,
		`Stalled=False Synced: nothing is in the way`,
	}
	if got := conditions(p.Status); len(p.Actions) > 0 || !p.Moving || !slices.Equal(got, want) {
		t.Errorf("after creation: %v, moving %v, %q", actions(p), p.Moving, got)
	}

	d := c.deployments["web"]
	for _, s := range []struct {
		status appsv1.DeploymentStatus
		want   string
	}{
		{appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 1}, `Deployment "web": 1 of 2 pods are as they should be`},
		{appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 2}, `Deployment "web": 1 old pods are left`},
		{appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}, `Deployment "web": 3 pods are there, and 2 are asked for`},
		{appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 1}, `Deployment "web": 1 of 2 pods are available`},
	} {
		d.Status = s.status
		p = c.step()
		if got := p.Status.Conditions[0].Message; got != s.want || !p.Moving || !reflect.DeepEqual(*p.Status.DeploymentStatus, s.status) {
			t.Errorf("got %q, want %q; moving %v, %+v", got, s.want, p.Moving, p.Status.DeploymentStatus)
		}
	}

	d.Spec.Paused, d.Status = true, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2}
	const paused = `Deployment "web": 0 of 2 pods are as they should be, and the Deployment is paused`
	if p = c.step(); p.Status.Conditions[0].Message != paused || len(p.Actions) > 0 {
		t.Errorf("paused by somebody: %q, %v", p.Status.Conditions[0].Message, actions(p))
	}
	d.Spec.Paused = false

	c.rollOut()
	p = c.step()
	want = []string{
		"Ready=True Synced: App synced successfully",
		"Reconciling=False Synced: nothing is on its way",
		"Stalled=False Synced: nothing is in the way",
	}
	if got := conditions(p.Status); len(p.Actions) > 0 || p.Moving || p.Status.Ready != "2/2" || !slices.Equal(got, want) {
		t.Errorf("after the rollout: %v, moving %v, ready %s, %q", actions(p), p.Moving, p.Status.Ready, got)
	}
	if again := c.step(); !reflect.DeepEqual(again, p) {
		t.Errorf("at rest the plan changed from %+v to %+v", p, again)
	}

	c.app.DeletionTimestamp = &metav1.Time{Time: now}
	delete(c.deployments, "web")
	if p = c.step(); len(p.Actions) > 0 {
		t.Errorf("a deleted App's children are the garbage collector's: %v", actions(p))
	}
}

// TestManifests: what is applied, whole.
func TestManifests(t *testing.T) {
	c := newCluster(spec(func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Ports = []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 80}}
		s.DeploymentTemplate.Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}))
	got := []string{}
	for _, a := range c.step().Actions {
		content, err := json.Marshal(a.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(content))
	}
	const owner = `"ownerReferences":[{"apiVersion":"appcontroller.k8s.io/v1","blockOwnerDeletion":true,"controller":true,"kind":"App","name":"web","uid":"app"}]`
	const label = `{"appcontroller.k8s.io/app":"web"}`
	want := []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"appcontroller.k8s.io/applied":"HASH"},"labels":` + label + `,"name":"web","namespace":"ns",` + owner + `},` +
			`"spec":{"replicas":2,"selector":{"matchLabels":` + label + `},"template":{"metadata":{"labels":` + label + `},"spec":{"containers":[{` +
			`"env":[{"name":"A","value":"b"}],"image":"nginx","name":"app-deploy-container","ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":80,"protocol":"TCP"}]}]}}}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"appcontroller.k8s.io/applied":"HASH"},"labels":` + label + `,"name":"web-svc","namespace":"ns",` + owner + `},` +
			`"spec":{"ports":[{"name":"app-service","port":8080,"protocol":"UDP","targetPort":53}],"selector":` + label + `,"type":"ClusterIP"}}`,
	}
	for i := range want {
		_, rest, _ := strings.Cut(got[i], `applied":"`)
		if hash, _, _ := strings.Cut(rest, `"`); len(hash) == 16 {
			got[i] = strings.Replace(got[i], hash, "HASH", 1)
		}
		if got[i] != want[i] {
			t.Errorf("got\n%s, want\n%s", got[i], want[i])
		}
	}
}

// TestPure: nothing of the input is changed, whatever the order of its lists.
func TestPure(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	c.app.Spec.DeploymentTemplate.Name, c.app.Spec.ServiceTemplate.Name = "b", "b-svc"
	c.app.Generation = 2
	c.apply(t, c.step())
	in := c.input()
	before := manifest.Plain(in.App)
	first := Compute(in)
	slices.Reverse(in.Deployments)
	slices.Reverse(in.Services)
	if second := Compute(in); !reflect.DeepEqual(first, second) {
		t.Errorf("the order of the lists counts: %+v and %+v", first, second)
	}
	if !reflect.DeepEqual(before, manifest.Plain(in.App)) {
		t.Error("the App was changed")
	}
}
