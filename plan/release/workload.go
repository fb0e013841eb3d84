package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
	"tkestack.io/tapp/plan/podset"
)

// scalable are the kinds of which one object of a release is scaled, and given the image
// and the labels of its podSet.
var scalable = []string{"Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps", "TApp.apps.tkestack.io"}

func isScalable(object map[string]any) bool {
	gvk := GVK(object)
	return slices.Contains(scalable, gvk.Kind+"."+gvk.Group)
}

// workload is the index of the object that is scaled: the one that the podSet names, or
// that is named as the release, or that is alone. -1: there is none, or why it cannot be
// told.
func (c *computation) workload(objects []Object) (index int, why string) {
	var all, named []int
	for i, o := range objects {
		if !isScalable(o.Content) {
			continue
		}
		all = append(all, i)
		if text(o.Content, "metadata", "name") == c.workloadName() {
			named = append(named, i)
		}
	}
	list := func(some []int) string {
		var out []string
		for _, i := range some {
			out = append(out, c.refOf(objects[i].Content).String())
		}
		return strings.Join(out, ", ")
	}
	asked := c.in.Want != nil && c.in.Want.Workload != ""
	switch {
	case len(named) == 1:
		return named[0], ""
	case asked:
		return -1, fmt.Sprintf("no single workload of the chart is named %s: there are %s", c.in.Want.Workload, list(all))
	case len(all) == 1:
		return all[0], ""
	case len(all) == 0:
		return -1, ""
	case len(named) > 1:
		all = named
	}
	return -1, fmt.Sprintf("the chart has %d workloads, and which of them has the podSet's replicas, image and version cannot be told: %s. "+
		"Name it in the podSet's meta, %s: NAME, or have the chart name it as the release, as by fullnameOverride: %s in rawValues", len(all), list(all), LabelWorkload, c.in.Name)
}

func (c *computation) workloadName() string {
	if c.in.Want != nil && c.in.Want.Workload != "" {
		return c.in.Want.Workload
	}
	return c.in.Name
}

// made are the objects of the chart with what the podSet says of their content.
func (c *computation) made(r *Rendered) (out []Object, problems []Stall) {
	w, why := c.workload(r.Objects)
	if why != "" {
		return nil, []Stall{{ReasonAmbiguous, why}}
	}
	out = slices.Clone(r.Objects)
	if w >= 0 {
		out[w].Content = runtime.DeepCopyJSON(out[w].Content)
		c.dress(out[w].Content, selected(r.Objects))
	}
	return out, nil
}

// dress gives a workload the image, labels, annotations and nodes of its podSet.
func (c *computation) dress(object map[string]any, selected map[string]bool) {
	want := c.in.Want
	meta := entry(object, "metadata")
	put(meta, "labels", want.Labels, nil)
	put(meta, "annotations", want.Annotations, nil)
	template, ok := manifest.At(object, "spec", "template").(map[string]any)
	if !ok {
		return
	}
	meta = entry(template, "metadata")
	put(meta, "labels", want.Labels, selected)
	put(meta, "annotations", want.Annotations, nil)
	if main := mainContainer(template, want.App); main != nil {
		main["image"], _ = podset.ImageOf(want.Image, text(main, "image"), want.Version)
	}
	if want.Nodes != nil {
		requireNodes(entry(template, "spec"), want.Nodes)
	}
}

// put adds entries to a map below a key. What the chart has stays where it selects by it,
// and the names of application and release are the chart's wherever it has some.
func put(in map[string]any, key string, more map[string]string, selected map[string]bool) {
	if len(more) == 0 {
		return
	}
	have := entry(in, key)
	for _, k := range slices.Sorted(maps.Keys(more)) {
		if _, there := have[k]; there && (selected[k] || k == v1beta1.LabelApp || k == v1beta1.LabelRelease) {
			continue
		}
		have[k] = more[k]
	}
}

// selected are the keys of labels that the objects of a chart select by.
func selected(objects []Object) map[string]bool {
	out := map[string]bool{}
	for _, o := range objects {
		for _, path := range [][]string{{"spec", "selector"}, {"spec", "podSelector"}} {
			labels, _ := manifest.At(o.Content, path...).(map[string]any)
			if nested, ok := labels["matchLabels"].(map[string]any); ok {
				labels = nested
			}
			for key := range labels {
				out[key] = true
			}
		}
	}
	return out
}

// mainContainer of a pod template; nil: there is none.
func mainContainer(template map[string]any, app string) map[string]any {
	typed := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, typed); err != nil {
		return nil // the API server will say so
	}
	main := podset.MainContainer(typed, app)
	containers, _ := manifest.At(template, "spec", "containers").([]any)
	if main < 0 || main >= len(containers) {
		return nil
	}
	out, _ := containers[main].(map[string]any)
	return out
}

// requireNodes adds a term to what pods require of their nodes. Terms are alternatives, so
// that each of them gets it.
func requireNodes(spec map[string]any, term *corev1.NodeSelectorTerm) {
	required := entry(entry(entry(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
	more := manifest.Plain(term)
	terms, _ := required["nodeSelectorTerms"].([]any)
	if len(terms) == 0 {
		required["nodeSelectorTerms"] = []any{more}
		return
	}
	for _, t := range terms {
		if fields, ok := t.(map[string]any); ok {
			for key, value := range more {
				have, _ := fields[key].([]any)
				added, _ := value.([]any)
				fields[key] = append(slices.Clip(have), added...)
			}
		}
	}
}

// sized gives a workload what is no content: the number of its instances, and how many of
// them a change may take.
//
// | kind | held | within maxUnavailable |
// |---|---|---|
// | TApp | paused | updateStrategy.maxUnavailable |
// | StatefulSet | partition above all ids | rollingUpdate.maxUnavailable |
// | Deployment | paused, once it has pods | rollingUpdate.maxUnavailable |
func (c *computation) sized(made map[string]any, ref Ref, have *unstructured.Unstructured) {
	want := c.in.Want
	if want == nil {
		return
	}
	spec := entry(made, "spec")
	c.scaled(spec, ref, have)
	if want.MinReadySeconds > 0 {
		spec["minReadySeconds"] = int64(want.MinReadySeconds)
	}
	rolls := want.MaxUnavailable != nil && *want.MaxUnavailable > 0
	switch ref.Kind {
	case "TApp":
		if want.Held {
			spec["paused"] = true
		}
		if rolls {
			entry(spec, "updateStrategy")["maxUnavailable"] = int64(*want.MaxUnavailable)
		}
	case "StatefulSet":
		strategy := entry(spec, "updateStrategy")
		if strategy["type"] == "OnDelete" {
			return
		}
		if want.Held {
			start, _ := manifest.At(spec, "ordinals", "start").(int64)
			entry(strategy, "rollingUpdate")["partition"] = start + int64(want.Replicas)
		}
		if rolls {
			entry(strategy, "rollingUpdate")["maxUnavailable"] = int64(*want.MaxUnavailable)
		}
	case "Deployment":
		strategy := entry(spec, "strategy")
		if want.Held && have != nil && have.GetAnnotations()["deployment.kubernetes.io/revision"] != "" {
			spec["paused"] = true
		}
		if rolls && strategy["type"] != "Recreate" {
			entry(strategy, "rollingUpdate")["maxUnavailable"] = int64(*want.MaxUnavailable)
		}
		if len(strategy) == 0 {
			delete(spec, "strategy")
		}
	}
}

// scaled sets the number of instances, which is an autoscaler's where there is one. A
// field that we own and drop would fall to 1: the live number is applied until the
// autoscaler has written one of its own.
func (c *computation) scaled(spec map[string]any, ref Ref, have *unstructured.Unstructured) {
	if !c.in.Autoscaled[ref] {
		spec["replicas"] = int64(c.in.Want.Replicas)
		return
	}
	delete(spec, "replicas")
	if have == nil || have.GetAnnotations()[AnnotationReplicasBy] != "" {
		return
	}
	if live, found, _ := unstructured.NestedInt64(have.Object, "spec", "replicas"); found {
		spec["replicas"] = live
	}
}

// AnnotationReplicasBy marks, in what a planner sees and nowhere else, an object whose
// spec.replicas another field manager than ours owns.
const AnnotationReplicasBy = v1beta1.GroupName + "/replicas-by"

// isAutoscaled says whether the number of instances of a record's workload is an
// autoscaler's.
func (c *computation) isAutoscaled(r *Record) bool {
	if len(c.in.Autoscaled) == 0 || !c.load(r) {
		return false
	}
	w, _ := c.workload(r.Objects)
	return w >= 0 && c.in.Autoscaled[c.refOf(r.Objects[w].Content)]
}
