package tapp

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// endingAgain is for how long nothing is created for a TApp after the API server has said
// that its namespace is being deleted: each pod that goes would have the next one tried in
// vain. Never to try again would trust an API server that has not heard yet of a new
// namespace of that name.
const endingAgain = 30 * time.Second

// terminates is true of an error that says that the namespace is being deleted.
func terminates(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// unlessTerminating makes less of such an error: the TApp is about to go with its
// namespace, and there is nothing to tell.
func unlessTerminating(err error) error {
	if terminates(err) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}
