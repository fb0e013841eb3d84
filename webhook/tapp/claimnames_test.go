package tapp

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

// TestClaimNames: a warning where two TApps can make claims of one name, on creation.
func TestClaimNames(t *testing.T) {
	makes := func(name string, templates ...string) *tappv1.TApp {
		out := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		for _, template := range templates {
			out.Spec.VolumeClaimTemplates = append(out.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: template}})
		}
		return out
	}
	const tail = "; an instance waits (NameTaken) for a claim that is the other's. Give the template another name"
	for name, c := range map[string]struct {
		now, was *tappv1.TApp
		others   []*tappv1.TApp
		err      error
		want     []string
	}{
		"the longer name is there": {now: makes("db", "data-eu"), others: []*tappv1.TApp{makes("eu-db", "data")},
			want: []string{"spec.volumeClaimTemplates: data-eu of TApp db and data of TApp eu-db make claims of the same names, data-eu-db-<id>" + tail}},
		"the shorter name is there": {now: makes("eu-db", "logs", "data"), others: []*tappv1.TApp{makes("db", "data-eu", "logs")},
			want: []string{"spec.volumeClaimTemplates: data of TApp eu-db and data-eu of TApp db make claims of the same names, data-eu-db-<id>" + tail}},
		"with two others": {now: makes("c", "a-b", "x"), others: []*tappv1.TApp{makes("b-c", "a"), makes("d", "x"), makes("b-c-d", "a")},
			want: []string{"spec.volumeClaimTemplates: a-b of TApp c and a of TApp b-c make claims of the same names, a-b-c-<id>" + tail}},
		"two templates collide": {now: makes("db", "data-eu", "logs-eu"), others: []*tappv1.TApp{makes("eu-db", "logs", "data")},
			want: []string{"spec.volumeClaimTemplates: data-eu of TApp db and data of TApp eu-db make claims of the same names, data-eu-db-<id>" + tail,
				"spec.volumeClaimTemplates: logs-eu of TApp db and logs of TApp eu-db make claims of the same names, logs-eu-db-<id>" + tail}},
		"one template name, two TApps":   {now: makes("db", "data"), others: []*tappv1.TApp{makes("eu-db", "data")}},
		"the end of a name is no name":   {now: makes("db", "data-eu"), others: []*tappv1.TApp{makes("u-db", "data-e")}},
		"itself":                         {now: makes("db", "data"), others: []*tappv1.TApp{makes("db", "data")}},
		"an update":                      {now: makes("db", "data-eu"), was: makes("db", "data-eu"), others: []*tappv1.TApp{makes("eu-db", "data")}},
		"no claims":                      {now: makes("db"), others: []*tappv1.TApp{makes("eu-db", "data")}},
		"the other TApps cannot be read": {now: makes("db", "data-eu"), err: errors.New("no")},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTestValidator()
			v.reads.TApps = func(context.Context, string) ([]*tappv1.TApp, error) { return c.others, c.err }
			var w rule.Warnings
			v.findClaimNames(t.Context(), candidate{now: c.now, was: c.was}, &w)
			if len(w.Texts) != len(c.want) {
				t.Fatalf("got %q, want %q", w.Texts, c.want)
			}
			for i := range c.want {
				if w.Texts[i] != c.want[i] {
					t.Errorf("got %q, want %q", w.Texts[i], c.want[i])
				}
			}
		})
	}
}
