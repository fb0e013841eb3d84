package app

import (
	"context"
	"errors"
	"slices"
	"testing"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// TestChildren: another App that names a child is told of; an App is not its own
// rival.
func TestChildren(t *testing.T) {
	rival := read(t, `{serviceTemplate: {name: web}}`)
	rival.Name = "rival"
	mine := read(t, `{deploymentTemplate: {name: web}, serviceTemplate: {name: web}}`)
	naming := func(_ context.Context, kind, namespace, name string) ([]*appv1.App, error) {
		switch kind + "/" + namespace + "/" + name {
		case "Deployment/ns/web":
			return []*appv1.App{mine}, nil
		case "Service/ns/web":
			return []*appv1.App{mine, rival}, nil
		}
		return nil, errors.New("another child")
	}
	got, err := adviseChildren(t.Context(), mine, naming)
	const want = `spec.serviceTemplate.name: the App "rival" names the Service "web" too; only one of them can have it, and the other one is Stalled until the name is free`
	if err != nil || !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := adviseChildren(t.Context(), read(t, `{deploymentTemplate: {name: x}}`), naming); err == nil || err.Error() != `look for other Apps that name Deployment "x": another child` {
		t.Errorf("got %v", err)
	}
	if got, err := adviseChildren(t.Context(), read(t, `{}`), nil); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
