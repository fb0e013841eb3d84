package sim

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// process that has seen all that is, and asks for something about the TApp or its pods.
func (r *rig) process(n int) *replica {
	c := &replica{Process: process.New(n), world: r.world, beliefs: map[string]*belief{}}
	r.look(c)
	return c
}

func (r *rig) look(c *replica) {
	c.told = map[string]int64{tapps: r.Version, pods: r.Version, claims: r.Version, revisions: r.Version}
	c.beliefs = map[string]*belief{}
}

func (r *rig) asks(c *replica, verb, resource, name, sub, body string) *request {
	q := &request{replica: c, issued: r.now(), Request: &apiserver.Request{Verb: verb, Resource: resource, Namespace: namespace, Name: name, Sub: sub,
		Body: []byte(body), Media: string(types.MergePatchType)}}
	r.attribute(q)
	r.oracle.answered(q, r.Serve(q.Request, 0, q.actor(r.now())))
	return q
}

// TestRowsOfLives: what an instance gets that lost its pod depends on how that went, and on
// what the process that makes the next one can know of it.
func TestRowsOfLives(t *testing.T) {
	fails := func(r *rig) {
		r.must(r.Update(pods, "shop/web-0", "status", r.as("kubelet"), func(o object) error {
			s := &o.(*corev1.Pod).Status
			s.Phase, s.ContainerStatuses = corev1.PodFailed, []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
			return nil
		}))
	}
	vanishes := func(r *rig) { r.must(r.Remove(pods, "shop/web-0", apiserver.DeleteNow(), r.as("somebody"))) }
	goes := func(r *rig) { r.must(r.Remove(pods, "shop/web-0", metav1.DeleteOptions{}, r.as("somebody"))) }
	edit := func(r *rig) {
		r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error {
			o.(*tappv1.TApp).Spec.Template.Spec.Containers[0].Image = "demo:v2"
			return nil
		}))
	}
	tells := func(r *rig, c *replica) {
		r.look(c)
		r.asks(c, "patch", tapps, "web", "status", `{"status":{"observedGeneration":2,"statuses":{"0":"PodFailed"}}}`)
	}
	deletes := func(r *rig, c *replica) { r.asks(c, "delete", pods, "web-0", "", "") }
	for name, c := range map[string]struct {
		happens func(*rig, *replica)
		want    []row
	}{
		"serves, and is deleted by somebody": {func(r *rig, _ *replica) { vanishes(r) }, []row{rowLost}},
		"failed, and is there":               {func(r *rig, _ *replica) { fails(r) }, []row{rowFailed}},
		"failed, and nobody saw it":          {func(r *rig, _ *replica) { fails(r); vanishes(r) }, []row{rowFailed, rowLost}},
		"failed, and the status tells":       {func(r *rig, c *replica) { fails(r); tells(r, c); vanishes(r) }, []row{rowFailed}},
		"we delete it":                       {func(r *rig, c *replica) { deletes(r, c); vanishes(r) }, []row{rowUpdated}},
		"we delete it when somebody did":     {func(r *rig, c *replica) { goes(r); deletes(r, c); vanishes(r) }, []row{rowLost, rowUpdated}},
		"we see it go, and delete it":        {func(r *rig, c *replica) { goes(r); r.look(c); deletes(r, c); vanishes(r) }, []row{rowLost}},
		"we find none to delete":             {func(r *rig, c *replica) { vanishes(r); deletes(r, c) }, []row{rowLost}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			edit(r)
			ca := r.process(1)
			c.happens(r, ca)
			r.look(ca)
			q := r.asks(ca, "get", tapps, "web", "", "")
			app, _ := apiserver.Find[*tappv1.TApp](r.Store, tapps, "shop/web")
			r.oracle.judged = r.Version + 1
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0"}}
			got := r.oracle.rowsOf(defaulted(app), "0", r.oracle.livesOf(defaulted(app), pod, q.belief), q)
			slices.Sort(got)
			slices.Sort(c.want)
			if got = slices.Compact(got); !slices.Equal(got, c.want) {
				t.Errorf("it is %q, not %q", got, c.want)
			}
		})
	}
}

// TestReadyOfTwoLeaders: a process is judged by the status that it meant, and by what is
// stored where it knew of that.
func TestReadyOfTwoLeaders(t *testing.T) {
	const ready = `{"type":"Ready","status":"%s","reason":"R","message":"all 3 instances are available","lastTransitionTime":"2000-01-01T00:00:00Z"}`
	for name, c := range map[string]struct {
		knows bool
		want  bool
	}{"it knows": {true, false}, "it does not": {false, true}} {
		r := newRig(t, nil)
		ca, cb := r.process(1), r.process(2)
		r.asks(ca, "patch", tapps, "web", "status", `{"status":{"observedGeneration":1,"availableReplicas":3}}`)
		r.look(cb)
		r.asks(ca, "patch", tapps, "web", "status", fmt.Sprintf(`{"status":{"availableReplicas":2,"conditions":[`+ready+`]}}`, "False"))
		if c.knows {
			r.look(cb)
		}
		if r.failure != nil {
			t.Fatal(r.failure)
		}
		r.asks(cb, "patch", tapps, "web", "status", fmt.Sprintf(`{"status":{"conditions":[`+ready+`]}}`, "True"))
		if is := r.failure == nil; is != c.want {
			t.Errorf("%s: the judge says %v", name, r.failure)
		}
	}
}
