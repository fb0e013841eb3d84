package tapp

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/refusal"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/trial"
)

// operation says what an Op of the planner writes, and how events tell of it.
type operation struct {
	write func(context.Context, *writer, *plan.Action) error
	// verb and past, as in "cannot create instance 3" and "created instance 3".
	verb, past string
	// success and failure are the reasons of events. Without a success reason an
	// event tells of failures only: it is a part of something else that is told.
	success, failure string
}

func operations() map[plan.Op]operation {
	return map[plan.Op]operation{
		plan.OpCreate:        {create, "create", "created", "SuccessfulCreate", refusal.FailedCreate},
		plan.OpReplace:       {replace, "replace", "replaced the ended pods of", "SuccessfulCreate", refusal.FailedCreate},
		plan.OpCreateClaim:   {createClaim, "create the claims of", "created claims of", "SuccessfulCreate", refusal.FailedCreate},
		plan.OpUpdateClaim:   {updateClaim, "update the claims of", "updated the claims of", "SuccessfulUpdate", refusal.FailedUpdate},
		plan.OpDeleteClaim:   {deleteClaim, "delete the claims of", "deleted the claims of", "SuccessfulDelete", refusal.FailedDelete},
		plan.OpDelete:        {deletePod, "delete the pods of", "deleted the pods of", "SuccessfulDelete", refusal.FailedDelete},
		plan.OpForceDelete:   {forceDelete, "delete by force the pods of", "deleted by force the pods of", "SuccessfulDelete", refusal.FailedDelete},
		plan.OpDrain:         {patchStatus, "drain", "", "", refusal.FailedUpdate},
		plan.OpUpdateInPlace: {patch, "update in place", "updated in place", "SuccessfulUpdate", refusal.FailedUpdate},
		plan.OpResize:        {resize, "resize", "resized", "SuccessfulUpdate", refusal.FailedUpdate},
		plan.OpUndrain:       {patchStatus, "undrain", "", "", refusal.FailedUpdate},
		plan.OpRelabel:       {patch, "relabel", "relabelled", "SuccessfulUpdate", refusal.FailedUpdate},
		plan.OpAdopt:         {adopt, "adopt the pods of", "adopted the pods of", "SuccessfulAdopt", "FailedAdopt"},
		plan.OpRelease:       {patch, "release the pods of", "released the pods of", "SuccessfulRelease", "FailedRelease"},

		plan.OpCreateRevision: {createRevision, "record the revision", "", "", "FailedHistory"},
		plan.OpUpdateRevision: {updateRevision, "update the revision", "", "", "FailedHistory"},
		plan.OpPruneTemplates: {pruneTemplates, "drop unused templates", "dropped unused templates", "SuccessfulPrune", "FailedPrune"},
		plan.OpDeleteRevision: {deleteRevision, "delete an old revision", "", "", "FailedHistory"},
	}
}

// triedOperation is what a dry run stands for, as events tell of a refusal.
func triedOperation(kind trial.Kind) operation {
	op := refusal.TryUpdate
	if kind == trial.Create {
		op = refusal.TryCreate
	}
	return operation{verb: refusal.VerbOf(op), failure: refusal.ReasonOf(op)}
}

// writer makes the writes of one sync, and notes them in the guard.
type writer struct {
	tapp  *tappv1.TApp
	guard *cache.Guard
	// forUpdate has the instances whose pods were deleted for their update.
	forUpdate *forUpdate

	pods    corev1client.PodInterface
	claims  corev1client.PersistentVolumeClaimInterface
	history appsv1client.ControllerRevisionInterface
	tapps   client.TAppInterface
	// mayAdopt reads the TApp live, once a sync.
	mayAdopt func() error
	metrics  *Metrics
	// wrote notes how a write ended that answers a question.
	wrote func(*plan.Action, error)
	// us is the TApp as one of those that make claims, and workloads reads others of them.
	us        func() claim.Workload
	workloads func(context.Context, []string) (map[string][]claim.Workload, error)
}

func (c *Controller) newWriter(ctx context.Context, t *tappv1.TApp, o *object) *writer {
	return &writer{
		wrote: func(*plan.Action, error) {},
		us:    func() claim.Workload { return plan.MakerOf(t, c.Policy) },
		workloads: func(ctx context.Context, names []string) (map[string][]claim.Workload, error) {
			return c.readWorkloads(ctx, t.Namespace, names)
		},
		tapp: t, guard: &o.guard, forUpdate: &o.forUpdate, metrics: c.Metrics,
		pods: c.Core.Pods(t.Namespace), claims: c.Core.PersistentVolumeClaims(t.Namespace), history: c.Apps.ControllerRevisions(t.Namespace), tapps: c.TApps.TApps(t.Namespace),
		mayAdopt: write.Once(func() error {
			return write.MayAdopt(tappv1.Kind, t.UID, func() (*tappv1.TApp, error) { return c.TApps.TApps(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{}) })
		}),
	}
}

// create POSTs a pod, and opens its gate. The second write may fail: the planner
// sees the closed gate.
func create(ctx context.Context, w *writer, a *plan.Action) error {
	pod, err := w.pods.Create(ctx, a.Pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return w.meetPod(ctx, a.Pod.Name)
	}
	w.wrote(a, err)
	if err != nil {
		return write.UnlessTerminating(err)
	}
	w.guard.Wrote(storePods, pod.ResourceVersion)
	if a.Status == nil {
		return nil
	}
	if pod, err = w.pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, a.Status, metav1.PatchOptions{}, "status"); err != nil {
		w.metrics.gatesLeft.Inc()
		return nil
	}
	w.guard.Wrote(storePods, pod.ResourceVersion)
	return nil
}

// meetPod looks at a pod that has the name of one to create. It is fine only if
// it is the TApp's.
func (w *writer) meetPod(ctx context.Context, name string) error {
	pod, err := w.pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: pod %s went away just now", write.ErrStale, name)
	}
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case owner == nil:
		return fmt.Errorf("the pod %s exists already, and belongs to nobody; delete it, or give it the labels of the instance", name)
	case owner.UID != w.tapp.UID:
		return fmt.Errorf("the pod %s exists already, and belongs to %s %s (uid %s); delete it to make room", name, owner.Kind, owner.Name, owner.UID)
	case pod.Labels[tappv1.LabelInstanceID] == "":
		return fmt.Errorf("the pod %s of the TApp has lost its label %s, without which it is not seen; give it back, or delete the pod", name, tappv1.LabelInstanceID)
	}
	w.guard.Wrote(storePods, pod.ResourceVersion)
	return fmt.Errorf("%w: pod %s exists already", write.ErrStale, name)
}

// replace deletes a pod that ended, and creates the next one.
func replace(ctx context.Context, w *writer, a *plan.Action) error {
	if _, err := w.delete(ctx, a.Old, metav1.DeleteOptions{}, false); err != nil {
		return &partError{plan.OpDelete, err}
	}
	return create(ctx, w, a)
}

func deletePod(ctx context.Context, w *writer, a *plan.Action) error {
	o := metav1.DeleteOptions{}
	if a.ResourceVersion != "" {
		o.Preconditions = &metav1.Preconditions{ResourceVersion: &a.ResourceVersion}
	}
	found, err := w.delete(ctx, a.Pod, o, false)
	if found && a.ForUpdate {
		w.forUpdate.deleted(a.ID, a.Pod.UID)
	}
	return err
}

// forceDelete deletes what the plan's evidence was about, and nothing that has
// changed since.
func forceDelete(ctx context.Context, w *writer, a *plan.Action) error {
	_, err := w.delete(ctx, a.Pod, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      &metav1.Preconditions{ResourceVersion: &a.ResourceVersion},
	}, true)
	return err
}

// delete deletes this very pod, not another one of the same name. Found: it was there; one
// that somebody else was faster to delete is gone all the same.
func (w *writer) delete(ctx context.Context, pod *corev1.Pod, o metav1.DeleteOptions, force bool) (found bool, err error) {
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	o.Preconditions.UID = &pod.UID
	err = w.pods.Delete(ctx, pod.Name, o)
	switch {
	case apierrors.IsConflict(err):
		return false, fmt.Errorf("%w: %s", write.ErrStale, err.Error())
	case err != nil && !apierrors.IsNotFound(err):
		w.lookAfter(ctx, pod, err)
		return false, err
	}
	w.noteDeleted(pod, force)
	return err == nil, nil
}

func patch(ctx context.Context, w *writer, a *plan.Action) error {
	err := w.patch(ctx, a.Pod, a.Patch)
	w.wrote(a, err)
	return err
}

func patchStatus(ctx context.Context, w *writer, a *plan.Action) error {
	return w.patch(ctx, a.Pod, a.Status, "status")
}

// resize changes the pod's resources. When the API server refuses that for good, it is
// noted on the pod, for the planner to see.
func resize(ctx context.Context, w *writer, a *plan.Action) error {
	err := w.patch(ctx, a.Pod, a.Patch, "resize")
	w.wrote(a, err)
	if trial.Judge(trial.Resize, err) != trial.Immutable {
		return err
	}
	klog.FromContext(ctx).Info("A pod cannot be resized, and will be recreated", "pod", klog.KObj(a.Pod), "reason", write.Words(err))
	return w.patch(ctx, a.Pod, a.Refused)
}

func adopt(ctx context.Context, w *writer, a *plan.Action) error {
	if err := w.mayAdopt(); err != nil {
		return err
	}
	return patch(ctx, w, a)
}

// patch makes a strategic merge patch that carries the pod's UID.
func (w *writer) patch(ctx context.Context, pod *corev1.Pod, data []byte, subresources ...string) error {
	patched, err := w.pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		w.lookAfter(ctx, pod, err)
		return write.StaleOr(err)
	}
	w.guard.Wrote(storePods, patched.ResourceVersion)
	return nil
}
