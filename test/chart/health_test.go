package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestHealth runs the health check for Argo CD over the statuses that the planner
// gives in its scenarios.
func TestHealth(t *testing.T) {
	seen := map[string]int{}
	for _, file := range scenarios(t) {
		tapp, ready, progressing, stalled := statusOf(t, file)
		want := "Progressing: " + ready[message]
		switch metadata, _ := tapp["metadata"].(map[string]any); {
		case metadata["deletionTimestamp"] != nil:
			want = "Progressing: it is being deleted"
		case stalled[status] == "True":
			want = "Degraded: " + stalled[message]
		case ready[status] == "True":
			want = "Healthy: " + ready[message]
		case ready[reason] == "InstancesFailed":
			want = "Degraded: " + ready[message]
		case progressing[reason] == "Paused":
			want = "Suspended: paused: " + ready[message]
		}
		if got := health(t, tapp); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", file, got, want)
		}
		kind, _, _ := strings.Cut(want, ":")
		seen[kind]++
	}
	for _, kind := range []string{"Healthy", "Progressing", "Degraded", "Suspended"} {
		if seen[kind] == 0 {
			t.Errorf("no scenario is %s", kind)
		}
	}
}

func TestHealthWithoutStatus(t *testing.T) {
	for object, want := range map[string]string{
		`metadata: {generation: 1}`:               "Progressing: the controller has not seen this spec yet",
		`{metadata: {generation: 1}, status: {}}`: "Progressing: the controller has not seen this spec yet",
		`{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`:                                                           "Progressing: the controller has not seen this spec yet",
		`{metadata: {generation: 2}, status: {observedGeneration: 2}}`:                                                                                                        "Progressing: ",
		`{metadata: {generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", message: fine}]}}`: "Progressing: it is being deleted",
		`{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", message: fine}]}}`:                                            "Healthy: fine",
	} {
		if got := health(t, tree(t, []byte(object))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", object, got, want)
		}
	}
}

// TestKstatus: what waits by kstatus, as `helm --wait` and Flux do, waits for a TApp
// that nobody has looked at, as the CRD stores it, and reads the conditions right.
func TestKstatus(t *testing.T) {
	judge := func(tapp map[string]any) kstatus.Status {
		var object map[string]any // with whole numbers as such
		raw, err := json.Marshal(tapp)
		if err == nil {
			err = utiljson.Unmarshal(raw, &object)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := kstatus.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			t.Fatal(err)
		}
		return got.Status
	}
	if got := judge(tree(t, []byte(`{metadata: {name: web, generation: 1}, status: {observedGeneration: -1}}`))); got != kstatus.InProgressStatus {
		t.Errorf("a new TApp is %s", got)
	}
	seen := map[kstatus.Status]int{}
	for _, file := range scenarios(t) {
		tapp, ready, _, stalled := statusOf(t, file)
		want := kstatus.InProgressStatus
		switch metadata, _ := tapp["metadata"].(map[string]any); {
		case metadata["deletionTimestamp"] != nil:
			want = kstatus.TerminatingStatus
		case stalled[status] == "True":
			want = kstatus.FailedStatus
		case ready[status] == "True":
			want = kstatus.CurrentStatus
		}
		if got := judge(tapp); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
		seen[want]++
	}
	if len(seen) != 4 {
		t.Errorf("the scenarios have only %v", seen)
	}
}

// scenarios of the planner, each a file.
func scenarios(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../plan/tapp/testdata/scenarios/*.yaml")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	return files
}

var conditionLine = regexp.MustCompile(`(?m)^(Ready|Progressing|Stalled)=(True|False) (\w+): (.*)$`)

// Parts of a condition's line.
const (
	status = iota + 2
	reason
	message
)

// statusOf is a TApp with the conditions that a scenario of the planner ends with, and
// those.
func statusOf(t *testing.T, file string) (tapp map[string]any, ready, progressing, stalled []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var scenario struct {
		TApp map[string]any `json:"tapp"`
		Want string         `json:"want"`
	}
	if err := yaml.Unmarshal(data, &scenario); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	tapp = scenario.TApp
	metadata, _ := tapp["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		tapp["metadata"] = metadata
	}
	metadata["generation"] = 7
	conditions, byType := []any{}, map[string][]string{}
	for _, c := range conditionLine.FindAllStringSubmatch(scenario.Want, -1) {
		conditions = append(conditions, map[string]any{"type": c[1], "status": c[status], "reason": c[reason], "message": c[message]})
		byType[c[1]] = c
	}
	if len(byType) != 3 {
		t.Fatalf("%s has conditions %v", file, byType)
	}
	tapp["status"] = map[string]any{"observedGeneration": 7, "conditions": conditions}
	return tapp, byType["Ready"], byType["Progressing"], byType["Stalled"]
}

// health runs the script as Argo CD does, and returns the status and its message.
func health(t *testing.T, object map[string]any) string {
	t.Helper()
	script, err := os.ReadFile("../../docs/argocd/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	// The only libraries that Argo CD opens by default.
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(library.open), Protect: true}, lua.LString(library.name)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	l.SetGlobal("obj", luaValue(l, plain))
	if err := l.DoString(string(script)); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", l.Get(-1))
	}
	return result.RawGetString("status").String() + ": " + result.RawGetString("message").String()
}

func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, below := range v {
			table.RawSetString(key, luaValue(l, below))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, below := range v {
			table.Append(luaValue(l, below))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}
