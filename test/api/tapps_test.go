//go:build cluster

package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/gen"
)

// TestTApp: all that is told of a TApp from its creation to a rollout that is stuck.
func TestTApp(t *testing.T) {
	r := newRig(t)
	token := r.viewer()
	of := "/api/v1/namespaces/" + r.NS + "/tapps"
	list := r.watch(of+"?watch=1", token)
	if e := list.next(r, "list"); e.data != `{"items":[],"total":0}` {
		t.Error(e.data)
	}
	r.Create(gen.TApp("web", gen.Replicas(12)))
	list.until(r, "change", func(data string) bool { return strings.Contains(data, `"state":"Ready"`) })

	one := get[apiv1.List[apiv1.TApp]](r, of, token)
	if len(one.Items) != 1 || one.Items[0].Available != 12 || one.Items[0].States["Running"] != 12 || one.Items[0].Templates[0].Images[0] != "main=demo:v1" || len(one.Items[0].Attention) != 0 {
		t.Errorf("%+v", one)
	}
	instances := get[apiv1.InstanceList](r, of+"/web/instances?limit=5", token)
	if len(instances.Items) != 5 || instances.Total != 12 || instances.Continue != "4" || instances.Items[4].ID != "4" || instances.Items[4].Pod != "web-4" || instances.Items[4].Node == "" || instances.Available != 12 {
		t.Errorf("%+v", instances)
	}
	last := get[apiv1.InstanceList](r, of+"/web/instances?limit=10&continue="+instances.Continue, token)
	if len(last.Items) != 7 || last.Items[0].ID != "5" || last.Items[6].ID != "11" || last.Continue != "" {
		t.Errorf("%+v", last)
	}

	// A rollout that holds: the instances tell what they wait for, as the planner does.
	stream := r.watch(of+"/web/instances?watch=1", token)
	stream.next(r, "list")
	r.Change("web", func(t *tappv1.TApp) {
		t.Spec.Template.Spec.Containers[0].Image = "demo:v2"
		t.Spec.Paused = true
	})
	change := stream.until(r, "change", func(data string) bool { return strings.Contains(data, `"reason":"Paused"`) })
	var changed apiv1.InstanceChange
	if err := json.Unmarshal([]byte(change.data), &changed); err != nil {
		t.Fatal(err)
	}
	if changed.Total != 12 || len(changed.Waiting) == 0 || changed.Waiting[0].Instances != "0-11" || changed.Waiting[0].Count != 12 {
		t.Errorf("%+v", changed)
	}
	var d apiv1.TAppDetail
	r.Eventually("the detail says that it is paused", func(context.Context) error {
		if d = get[apiv1.TAppDetail](r, of+"/web", token); d.State != apiv1.StatePaused {
			return errNotYet
		}
		return nil
	})
	if len(d.Steps) != 1 || !strings.HasPrefix(d.Steps[0].Sentence, "12 instances are updated in place (0-11): image of main from demo:v1 to demo:v2; rolling, at most 1 at a time") ||
		len(d.Attention) != 1 || d.Attention[0].Command != "kubectl tapp resume web -n "+r.NS {
		t.Errorf("%+v", d)
	}
	r.Change("web", func(t *tappv1.TApp) { t.Spec.Paused = false })
	list.until(r, "change", func(data string) bool {
		return strings.Contains(data, `"state":"Ready"`) && strings.Contains(data, "demo:v2")
	})
	history := get[apiv1.List[apiv1.Revision]](r, of+"/web/history", token)
	if len(history.Items) != 2 || history.Items[1].Change != "template.spec.containers[main].image: demo:v1 -> demo:v2" || history.Items[0].Command != "kubectl tapp undo web --to-revision 1 -n "+r.NS {
		t.Errorf("%+v", history)
	}
	events := get[apiv1.List[apiv1.Event]](r, of+"/web/events", token)
	if len(events.Items) == 0 || events.Items[0].Kind != "TApp" || events.Items[0].Name != "web" {
		t.Errorf("%+v", events)
	}
	pod := get[apiv1.Pod](r, "/api/v1/namespaces/"+r.NS+"/pods/web-3", token)
	if pod.Owner != "TApp/web" || !pod.Ready || pod.Containers[0].Image != "demo:v2" {
		t.Errorf("%+v", pod)
	}
	if err := r.TApps.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	list.until(r, "change", func(data string) bool { return strings.Contains(data, `"removed":["`+r.NS+`/web"]`) })
	if e := stream.next(r, "error"); !strings.Contains(e.data, `tapps.apps.tkestack.io \"web\" not found`) {
		t.Error(e.data)
	}
}

// TestPreview: what a manifest would do is told, and nothing is written.
func TestPreview(t *testing.T) {
	r := newRig(t)
	token := r.viewer()
	r.Create(gen.TApp("web"))
	r.WaitReady("web")
	before := r.Get("web")
	log := r.FollowAudit()
	manifest := `
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: web}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "demo:v2"}]}
`
	response, body := r.ask(http.MethodPost, "/api/v1/namespaces/"+r.NS+"/tapps:preview", token, manifest)
	var v apiv1.Preview
	if err := json.Unmarshal([]byte(body), &v); err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, body)
	}
	if len(v.Sentences) != 2 || v.Sentences[0] != "1 instance is removed (2): spec.replicas is 2" ||
		!strings.HasPrefix(v.Sentences[1], "2 instances are updated in place (0-1): image of main from demo:v1 to demo:v2") {
		t.Errorf("%q", v.Sentences)
	}
	if after := r.Get("web"); after.ResourceVersion != before.ResourceVersion {
		t.Error("the TApp changed")
	}
	for _, request := range r.Requests(log, audit.Filter{Agent: "tapp/api-test"}) {
		if request.IsWrite() && request.Resource != "tokenreviews" && request.Resource != "subjectaccessreviews" {
			t.Errorf("it wrote: %+v", request)
		}
	}
}
