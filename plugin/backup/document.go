package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Annotations of the documents, and of nothing in a cluster. UIDs and owners are here
// and not in their fields, so that `kubectl create` could read the file as well: an owner
// whose UID does not exist has the garbage collector delete the object.
const (
	annotationUID   = "backup.tkestack.io/uid"
	annotationOwner = "backup.tkestack.io/owner"
	// Of AppSets and AdvDeployments, and of AppSets the UID of the hub: the id of its fleet,
	// if it was given no other.
	annotationGeneration = "backup.tkestack.io/generation"
	annotationHub        = "backup.tkestack.io/hub-uid"
)

// The bounds of a file. An API server stores no object of more than 1.5 MiB.
const (
	maxDocument  = 4 << 20
	maxDocuments = 200_000
)

// stamp makes a document of an object: without what the cluster made of it. owner is the
// workload that it belongs to, if it does by its owner reference.
func stamp(u *unstructured.Unstructured, owner string) *unstructured.Unstructured {
	out := u.DeepCopy()
	notes := out.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	for _, of := range []string{tappv1.AnnotationRestoredFrom, tappv1.AnnotationRestoring, v1beta1.AnnotationRestoredFrom, v1beta1.AnnotationRestoring,
		v1beta1.AnnotationAcceptGeneration, "kubectl.kubernetes.io/last-applied-configuration", "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node"} {
		delete(notes, of)
	}
	notes[annotationUID] = string(u.GetUID())
	if owner != "" {
		notes[annotationOwner] = owner
	}
	var finalizers []string
	if of, _ := classOf(u); of != nil && of.labelUID {
		notes[annotationGeneration] = generationOf(u)
		if slices.Contains(u.GetFinalizers(), v1beta1.Finalizer) { // its clusters may have parts
			finalizers = []string{v1beta1.Finalizer}
		}
	}
	out.SetAnnotations(notes)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
		"managedFields", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	out.SetFinalizers(finalizers)
	status := remembered(out)
	delete(out.Object, "status")
	if len(status) > 0 {
		out.Object["status"] = status
	}
	return out
}

// remembered are the fields of a TApp's status that the controller cannot observe anew.
func remembered(u *unstructured.Unstructured) map[string]any {
	if u.GroupVersionKind() != tappv1.GroupVersionKind() {
		return nil
	}
	out := map[string]any{}
	for _, field := range []string{"statuses", "nodes", "contents", "scaleLabelSelector"} {
		if value, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", field); found && err == nil {
			out[field] = value
		}
	}
	return out
}

// encode writes documents, in the order in which they are restored.
func encode(w io.Writer, documents []*unstructured.Unstructured) error {
	slices.SortStableFunc(documents, compare)
	for _, u := range documents {
		text, err := sigsyaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("writing %s: %w", nameOf(u), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("writing the backup: %w", err)
		}
	}
	return nil
}

func compare(a, b *unstructured.Unstructured) int {
	_, x := classOf(a)
	_, y := classOf(b)
	if x != y {
		return x - y
	}
	return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
}

// decode reads a backup. Each document has to be one that backup wrote: what a restore
// would have to guess, it refuses.
func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	reader := yaml.NewDocumentDecoder(io.NopCloser(r))
	defer func() { _ = reader.Close() }()
	var out []*unstructured.Unstructured
	seen := map[string]bool{}
	for number := 1; ; number++ {
		text, err := readDocument(reader)
		switch {
		case errors.Is(err, io.EOF):
			if len(out) == 0 {
				return nil, errors.New("the file has no objects")
			}
			slices.SortStableFunc(out, compare)
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("reading document %d: %w", number, err)
		case len(bytes.TrimSpace(text)) == 0:
			continue
		case len(out) == maxDocuments:
			return nil, fmt.Errorf("the file has more than %d objects", maxDocuments)
		}
		u := &unstructured.Unstructured{}
		if err := sigsyaml.Unmarshal(text, &u.Object); err != nil {
			return nil, fmt.Errorf("reading document %d: %w", number, err)
		}
		if len(u.Object) == 0 { // comments alone
			continue
		}
		if err := judge(u); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		name := nameOf(u)
		if seen[name] {
			return nil, fmt.Errorf("document %d: %s is there twice", number, name)
		}
		seen[name] = true
		out = append(out, u)
	}
}

func judge(u *unstructured.Unstructured) error {
	of, _ := classOf(u)
	if of == nil || of.step == stepData && u.GetAnnotations()[annotationUID] == "" {
		return fmt.Errorf("%s %q of %q is nothing that kubectl tapp backup writes: use kubectl apply", u.GetKind(), u.GetName(), u.GetAPIVersion())
	}
	switch {
	case u.GetName() == "" || u.GetNamespace() == "":
		return fmt.Errorf("metadata.name or metadata.namespace of a %s is missing", u.GetKind())
	case u.GetAnnotations()[annotationUID] == "":
		return fmt.Errorf("%s lacks the annotation %s: it is not from kubectl tapp backup", nameOf(u), annotationUID)
	}
	return nil
}

// readDocument reads up to the next separator.
func readDocument(r io.Reader) ([]byte, error) {
	out, buffer := []byte(nil), make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		out = append(out, buffer[:n]...)
		if len(out) > maxDocument {
			return nil, fmt.Errorf("it has more than %d bytes", maxDocument)
		}
		if !errors.Is(err, io.ErrShortBuffer) {
			return out, err
		}
	}
}

// bare is what is created of a document.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	delete(out.Object, "status")
	notes := out.GetAnnotations()
	for _, of := range []string{annotationUID, annotationOwner, annotationGeneration, annotationHub} {
		delete(notes, of)
	}
	if len(notes) == 0 {
		notes = nil
	}
	out.SetAnnotations(notes)
	return out
}
