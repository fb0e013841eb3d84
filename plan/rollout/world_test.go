package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// world is a fleet whose units do what they are asked for when they are told to work.
type world struct {
	*testing.T
	in       Input
	last     Decision
	contents map[string]map[Key]string // by revision
	wrote    []string
	// recovers: where an installation is given up, what it was to be counts as stable, as in
	// plan/appset.
	recovers bool
}

// newWorld with units such as "a/canary=3": group canary in cluster a, three instances.
func newWorld(t *testing.T, s Strategy, units ...string) *world {
	w := &world{T: t, contents: map[string]map[Key]string{}}
	w.in = Input{UID: "u", Generation: 1, Strategy: s, Now: start}
	for _, text := range units {
		w.add(text)
	}
	return w.ask("v1")
}

func (w *world) add(text string) {
	name, replicas, _ := strings.Cut(text, "=")
	cluster, group, _ := strings.Cut(name, "/")
	n, _ := strconv.Atoi(replicas)
	w.in.Units = append(w.in.Units, Unit{Key: Key{cluster, group}, Group: group, Replicas: int32(n)})
	if !slices.ContainsFunc(w.in.Clusters, func(c Cluster) bool { return c.Name == cluster }) {
		w.in.Clusters = append(w.in.Clusters, Cluster{Name: cluster, Fresh: true, Ready: true})
	}
}

// ask for a content of all units, or of those of one group.
func (w *world) ask(content string, groups ...string) *world {
	for i := range w.in.Units {
		if len(groups) == 0 || slices.Contains(groups, w.in.Units[i].Group) {
			w.in.Units[i].Target = content
		}
	}
	w.in.Generation++
	w.in.Revision = ""
	all := map[Key]string{}
	for i := range w.in.Units {
		w.in.Revision += w.in.Units[i].Target
		all[w.in.Units[i].Key] = w.in.Units[i].Target
	}
	w.in.Revision += fmt.Sprint(len(w.in.Units))
	w.contents[w.in.Revision] = all
	return w
}

func (w *world) unit(name string) *Unit {
	for i := range w.in.Units {
		if w.in.Units[i].String() == name {
			return &w.in.Units[i]
		}
	}
	w.Fatalf("no unit %s", name)
	return nil
}

func (w *world) cluster(name string) *Cluster {
	for i := range w.in.Clusters {
		if w.in.Clusters[i].Name == name {
			return &w.in.Clusters[i]
		}
	}
	w.Fatalf("no cluster %s", name)
	return nil
}

// compute with what the record says of the stable revision.
func (w *world) compute() Decision {
	w.Helper()
	for i := range w.in.Units {
		u := &w.in.Units[i]
		u.Stable, u.Before = u.Target, ""
		w.in.HasStable = false
		if r := w.in.Record; r != nil {
			u.Before = w.contents[r.Revision][u.Key]
			stable := r.Stable
			if w.recovers && stable == "" && r.Revision != w.in.Revision {
				stable, w.in.Stable = r.Revision, r.Revision
			}
			if w.in.HasStable = stable != ""; w.in.HasStable {
				u.Stable = w.contents[stable][u.Key]
			}
		}
	}
	before, _ := json.Marshal(w.in)
	d := Compute(w.in)
	if after, _ := json.Marshal(w.in); string(before) != string(after) {
		w.Fatal("the input was changed")
	}
	return d
}

// step decides and carries out once.
func (w *world) step() bool {
	w.Helper()
	d := w.compute()
	if d.Store {
		w.in.Record = d.Record
		if again := w.compute(); again.Store {
			w.Fatalf("the record is to be stored again:\n%+v\n%+v", d.Record, again.Record)
		} else {
			d = again
		}
	}
	w.last, w.in.Ran = d, d.Ran
	moved := false
	for i := range w.in.Units {
		u, v := &w.in.Units[i], &d.Units[i]
		u.Progress = v.Progress
		if v.Content == "" || !w.cluster(u.Cluster).Fresh || v.Content == u.Has && number(v.Grant) == number(u.Grant) && number(v.Ceiling) == number(u.Ceiling) {
			continue
		}
		if !v.Reserved {
			w.Fatalf("%s is not reserved", u.Key)
		}
		moved = true
		w.wrote = append(w.wrote, fmt.Sprintf("%s %s %s", u.Key, v.Content, number(v.Grant)))
		if u.Has == "" {
			u.Desired = u.Replicas
		}
		if u.Has != v.Content {
			u.Updated = 0
		}
		u.Has, u.Grant, u.Ceiling, u.Observed = v.Content, v.Grant, v.Ceiling, false
		version, _ := strconv.Atoi(u.Version)
		u.Version = strconv.Itoa(version + 1)
	}
	return moved
}

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(int(*n))
}

// work of units that are granted something, until they are done.
func (w *world) work(names ...string) *world {
	for i := range w.in.Units {
		u := &w.in.Units[i]
		if u.Has == "" || len(names) > 0 && !slices.Contains(names, u.String()) || !w.cluster(u.Cluster).Fresh {
			continue
		}
		u.Observed = true
		if u.Desired = u.Replicas; u.Grant == nil || *u.Grant > 0 {
			u.Updated, u.Available, u.Current = u.Desired, u.Desired, u.Desired
		}
	}
	return w
}

// settle decides until there is nothing to write.
func (w *world) settle() *world {
	w.Helper()
	for range 10 {
		if !w.step() {
			return w
		}
	}
	w.Fatalf("there is always something to write: %q", w.wrote)
	return w
}

// install all.
func (w *world) install() *world {
	w.Helper()
	w.settle().work().settle().expect(Done)
	w.wrote = nil
	return w
}

// expect a state, and what was written since.
func (w *world) expect(state State, wrote ...string) *world {
	w.Helper()
	if w.last.State != state {
		w.Fatalf("it is %s (%s), want %s; wrote %q", w.last.State, w.last.Why, state, w.wrote)
	}
	if len(wrote) > 0 && !slices.Equal(w.wrote, wrote) {
		w.Fatalf("wrote %q, want %q", w.wrote, wrote)
	}
	if len(wrote) == 0 && state != Done && len(w.wrote) > 0 {
		w.Fatalf("wrote %q, want nothing", w.wrote)
	}
	w.wrote = nil
	return w
}

// confirm the gate that waits.
func (w *world) confirm() *world {
	w.Helper()
	stage := w.last.Stages[w.last.Current]
	if stage.Token == "" {
		w.Fatalf("no gate waits: %s", w.last.State)
	}
	w.in.Confirmations = append(w.in.Confirmations, Confirmation{w.last.Record.ID, stage.Name, stage.Token, "ann"})
	return w
}

func (w *world) later(d time.Duration) *world {
	w.in.Now = w.in.Now.Add(d)
	return w
}
