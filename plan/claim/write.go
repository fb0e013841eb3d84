package claim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// New is the claim that a template makes for an instance.
func (w *Workload) New(t *corev1.PersistentVolumeClaim, namespace, name, id string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	c.Name, c.GenerateName, c.Namespace = name, "", namespace
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	maps.Copy(c.Labels, w.Labels)
	c.Labels[tappv1.LabelInstanceID] = id
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	delete(c.Annotations, tappv1.AnnotationClaimFound) // it would never go
	c.Annotations[tappv1.AnnotationClaimOf] = w.Mark()
	return c
}

// Take is the one write that labels a claim of ours and marks it, and why. It holds for the
// version that was judged: of two who want the claim, one comes too late.
func (w *Workload) Take(c *corev1.PersistentVolumeClaim, id string, v Verdict) (patch []byte, why string) {
	why = "the claim is marked as the TApp's, so that nobody else takes it by its name"
	marks := map[string]string{tappv1.AnnotationClaimOf: w.Mark()}
	if v.Found {
		marks[tappv1.AnnotationClaimFound] = "true"
		why = "the claim was there before the TApp, without its labels: it is used, and no retention policy deletes it while it has the annotation " + tappv1.AnnotationClaimFound
	}
	maps.Copy(marks, w.Spare(c, v))
	m := map[string]any{"uid": c.UID, "annotations": marks}
	if c.ResourceVersion != "" {
		m["resourceVersion"] = c.ResourceVersion
	}
	if _, labelled := c.Labels[tappv1.LabelInstanceID]; !labelled {
		m["labels"] = map[string]string{tappv1.LabelInstanceID: id}
	}
	patch, _ = json.Marshal(map[string]any{"metadata": m}) // strings always marshal
	return patch, why
}

// Kept tells of claims that stay after a scale-down although whenScaled is Delete.
func Kept(names []string) string {
	const most = 3
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "; claims that were there before the TApp are kept, though whenScaled is Delete: " + text
}
