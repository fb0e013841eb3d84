package plugin

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plugin/migrate"
)

func newMigrate(e *environment) *cobra.Command {
	return migrate.New(migrate.Options{
		Streams: e.streams, Usage: func(err error) error { return usageError{err} }, Args: between(0, "statefulset/NAME"),
		Clean: clean, WithoutState: withoutState,
		Flags: func(c *cobra.Command) *migrate.Flags {
			w := newWriting(e, c)
			return &migrate.Flags{Validate: w.validate, DryRun: &w.dryRun, Manager: &w.manager, Output: &w.output, Report: w.report}
		},
		Connect: func() (*migrate.Cluster, error) {
			s, err := e.connect()
			if err != nil {
				return nil, err
			}
			return &migrate.Cluster{Namespace: s.namespace, TApps: s.tapps, Core: s.core, Apps: s.apps,
				Tracking: func(ctx context.Context, t *tappv1.TApp) string {
					return cmp.Or(s.policy(ctx, &t.Spec).Tracking, tappv1.DefaultTrackingLabel)
				},
				Compute: func(ctx context.Context, t *tappv1.TApp, pods []*corev1.Pod) (*migrate.View, error) {
					o, err := s.compute(ctx, t, pods)
					return viewOf(o), err
				},
				Follow: func(ctx context.Context, t *tappv1.TApp, done func(*migrate.View) (bool, error)) error {
					return s.follow(ctx, t, func(o *observed) (bool, error) { return done(viewOf(o)) })
				}}, nil
		},
	})
}

func viewOf(o *observed) *migrate.View {
	if o == nil {
		return nil
	}
	v := &migrate.View{TApp: o.TApp, Pods: o.Input.Pods, Unobserved: o.unobserved(), Outcome: o.outcome}
	for _, step := range o.Steps() {
		if e := step.Effect; e != effect.Relabel && e != effect.Hold && e != effect.Resize {
			v.Disruptive = append(v.Disruptive, step.Sentence())
		}
	}
	return v
}
