package fleet

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// viaDelta is what a delta of o says, and how long it is; nil: there is none.
func viaDelta(model, o *v1beta1.AdvDeployment) (*v1beta1.AdvDeployment, int) {
	var d delta
	if d.add(reflect.ValueOf(model).Elem(), reflect.ValueOf(o).Elem()) == unlike {
		return nil, 0
	}
	p := packed{model, string(d)}
	return p.unpack(), len(d)
}

// TestDelta: any field may differ, and the delta says so, without writing to the model.
func TestDelta(t *testing.T) {
	at := metav1.Unix(1_700_000_000, 0)
	full := func() *v1beta1.AdvDeployment {
		o := partOf("web", "gz", "nginx", "r1")
		o.Spec.Topology.PodSets[0].Replicas = new(intstr.FromInt32(2))
		o.Status.AggrStatus.PodSets = []v1beta1.PodSetStatus{{Name: "a", Update: new(int32(2)), Observed: true}}
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "well", LastTransitionTime: at}}
		return o
	}
	model := full()
	for name, c := range map[string]struct {
		change func(o *v1beta1.AdvDeployment)
		unlike bool
	}{
		"nothing":                       {func(*v1beta1.AdvDeployment) {}, false},
		"a text":                        {func(o *v1beta1.AdvDeployment) { o.UID = "uid-2" }, false},
		"no text":                       {func(o *v1beta1.AdvDeployment) { o.UID = "" }, false},
		"a long text":                   {func(o *v1beta1.AdvDeployment) { o.ResourceVersion = string(make([]byte, 300)) }, false},
		"a number":                      {func(o *v1beta1.AdvDeployment) { o.Generation = 1 << 40 }, false},
		"a negative number":             {func(o *v1beta1.AdvDeployment) { o.Generation = -7 }, false},
		"a value of a map":              {func(o *v1beta1.AdvDeployment) { o.Labels["app"] = "db" }, false},
		"a key of a map":                {func(o *v1beta1.AdvDeployment) { o.Labels = map[string]string{"other": "web"} }, true},
		"one more key":                  {func(o *v1beta1.AdvDeployment) { o.Labels["more"] = "" }, true},
		"no map":                        {func(o *v1beta1.AdvDeployment) { o.Labels = nil }, true},
		"an element":                    {func(o *v1beta1.AdvDeployment) { o.Spec.Topology.PodSets[0].Meta["cluster"] = "sh" }, false},
		"one more element":              {func(o *v1beta1.AdvDeployment) { o.Finalizers = []string{"a"} }, true},
		"no elements instead of none":   {func(o *v1beta1.AdvDeployment) { o.Finalizers = []string{} }, true},
		"what a pointer leads to":       {func(o *v1beta1.AdvDeployment) { o.Spec.Topology.PodSets[0].Replicas = new(intstr.FromString("10%")) }, false},
		"an equal one":                  {func(o *v1beta1.AdvDeployment) { o.Status.AggrStatus.PodSets[0].Update = new(int32(2)) }, false},
		"a pointer that leads nowhere":  {func(o *v1beta1.AdvDeployment) { o.Status.AggrStatus.PodSets[0].Update = nil }, false},
		"a pointer that leads to zero":  {func(o *v1beta1.AdvDeployment) { o.Status.AggrStatus.PodSets[0].Ready = new(int32(0)) }, false},
		"a pointer that leads to a new": {func(o *v1beta1.AdvDeployment) { o.Status.Rollout = &v1beta1.RolloutStatus{ID: "r"} }, false},
		"the other truth":               {func(o *v1beta1.AdvDeployment) { o.Status.AggrStatus.PodSets[0].Observed = false }, false},
		"a local time":                  {func(o *v1beta1.AdvDeployment) { o.CreationTimestamp = at }, false},
		"a time with fractions":         {func(o *v1beta1.AdvDeployment) { o.DeletionTimestamp = new(metav1.Unix(1, 5)) }, false},
		"a time elsewhere": {func(o *v1beta1.AdvDeployment) {
			o.CreationTimestamp = metav1.NewTime(at.In(time.FixedZone("east", 3600)))
		}, true},
		"no time": {func(o *v1beta1.AdvDeployment) { o.Status.Conditions[0].LastTransitionTime = metav1.Time{} }, true},
		"many": {func(o *v1beta1.AdvDeployment) {
			o.UID, o.ResourceVersion, o.CreationTimestamp = "uid-2", "17", at
			o.Status.AggrStatus.Available, o.Status.Conditions[0].Message = 3, "not well"
			o.Status.AggrStatus.PodSets[0].Update = nil
		}, false},
	} {
		o := full()
		c.change(o)
		want := o.DeepCopy()
		got, size := viaDelta(model, o)
		switch {
		case c.unlike != (got == nil):
			t.Errorf("%s: told as a delta: %t, want %t", name, got != nil, !c.unlike)
		case got != nil && !reflect.DeepEqual(got, want):
			t.Errorf("%s: it says %+v, want %+v", name, got, want)
		case name == "nothing" && (got != model || size > 0):
			t.Errorf("%d bytes tell of nothing", size)
		}
		if !reflect.DeepEqual(model, full()) {
			t.Fatalf("%s: the model was written to", name)
		}
	}
}

// TestDeltaOfAnything: whatever two parts are, a delta of them is none or right, and writes to neither.
func TestDeltaOfAnything(t *testing.T) {
	fit := 0
	for seed := range int64(2000) {
		fill := func(seed int64, chance float64) *v1beta1.AdvDeployment {
			o := &v1beta1.AdvDeployment{}
			randfill.NewWithSeed(seed).NilChance(chance).NumElements(1, 1).MaxDepth(20).Funcs(
				func(s *string, c randfill.Continue) { *s = c.String(3) },
				func(m *map[string]string, c randfill.Continue) {
					*m = map[string]string{"a": c.String(3), "b": c.String(2)}
				},
				func(x *metav1.Time, c randfill.Continue) { *x = metav1.Unix(c.Int63n(1<<33), 0) },
				func(x *runtime.RawExtension, c randfill.Continue) { x.Raw = []byte(c.String(4)) },
				func(x *v1beta1.PodSpec, c randfill.Continue) { x.DeployType = "TApp" },
				func(x *types.UID, c randfill.Continue) { *x = types.UID(c.String(9)) },
			).Fill(o)
			return o
		}
		model := fill(seed, 0)
		for i, o := range []*v1beta1.AdvDeployment{fill(seed+1, 0), fill(seed+1, 0.1), model.DeepCopy()} {
			if i == 2 {
				o.Status, o.Generation = fill(seed+2, 0).Status, seed
			}
			before, want := model.DeepCopy(), o.DeepCopy()
			got, _ := viaDelta(model, o)
			if got != nil {
				fit++
			}
			if got != nil && !reflect.DeepEqual(got, want) || !reflect.DeepEqual(model, before) || !reflect.DeepEqual(o, want) {
				t.Fatalf("seed %d: %+v of %+v became %+v", seed, want, before, got)
			}
		}
	}
	if fit < 1000 {
		t.Errorf("deltas were made of %d pairs only", fit)
	}
}
