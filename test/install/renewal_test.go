//go:build cluster

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/test/cluster"
)

// TestRenewal: the certificate is renewed again and again while requests come in, and
// none fails.
func TestRenewal(t *testing.T) {
	const renewals = 3 // that each pod has to have served
	r := newRig(t)
	// An earlier test's certificate would be good for months.
	kubectl(t, "--namespace", releaseSpace, "delete", "secret", "tapp-tls", "--ignore-not-found")
	install(t, "tls.mode=certManager", "tls.certManager.duration=6m", "tls.certManager.renewBefore=5m40s")
	rolledOut(t)
	r.answers()
	load := startLoad(r.Rig)
	began := time.Now()
	seen := map[string]map[string]bool{} // serial numbers by pod
	cluster.Eventually(t, "every pod serves renewed certificates", func(ctx context.Context) error {
		pods, err := releasePods(ctx)
		if err != nil {
			return err
		}
		least := renewals + 1
		for _, p := range pods {
			serial, err := served(ctx, &p)
			if err != nil {
				return err
			}
			if seen[p.Name] == nil {
				seen[p.Name] = map[string]bool{}
			}
			seen[p.Name][serial] = true
			least = min(least, len(seen[p.Name]))
		}
		if least <= renewals {
			return fmt.Errorf("certificates so far: %v", seen)
		}
		return nil
	})
	t.Logf("%d renewals on each of %d pods in %s", renewals, len(seen), since(began))
	load.end(t, 500)
}

// served is the serial number of the certificate that a pod serves. It is trusted by
// the CA in the Secret.
func served(ctx context.Context, pod *corev1.Pod) (string, error) {
	secret, err := suite.Kube.CoreV1().Secrets(releaseSpace).Get(ctx, "tapp-tls", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: releaseName + "." + releaseSpace + ".svc", MinVersion: tls.VersionTLS13}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, "8443"))
	if err != nil {
		return "", fmt.Errorf("connect to the webhook: %w", err)
	}
	defer func() { _ = conn.Close() }()
	serial := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	return serial, hurry(ctx, pod, secret)
}

// hurry has the kubelet look after the pod at once, once for each version of the
// Secret. By itself it brings a new one to the pod within a minute or two.
func hurry(ctx context.Context, pod *corev1.Pod, secret *corev1.Secret) error {
	const annotation = "install.tapp.tkestack.io/secret"
	if pod.Annotations[annotation] == secret.ResourceVersion {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, secret.ResourceVersion)
	_, err := suite.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
