package template

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managed is an entry of managedFields, by its manager, operation, subresource and the fields
// of containers that it has, such as main:name,image.
func managed(text string) metav1.ManagedFieldsEntry {
	words := strings.Fields(text)
	who := strings.Split(words[0], "/")
	e := metav1.ManagedFieldsEntry{Manager: who[0], Operation: metav1.ManagedFieldsOperationType(who[1]), FieldsType: "FieldsV1", Time: &metav1.Time{}}
	if len(who) > 2 {
		e.Subresource = who[2]
	}
	var lists [2][]string
	for _, container := range words[1:] {
		name, fields, _ := strings.Cut(container, ":")
		list := 0
		if name == "init" {
			list = 1
		}
		var has []string
		for _, f := range strings.Split(fields, ",") {
			has = append(has, `"f:`+f+`":{}`)
		}
		lists[list] = append(lists[list], `"k:{\"name\":\"`+name+`\"}":{`+strings.Join(has, ",")+`}`)
	}
	spec := `"f:containers":{` + strings.Join(lists[0], ",") + `}`
	if lists[1] != nil {
		spec += `,"f:initContainers":{` + strings.Join(lists[1], ",") + `}`
	}
	e.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{},"f:spec":{` + spec + `}}`)
	return e
}

// TestOverwritten: the entries are what API servers write for these commands.
func TestOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		entries []string
		want    string
	}{
		"none are known":                    {nil, ""},
		"made by TApp":                      {[]string{"tapp/Update main:name,image side:name,image", "kubelet/Update/status"}, ""},
		"made by TApp, kubectl set image":   {[]string{"tapp/Update main:name side:name,image", "kubectl-set/Update main:image"}, "main"},
		"and TApp set it back":              {[]string{"tapp/Update main:name,image side:name,image"}, ""},
		"an init container":                 {[]string{"tapp/Update main:name,image init:name", "kubectl-edit/Update init:image"}, "init"},
		"both":                              {[]string{"tapp/Update main:name init:name", "kubectl-edit/Update init:image main:image"}, "init main"},
		"forced by a server-side apply":     {[]string{"tapp/Update main:name", "helm/Apply main:name,image"}, "main"},
		"applied with the value that was":   {[]string{"tapp/Update main:name,image", "helm/Apply main:name,image"}, ""},
		"made by a StatefulSet, taken over": {[]string{"kube-controller-manager/Update main:name,image"}, ""},
		"and TApp updated it":               {[]string{"kube-controller-manager/Update main:name", "tapp/Update main:image"}, ""},
		"and then a hand":                   {[]string{"kube-controller-manager/Update main:name", "kubectl-patch/Update main:image"}, "main"},
		"made by tkestack/tapp, and a hand": {[]string{"tapp-controller/Update main:name", "kubectl-set/Update main:image"}, "main"},
		"made by an apply":                  {[]string{"maker/Apply main:name,image"}, ""},
		"a status that looks like a spec":   {[]string{"tapp/Update main:name", "kubelet/Update/status main:image"}, ""},
		"a resize by somebody":              {[]string{"tapp/Update main:name,image", "vpa/Update/resize main:resources"}, ""},
		"an injected container's own image": {[]string{"tapp/Update main:name,image side:name,image"}, ""},
	} {
		pod := &corev1.Pod{}
		for _, e := range c.entries {
			pod.ManagedFields = append(pod.ManagedFields, managed(e))
		}
		want := strings.Fields(c.want)
		if got := Overwritten(pod); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		pod.ManagedFields = Reduce(pod)
		if got := Overwritten(pod); !slices.Equal(got, want) || IsReduced(pod.ManagedFields) != (len(want) > 0) {
			t.Errorf("%s, reduced: %q, want %q", name, got, want)
		}
		if again := Reduce(pod); len(again) != len(pod.ManagedFields) {
			t.Errorf("%s, reduced twice: %v", name, again)
		}
	}
	broken := &corev1.Pod{}
	broken.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: metav1.NewFieldsV1(`{"f:image": [`)}, {Manager: "b"}}
	if got := Overwritten(broken); got != nil {
		t.Errorf("of what cannot be read: %q", got)
	}
}

// TestDifferences: what somebody wrote over is told in full, and is set back by the next
// update in place, whatever the record says.
func TestDifferences(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Labels = map[string]string{"tapp_template_hash_key": "v1-0123456789abcdef"}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "demo:v2"}, {Name: "side", Image: "side:v1"}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{managed("tapp/Update main:name side:name,image"), managed("kubectl-set/Update main:image")}
	template := &corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Name: "main", Image: "demo:v1"}, {Name: "side", Image: "side:v1"}}
	if got, want := Differences(pod, template), "container main runs demo:v2, its template says demo:v1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	record := (&Record{Images: map[string]string{"main": "demo:v1", "side": "side:v1"}}).of(pod)
	if got := record.ImageChanges(pod, template); !slices.Equal(got, []string{"image of main from demo:v2 to demo:v1"}) {
		t.Errorf("changes are %q", got)
	}
	template.Spec.Containers[0].Image = "docker.io/library/demo:v2"
	if got := Differences(pod, template); got != "" {
		t.Errorf("another spelling: %q", got)
	}
	pod.ManagedFields = nil
	if template.Spec.Containers[0].Image = "demo:v1"; Differences(pod, template) != "" {
		t.Error("without managedFields there is no hand")
	}
}
