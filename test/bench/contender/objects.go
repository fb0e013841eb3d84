package contender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/bench/record"
)

// objectsToo is the limit of many small TApps: a bare client beside a user who writes
// the TApps, as for the real one. For each it writes what no controller can spare: a
// revision, an event and the status, which waits for nothing here.
type objectsToo struct {
	*bareClient
	asking *tappUser
}

// StartBareObjects starts the limit with the objects above the pods.
func (b *Bench) StartBareObjects(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error) {
	bare, limit, err := b.startBare(ctx, namespace, size)
	if err != nil {
		return nil, err
	}
	c := &objectsToo{bareClient: bare, asking: &tappUser{job: bare.job, namespace: namespace.Name}}
	if err := errors.Join(b.makeCRD(ctx), c.asking.serves(ctx)); err != nil {
		return nil, err
	}
	limit.Name = record.BareObjects
	limit.Do = map[string]func(context.Context) error{record.Create: c.create, record.InPlace: c.inPlace}
	clearPods := limit.Stop
	limit.Stop = func(ctx context.Context) error { return errors.Join(c.asking.deleteAll(ctx), clearPods(ctx)) }
	return limit, nil
}

// makeCRD has a controller do it, which does so when it starts.
func (b *Bench) makeCRD(ctx context.Context) error {
	process, err := b.startController()
	if err != nil {
		return err
	}
	return errors.Join(process.ready(ctx), process.Stop())
}

func (c *objectsToo) create(ctx context.Context) error {
	return c.beside(ctx, c.bareClient.create, func() error {
		return c.asking.createAll(ctx, func(t *tappv1.TApp) error { return c.tell(ctx, t) })
	})
}

func (c *objectsToo) inPlace(ctx context.Context) error {
	c.asking.version.images++
	return c.beside(ctx, c.bareClient.inPlace, func() error {
		return c.asking.patchAll(ctx, c.asking.updated("100%"), func(t *tappv1.TApp) error { return c.tell(ctx, t) })
	})
}

// beside has the pods written beside the objects.
func (c *objectsToo) beside(ctx context.Context, pods func(context.Context) error, objects func() error) error {
	var g errgroup.Group
	g.Go(func() error { return pods(ctx) })
	g.Go(objects)
	return g.Wait()
}

// tell writes all that is told of a TApp's new generation, the status once, which is
// the least that there can be.
func (c *objectsToo) tell(ctx context.Context, t *tappv1.TApp) error {
	owner := *metav1.NewControllerRef(t, tappv1.GroupVersionKind())
	name := t.Name + "-" + strconv.FormatInt(t.Generation, 10)
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": t.Spec.Template}})
	if err != nil {
		return err
	}
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{tappv1.LabelTApp: t.Name}, OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       runtime.RawExtension{Raw: data}, Revision: t.Generation,
	}
	if _, err := c.bare.AppsV1().ControllerRevisions(t.Namespace).Create(ctx, revision, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("writing a revision: %w", err)
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: t.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: t.Namespace, Name: t.Name, UID: t.UID},
		Reason:         "Updated", Message: "instances 0-9: told as the real one tells", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: bareAgent}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if _, err := c.bare.CoreV1().Events(t.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID}, "status": c.status(t)})
	if err != nil {
		return err
	}
	if _, err := c.bareTApps.TApps(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("writing a status: %w", err)
	}
	return nil
}

// status of a TApp whose instances all run.
func (c *objectsToo) status(t *tappv1.TApp) tappv1.TAppStatus {
	n := int32(c.size.Instances)
	revision := fmt.Sprintf("%s-%016x", t.Name, t.Generation)
	status := tappv1.TAppStatus{
		ObservedGeneration: t.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n,
		CurrentRevision: revision, UpdateRevision: revision,
		ScaleLabelSelector: metav1.FormatLabelSelector(t.Spec.Selector), AppStatus: tappv1.AppRunning,
		LastProgressTime: new(metav1.Now()), Statuses: map[string]tappv1.InstanceStatus{},
	}
	for i := range c.size.Instances {
		status.Statuses[strconv.Itoa(i)] = tappv1.InstanceRunning
	}
	for _, kind := range []string{tappv1.ConditionReady, tappv1.ConditionProgressing} {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: t.Generation,
			LastTransitionTime: metav1.Now(), Reason: "Available", Message: "as long as the real one"})
	}
	return status
}
