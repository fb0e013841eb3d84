package tapp

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestMostReplicas: as many instances as are admitted fit into etcd, whatever becomes of
// them, and not many more would. test/admission has an API server store them.
func TestMostReplicas(t *testing.T) {
	kept := map[string]string{}
	for id := range 5000 {
		kept[strconv.Itoa(100_000+id)] = strings.Repeat("n", nodeName)
	}
	for name, c := range map[string]struct {
		replicas   int32
		migrates   bool
		nodes      map[string]string
		spec, meta int // bytes
		going      int // instances
		want       int
	}{
		"none":                        {0, false, nil, 0, 0, 0, 50_000},
		"the most":                    {50_000, false, nil, 0, 0, 0, 50_000},
		"beside a large spec":         {50_000, false, nil, 700_000, 0, 0, 36_864},
		"beside large annotations":    {50_000, false, nil, 400_000, 200_000, 0, 41_626},
		"few, with much left":         {3, false, nil, 400_000, 0, 0, 50_000},
		"a spec that leaves no room":  {0, false, nil, 1_480_000, 0, 0, -1},
		"a spec that leaves a little": {9, false, nil, 1_474_000, 0, 0, 9},
		"beside many that are to go":  {50_000, false, nil, 0, 0, 45_000, 29_485},
		"as many as are to go":        {30_000, false, nil, 0, 0, 30_000, 43_056},
		"with nodes":                  {50_000, true, nil, 0, 0, 0, 15_517},
		"with nodes of long names":    {50_000, true, map[string]string{"0": strings.Repeat("n", 253)}, 0, 0, 0, 5172},
		"with nodes that are kept":    {50_000, true, kept, 0, 0, 0, 11_569},
		"with nodes no longer kept":   {50_000, false, kept, 0, 0, 0, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			app := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: tappv1.TAppSpec{Replicas: &c.replicas, NeverMigrate: c.migrates}}
			app.Spec.ServiceName = strings.Repeat("s", c.spec)
			app.Annotations = map[string]string{"a": strings.Repeat("a", c.meta)}
			app.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 100_000)}} // that not every review has
			app.Status.Nodes, app.Status.Statuses = maps.Clone(c.nodes), map[string]tappv1.InstanceStatus{}
			for n := range c.going {
				app.Status.Statuses[strconv.Itoa(100_000+n)] = tappv1.InstanceKilling
			}
			most := Etcd().most(app)
			if most != c.want {
				t.Errorf("%d instances, want %d", most, c.want)
			}
			app.ManagedFields = nil
			if !c.migrates {
				app.Status.Nodes = nil
			}
			for id := range max(most, 0) {
				app.Status.Statuses[strconv.Itoa(id)] = tappv1.InstanceNotCreated
				if c.migrates {
					longest := nodeName
					for _, node := range c.nodes {
						longest = max(longest, len(node))
					}
					if app.Status.Nodes == nil {
						app.Status.Nodes = map[string]string{}
					}
					app.Status.Nodes[strconv.Itoa(id)] = strings.Repeat("n", longest)
				}
			}
			raw, err := json.Marshal(app)
			if err != nil {
				t.Fatal(err)
			}
			s := Etcd()
			size, tight := len(raw), most >= 0 && most < plan.MaxReplicas && int(c.replicas) >= most
			if most >= 0 && size > s.Most-s.Rest/2 || most < 0 && size < s.Most-s.Rest || tight && size < s.Most*9/10 {
				t.Errorf("they take %d bytes of %d", size, s.Most)
			}
		})
	}
}

// TestOwned: what managedFields say of a template is estimated, and not by less than it is.
func TestOwned(t *testing.T) {
	const template = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"demo:v1","args":["a","b"],
		"env":[{"name":"A","value":"x"},{"name":"LONGER","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
		"ports":[{"containerPort":80,"protocol":"TCP"}],"volumeMounts":[{"name":"data","mountPath":"/var/data"}]}]}}`
	const owned = `{".":{},"f:metadata":{".":{},"f:labels":{".":{},"f:app":{}}},"f:spec":{".":{},"f:containers":{".":{},` +
		`"k:{\"name\":\"main\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},` +
		`"k:{\"name\":\"LONGER\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:name":{},` +
		`"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},` +
		`"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/var/data\"}":{".":{},"f:mountPath":{},"f:name":{}}}}}}}`
	if got := sizeOfOwned([]byte(template)); got < len(owned) || got > len(owned)*3/2 {
		t.Errorf("%d bytes, and it is %d", got, len(owned))
	}
	sizeOfOwned([]byte(`{"a":"x\`)) // no JSON, and no panic
}
