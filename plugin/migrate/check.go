package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/unready"
)

// migration of one StatefulSet.
type migration struct {
	*migrating
	s *Cluster
	// set is the StatefulSet; if it is gone, as the TApp recorded it.
	set  *appsv1.StatefulSet
	gone bool
	// tapp is the TApp that was created, or that will be.
	tapp *tappv1.TApp
	made bool
	// before is the state of the pods when this command began, by name.
	before map[string]podState
}

// podState is what is different after a pod was replaced or a container restarted.
type podState struct {
	uid      string
	restarts int32
}

func podStateOf(pod *corev1.Pod) podState {
	out := podState{uid: string(pod.UID)}
	for _, c := range pod.Status.ContainerStatuses {
		out.restarts += c.RestartCount
	}
	return out
}

// begin reads how far the migration is.
func (m *migrating) begin(ctx context.Context, s *Cluster, name string) (*migration, error) {
	v := &migration{migrating: m, s: s, before: map[string]podState{}}
	set, err := s.Apps.StatefulSets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	v.gone = apierrors.IsNotFound(err)
	if err != nil && !v.gone {
		return nil, err
	}
	missing := err
	t, err := s.get(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if v.made = err == nil; !v.made {
		if v.gone {
			return nil, missing
		}
		v.set = set
		v.tapp, err = Convert(set)
		return v, err
	}
	v.tapp = t
	if v.set, err = sourceOf(t); err != nil {
		return nil, err
	}
	switch {
	case v.set == nil && v.gone:
		return nil, missing
	case v.set == nil, !v.gone && t.Annotations[AnnotationUID] != string(set.UID):
		return nil, fmt.Errorf("there is a TApp %s already, and it was not made from this StatefulSet", name)
	case v.gone:
		return v, nil
	}
	v.set = set
	return v, v.unchanged(set)
}

// unchanged checks that the StatefulSet is as it was when the TApp was made from it.
func (v *migration) unchanged(set *appsv1.StatefulSet) error {
	was, err := sourceOf(v.tapp)
	if err != nil || was == nil {
		return err
	}
	if !equality.Semantic.DeepEqual(was.Spec, ManifestOf(set).Spec) {
		return fmt.Errorf("StatefulSet %s changed after TApp %s was made from it, and still has its pods: delete the TApp, and begin again", set.Name, v.tapp.Name)
	}
	return nil
}

// check says whether the migration can go on, and what the TApp would do to the pods.
func (v *migration) check(ctx context.Context) error {
	pods, err := v.pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		v.before[pod.Name] = podStateOf(pod)
	}
	if v.made { // the checks were before that
		v.say(1, "TApp %s was made from StatefulSet %s before: going on", v.tapp.Name, v.set.Name)
		return nil
	}
	if no := append(unsupported(v.set), v.notRolledOut(pods)...); len(no) > 0 {
		return refusal(v.set.Name, no)
	}
	for _, text := range differences(v.set) {
		v.warn(text)
	}
	t := v.tapp.DeepCopy()
	if v.dryRun() != dryRunClient { // the server's defaults and admission
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: *v.flags.Manager}
		if t, err = v.s.TApps.TApps(v.s.Namespace).Create(ctx, v.tapp, options); err != nil {
			return fmt.Errorf("the server would not accept the TApp: %w", err)
		}
	}
	o, err := v.s.Compute(ctx, t, asAdopted(pods, t))
	if err != nil {
		return err
	}
	if would := o.Disruptive; len(would) > 0 {
		if !v.force {
			return refusal(v.set.Name, would)
		}
		for _, text := range would {
			v.warn(text)
		}
		v.say(1, "StatefulSet %s is rolled out, and TApp %s would change its pods", v.set.Name, v.tapp.Name)
		return nil
	}
	v.say(1, "StatefulSet %s is rolled out, and its %s would not restart", v.set.Name, count(len(pods), "pod"))
	return nil
}

func refusal(name string, why []string) error {
	if len(why) == 1 {
		return fmt.Errorf("StatefulSet %s is not migrated: %s", name, why[0])
	}
	return fmt.Errorf("StatefulSet %s is not migrated:\n  %s", name, strings.Join(why, "\n  "))
}

// notRolledOut says what the StatefulSet has not done yet.
func (v *migration) notRolledOut(pods []*corev1.Pod) []string {
	set := v.set
	if set.DeletionTimestamp != nil {
		return []string{"it is being deleted"}
	}
	if set.Status.ObservedGeneration < set.Generation {
		return []string{"its controller has not seen its present spec yet"}
	}
	var out []string
	byName := map[string]*corev1.Pod{}
	for _, pod := range pods {
		byName[pod.Name] = pod
	}
	first := 0
	if o := set.Spec.Ordinals; o != nil {
		first = int(o.Start)
	}
	for id := first; id < first+int(replicasOfSet(set)); id++ {
		name := set.Name + "-" + strconv.Itoa(id)
		pod := byName[name]
		delete(byName, name)
		switch {
		case pod == nil:
			out = append(out, "pod "+name+" is missing")
		case !metav1.IsControlledBy(pod, set):
			out = append(out, "pod "+name+" is not its own")
		case pod.DeletionTimestamp != nil:
			out = append(out, "pod "+name+" is being deleted")
		case pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision:
			out = append(out, "pod "+name+" does not run the present template")
		case !v.force && !unready.IsReady(pod):
			out = append(out, "pod "+name+" is not ready")
		}
	}
	for _, pod := range pods {
		if byName[pod.Name] != nil {
			out = append(out, fmt.Sprintf("pod %s is beyond spec.replicas, which is %d", pod.Name, replicasOfSet(set)))
		}
	}
	return out
}

// asAdopted returns the pods as they will be after adoption: labelled, and controlled by
// the TApp.
func asAdopted(pods []*corev1.Pod, t *tappv1.TApp) []*corev1.Pod {
	if t.UID == "" {
		t.UID = "made-by-a-dry-run"
	}
	out := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		out[i] = pod.DeepCopy()
		out[i].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(t, tappv1.GroupVersionKind())}
		if out[i].Labels == nil {
			out[i].Labels = map[string]string{}
		}
		out[i].Labels[tappv1.LabelInstanceID] = strings.TrimPrefix(pod.Name, t.Name+"-")
	}
	return out
}

// pods of the StatefulSet, by its selector and their names.
func (v *migration) pods(ctx context.Context) ([]*corev1.Pod, error) {
	if v.set.Spec.Selector == nil {
		return nil, errors.New("the StatefulSet has no selector")
	}
	list, err := v.s.Core.Pods(v.s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(v.set.Spec.Selector)})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		if hasInstanceName(v.set.Name, list.Items[i].Name) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// hasInstanceName reports whether a name is <stem>-<instance id>.
func hasInstanceName(stem, name string) bool {
	_, ok := ids.InName(stem, name)
	return ok
}
