package appset

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestSlim: an AppSet says what it said before, and what is equal in its clusters is there once.
func TestSlim(t *testing.T) {
	a := &v1beta1.AppSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for i, version := range []string{"v1", "v1", "v2"} {
		name := fmt.Sprint("member-", i)
		a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, v1beta1.TargetCluster{Name: name, PodSets: []v1beta1.PodSet{{PodSetSpec: v1beta1.PodSetSpec{Name: "a", Version: version}}}})
		a.Status.AggrStatus.Clusters = append(a.Status.AggrStatus.Clusters, v1beta1.ClusterStatus{Name: name, State: v1beta1.ClusterReady,
			PodSets: []v1beta1.PodSetStatus{{Name: "a", Version: version, Revision: fmt.Sprint("u1-", i)}}})
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	got := &v1beta1.AppSet{}
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	got.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	got.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	for range 2 { // as client-go does
		if out, err := slim(got); err != nil || out != got {
			t.Fatalf("it came to %v and error %v", out, err)
		}
	}
	if len(got.ManagedFields)+len(got.Annotations) > 0 {
		t.Errorf("it has %v and %v still", got.ManagedFields, got.Annotations)
	}
	if !reflect.DeepEqual(got.Spec, a.Spec) || !reflect.DeepEqual(got.Status, a.Status) {
		t.Errorf("it became %+v", got)
	}
	clusters, statuses := got.Spec.ClusterTopology.Clusters, got.Status.AggrStatus.Clusters
	if &clusters[0].PodSets[0] != &clusters[1].PodSets[0] || &clusters[1].PodSets[0] == &clusters[2].PodSets[0] {
		t.Error("equal podSets are there twice, or others are the same")
	}
	for what, pair := range map[string][2]string{
		"the name of a cluster": {clusters[1].Name, statuses[1].Name},
		"the name of a podSet":  {clusters[2].PodSets[0].Name, statuses[0].PodSets[0].Name},
		"a state":               {string(statuses[0].State), string(statuses[2].State)},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s is there twice", what)
		}
	}
}
