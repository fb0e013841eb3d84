package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

func tappAccess(verb, namespace, name string) Access {
	return Access{Verb: verb, Group: tappv1.GroupName, Resource: "tapps", Namespace: namespace, Name: name}
}

func (a *API) listTApps(q *request) error {
	return a.listKind(q, kindList{resource: tapps, access: tappAccess("list", q.namespace, ""), item: func(o any) (any, bool) {
		t, ok := o.(*tappv1.TApp)
		if !ok {
			return nil, false
		}
		return summarize(t), true
	}})
}

// summarize makes a line of the list, of what the controller has written into the status.
func summarize(t *tappv1.TApp) TApp {
	d := t.DeepCopy()
	tappv1.Default(d)
	s := &d.Spec
	out := TApp{
		Summary:  Summary{Namespace: t.Namespace, Name: t.Name, UID: string(t.UID), Created: t.CreationTimestamp, Generation: t.Generation, ObservedGeneration: t.Status.ObservedGeneration},
		Replicas: *s.Replicas, Ready: t.Status.ReadyReplicas, Available: t.Status.AvailableReplicas, Updated: t.Status.UpdatedReplicas, Paused: s.Paused,
		CurrentRevision: t.Status.CurrentRevision, UpdateRevision: t.Status.UpdateRevision, States: map[string]int{},
	}
	for _, state := range t.Status.Statuses {
		out.States[string(state)]++
	}
	out.Desired = desired(d)
	n, _ := plan.Scale(*s.UpdateStrategy.MaxUnavailable, int(out.Desired))
	out.MaxUnavailable, out.Unavailable = int32(n), max(0, out.Desired-out.Available)
	out.Templates = templatesOf(d)
	out.judge(t)
	return out
}

// desired is how many instances are to run, by spec and status.
func desired(t *tappv1.TApp) int32 {
	out := *t.Spec.Replicas
	leave := map[string]bool{}
	for id, state := range t.Spec.Statuses {
		leave[id] = state == tappv1.InstanceKilled
	}
	for id, state := range t.Status.Statuses {
		leave[id] = leave[id] || state == tappv1.InstanceFailed || state == tappv1.InstanceSucc
	}
	for id, left := range leave {
		if n, ok := plan.ParseID(id); ok && left && plan.IDsOf(&t.Spec).Has(n) {
			out--
		}
	}
	return out
}

// templatesOf a TApp with how many instances are to have each, by name.
func templatesOf(t *tappv1.TApp) []Template {
	counts := map[string]int{t.Spec.DefaultTemplateName: int(*t.Spec.Replicas)}
	for id, name := range t.Spec.Templates {
		if n, ok := plan.ParseID(id); ok && name != "" && plan.IDsOf(&t.Spec).Has(n) {
			counts[name]++
			counts[t.Spec.DefaultTemplateName]--
		}
	}
	out := []Template{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] <= 0 {
			continue
		}
		one := Template{Name: name, Images: []string{}, Instances: counts[name]}
		if spec := t.Spec.FindTemplate(name); spec != nil {
			one.Images = imagesOf(spec.Spec.Containers)
		}
		out = append(out, one)
	}
	return out
}

func imagesOf(containers []corev1.Container) []string {
	out := make([]string, len(containers))
	for i := range containers {
		out[i] = containers[i].Name + "=" + containers[i].Image
	}
	return out
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// kubectl is a command of kubectl tapp about the object.
func (s *Summary) kubectl(verb, rest string) string {
	line := "kubectl tapp " + verb + " " + s.Name
	if rest != "" {
		line += " " + rest
	}
	return line + " -n " + s.Namespace
}

// tappTopic is a topic about one TApp. shows makes what is shown of it.
func (a *API) tappTopic(q *request, what string, shows func(o *view.Observed, before *shown) (*shown, error)) (*topic, func(), error) {
	namespace, name := q.namespace, q.name
	about := func(r resource, n toolscache.ObjectName) bool {
		if n.Namespace != namespace {
			return false
		}
		if r == tapps {
			return n.Name == name
		}
		return r == claims || view.HasInstanceName(name, n.Name)
	}
	return a.topics.acquire(what+"/"+namespace+"/"+name, about, func(ctx context.Context, t *topic, before *shown) (*shown, time.Duration, error) {
		o, err := a.observe(ctx, t, namespace, name)
		if err != nil {
			return nil, 0, err
		}
		s, err := shows(o, before)
		return s, o.Plan.Wait, err
	})
}

// observe a TApp from the feeds, and plan.
func (a *API) observe(ctx context.Context, t *topic, namespace, name string) (*view.Observed, error) {
	stored, errTApps := t.feed(tapps, namespace)
	podStore, errPods := t.feed(pods, namespace) // both at once
	if err := cmp.Or(errTApps, errPods); err != nil {
		return nil, err
	}
	object, exists, err := stored.GetByKey(namespace + "/" + name)
	if err != nil {
		return nil, fmt.Errorf("looking for TApp %s/%s: %w", namespace, name, err)
	}
	tapp, ok := object.(*tappv1.TApp)
	if !exists || !ok {
		return nil, apierrors.NewNotFound(tappv1.Resource().GroupResource(), name)
	}
	in := plan.Input{TApp: tapp, Now: time.Now(), Policy: a.policy(ctx)}
	found, err := podStore.ByIndex(byStem, namespace+"/"+name)
	if err != nil {
		return nil, fmt.Errorf("looking for pods of TApp %s/%s: %w", namespace, name, err)
	}
	for _, o := range found {
		if pod, ok := o.(*corev1.Pod); ok {
			in.Pods = append(in.Pods, pod)
		}
	}
	if len(tapp.Spec.VolumeClaimTemplates) > 0 {
		store, err := t.feed(claims, namespace)
		if err != nil {
			return nil, err
		}
		for _, o := range store.List() {
			claim, ok := o.(*corev1.PersistentVolumeClaim)
			if ok && slices.ContainsFunc(tapp.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool {
				return view.HasInstanceName(c.Name+"-"+name, claim.Name)
			}) {
				in.Claims = append(in.Claims, claim)
			}
		}
	}
	return view.Observe(in), nil
}

func (a *API) getTApp(q *request) error {
	v, err := q.granted(func() error { return a.may(q, tappAccess("get", q.namespace, q.name)) })
	if err != nil {
		return err
	}
	t, release, err := a.tappTopic(q, "tapp", func(o *view.Observed, before *shown) (*shown, error) {
		d, err := detail(o)
		if err != nil {
			return nil, err
		}
		return newObject(d, before)
	})
	if err != nil {
		return err
	}
	defer release()
	return a.show(q, t, v)
}

// firstError of the checks, which are made in their order.
func firstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func detail(o *view.Observed) (*TAppDetail, error) {
	d := &TAppDetail{TApp: summarize(o.TApp), Problems: o.Problems(), Waiting: waitingOf(o)}
	for _, s := range o.Steps() {
		d.Steps = append(d.Steps, Step{s, s.Sentence()})
	}
	d.Commands = d.commands()
	text, err := manifest(o.TApp, tappv1.GroupVersionKind().GroupVersion().String(), tappv1.Kind)
	d.Object = text
	return d, err
}

// manifest is an object as users write it, with its status.
func manifest(object runtime.Object, apiVersion, kind string) (json.RawMessage, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	return json.Marshal(fields)
}

// commands that one may want next.
func (d *TAppDetail) commands() []Hint {
	out := []Hint{{"Follow it", d.kubectl("status", "--watch")}, {"List its instances", d.kubectl("get", "-o wide")}}
	if len(d.Waiting) > 0 {
		first, _, _ := strings.Cut(d.Waiting[0].Instances, ",")
		first, _, _ = strings.Cut(first, "-")
		out = append(out, Hint{"Explain an instance that waits", d.kubectl("explain", first)})
	}
	if len(d.Steps) > 0 {
		out = append(out, Hint{"Tell what is left to do", d.kubectl("plan", "")})
	}
	if d.Paused {
		out = append(out, Hint{"Let updates go on", d.kubectl("resume", "")})
	} else if len(d.Steps) > 0 {
		out = append(out, Hint{"Hold updates", d.kubectl("pause", "")})
	}
	if d.CurrentRevision != d.UpdateRevision && d.CurrentRevision != "" {
		out = append(out, Hint{"Go back to the last version", d.kubectl("undo", "")})
	}
	return append(out, Hint{"Show its history", d.kubectl("history", "")})
}
