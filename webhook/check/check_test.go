package check

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/process"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ names, lease, want string }{
		{"tapp", "", ""},
		{"tapp,app,appset,advdeployment", "tapp-system/tapp", ""},
		{"tapp,deployment", "", `--controllers names "deployment"; there are advdeployment, app, appset, tapp`},
		{"", "", `--controllers is empty; name some of advdeployment, app, appset, tapp`},
		{"tapp", "tapp", `--lease: "tapp" is not namespace/name`},
		{"tapp", "tapp-system/", `--lease: "tapp-system/" is not namespace/name`},
	} {
		got := ""
		var o Options
		if err := errors.Join((*process.Names)(&o.Kinds).Set(c.names), o.parse(c.lease)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.names, c.lease, got, c.want)
		}
	}
}

// The rest is asked of real API servers, by `helm test`; how a Lease gets old is not to be
// waited for.
func TestLed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	lease := func(holder string, silent time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-silent)}}}
	}
	for what, c := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
	}{
		"renewed":   {lease("tapp-1", 15*time.Second), ""},
		"silent":    {lease("tapp-1", 16*time.Second), "tapp-1 held the Lease of the controllers, and has not renewed it for 16s"},
		"given up":  {lease("", time.Second), "nobody holds the Lease of the controllers"},
		"never had": {&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}, "nobody holds the Lease of the controllers"},
		"none":      {&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}}, `reading the Lease of the controllers: leases.coordination.k8s.io "b" not found`},
	} {
		checked := &checker{Options{LeaseNamespace: "a", LeaseName: "b"}, nil, fake.NewClientset(c.lease).CoordinationV1(), nil, nil, func() time.Time { return now }}
		got := ""
		if err := checked.led(t.Context()); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestUnanswered(t *testing.T) {
	if err := unanswered(nil); err != nil {
		t.Error(err)
	}
	for text, hinted := range map[string]bool{`failed calling webhook "x": EOF`: true, "forbidden": false} {
		err := unanswered(errorOf(text))
		if strings.Contains(err.Error(), "caBundle") != hinted {
			t.Errorf("%s: %v", text, err)
		}
	}
}

type errorOf string

func (e errorOf) Error() string { return string(e) }

// TestWhole: a kind that is held fails the check, with what the leader says of it.
func TestWhole(t *testing.T) {
	for what, c := range map[string]struct {
		name string
		data map[string]string
		want string
	}{
		"nothing recorded":  {"other", nil, ""},
		"whole":             {tappv1.SchemasConfigMap, nil, ""},
		"held":              {tappv1.SchemasConfigMap, map[string]string{"tapps.apps.tkestack.io.held": "nothing is done"}, "nothing is done"},
		"of a kind not run": {tappv1.SchemasConfigMap, map[string]string{"appsets.workload.dmall.com.held": "nothing is done"}, ""},
	} {
		told := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: c.name}, Data: c.data}
		checked := &checker{Options{LeaseNamespace: "a", Kinds: []string{"tapp"}}, nil, nil, fake.NewClientset(told).CoreV1(), nil, nil}
		got := ""
		if err := checked.whole(t.Context()); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
