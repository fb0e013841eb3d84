package contender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/record"
)

// simulator is KWOK's process.
const simulator = "kwok"

// kwokAlone shows how fast KWOK is when nobody else works: it starts pods that
// were created and bound while it was away.
type kwokAlone struct{ *bareClient }

// StartKWOK ends KWOK, creates the pods, and leaves it to the phase to start it.
func (b *Bench) StartKWOK(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error) {
	p, err := follow(ctx, b.user, namespace.Name)
	if err != nil {
		return nil, err
	}
	size.Gate = false
	k := &kwokAlone{&bareClient{job: job{Bench: b, pods: p, size: size}, namespace: namespace, slots: make(chan struct{}, writers)}}
	if err := b.devcluster(ctx, "stop", simulator); err != nil {
		return nil, err
	}
	isBound := func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
	if err := k.all(ctx, func(name string) error { return k.post(ctx, name) }); err != nil {
		return nil, fmt.Errorf("creating pods: %w", err)
	}
	if err := p.all(ctx, size.pods(), isBound); err != nil {
		return nil, err
	}
	return &Contender{
		Name: record.KWOK,
		Do: map[string]func(context.Context) error{record.Create: func(ctx context.Context) error {
			if err := b.devcluster(ctx, "start", simulator); err != nil {
				return err
			}
			return p.all(ctx, size.pods(), runs(k.version))
		}},
		Subject: func() measure.Subject {
			return measure.Subject{Wrote: func(r audit.Request) bool {
				return byAgent("kwok/", namespace.Name)(r) && r.Resource == "pods"
			}}
		},
		Stop: func(ctx context.Context) error { return b.clear(ctx, namespace.Name, p) },
	}, nil
}
