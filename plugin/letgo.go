package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/termination"
)

// letGo is the flag of commands that end pods: claims that are being deleted may go with
// them, and the data with the claims.
type letGo struct{ now bool }

func (l *letGo) flag(c *cobra.Command) {
	c.Flags().BoolVar(&l.now, "now", false, "Do not wait for claims that are being deleted (ClaimTerminating): they go with the pods, and their data is lost unless the volume's reclaim policy is Retain")
}

// validate says whether instances are named: --now is never about all of them by default.
func (l *letGo) validate(all bool, args []string) error {
	if l.now && !all && len(args) == 0 {
		return usageError{errors.New("--now loses data: name the IDS, or give --all")}
	}
	return nil
}

// claims of an instance that are being deleted while its pod mounts them.
func (o *observed) terminating(id int) (out []termination.Claim) {
	for _, c := range o.Plan.Terminating {
		if c.Instance == id {
			out = append(out, c)
		}
	}
	return out
}

// annotations that a pod gets so that its claims may go; none without the flag, or where no
// claim is being deleted.
func (l *letGo) annotations(o *observed, id int) map[string]any {
	out := map[string]any{}
	if claims := o.terminating(id); l.now && len(claims) > 0 {
		out[tappv1.AnnotationClaimMayGo] = termination.Release(claims)
	}
	return out
}

// split takes off the ids that are out of range and whose pods stay for a claim: a restart
// of them is nothing but to let that go.
func (l *letGo) split(o *observed, args []string) (inRange []string, leaving []int) {
	for word := range strings.SplitSeq(strings.Join(args, ","), ",") {
		if id, ok := ids.Parse(word); l.now && ok && !ids.Of(&o.TApp.Spec).Has(id) && len(o.terminating(id)) > 0 {
			leaving = append(leaving, id)
		} else if word != "" {
			inRange = append(inRange, word)
		}
	}
	return inRange, leaving
}

// release lets the claims of the instances go.
func (l *letGo) release(ctx context.Context, w *writing, s *session, o *observed, chosen []int) (patched []*corev1.Pod, err error) {
	for _, id := range chosen {
		annotations := l.annotations(o, id)
		if len(annotations) == 0 {
			continue
		}
		pod, err := annotate(ctx, w, s, o.Instance(id).Pod, annotations)
		if err != nil {
			return patched, err
		}
		patched = append(patched, pod)
	}
	return patched, nil
}

// annotate patches annotations of this very pod.
func annotate(ctx context.Context, w *writing, s *session, pod *corev1.Pod, annotations map[string]any) (*corev1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": annotations}})
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return w.patchPod(ctx, s, pod, patch)
}
