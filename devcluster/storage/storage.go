// Package storage says what the cluster's volumes are: a volume is a directory on the machine that pods on one node can
// mount. The program that makes them is in programs/addons.
package storage

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Provisioner is what the classes name.
	Provisioner = "local.devcluster.tkestack.io"
	// Largest is the parameter of a class that says how large a volume can be; absent: any size.
	Largest = "largest"
	// HoldGrowth ("true") is the annotation of a claim whose volume shall not grow yet.
	HoldGrowth = "devcluster.tkestack.io/hold-growth"
)

// Classes is a YAML stream of the storage classes.
//
//go:embed classes.yaml
var Classes []byte

// Request is a claim for which there shall be a volume.
type Request struct {
	Name  string // of the volume
	Node  string // whose pods shall mount it
	Claim *corev1.PersistentVolumeClaim
	Class *storagev1.StorageClass
}

// Volume returns the volume for a request, with its directory below root, which the caller makes.
func Volume(root string, r Request) (*corev1.PersistentVolume, error) {
	if r.Node == "" {
		return nil, fmt.Errorf("the volume is to be on one node, which only volumeBindingMode WaitForFirstConsumer tells; class %s has another", r.Class.Name)
	}
	if r.Claim.Spec.Selector != nil {
		return nil, errors.New("a new volume has no labels that a selector could ask for")
	}
	size := r.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := feasible(size, r.Class); err != nil {
		return nil, err
	}
	block := corev1.PersistentVolumeBlock
	if mode := r.Claim.Spec.VolumeMode; mode != nil && *mode == block {
		return nil, errors.New("volumes are directories, and no block devices")
	}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	v.Spec = corev1.PersistentVolumeSpec{
		AccessModes: r.Claim.Spec.AccessModes,
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: size},
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			Local: &corev1.LocalVolumeSource{Path: filepath.Join(root, r.Node, strings.Join([]string{r.Claim.Namespace, r.Claim.Name, r.Name}, "_"))},
		},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{r.Node}}},
		}}}},
	}
	if r.Class.ReclaimPolicy != nil {
		v.Spec.PersistentVolumeReclaimPolicy = *r.Class.ReclaimPolicy
	}
	return v, nil
}

// Directory of a volume; only one below root is ours to remove.
func Directory(root string, v *corev1.PersistentVolume) (string, error) {
	if v.Spec.Local == nil {
		return "", fmt.Errorf("volume %s is no local one", v.Name)
	}
	relative, err := filepath.Rel(root, v.Spec.Local.Path)
	if err != nil || !filepath.IsLocal(relative) || relative == "." {
		return "", fmt.Errorf("the directory of volume %s is not below %s: %s", v.Name, root, v.Spec.Local.Path)
	}
	return v.Spec.Local.Path, nil
}

// feasible says why there is no volume of this size. A class that is gone has no limit.
func feasible(size resource.Quantity, class *storagev1.StorageClass) error {
	if class == nil || class.Parameters[Largest] == "" {
		return nil
	}
	largest, err := resource.ParseQuantity(class.Parameters[Largest])
	if err != nil {
		return fmt.Errorf("parameter %s of class %s: %w", Largest, class.Name, err)
	}
	if size.Cmp(largest) > 0 {
		return fmt.Errorf("%s is too large: volumes of class %s have at most %s", size.String(), class.Name, largest.String())
	}
	return nil
}
