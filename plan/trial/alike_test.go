package trial

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// pod of an instance, as the API server has it.
func pod(id int) *corev1.Pod {
	name := fmt.Sprintf("web-%d", id)
	token := "kube-api-access-" + name
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{tappv1.LabelTemplateHash: "old"}},
		Spec: corev1.PodSpec{
			NodeName: "node-" + name, Hostname: name, Subdomain: "web",
			Containers: []corev1.Container{{Name: "main", Image: "demo:v1", VolumeMounts: []corev1.VolumeMount{{Name: "data"}, {Name: token}}}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name}}},
				{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			},
		},
	}
}

// TestAlike: pods of one template have one question, but for those that differ in more than
// what is one instance's alone.
func TestAlike(t *testing.T) {
	for about, c := range map[string]struct {
		change func(*corev1.Pod)
		alike  bool
	}{
		"another instance":    {func(*corev1.Pod) {}, true},
		"tied to its node":    {func(p *corev1.Pod) { template.RequireNode(&p.Spec, "n") }, true},
		"a status":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"a label":             {func(p *corev1.Pod) { p.Labels["by"] = "hand" }, true},
		"of another template": {func(p *corev1.Pod) { p.Labels[tappv1.LabelTemplateHash] = "older" }, false},
		"an injected container": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Image: "mesh:v1"})
		}, false},
		"an image of a hand": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "demo:hand" }, false},
		"a claim, read-only": {func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true }, false},
		"another mount":      {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].MountPath = "/other" }, false},
		"a security context": {func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} }, false},
	} {
		b := NewBench(nil, now)
		other := pod(1)
		c.change(other)
		if got := b.Of(Update, pod(0), "new") == b.Of(Update, other, "new"); got != c.alike {
			t.Errorf("%s: alike is %t", about, got)
		}
		if b.Of(Update, other, "new") != NewBench(nil, now).Of(Update, other, "new") {
			t.Errorf("%s: the question depends on what was asked before", about)
		}
		if b.Of(Update, other, "new") == b.Of(Update, other, "newer") || b.Of(Update, other, "new") == b.Of(Resize, other, "new") {
			t.Errorf("%s: different questions are one", about)
		}
	}
}

// TestManyUnalike: with more specs than are compared each still has a question of its own.
func TestManyUnalike(t *testing.T) {
	b, seen := NewBench(nil, now), map[Question]bool{}
	for n := range 3 * maxModels {
		p := pod(n)
		p.Spec.Containers[0].Image = fmt.Sprintf("demo:%d", n)
		seen[b.Of(Update, p, "new")] = true
		if !seen[b.Of(Update, p, "new")] {
			t.Errorf("%d is asked anew", n)
		}
	}
	if len(seen) != 3*maxModels {
		t.Errorf("%d questions", len(seen))
	}
}

// TestGate: what a gate tells of a refusal can be read again, and nothing else can.
func TestGate(t *testing.T) {
	gate := func(status corev1.ConditionStatus, reason, message string) *corev1.Pod {
		p := pod(0)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: tappv1.GateInPlaceUpdate, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}}
		return p
	}
	text := Message("ta1-0", Refusal{Times: 3, Words: "no; not at all, in a row: never"})
	hash, r, told := ReadGate(gate(corev1.ConditionTrue, ReasonUpdateRefused, text))
	if !told || hash != "ta1-0" || r.Times != 3 || !r.At.Equal(now) || r.Words != "no; not at all, in a row: never" || r.Pod != "web-0" {
		t.Errorf("read %q %+v %t of %q", hash, r, told, text)
	}
	for _, p := range []*corev1.Pod{pod(0), gate(corev1.ConditionFalse, ReasonUpdateRefused, text), gate(corev1.ConditionTrue, "PodCreated", text),
		gate(corev1.ConditionTrue, ReasonUpdateRefused, "no"), gate(corev1.ConditionTrue, ReasonUpdateRefused, ofTemplate+"x"+wasRefused+"0; no")} {
		if _, _, told := ReadGate(p); told {
			t.Errorf("read of %+v", p.Status.Conditions)
		}
	}
}
