package process

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func table(t *testing.T) Table {
	return Table{Dir: t.TempDir(), Logs: t.TempDir(), Home: t.TempDir()}
}

func sleeper(t *testing.T) Spec {
	// The marker makes the command line unique on the machine.
	return Spec{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "while sleep 0.1; do :; done; : " + t.TempDir()}}
}

func TestEnsureFindStop(t *testing.T) {
	tab, spec := table(t), sleeper(t)
	if started, err := tab.Ensure(t.Context(), spec); err != nil || !started {
		t.Fatalf("started %v, %v", started, err)
	}
	first, _ := tab.Find(spec.Name)
	if started, err := tab.Ensure(t.Context(), spec); err != nil || started {
		t.Errorf("started a second one: %v, %v", started, err)
	}
	spec.Args = append(slices.Clone(spec.Args), "changed")
	if started, err := tab.Ensure(t.Context(), spec); err != nil || !started {
		t.Errorf("another command line must restart it: %v, %v", started, err)
	}
	if first.Alive() {
		t.Error("the old process is alive")
	}
	if err := tab.Stop(t.Context(), 5*time.Second, spec.Name, "never started"); err != nil {
		t.Fatal(err)
	}
	if records, err := tab.Records(); err != nil || len(records) != 0 {
		t.Errorf("left: %v, %v", records, err)
	}
}

func TestStopKillsWhoeverIgnoresIt(t *testing.T) {
	tab, spec := table(t), sleeper(t)
	spec.Args[1] = "trap '' TERM; touch deaf; " + spec.Args[1]
	if _, err := tab.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(tab.Home, "deaf")); err == nil {
			break
		}
		runtime.Gosched()
	}
	r, _ := tab.Find(spec.Name)
	if err := tab.Stop(t.Context(), 50*time.Millisecond, spec.Name); err != nil || r.Alive() {
		t.Errorf("alive: %v, %v", r.Alive(), err)
	}
}

func TestAReusedIDIsNobody(t *testing.T) {
	r := Record{PID: os.Getpid(), Identity: identity(os.Getpid())}
	if !r.Alive() {
		t.Fatal("we are alive")
	}
	r.Identity += "0"
	if r.Alive() {
		t.Error("a process with another start time was taken for ours")
	}
	if (Record{}).Alive() || (Record{PID: os.Getpid()}).Alive() {
		t.Error("a record without identity is alive")
	}
}

func TestFindsAProcessWhoseStartWasNotNoted(t *testing.T) {
	tab, spec := table(t), sleeper(t)
	if _, err := tab.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	r, _ := tab.Find(spec.Name)
	if err := tab.save(Record{Name: spec.Name, Argv: spec.argv()}); err != nil {
		t.Fatal(err)
	}
	if again, ok := tab.Find(spec.Name); !ok || again.PID != r.PID || !again.Alive() {
		t.Errorf("found %+v, want process %d", again, r.PID)
	}
	if err := tab.Stop(t.Context(), 0, spec.Name); err != nil || r.Alive() {
		t.Errorf("not stopped: %v", err)
	}
}

func TestDiedShowsTheLog(t *testing.T) {
	tab := table(t)
	spec := Spec{Name: "broken", Path: "/bin/sh", Args: []string{"-c", "echo no such luck; exit 1"}}
	if _, err := tab.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	r, _ := tab.Find(spec.Name)
	if err := waitGone(t.Context(), []Record{r}, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := tab.Died(spec.Name); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v", err)
	}
}
