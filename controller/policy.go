package controller

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// policyPublisher tells those who plan without a controller, such as `kubectl tapp`, by
// which policy it goes.
type policyPublisher struct {
	core corev1client.CoreV1Interface
	// namespace of the ConfigMap; empty: nobody is told.
	namespace string
	policy    tappv1.PublishedPolicy
	// contain returns a panic as an error.
	contain func(f func() error) error
}

// publish writes the ConfigMap, which takes the right to patch it, and to create it where
// the chart has not. TApps do not depend on it: a failure is logged only.
func (p *policyPublisher) publish(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if p.namespace == "" {
		logger.V(1).Info("The policy is not published: this runs in no pod, and no namespace of a Lease is given")
		return
	}
	if err := p.contain(func() error { return onceReachable(ctx, p.write) }); err != nil && ctx.Err() == nil {
		logger.V(1).Info("The policy is not published", "configMap", p.namespace+"/"+tappv1.PolicyConfigMap, "reason", err.Error())
	}
}

func (p *policyPublisher) write(ctx context.Context) error {
	policy := p.policy
	var err error
	if policy.Resize, err = client.HasResize(ctx, p.core.RESTClient()); err != nil {
		return err
	}
	data, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	configMap := corev1apply.ConfigMap(tappv1.PolicyConfigMap, p.namespace).WithData(map[string]string{tappv1.PolicyKey: string(data)})
	if _, err := p.core.ConfigMaps(p.namespace).Apply(ctx, configMap, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("applying: %w", err)
	}
	return nil
}
