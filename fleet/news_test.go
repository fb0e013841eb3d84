package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/health"
)

// TestNews: each loss and each return is told once, and nothing of what passes by.
func TestNews(t *testing.T) {
	at := func(state v1beta1.ClusterState, reason string) Member { return Member{State: state, Reason: reason} }
	const silent = health.ReasonSilent
	for name, c := range map[string]struct {
		states []Member
		want   string
	}{
		"a start":        {[]Member{at("Offline", health.ReasonConnecting), at("Offline", health.ReasonReturning), at("Ready", ""), at("Ready", "")}, ""},
		"a bad start":    {[]Member{at("Offline", health.ReasonConnecting), at("Unfit", "Forbidden"), at("Unfit", "Forbidden"), at("Ready", "")}, "Unfit, Unfit>Ready"},
		"a lost probe":   {[]Member{at("Ready", ""), at("Suspect", silent), at("Ready", "")}, ""},
		"a silent one":   {[]Member{at("Ready", ""), at("Suspect", silent), at("Offline", silent), at("Offline", "Other"), at("Offline", health.ReasonReturning), at("Ready", "")}, "Ready>Offline, Offline>Ready"},
		"a flapping one": {[]Member{at("Ready", ""), at("Offline", silent), at("Offline", health.ReasonFlapping), at("Offline", silent), at("Ready", "")}, "Ready>Offline, Offline>Ready"},
		"another one":    {[]Member{at("Ready", ""), at("Mistaken", ReasonMistaken), at("Offline", silent)}, "Ready>Mistaken, Mistaken>Offline"},
		"maintenance":    {[]Member{at("Ready", ""), at("Maintaining", ""), at("Offline", health.ReasonConnecting), at("Ready", "")}, ""},
		"one that went":  {[]Member{at("Offline", silent), at("Unregistered", ""), at("Ready", "")}, "Offline"},
	} {
		var n news
		var got []string
		for _, m := range c.states {
			if was, is := n.of(&m); is {
				got = append(got, strings.TrimPrefix(fmt.Sprintf("%s>%s", was, m.State), ">"))
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: it tells %q, want %q", name, text, c.want)
		}
	}
}

// TestAnnounced: the registration of a cluster has an event of each time that it was lost, and
// that it is back.
func TestAnnounced(t *testing.T) {
	var recorder *events.Recorder
	member := newServer(t, "1")
	r := ready(t, map[string]*server{"m": member}, func(o *Options) {
		recorder = events.NewRecorder(events.Options{Client: o.HubClient, Component: v1beta1.Component, Clock: o.Clock})
		o.Events = recorder
	})
	told := func() (out []string) {
		recorder.Flush(t.Context())
		r.hub.mu.Lock()
		defer r.hub.mu.Unlock()
		for path, o := range r.hub.objects {
			if strings.HasPrefix(path, "events/clusters/") {
				about, _ := o["involvedObject"].(object)
				out = append(out, fmt.Sprintf("%s %s %s %s: %s", about["kind"], about["name"], o["type"], o["reason"], o["message"]))
			}
		}
		slices.Sort(out)
		return out
	}
	if got := told(); len(got) > 0 {
		t.Errorf("at first it tells %q", got)
	}
	member.set(func() { member.code = 401 })
	r.untilMoving("unfit", r.state("m", v1beta1.ClusterUnfit, "Unauthorized"))
	member.set(func() { member.code = 0 })
	r.untilMoving("ready again", r.state("m", v1beta1.ClusterReady, ""))
	want := []string{"Secret m Normal ClusterReady: cluster m is Ready again; it was Unfit",
		"Secret m Warning ClusterUnfit: cluster m is Unfit: it does not know our credentials; they may have expired or been revoked. kubectl tapp fleet join makes new ones"}
	r.until("told", func() bool { return slices.Equal(told(), want) })
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("it tells %q, want %q", got, want)
	}
}
