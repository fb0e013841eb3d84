//go:build cluster

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/hook"
)

// releaseSpace is the namespace of the service account that the programs are.
const releaseSpace = "tapp-system"

// restful is how long nothing is written at rest.
const restful = 3 * time.Second

// seldom is how often kubectl is asked for what does not seem to be so.
const seldom = 3 * time.Second

// tapp is that service account, as the audit log has it.
const tapp = "system:serviceaccount:" + releaseSpace + ":tapp"

// fleet is the hub and its members.
type fleet struct {
	hub     *site
	members []*site
	use     sync.RWMutex // of all of it: see newRig
	// guarded: the hub has the chart's webhooks and policies. Elsewhere the controllers are
	// by themselves.
	guarded bool
	hooks   *hook.Server
}

// site is one of the clusters, and the program that runs there.
type site struct {
	*cluster.Cluster
	name    string
	eye     *eye
	program *cluster.Process
	// wire is the network between the hub and a member, and registration the kubeconfig by
	// which the hub knows the member.
	wire         *wire
	registration []byte
}

// begin installs the rights, registers the members, and starts the programs.
func (f *fleet) begin(ctx context.Context) error {
	if err := f.hub.install(ctx, "--set", "controllers.appset.enabled=true"); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if f.guarded {
		var err error
		if f.hooks, err = hook.Start(ctx, f.hub.Cluster, "../../chart", "--set", "controllers.appset.enabled=true"); err != nil {
			return fmt.Errorf("hub: %w", err)
		}
	}
	for _, m := range f.members {
		if err := m.install(ctx, "--set", "controllers.advdeployment.enabled=true"); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := m.work(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		var err error
		if m.wire, err = newWire(ctx, strings.TrimPrefix(m.Config.Host, "https://")); err != nil {
			return err
		}
		if err := f.join(ctx, m); err != nil {
			return fmt.Errorf("register %s: %w", m.name, err)
		}
	}
	if err := f.lead(ctx); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	return nil
}

// master are the flags of the hub's program.
var master = []string{"--controllers", "appset", "--cluster-namespace", releaseSpace, "--fleet-id", "fleet-test", "--allow-local-clusters"}

// lead starts the hub's program, anew if there is one. A new one remembers no outages, and
// does not wait longer for members that had some.
func (f *fleet) lead(ctx context.Context) error {
	return f.hub.launch(ctx, master...)
}

// work starts a member's program, anew if there is one.
func (s *site) work(ctx context.Context) error {
	return s.launch(ctx, "--controllers", "tapp,advdeployment")
}

// join a member by the plugin: its account there, and its registration with the hub, by
// way of its wire.
func (f *fleet) join(ctx context.Context, m *site, flags ...string) error {
	if out, err := m.plugin(ctx, "", append([]string{"join", m.name, "--hub-kubeconfig", f.hub.Kubeconfig, "--server-address", "https://" + m.wire.Addr().String()}, flags...)...); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	secret, err := f.hub.Kube.CoreV1().Secrets(releaseSpace).Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	m.registration = secret.Data["kubeconfig.yaml"]
	return nil
}

// plugin runs `kubectl tapp fleet` on a cluster, with an input.
func (s *site) plugin(ctx context.Context, input string, args ...string) (string, error) {
	return s.Command(ctx, input, "kubectl-tapp", append([]string{"fleet", "--allow-local"}, args...)...)
}

// register a cluster with the hub, by a Secret.
func (f *fleet) register(ctx context.Context, name string, config []byte) error {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: releaseSpace, Labels: map[string]string{"ClusterOwner": "sym-admin"}},
		Data:       map[string][]byte{"kubeconfig.yaml": config},
	}
	manifest, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	if out, err := f.hub.Command(ctx, string(manifest), "kubectl", "apply", "--server-side", "--force-conflicts", "--filename", "-"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// end stops all programs, in order.
func (f *fleet) end(ctx context.Context) error {
	var errs []error
	if f.hooks != nil {
		errs = append(errs, f.hooks.Stop(ctx))
	}
	for _, s := range append([]*site{f.hub}, f.members...) {
		errs = append(errs, s.halt())
		if s.wire != nil {
			errs = append(errs, s.wire.Close())
		}
	}
	return errors.Join(errs...)
}

// install the plugin, and what the chart has but its pods and webhooks.
func (s *site) install(ctx context.Context, values ...string) error {
	plugin := s.Program("kubectl-tapp")
	if err := errors.Join(os.RemoveAll(plugin), os.Symlink(s.Program("tapp"), plugin)); err != nil {
		return err
	}
	template := []string{"template", "tapp", "../../chart", "--namespace", releaseSpace,
		"--show-only", "templates/crds.yaml", "--show-only", "templates/rbac.yaml", "--show-only", "templates/serviceaccount.yaml"}
	manifests, err := s.Command(ctx, "", "helm", append(template, values...)...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, manifests)
	}
	space := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, releaseSpace)
	for _, manifest := range []string{space, manifests} {
		if out, err := s.Command(ctx, manifest, "kubectl", "apply", "--server-side", "--filename", "-"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	// kubectl refuses to wait for a definition that has no conditions yet.
	return cluster.Poll(ctx, cluster.Patience, func(ctx context.Context) error {
		if out, err := s.Command(ctx, "", "kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=5m"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// kubeconfig of a service account, for a server.
func (s *site) kubeconfig(ctx context.Context, account, server string, ca []byte) ([]byte, error) {
	token, err := s.Command(ctx, "", "kubectl", "create", "token", account, "--namespace", releaseSpace, "--duration", "2h")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, token)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(token)}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	return clientcmd.Write(*config)
}

// launch `tapp controller` as the chart's service account, in the place of the one that
// runs, and wait until it works.
func (s *site) launch(ctx context.Context, flags ...string) error {
	return s.launchBy(ctx, s.Config.Host, s.Config.CAData, flags...)
}

// launchBy is launch by another address of the API server.
func (s *site) launchBy(ctx context.Context, server string, ca []byte, flags ...string) error {
	if err := s.halt(); err != nil {
		return err
	}
	config, err := s.kubeconfig(ctx, "tapp", server, ca)
	if err != nil {
		return err
	}
	as := &cluster.Cluster{Kubeconfig: filepath.Join(filepath.Dir(s.Kubeconfig), "tapp.kubeconfig")}
	if err := os.WriteFile(as.Kubeconfig, config, 0o600); err != nil {
		return err
	}
	flags = append([]string{"--create-crd=false", "--leader-elect-resource-name", "tapp-controller", "--leader-elect-resource-namespace", releaseSpace, "--v", "3"}, flags...)
	if s.program, err = as.Launch("controller", flags...); err != nil {
		return err
	}
	return s.program.WaitReady(ctx)
}

// halt the program, if one runs.
func (s *site) halt() error {
	p := s.program
	s.program = nil
	if p == nil || p.Ended() != nil {
		return nil
	}
	return p.Stop()
}

// rig is a namespace that all clusters have.
type rig struct {
	*testing.T
	*fleet
	ns string
}

// newRig makes the namespace, which goes when the test ends. The test shares the fleet
// with others: clusters and their programs stay as they are.
func newRig(t *testing.T) *rig {
	t.Helper()
	return beside(t, everything)
}

// newAlone is newRig of a test that takes clusters, registrations or programs away. Only
// tests of the first member by itself run beside it: its cluster and program have to stay.
func newAlone(t *testing.T) *rig {
	t.Helper()
	return alone(t, everything)
}

// newGuarded is newRig with the second fleet, which has two members, and webhooks and
// policies on its hub.
func newGuarded(t *testing.T) *rig {
	t.Helper()
	return beside(t, second)
}

// newSecond is newAlone with the second fleet.
func newSecond(t *testing.T) *rig {
	t.Helper()
	return alone(t, second)
}

// beside others that use the fleet.
func beside(t *testing.T, f *fleet) *rig {
	t.Helper()
	t.Parallel()
	f.use.RLock()
	t.Cleanup(f.use.RUnlock)
	return makeRig(t, f)
}

func alone(t *testing.T, f *fleet) *rig {
	t.Helper()
	t.Parallel()
	f.use.Lock()
	t.Cleanup(f.use.Unlock)
	return makeRig(t, f)
}

// newMember is a rig of the first member by itself, without the hub.
func newMember(t *testing.T) (*rig, *site) {
	t.Helper()
	t.Parallel()
	r := makeRig(t, everything)
	return r, r.members[0]
}

func makeRig(t *testing.T, f *fleet) *rig {
	t.Helper()
	r := &rig{T: t, fleet: f, ns: fmt.Sprintf("%s-%d", strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(t.Name(), "/", "-"), "Test")), os.Getpid())}
	for _, s := range append([]*site{r.hub}, r.members...) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.ns}}
		if _, err := s.Kube.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// on is kubectl in the test's namespace of a cluster.
func (r *rig) on(s *site) *cluster.Rig { return s.In(r.T, r.ns) }

// shows waits until kubectl prints this. It is asked when it may be so, and now and then.
func (r *rig) shows(s *site, want string, args ...string) {
	r.Helper()
	var asked time.Time
	said := "not asked yet"
	cluster.Eventually(r.T, s.name+": kubectl "+strings.Join(args, " "), func(ctx context.Context) error {
		if !s.eye.hints(ctx, r.ns, want, args...) && time.Since(asked) < seldom {
			return errors.New(said)
		}
		got, err := r.on(s).TryKubectl(args...)
		asked, said = time.Now(), got
		if err != nil {
			return fmt.Errorf("%w: %s", err, got)
		}
		return cluster.When(strings.TrimSpace(got) != want, got)
	})
}

// program's writes of a namespace, by verb and resource.
func (r *rig) writes(s *site, log *audit.Log) map[string]int {
	r.Helper()
	out := map[string]int{}
	for _, request := range r.on(s).Requests(log, audit.Filter{Namespace: r.ns}) {
		if request.User != tapp || !request.IsWrite() || request.Resource == "events" {
			continue
		}
		if request.Code == 403 {
			r.Errorf("it has no right to %s", request)
		}
		key := request.Verb + " " + request.Resource
		if request.Subresource != "" {
			key += "/" + request.Subresource
		}
		out[key]++
	}
	return out
}

// rests has nothing be written for the namespace for a while.
func (r *rig) rests(s *site, log *audit.Log) {
	r.Helper()
	cluster.Never(r.T, restful, "at rest", func(context.Context) error {
		if writes := r.writes(s, log); len(writes) > 0 {
			return fmt.Errorf("it wrote %v", writes)
		}
		return nil
	})
}
