package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// noVersion is the resourceVersion of an apply that only creates: no object can have it.
// On an object that exists, the apply is a conflict, and touches nothing.
const noVersion = "1"

// Carrier to a member that can be written to.
func (f *Fleet) Carrier(name string) (Carrier, error) {
	m := f.member(name)
	if m == nil {
		return nil, fmt.Errorf("cluster %s: %w", name, ErrUnknown)
	}
	if _, err := m.writable(); err != nil {
		return nil, err
	}
	return &direct{m}, nil
}

// writable is the session to write over. Suspect is too little to stop writes.
func (m *member) writable() (*session, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	now := m.snapshot()
	if now.State != v1beta1.ClusterReady && now.State != v1beta1.ClusterSuspect {
		return nil, &StateError{now}
	}
	return m.current, nil
}

// direct writes over the member's own connection.
type direct struct{ member *member }

// over calls f with the session to use, and for no longer than a request may take.
func (d *direct) over(ctx context.Context, f func(context.Context, *session) error) error {
	s, err := d.member.writable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if s.lease != nil {
		err := s.lease.hold(ctx)
		s.leased(ctx, err)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", d.member.name, err)
		}
	}
	if err := f(ctx, s); err != nil {
		return fmt.Errorf("cluster %s: %w", d.member.name, err)
	}
	return nil
}

func (d *direct) Apply(ctx context.Context, a Apply) (applied *v1beta1.AdvDeployment, err error) {
	manifest, err := a.manifest()
	if err != nil {
		return nil, err
	}
	err = d.over(ctx, func(ctx context.Context, s *session) error {
		lists := s.parts.begun()
		applied, err = s.connection.requests.parts.AdvDeployments(a.Namespace).Patch(ctx, a.Name, types.ApplyPatchType, manifest,
			metav1.PatchOptions{FieldManager: v1beta1.Component, Force: ptr.To(true)})
		if err == nil {
			applied = s.parts.wrote(applied, lists)
		}
		return err
	})
	return applied, err
}

// manifest as it is sent, conditional on what was observed.
func (a Apply) manifest() ([]byte, error) {
	made := maps.Clone(a.Manifest)
	metadata, ok := made["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the manifest of %s/%s has no metadata", a.Namespace, a.Name)
	}
	metadata = maps.Clone(metadata)
	made["metadata"] = metadata
	metadata["resourceVersion"] = noVersion
	if a.Version != "" {
		metadata["uid"], metadata["resourceVersion"] = string(a.UID), a.Version
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("rendering the manifest of %s/%s: %w", a.Namespace, a.Name, err)
	}
	return text, nil
}

// Patch by a JSON patch.
func (d *direct) Patch(ctx context.Context, namespace, name string, patch []byte) (patched *v1beta1.AdvDeployment, err error) {
	err = d.over(ctx, func(ctx context.Context, s *session) error {
		lists := s.parts.begun()
		patched, err = s.connection.requests.parts.AdvDeployments(namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: v1beta1.Component})
		if err == nil {
			patched = s.parts.wrote(patched, lists)
		}
		return err
	})
	return patched, err
}

func (d *direct) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	return d.over(ctx, func(ctx context.Context, s *session) error {
		return s.connection.requests.parts.AdvDeployments(namespace).Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
		})
	})
}

func (d *direct) Observe(ctx context.Context, namespace, name string) (seen *v1beta1.AdvDeployment, err error) {
	err = d.over(ctx, func(ctx context.Context, s *session) error {
		seen, err = s.connection.requests.parts.AdvDeployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			seen = s.parts.packer.pack(seen).unpack()
		}
		return err
	})
	return seen, err
}
