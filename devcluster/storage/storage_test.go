package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// claim asks for one size and has another.
func claim(asks, has string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-0"}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(asks)}
	c.Status.Phase = corev1.ClaimBound
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	return c
}

func class(t *testing.T) *storagev1.StorageClass {
	t.Helper()
	first, _, _ := strings.Cut(string(Classes), "\n---\n")
	var c storagev1.StorageClass
	if err := yaml.UnmarshalStrict([]byte(first), &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestVolume(t *testing.T) {
	r := Request{Name: "pvc-1", Node: "node2", Claim: claim("1Gi", "0"), Class: class(t)}
	v, err := Volume("/volumes", r)
	if err != nil {
		t.Fatal(err)
	}
	affinity := v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	size := v.Spec.Capacity[corev1.ResourceStorage]
	got := fmt.Sprintf("%s of %s on %v, %s", v.Spec.Local.Path, size.String(), affinity.Values, v.Spec.PersistentVolumeReclaimPolicy)
	if want := "/volumes/node2/shop_data-web-0_pvc-1 of 1Gi on [node2], Delete"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if dir, err := Directory("/volumes", v); err != nil || dir != v.Spec.Local.Path {
		t.Errorf("directory %q, %v", dir, err)
	}
	for _, path := range []string{"/volumes", "/volumes/../etc", "/etc"} {
		v.Spec.Local.Path = path
		if _, err := Directory("/volumes", v); err == nil {
			t.Errorf("%s is ours to remove", path)
		}
	}
}

func TestVolumeThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"the volume is to be on one node, which only volumeBindingMode WaitForFirstConsumer tells; class local has another": func(r *Request) { r.Node = "" },
		"2Ti is too large: volumes of class local have at most 1Ti":                                                         func(r *Request) { r.Claim = claim("2Ti", "0") },
		"volumes are directories, and no block devices":                                                                     func(r *Request) { r.Claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"a new volume has no labels that a selector could ask for":                                                          func(r *Request) { r.Claim.Spec.Selector = &metav1.LabelSelector{} },
	} {
		r := Request{Name: "pvc-1", Node: "node2", Claim: claim("1Gi", "0"), Class: class(t)}
		change(&r)
		if _, err := Volume("/volumes", r); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestGrow(t *testing.T) {
	now := metav1.NewTime(time.Unix(1e9, 0))
	infeasible := func(asks, has string) *corev1.PersistentVolumeClaim {
		c := claim("2Ti", has)
		c.Status = *Grow(c, &corev1.PersistentVolume{}, class(t), now).Status
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(asks)
		return c
	}
	held := claim("2Gi", "1Gi")
	held.Annotations = map[string]string{HoldGrowth: "true"}
	unbound := claim("2Gi", "0")
	unbound.Status.Phase = corev1.ClaimPending
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"has it":            {claim("1Gi", "1Gi"), "nothing"},
		"has more":          {claim("1Gi", "2Gi"), "nothing"},
		"grows":             {claim("2Gi", "1Gi"), "volume 2Gi, claim 2Gi"},
		"is held":           {held, "nothing"},
		"is not bound":      {unbound, "nothing"},
		"too large":         {claim("2Ti", "1Gi"), "claim 1Gi, ControllerResizeInfeasible of 2Ti, ControllerResizeError: 2Ti is too large: volumes of class local have at most 1Ti"},
		"still too large":   {infeasible("2Ti", "1Gi"), "nothing"},
		"another too large": {infeasible("3Ti", "1Gi"), "claim 1Gi, ControllerResizeInfeasible of 3Ti, ControllerResizeError: 3Ti is too large: volumes of class local have at most 1Ti"},
		"asks for less":     {infeasible("2Gi", "1Gi"), "volume 2Gi, claim 2Gi"},
		"asks for no more":  {infeasible("1Gi", "1Gi"), "claim 1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{Capacity: c.claim.Status.Capacity}}
			if got := tell(Grow(c.claim, volume, class(t), metav1.Now())); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func tell(g Growth) string {
	var parts []string
	if g.Capacity != nil {
		parts = append(parts, "volume "+g.Capacity.String())
	}
	if s := g.Status; s != nil {
		size, tried := s.Capacity[corev1.ResourceStorage], s.AllocatedResources[corev1.ResourceStorage]
		parts = append(parts, "claim "+size.String())
		if status := s.AllocatedResourceStatuses[corev1.ResourceStorage]; status != "" {
			parts = append(parts, fmt.Sprintf("%s of %s", status, tried.String()))
		}
		for _, c := range s.Conditions {
			parts = append(parts, fmt.Sprintf("%s: %s", c.Type, c.Message))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
