package tapp

import (
	"encoding/json"
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
	for name, c := range map[string]struct {
		replicas  int32
		migrates  bool
		node      string
		specBytes int
		want      int
	}{
		"none":                                  {0, false, "", 0, 50_000},
		"the most":                              {50_000, false, "", 0, 50_000},
		"beside a large spec":                   {50_000, false, "", 400_000, 32_108},
		"few, beside a spec that is too large":  {3000, false, "", 1_400_000, 50_000},
		"many, beside a spec that is too large": {4000, false, "", 1_400_000, 3276},
		"with nodes":                            {50_000, true, "", 0, 15_518},
		"with nodes of long names":              {50_000, true, strings.Repeat("n", 253), 0, 5172},
		"with few nodes":                        {600, true, "", 1_400_000, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			app := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: tappv1.TAppSpec{Replicas: &c.replicas, NeverMigrate: c.migrates}}
			app.Spec.ServiceName = strings.Repeat("s", c.specBytes)
			if c.node != "" {
				app.Status.Nodes = map[string]string{"0": c.node}
			}
			most := mostReplicas(app)
			if most != c.want {
				t.Errorf("%d instances, want %d", most, c.want)
			}
			if c.specBytes > 1_000_000 {
				return // the API server tells of it
			}
			app.Status.Statuses, app.Status.Nodes = map[string]tappv1.InstanceStatus{}, map[string]string{}
			for id := range most {
				app.Status.Statuses[strconv.Itoa(id)] = tappv1.InstanceNotCreated
				if c.migrates {
					app.Status.Nodes[strconv.Itoa(id)] = c.node + strings.Repeat("n", max(0, nodeName-len(c.node)))
				}
			}
			raw, err := json.Marshal(app)
			if err != nil {
				t.Fatal(err)
			}
			if size := len(raw) + c.specBytes; size > mostStored-sizeOfRest/2 || most < plan.MaxReplicas && size < mostStored*9/10 {
				t.Errorf("they take %d bytes of %d", size, mostStored)
			}
		})
	}
}
