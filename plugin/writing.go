package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plugin/ownership"
	"tkestack.io/tapp/plugin/timeout"
)

// writing are the flags of commands that write. Every write is a patch of single fields,
// so that it undoes nobody else's edits.
type writing struct {
	*environment
	dryRun  string
	manager string
	output  string
	// plan: the server is asked as for a dry run, and the plan is told.
	plan bool
	// adopt is that of ownership.Write.
	adopt []string
}

const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func newWriting(e *environment, c *cobra.Command) *writing {
	w := &writing{environment: e}
	c.Flags().StringVar(&w.dryRun, "dry-run", dryRunNone, "none, client (nothing is sent) or server (the server checks it, and changes nothing)")
	c.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	c.Flags().StringVar(&w.manager, "field-manager", program, "Name of who owns the fields that change")
	c.Flags().StringVarP(&w.output, "output", "o", "", "Output format: name, json or yaml")
	e.completeFlag(c, "dry-run", dryRunNone, dryRunClient, dryRunServer)
	e.completeFlag(c, "output", "name", "json", "yaml")
	return w
}

func (w *writing) validate() error {
	if w.plan {
		if w.dryRun != dryRunNone || w.output != "" {
			return usageError{errors.New("give --plan, or --dry-run and --output, not both")}
		}
		w.dryRun = dryRunServer
		return nil
	}
	switch w.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return usageError{fmt.Errorf("--dry-run is %q; give none, client or server", w.dryRun)}
	}
	switch w.output {
	case "", "name", "json", "yaml":
		return nil
	}
	return usageError{fmt.Errorf("--output is %q; give name, json or yaml", w.output)}
}

func (w *writing) options(dryRun bool) metav1.PatchOptions {
	o := metav1.PatchOptions{FieldManager: w.manager}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

// mergeSpec patches fields of a TApp's spec; nil removes a field. It fails if the TApp was
// replaced by another one of the same name.
func (w *writing) mergeSpec(ctx context.Context, s *session, t *tappv1.TApp, fields map[string]any) (*tappv1.TApp, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID}, "spec": fields})
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return w.patch(ctx, s, t, types.MergePatchType, patch)
}

// patch a TApp. Who declares the fields keeps them.
func (w *writing) patch(ctx context.Context, s *session, t *tappv1.TApp, kind types.PatchType, patch []byte) (*tappv1.TApp, error) {
	if w.dryRun == dryRunClient {
		out := &tappv1.TApp{}
		return out, patchLocally(t, out, kind, patch)
	}
	write := ownership.Write[*tappv1.TApp]{
		Manager: w.manager, Adopt: w.adopt, Maps: []string{"statuses", "templates", "templatePool"}, DryRun: w.dryRun == dryRunServer, Tell: w.note,
		Get: func(ctx context.Context) (*tappv1.TApp, error) { return s.get(ctx, t.Name) },
		Patch: func(ctx context.Context, kind types.PatchType, patch []byte, dryRun bool) (*tappv1.TApp, error) {
			return s.tapps.TApps(s.namespace).Patch(ctx, t.Name, kind, patch, w.options(dryRun))
		},
	}
	out, err := write.Do(ctx, t, kind, patch)
	if err != nil {
		return nil, err // it names the object, and says what was wrong
	}
	out.SetGroupVersionKind(tappv1.GroupVersionKind())
	return out, nil
}

// patchPod applies a merge patch to a pod.
func (w *writing) patchPod(ctx context.Context, s *session, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	if w.dryRun == dryRunClient {
		out := &corev1.Pod{}
		return out, patchLocally(pod, out, types.MergePatchType, patch)
	}
	out, err := s.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, w.options(w.dryRun == dryRunServer))
	if err != nil {
		return nil, err
	}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return out, nil
}

// patchLocally applies a patch as the API server does.
func patchLocally(in, out any, kind types.PatchType, patch []byte) error {
	before, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("patching: %w", err)
	}
	var after []byte
	if kind == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return fmt.Errorf("patching: %w", err)
		}
		after, err = operations.Apply(before)
		if err != nil {
			return fmt.Errorf("patching: %w", err)
		}
	} else if after, err = jsonpatch.MergePatch(before, patch); err != nil {
		return fmt.Errorf("patching: %w", err)
	}
	if err := json.Unmarshal(after, out); err != nil {
		return fmt.Errorf("patching: %w", err)
	}
	return nil
}

// report prints what was done to an object, as kubectl does.
func (w *writing) report(object runtime.Object, done string) error {
	switch w.dryRun {
	case dryRunClient:
		done += " (dry run)"
	case dryRunServer:
		done += " (server dry run)"
	}
	var p printers.ResourcePrinter
	switch w.output {
	case "json":
		p = &printers.JSONPrinter{}
	case "yaml":
		p = &printers.YAMLPrinter{}
	default:
		p = &printers.NamePrinter{Operation: done, ShortOutput: w.output == "name"}
	}
	return (&printers.OmitManagedFieldsPrinter{Delegate: p}).PrintObj(object, w.streams.Out)
}

// waiting are the flags of commands that can wait for their effect.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func newWaiting(c *cobra.Command) *waiting {
	w := &waiting{}
	c.Flags().BoolVar(&w.wait, "wait", false, "Wait until it has come about")
	c.Flags().DurationVar(&w.timeout, "timeout", 0, "How long to wait; 0 is for ever")
	return w
}

// until waits until missing returns "" for all instances. missing returns why an instance
// is not there yet, and an error if it never will be.
func (w *waiting) until(ctx context.Context, s *session, t *tappv1.TApp, chosen []int, missing func(*observed, int) (string, error)) error {
	ctx, cancel := timeout.Context(ctx, w.timeout)
	defer cancel()
	left, why := chosen, "nothing is known yet"
	err := s.follow(ctx, t, func(o *observed) (bool, error) {
		if o.TApp.Generation < t.Generation || o.unobserved() {
			why = "the controller has not seen the change yet"
			return false, nil
		}
		left = nil
		for _, id := range chosen {
			reason, err := missing(o, id)
			if err != nil {
				return false, err
			}
			if reason == "" {
				continue
			}
			if left = append(left, id); len(left) == 1 {
				why = reason
			}
		}
		return len(left) == 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the time is up after %s, and it has not come about for %s: %s", w.timeout, ids.Instances(left), why)
	}
	return err
}
