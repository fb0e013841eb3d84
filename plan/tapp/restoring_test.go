package tapp

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestRestoring: while a TApp is restored from a backup nothing is done for it, since an
// instance that ended would run again, and its status stays as it is. Its deletion is not
// held up.
func TestRestoring(t *testing.T) {
	replicas := int32(2)
	app := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 1,
		Annotations: map[string]string{tappv1.AnnotationRestoring: "true"}}}
	app.Spec.Replicas = &replicas
	app.Spec.Template.Labels = map[string]string{"app": "web"}
	app.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	app.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	app.Status.ScaleLabelSelector = "app=web"
	app.Status.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceSucc}
	held := Compute(Input{TApp: app})
	if len(held.Actions) > 0 || len(held.History) > 0 || held.Wait != 0 || !reflect.DeepEqual(held.Status, app.Status) {
		t.Errorf("held, and the plan is %+v", held)
	}
	free := app.DeepCopy()
	free.Annotations = nil
	if p := Compute(Input{TApp: free}); len(p.Actions) != 1 || p.Actions[0].ID != "0" {
		t.Errorf("let go, and the plan is %+v", p.Actions)
	}
	going, now := app.DeepCopy(), metav1.Now()
	going.DeletionTimestamp = &now
	if p := Compute(Input{TApp: going}); reflect.DeepEqual(p, held) {
		t.Error("its deletion is held, too")
	}
}
