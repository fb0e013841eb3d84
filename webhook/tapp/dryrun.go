package tapp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/spread"
	plan "tkestack.io/tapp/plan/tapp"
	trials "tkestack.io/tapp/plan/trial"
	"tkestack.io/tapp/process/parallel"
	"tkestack.io/tapp/webhook/rule"
)

// rulePods is the name of this rule in metrics.
const rulePods = "Pods"

// dryRunner asks the cluster whether it takes the pods of a template, by a dry-run
// create. Only the cluster knows: its version, its admission webhooks and its
// policies decide.
//
//	the API server says     what becomes of the TApp
//	created, AlreadyExists  it is admitted
//	Invalid, of a field     it is denied: that is the API server's own validation
//	exceeded quota          it is admitted, and warned of if it asks for more than before
//	anything else           it is admitted with a warning: a policy's 422 has no field, and
//	                        may be lifted before the pods are created
type dryRunner struct {
	pods        corev1client.PodsGetter
	spreads     func(context.Context) spread.Policy
	concurrency int
	turns       *turns
	results     *prometheus.CounterVec
}

// maxTried is how many templates of one review are tried. A pool of thousands would
// take the time of the review, and the requests of all other reviews.
const maxTried = 100

// errUntried is the verdict on templates beyond maxTried.
var errUntried = fmt.Errorf("one review tries %d templates", maxTried)

// verdict on the pod of one template.
type verdict struct {
	template namedTemplate
	err      error
	warnings []string
}

// run tries the templates that are new or changed, and returns what is invalid.
func (d dryRunner) run(ctx context.Context, c candidate, w *rule.Warnings) []rule.Finding {
	var verdicts []verdict
	for t := range templatesOf(c.now) {
		if c.was == nil || !sameTemplate(t.PodTemplateSpec, templateOf(c.was, t.name)) {
			verdicts = append(verdicts, verdict{template: t})
		}
	}
	for i := maxTried; i < len(verdicts); i++ {
		verdicts[i].err = errUntried
	}
	slots := make(chan struct{}, d.concurrency)
	var all parallel.Group
	for i := range min(len(verdicts), maxTried) {
		all.Do(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				if verdicts[i].err = d.turns.wait(ctx, c.now.Namespace); verdicts[i].err != nil {
					return
				}
				d.try(ctx, c.now, &verdicts[i])
			case <-ctx.Done():
				verdicts[i].err = ctx.Err()
			}
		})
	}
	all.Wait()
	return d.judge(c, verdicts, w)
}

func (d dryRunner) try(ctx context.Context, t *tappv1.TApp, v *verdict) {
	pod := plan.PodOf(t, v.template.name, ids.Of(&t.Spec).Last())
	if pod == nil {
		v.err = errors.New("the template cannot be hashed")
		return
	}
	spread.Add(&pod.Spec, d.spreads(ctx).Constraints(&t.Spec))
	var heard warnings
	_, v.err = d.pods.Pods(t.Namespace).Create(context.WithValue(ctx, warningsKey{}, &heard), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsAlreadyExists(v.err) {
		v.err = nil // the name is looked up last
	}
	v.warnings = heard.all()
}

// judge sorts the verdicts into what denies and what warns.
func (d dryRunner) judge(c candidate, verdicts []verdict, w *rule.Warnings) []rule.Finding {
	var denied []rule.Finding
	var warned messages
	for _, v := range verdicts {
		for _, text := range v.warnings {
			warned.add(v.template.path, text)
		}
		result := "accepted"
		switch status := (apierrors.APIStatus)(nil); {
		case v.err == nil:
		case trials.Judge(trials.Create, v.err) == trials.NoRoom && !c.asksMore(v.template):
		case apierrors.IsInvalid(v.err) && errors.As(v.err, &status) && namesField(status.Status()):
			result = "invalid"
			denied = append(denied, rewritten(v.template.path, status.Status())...)
		case errors.Is(v.err, errUntried):
			result = "untried"
			warned.add(v.template.path, "whether the cluster takes its pods was not tried: "+v.err.Error()+", the default one and then the others by name")
		case errors.Is(v.err, errNoTurn):
			result = "untried"
			warned.add(v.template.path, "whether the cluster takes its pods was not tried: "+v.err.Error())
		case errors.Is(v.err, context.DeadlineExceeded) || errors.Is(v.err, context.Canceled):
			result = "error"
			warned.add(v.template.path, "whether the cluster takes its pods could not be found out in time")
		default:
			if result = "error"; apierrors.IsForbidden(v.err) {
				result = "forbidden"
			}
			warned.add(v.template.path, "a pod of it could not be created now: "+v.err.Error())
		}
		d.results.WithLabelValues(result).Inc()
	}
	w.Add(rulePods, warned.texts()...)
	return denied
}

// asksMore says whether the change asks a quota for more than the pods of the template give
// back that go. The quota is the last that the API server looks at.
func (c candidate) asksMore(t namedTemplate) bool {
	if c.was == nil || *c.now.Spec.Replicas > *c.was.Spec.Replicas {
		return true
	}
	was := templateOf(c.was, t.name)
	return was == nil || !trials.AsksNoMore(&t.Spec, &was.Spec)
}

// namesField says whether a cause is about a field, as those of the API server's validation
// are. A policy that calls a pod Invalid names none.
func namesField(status metav1.Status) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
}

// rewritten causes of an invalid pod, at the fields of its template.
func rewritten(path *field.Path, status metav1.Status) []rule.Finding {
	var out []rule.Finding
	for _, c := range status.Details.Causes {
		at := path.String()
		if c.Field != "" {
			at += "." + c.Field
		}
		out = append(out, rule.Finding{Rule: rulePods, Field: at, Type: c.Type, Message: c.Message})
	}
	return out
}
