// Package fleet measures the controller of AppSets: on a real hub, with members that are
// API servers in memory. It measures the controller's own work, not Kubernetes' in the members.
//
//	member.go    a simulated member
//	fleet.go     the hub, AppSets and registrations
//	process.go   the controller as a process
//	measure.go   what is measured
//	step.go      the steps of a rollout
package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// namespace of the AppSets and of the registrations.
const namespace = "fleet-bench"

// hub is the real cluster, and the simulated ones that it has.
type hub struct {
	binary, kubeconfig string
	kube               *kubernetes.Clientset
	appSets            client.AppSetInterface
	members            []*member
	process            *process

	mu sync.Mutex
	// writes of parts and of their statuses since the last call of forget.
	applied, told []written
}

func connect(config *rest.Config, binary, kubeconfig string) (*hub, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	appSets, err := client.NewAppSets(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of AppSets: %w", err)
	}
	return &hub{binary: binary, kubeconfig: kubeconfig, kube: kube, appSets: appSets.AppSets(namespace)}, nil
}

// begin has the hub have nothing but n members, and a controller.
func (h *hub) begin(ctx context.Context, n int) error {
	if err := h.clear(ctx); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := h.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making a namespace: %w", err)
	}
	for i := range n {
		m, err := start(memberName(i), h.note(&h.applied), h.note(&h.told))
		if err != nil {
			return err
		}
		h.members = append(h.members, m)
		config, err := m.kubeconfig()
		if err != nil {
			return fmt.Errorf("writing a kubeconfig: %w", err)
		}
		_, err = h.kube.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{v1beta1.LabelOwner: v1beta1.OwnerLegacy}},
			Data:       map[string][]byte{v1beta1.KeyKubeconfig: config},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("registering a cluster: %w", err)
		}
	}
	var err error
	h.process, err = launch(ctx, h.binary, h.kubeconfig)
	return err
}

func memberName(i int) string { return fmt.Sprintf("member-%d", i) }

// clear ends the controller and the members, and takes AppSets and registrations away.
func (h *hub) clear(ctx context.Context) error {
	var errs []error
	if h.process != nil {
		errs = append(errs, h.process.Stop())
		h.process = nil
	}
	for _, m := range h.members {
		m.close()
	}
	h.members = nil
	list, err := h.appSets.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return errors.Join(errs...) // its kind is not known yet
	}
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for i := range list.Items {
		name := list.Items[i].Name
		_, err := h.appSets.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		errs = append(errs, err, h.appSets.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	all := metav1.ListOptions{}
	errs = append(errs, h.kube.CoreV1().Secrets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		h.kube.AppsV1().ControllerRevisions(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	return errors.Join(errs...)
}

// note writes down in a list.
func (h *hub) note(list *[]written) func(written) {
	return func(w written) {
		h.mu.Lock()
		defer h.mu.Unlock()
		*list = append(*list, w)
	}
}

// forget what was noted.
func (h *hub) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.applied, h.told = nil, nil
}

// last is when the last of n members had written, and false: they have not.
func (h *hub) last(list *[]written, name string, n int) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[string]bool{}
	var at time.Time
	for _, w := range *list {
		if w.name == name {
			seen[w.member] = true
			if w.at.After(at) {
				at = w.at
			}
		}
	}
	return at, len(seen) >= n
}

// appSet of one podSet of two instances in each of n members, with a template of some size.
func appSet(i, n int) *v1beta1.AppSet {
	a := &v1beta1.AppSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d", i)}}
	a.Spec.PodSpec.DeployType = "InPlaceSet"
	container := corev1.Container{Name: "web", Image: "nginx", Args: []string{strings.Repeat("x", 1000)}}
	for k := range 10 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", k), Value: "of a value"})
	}
	a.Spec.PodSpec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	replicas := int32(2 * n)
	a.Spec.Replicas = &replicas
	for k := range n {
		a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters,
			v1beta1.TargetCluster{Name: memberName(k), PodSets: []v1beta1.PodSet{{PodSetSpec: v1beta1.PodSetSpec{Name: a.Name, Version: "v1"}}}})
	}
	return a
}
