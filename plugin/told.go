package plugin

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// newPlanned are the flags of commands that can tell what would come of them.
func newPlanned(e *environment, c *cobra.Command) *writing {
	w := newWriting(e, c)
	c.Flags().BoolVar(&w.plan, "plan", false, "Tell what would happen, in order and why, and change nothing")
	return w
}

// tell prints, for --plan, what the controller would do about a TApp that was patched in
// a dry run of the server: its rights and its admission were asked.
func (w *writing) tell(ctx context.Context, s *session, before, after *tappv1.TApp, patched ...*corev1.Pod) error {
	p := &planning{environment: w.environment, patched: patched}
	v, err := p.previewApplied(ctx, s, &applied{before: before, after: after})
	if err != nil {
		return err
	}
	p.tellNotes([]*preview{v})
	return p.print([]*preview{v})
}

// replace pods by what a dry run made of them.
func replace(pods, patched []*corev1.Pod) {
	for i := range pods {
		for _, p := range patched {
			if p.UID == pods[i].UID {
				pods[i] = p
			}
		}
	}
}

// tellPods is tell for pods that were patched, which are others of the TApp's.
func (w *writing) tellPods(ctx context.Context, s *session, t *tappv1.TApp, patched []*corev1.Pod) error {
	pods, err := s.pods(ctx, t.Namespace)
	if err != nil {
		return err
	}
	replace(pods, patched)
	o, err := s.compute(ctx, t, pods)
	if err != nil {
		return err
	}
	v, err := newPreview(o, t)
	if err != nil {
		return err
	}
	p := &planning{environment: w.environment}
	p.tellNotes([]*preview{v})
	return p.print([]*preview{v})
}
