//go:build cluster

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// A HorizontalPodAutoscaler scales a TApp up under real load, and down when it ends.
// An instance that is killed meanwhile moves nothing: neither TApp nor the autoscaler
// fights for it.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.create(gen.TApp("web", gen.Replicas(1), gen.Default(gen.Probe(), on(refuge), func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
		}
	})))
	r.autoscale("web", 3)
	first := r.Pods()["web-0"]
	rest := burn(t, first.Status.PodIP)
	r.scaledTo("web", 3)
	r.WaitReady("web")

	// 5 times the request on 1 of 3 pods is more than they are to have. So it is on 1 of 2.
	killed := time.Now()
	r.Change("web", gen.Killed(1))
	r.Eventually("the metrics are of the pods that are left", func(ctx context.Context) error {
		return r.measured(ctx, killed.Add(15*time.Second), "web-0", "web-2")
	})
	r.WaitReady("web")
	if s := r.Get("web").Status; s.Replicas != 2 || s.Statuses["1"] != tappv1.InstanceKilled {
		t.Errorf("replicas %d, %v", s.Replicas, s.Statuses)
	}

	rest()
	r.scaledTo("web", 1)
	r.WaitReady("web")
	if p := r.Pods()["web-0"]; p == nil || p.UID != first.UID {
		t.Error("the first instance should be the one that stays, untouched")
	}
	scales := r.told.scales("web")
	top := slices.Index(scales, 3)
	up, down := scales[:top], slices.Clone(scales[top:])
	slices.Reverse(down)
	if !slices.IsSorted(up) || !slices.IsSorted(down) {
		t.Errorf("spec.replicas was %v; it should rise, and then fall", scales)
	}
}

// autoscale a TApp between 1 and most, without the usual minutes of hesitation.
func (r *rig) autoscale(tapp string, most int32) {
	r.Helper()
	_, err := r.Kube.AutoscalingV2().HorizontalPodAutoscalers(r.NS).Create(r.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: tapp},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: tappv1.SchemeGroupVersion.String(), Kind: tappv1.Kind, Name: tapp},
			MaxReplicas:    most,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
}

// scaledTo waits until the autoscaler has set spec.replicas.
func (r *rig) scaledTo(tapp string, n int32) {
	r.Helper()
	r.Eventually(fmt.Sprintf("TApp %s is scaled to %d", tapp, n), func(ctx context.Context) error {
		t, err := r.TApps.Get(ctx, tapp, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *t.Spec.Replicas == n {
			return nil
		}
		hpa, err := r.Kube.AutoscalingV2().HorizontalPodAutoscalers(r.NS).Get(ctx, tapp, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return fmt.Errorf("replicas %d; the autoscaler says %+v", *t.Spec.Replicas, hpa.Status)
	})
}

// measured says whether there are metrics of exactly these pods, not older than that.
func (r *rig) measured(ctx context.Context, since time.Time, want ...string) error {
	metrics := "/apis/metrics.k8s.io/v1beta1/namespaces/" + r.NS + "/pods"
	data, err := r.Kube.RESTClient().Get().AbsPath(metrics).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			metav1.ObjectMeta `json:"metadata"`
			Timestamp         time.Time `json:"timestamp"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	var names []string
	for _, i := range list.Items {
		names = append(names, i.Name)
		if i.Timestamp.Before(since) {
			return fmt.Errorf("%s was measured at %v", i.Name, i.Timestamp)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		return fmt.Errorf("there are metrics of %v", names)
	}
	return nil
}

// burn keeps the pod as busy as it may be until rest is called.
func burn(t *testing.T, address string) (rest func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s:%d/burn?for=10m", address, gen.DemoPort), nil)
		if err == nil {
			var response *http.Response
			if response, err = http.DefaultClient.Do(request); err == nil {
				err = fmt.Errorf("it answers %s", response.Status)
				_ = response.Body.Close()
			}
		}
		done <- err
	}()
	return func() {
		t.Helper()
		select {
		case err := <-done:
			t.Errorf("the load has ended by itself: %v", err)
		default:
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("the load ended by itself: %v", err)
			}
		}
	}
}
