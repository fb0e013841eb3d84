package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/test/sim/apiserver"
)

// see is told of every step of every object, and judges what the helm program would find.
func (w *world) see(change *apiserver.Change) {
	if o := change.Object(); change.After == nil {
		w.say("     %s is gone", apiserver.NameOf(change.Resource, o))
	} else {
		w.say("     %s by %s %s", apiserver.NameOf(change.Resource, o), change.By, o.GetLabels()["status"])
	}
	if change.Resource == apiserver.Secrets && change.Before == nil {
		if w.made++; w.made > w.asked {
			w.fail(fmt.Errorf("R1: record %s is number %d, and what led to one was asked for %d times", change.Object().GetName(), w.made, w.asked))
		}
	}
	w.coverage["F12 judged"]++
	history, err := w.history()
	if err == nil {
		err = w.canUninstall(history)
	}
	if err != nil {
		w.fail(fmt.Errorf("F12: %w", err))
	}
}

// stored is a record as the helm program reads it.
type stored struct {
	*helmrelease.Release
	// objects of its manifest, by kind and name.
	objects []string
	// retried is the request for another try that it was made or failed by.
	retried string
}

// history of the release as `helm history` has it: what is in the Secrets that its labels
// select, sorted by version. One that helm could not read or find would be missing there.
func (w *world) history() (out []stored, err error) {
	for _, s := range apiserver.All[*corev1.Secret](w.Store, apiserver.Secrets) {
		r, err := read(s)
		if err != nil {
			return nil, fmt.Errorf("helm cannot read Secret %s: %w", s.Name, err)
		}
		for key, want := range map[string]string{"owner": "helm", "name": r.Name, "status": string(r.Info.Status), "version": strconv.Itoa(r.Version)} {
			if s.Labels[key] != want {
				return nil, fmt.Errorf("helm does not find Secret %s: its label %s is %q, and its record says %q", s.Name, key, s.Labels[key], want)
			}
		}
		if s.Name != fmt.Sprintf("sh.helm.release.v1.%s.v%d", r.Name, r.Version) || s.Type != "helm.sh/release.v1" || r.Name != name || r.Namespace != namespace {
			return nil, fmt.Errorf("helm does not find Secret %s of type %s with version %d of release %s/%s", s.Name, s.Type, r.Version, r.Namespace, r.Name)
		}
		if !slices.Contains([]string{"pending-install", "pending-upgrade", "deployed", "superseded", "failed", "uninstalling"}, string(r.Info.Status)) {
			return nil, fmt.Errorf("helm knows no status %q", r.Info.Status)
		}
		found, err := helm.Objects(r.Manifest)
		if err != nil {
			return nil, fmt.Errorf("helm cannot read the manifest of version %d: %w", r.Version, err)
		}
		one := stored{Release: r, retried: s.Annotations[v1beta1.AnnotationRetry]}
		for _, o := range found {
			one.objects = append(one.objects, o.GetKind()+" "+o.GetName())
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b stored) int { return a.Version - b.Version })
	return out, nil
}

// read a record as helm's storage does (pkg/storage/driver).
func read(s *corev1.Secret) (*helmrelease.Release, error) {
	raw, err := base64.StdEncoding.DecodeString(string(s.Data["release"]))
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if raw, err = io.ReadAll(z); err != nil {
		return nil, err
	}
	out := &helmrelease.Release{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	if out.Info == nil || out.Chart == nil || out.Chart.Metadata == nil {
		return nil, fmt.Errorf("it lacks what helm shows of it")
	}
	return out, nil
}

// canUninstall judges what `helm uninstall` would leave behind now. It deletes the objects of
// the last version, and then all records: one that is deployed has to name all that there is.
// While a change is under way some record has to, since nobody else knows of an object.
func (w *world) canUninstall(history []stored) error {
	for _, o := range w.objects() {
		is := func(s stored) bool { return slices.Contains(s.objects, o) }
		switch last := len(history) - 1; {
		case !slices.ContainsFunc(history, is):
			return fmt.Errorf("%s is of the release, and none of its %d records names it", o, len(history))
		case history[last].Info.Status == "deployed" && !is(history[last]):
			return fmt.Errorf("version %d is deployed, and helm would leave %s behind", history[last].Version, o)
		}
	}
	return nil
}

// objects of the cluster with helm's marks of the release, but for hooks, which helm leaves
// where they are, and those that are to be kept.
func (w *world) objects() (out []string) {
	for _, resource := range []string{apiserver.ConfigMaps, deployments} {
		for _, o := range apiserver.All[object](w.Store, resource) {
			if o.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" && o.GetAnnotations()["meta.helm.sh/release-name"] == name && o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
				out = append(out, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
			}
		}
	}
	return out
}

// atRest judges where a run has ended.
func (w *world) atRest() {
	history, err := w.history()
	objects := w.objects()
	switch last := len(history) - 1; {
	case err != nil:
		w.fail(err)
	case w.want == nil && (last >= 0 || len(objects) > 0):
		w.fail(fmt.Errorf("L2: the release is to be gone, and has %d records and %q: %q", last+1, objects, w.told))
	case w.want == nil:
	case last < 0:
		w.fail(fmt.Errorf("L2: at rest, and there is no release: %q", w.told))
	case hasFailure(w.chart) && history[last].Info.Status == "failed" && history[last].Chart.Metadata.Version == fmt.Sprintf("1.0.%d", w.chart):
		w.coverage["ends failed"]++
		if retried := history[last].retried; retried != w.retry {
			w.fail(fmt.Errorf("R2: at rest, and version %d failed and was not tried again for %q, but for %q", history[last].Version, w.retry, retried))
		}
	case history[last].Info.Status != "deployed" || history[last].Chart.Metadata.Version != fmt.Sprintf("1.0.%d", w.chart):
		w.fail(fmt.Errorf("L2: at rest, and version %d of chart %s is %s, where chart %d is asked for: %q", history[last].Version, history[last].Chart.Metadata.Version, history[last].Info.Status, w.chart, w.told))
	case len(objects) < len(slices.DeleteFunc(slices.Clone(history[last].objects), func(o string) bool { return o == "ConfigMap kept" })):
		w.fail(fmt.Errorf("L2: version %d is deployed, with %q, and the cluster has %q", history[last].Version, history[last].objects, objects))
	case slices.ContainsFunc(history[:last], func(s stored) bool { return s.Info.Status == "deployed" || s.Info.Status.IsPending() }):
		w.fail(fmt.Errorf("L2: at rest, and a version before %d is deployed or pending", history[last].Version))
	default:
		w.coverage["ends deployed"]++
	}
}
