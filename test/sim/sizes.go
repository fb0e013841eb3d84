package sim

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
	hooks "tkestack.io/tapp/webhook/tapp"
)

// etcd takes 1.5 MiB, which is the status of some ten thousand instances. In a run it takes
// shrunk times less, and so do the limits of TApp's admission: a spec can leave a status no
// more room than admission promises. What a condition may say is as long as ever.
const (
	shrunk  = 12
	inEtcd  = 1536 << 10 / shrunk
	padding = "PADDING"
)

// fits says what etcd says of an object. That of a pod is stored as protobuf: the status,
// which is not TApp's, is left out.
func (w *world) fits(_ string, o object) error {
	if w.has(classSizes) && sizeOf(o) > inEtcd {
		return apiserver.TooLarge()
	}
	return nil
}

func sizeOf(o object) int {
	if pod, ok := o.(*corev1.Pod); ok {
		bare := *pod
		bare.Status = corev1.PodStatus{}
		o = &bare
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return inEtcd + 1
	}
	return len(raw)
}

// admitSize is what TApp's admission says of the size of a TApp. What was too large before
// may stay so, and a spec that does not change is not judged.
func (w *world) admitSize(now *tappv1.TApp) error {
	was, exists := apiserver.Find[*tappv1.TApp](w.Store, tapps, keyOf(now))
	if !w.has(classSizes) || exists && equality.Semantic.DeepEqual(was.Spec, now.Spec) {
		return nil
	}
	judge := func(t *tappv1.TApp) error {
		etcd := hooks.Etcd()
		limits := hooks.Storage{Most: etcd.Most / shrunk, Rest: etcd.Rest / shrunk}
		t = clone(t)
		tappv1.Default(t)
		if errs := limits.Judge(t); len(errs) > 0 {
			return apierrors.NewInvalid(tappv1.GroupVersionKind().GroupKind(), t.Name, errs)
		}
		return nil
	}
	if exists && judge(was) != nil {
		return nil
	}
	return judge(now)
}

// fill has users write what just fits, and much that can be told of it.
func fill(p *Plan, rng *rand.Rand) {
	for _, app := range p.apps() {
		p.Edits = append(p.Edits, Edit{Step: 20 + rng.IntN(40), App: app, Kind: "fill", A: rng.IntN(60), B: rng.IntN(60)})
	}
	p.edits(rng, "fill", "fill", "fill", "spoil", "spoil", "pool", "scale")
	p.strikes(rng, clockJump, clockJump, evicted)
}

// fillUp writes a spec, or annotations with it, that leave so much room beside what
// admission keeps free: some kilobytes, or none, or less than none.
func fillUp(t *tappv1.TApp, e Edit) {
	empty(t)
	bare := *t
	bare.Status = tappv1.TAppStatus{}
	room := inEtcd - hooks.Etcd().Rest/shrunk - sizeOf(&bare) + (e.A%10-2)*1000 - e.B*10
	text := strings.Repeat("x", max(0, room))
	if e.B%3 == 0 {
		set(&t.Annotations, padding, text)
		t.Spec.ProgressDeadlineSeconds = new(30 + int32(e.Step)) // annotations alone are not judged
		return
	}
	c := &templateOf(&t.Spec, e.B).Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: padding, Value: text})
}

// empty a TApp of what fills it.
func empty(t *tappv1.TApp) {
	delete(t.Annotations, padding)
	for n := range 2 {
		c := &templateOf(&t.Spec, n).Spec.Containers[0]
		for i := range c.Env {
			if c.Env[i].Name == padding {
				c.Env = append(c.Env[:i:i], c.Env[i+1:]...)
				break
			}
		}
	}
}
