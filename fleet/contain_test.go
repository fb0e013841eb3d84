package fleet

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/process/parallel"
)

// buggy is a network in which requests to a host panic whose path begins so.
type buggy struct {
	Network
	host string
	path atomic.Pointer[string]
}

func (b *buggy) Transport(config *rest.Config) (http.RoundTripper, error) {
	over, err := b.Network.Transport(config)
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if path := b.path.Load(); path != nil && r.URL.Scheme+"://"+r.URL.Host == b.host && strings.HasPrefix(r.URL.Path, *path) {
			panic("on purpose")
		}
		return over.RoundTrip(r)
	}), err
}

// TestPanicOfAMember: a bug that one member brings to light ends what is done for it, is told
// of it and counted; other members are served, and it is tried again.
func TestPanicOfAMember(t *testing.T) {
	for name, path := range map[string]string{"a probe": "/readyz", "a list": "/apis/" + v1beta1.GroupName} {
		t.Run(name, func(t *testing.T) {
			bad, well := newServer(t, "1"), newServer(t, "2")
			network := &buggy{Network: newWires(true), host: bad.URL}
			network.path.Store(&path)
			var panics atomic.Int32
			r := newRig(t, newServer(t, "hub"), func(o *Options) {
				o.Network = network
				o.Contain = func(f func() error) error { return parallel.Contain(func() { panics.Add(1) }, f) }
			})
			r.register("bad", bad.kubeconfig("x"))
			r.register("well", well.kubeconfig("x"))
			r.until("the other is ready", func() bool { r.clock.Step(time.Second); return r.state("well", v1beta1.ClusterReady, "")() })
			r.until("it is told", func() bool { r.clock.Step(time.Second); return r.state("bad", v1beta1.ClusterUnfit, ReasonInternal)() })
			if now, _ := r.Member("bad"); now.Fresh || now.Message != "this controller failed there, see its log: that is a bug" {
				t.Errorf("told is %+v", now)
			}
			before := panics.Load()
			r.until("it is tried again", func() bool { r.clock.Step(time.Second); return panics.Load() > before })
			network.path.Store(nil)
			r.until("it is ready when the bug is gone", func() bool { r.clock.Step(time.Second); return r.state("bad", v1beta1.ClusterReady, "")() })
			if !r.state("well", v1beta1.ClusterReady, "")() {
				t.Error("the other one is not ready any more")
			}
		})
	}
}

// buggyChecks panic where the first cluster is added, as often as it says.
type buggyChecks struct{ left atomic.Int32 }

func (b *buggyChecks) AddListedCheck(name string, _ func() error) {
	if name == "cluster bad" && b.left.Add(-1) >= 0 {
		panic("on purpose")
	}
}
func (*buggyChecks) RemoveListedCheck(string) {}

// TestPanicOfARegistration: a bug that one registration brings to light keeps no other from
// being followed, and it is tried again.
func TestPanicOfARegistration(t *testing.T) {
	bad, well, hub := newServer(t, "1"), newServer(t, "2"), newServer(t, "hub")
	hub.put("secrets/clusters/bad", secret("bad", bad.kubeconfig("x")))
	hub.put("secrets/clusters/well", secret("well", well.kubeconfig("x")))
	var buggy buggyChecks
	buggy.left.Store(20) // more often than registrations change of themselves
	r := newRig(t, hub, func(o *Options) { o.Checks = &buggy })
	r.untilMoving("the other is ready", r.state("well", v1beta1.ClusterReady, ""))
	r.untilMoving("it is tried until it is followed", func() bool { return buggy.left.Load() < 0 })
	r.untilMoving("it is ready", r.state("bad", v1beta1.ClusterReady, ""))
}
