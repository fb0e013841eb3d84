package refusal

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// set of refusals, such as "Create 3"; each later one by a second.
func set(keys ...string) Set {
	s := Set{}
	for n, key := range keys {
		var k Key
		if _, err := fmt.Sscanf(key, "%s %d", &k.Op, &k.ID); err != nil {
			panic(err)
		}
		s.Note(k, "no", at.Add(time.Duration(n)*time.Second))
	}
	return s
}

// TestTold: the lowest id of the first reason, and how many instances there are beside it.
func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		refused Set
		want    string
	}{
		"nothing":                         {set(), ": "},
		"a creation":                      {set("Create 3"), "FailedCreate: cannot create instance 3 since 2026-03-01T12:00:00Z: no"},
		"of a claim":                      {set("CreateClaim 3"), "FailedCreate: cannot create a claim of instance 3 since 2026-03-01T12:00:00Z: no"},
		"a deletion":                      {set("Delete 0"), "FailedDelete: cannot delete the pod of instance 0 since 2026-03-01T12:00:00Z: no"},
		"by force":                        {set("ForceDelete 0"), "FailedDelete: cannot delete by force the pod of instance 0 since 2026-03-01T12:00:00Z: no"},
		"of a claim that is to go":        {set("DeleteClaim 0"), "FailedDelete: cannot delete a claim of instance 0 since 2026-03-01T12:00:00Z: no"},
		"an update":                       {set("UpdateInPlace 12"), "FailedUpdate: cannot update in place instance 12 since 2026-03-01T12:00:00Z: no"},
		"a status":                        {set("Drain 1"), "FailedUpdate: cannot drain instance 1 since 2026-03-01T12:00:00Z: no"},
		"another status":                  {set("Undrain 1"), "FailedUpdate: cannot undrain instance 1 since 2026-03-01T12:00:00Z: no"},
		"a resize":                        {set("Resize 1"), "FailedUpdate: cannot resize instance 1 since 2026-03-01T12:00:00Z: no"},
		"labels":                          {set("Relabel 1"), "FailedUpdate: cannot relabel instance 1 since 2026-03-01T12:00:00Z: no"},
		"a claim's labels":                {set("UpdateClaim 1"), "FailedUpdate: cannot update a claim of instance 1 since 2026-03-01T12:00:00Z: no"},
		"an adoption":                     {set("Adopt 1"), "FailedUpdate: cannot adopt the pod of instance 1 since 2026-03-01T12:00:00Z: no"},
		"a release":                       {set("Release 1"), "FailedUpdate: cannot release the pod of instance 1 since 2026-03-01T12:00:00Z: no"},
		"the lowest id":                   {set("Create 10", "Create 9", "Create 11"), "FailedCreate: cannot create instance 9 since 2026-03-01T12:00:01Z (and 2 other instances): no"},
		"creations before deletions":      {set("Delete 0", "Create 9"), "FailedCreate: cannot create instance 9 since 2026-03-01T12:00:01Z (and 1 other instance): no"},
		"deletions before updates":        {set("Drain 0", "Delete 2"), "FailedDelete: cannot delete the pod of instance 2 since 2026-03-01T12:00:01Z (and 1 other instance): no"},
		"one instance counts once":        {set("Undrain 0", "UpdateClaim 0"), "FailedUpdate: cannot undrain instance 0 since 2026-03-01T12:00:00Z: no"},
		"and never beside itself":         {set("Create 0", "UpdateClaim 0", "Drain 4"), "FailedCreate: cannot create instance 0 since 2026-03-01T12:00:00Z (and 1 other instance): no"},
		"what nobody knows is not spoken": {set("Dance 0"), ": "},
	} {
		t.Run(name, func(t *testing.T) {
			reason, text := c.refused.Told()
			if got := reason + ": " + text; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			first, _ := c.refused.First()
			want := Set{}
			if reason != "" {
				want[first] = c.refused[first]
			}
			if got := Stored(condition(metav1.ConditionTrue, reason, text)); !maps.Equal(got, want) {
				t.Errorf("read again it is %v, want %v", got, want)
			}
		})
	}
}

func condition(is metav1.ConditionStatus, reason, text string) []metav1.Condition {
	return []metav1.Condition{{Type: tappv1.ConditionReplicaFailure, Status: is, Reason: reason, Message: text}}
}

// TestStored: nothing is read of a condition that tells nothing.
func TestStored(t *testing.T) {
	_, text := set("Create 3").Told()
	for name, conditions := range map[string][]metav1.Condition{
		"none":                    nil,
		"not True":                condition(metav1.ConditionFalse, FailedCreate, text),
		"another reason":          condition(metav1.ConditionTrue, FailedDelete, text),
		"of an earlier version":   condition(metav1.ConditionTrue, FailedCreate, `pods "a-<id>" is forbidden: exceeded quota`),
		"no id":                   condition(metav1.ConditionTrue, FailedCreate, strings.Replace(text, "instance 3", "instance x", 1)),
		"no time":                 condition(metav1.ConditionTrue, FailedCreate, strings.Replace(text, "2026", "then", 1)),
		"a verb that nobody uses": condition(metav1.ConditionTrue, FailedCreate, strings.Replace(text, "create", "conjure", 1)),
	} {
		if got := Stored(conditions); got == nil || len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	long := Set{}
	long.Note(Key{3, "Create"}, `a "colon: in words" `+strings.Repeat("x", 3000), at)
	if _, text = long.Told(); len(text) > 1024 {
		t.Errorf("%d bytes", len(text))
	}
	if got := Stored(condition(metav1.ConditionTrue, FailedCreate, text))[Key{3, "Create"}]; !got.Since.Equal(at) || !strings.HasPrefix(got.Words, `a "colon: in words" x`) {
		t.Errorf("read again it is %v", got)
	}
}

// TestNote: the last words count, and the first time. What came through is forgotten, with
// all that it writes, and nothing else.
func TestNote(t *testing.T) {
	s := set("Create 0")
	s.Note(Key{0, "Create"}, "never", at.Add(time.Hour))
	if got := s[Key{0, "Create"}]; got != (Refusal{"never", at}) {
		t.Errorf("got %v", got)
	}
	for passed, want := range map[string]string{
		"Create": "[Create Delete UpdateClaim UpdateInPlace]", "Delete": "[Create Delete UpdateClaim UpdateInPlace]",
		"UpdateInPlace": "[Create Delete UpdateClaim UpdateInPlace]", "Replace": "[Create Delete UpdateClaim UpdateInPlace]", "CreateClaim": "[Create Delete UpdateClaim UpdateInPlace]",
	} {
		s := set("Create 0", "Delete 0", "UpdateInPlace 0", "UpdateClaim 0")
		s.Passed(1, passed)
		if len(s) != 4 {
			t.Errorf("%s of another instance: %v", passed, s)
		}
		s.Passed(0, passed)
		for _, part := range Parts(passed) {
			want = strings.Replace(want, part, "", 1)
		}
		var left []string
		for _, op := range []string{"Create", "Delete", "UpdateClaim", "UpdateInPlace"} {
			if _, ok := s[Key{0, op}]; ok {
				left = append(left, op)
			} else {
				left = append(left, "")
			}
		}
		if got := fmt.Sprint(left); got != want {
			t.Errorf("after %s: %s, want %s", passed, got, want)
		}
	}
	if got := fmt.Sprint(Parts("Replace"), Parts("CreateClaim"), Parts("Drain"), Parts("Dance")); got != "[Replace Create Delete] [CreateClaim UpdateClaim] [Drain] [Dance]" {
		t.Errorf("parts %s", got)
	}
}
