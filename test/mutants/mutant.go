package main

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one wrong edit of the product.
type mutant struct {
	name string
	// file in the room.
	file string
	// about says in a few words what goes wrong with it.
	about    string
	old, new string
}

// room is a package of the product with its mutants.
type room struct {
	path    string
	mutants []mutant
}

// rooms in the order in which they are gone through.
var rooms = []room{
	{templateRoom, templates},
	{inPlaceRoom, inPlace},
	{restartRoom, restarts},
	{planRoom, planner},
	{claimRoom, claims},
	{spreadRoom, spreads},
	{idsRoom, instanceIDs},
	{budgetRoom, budgets},
	{trialRoom, trials},
	{problemRoom, problems},
	{refusalRoom, refusals},
	{terminationRoom, terminations},
	{deferralRoom, deferrals},
	{keptRoom, lossesOf},
	{shellRoom, shell},
	{cacheRoom, caches},
	{writeRoom, writes},
	{schemaRoom, schemas},
	{statusRoom, statuses},
	{loopRoom, queue},
	{eventsRoom, recorders},
	{hookRoom, admission},
	{clientRoom, answers},
	{reviewRoom, reviews},
	{ruleRoom, findings},
	{typesRoom, types},
	{pluginRoom, kubectl},
	{migrateRoom, migrations},
	{handsRoom, hands},
	{viewRoom, told},
	{fleetRoom, clusters},
	{healthRoom, hysteresis},
	{kubeconfigRoom, credentials},
	{advDeploymentRoom, advDeploymentPlans},
	{appRoom, children},
	{manifestRoom, ownership},
	{rolloutRoom, rollouts},
	{podSetRoom, podSets},
	{appSetRoom, appSetPlans},
	{appSetShellRoom, appSetShell},
	{foresightRoom, previews},
	{releaseRoom, releasePlans},
	{helmRoom, helmRecords},
	{helmEngineRoom, helmEngine},
	{helmSourceRoom, helmSource},
}

// mutate returns the text of the file with the edit. That the text is not there any
// more, or more than once, is an error: the mutant would test nothing, or something
// else.
func (m mutant) mutate(source string) (string, error) {
	switch n := strings.Count(source, m.old); {
	case m.old == m.new || m.old == "":
		return "", fmt.Errorf("mutant %s changes nothing", m.name)
	case n != 1:
		return "", fmt.Errorf("mutant %s does not apply: its text occurs %d times in %s; bring it up to date with the code", m.name, n, m.file)
	}
	out := strings.Replace(source, m.old, m.new, 1)
	if _, err := parser.ParseFile(token.NewFileSet(), m.file, out, parser.SkipObjectResolution); err != nil {
		return "", fmt.Errorf("mutant %s is no Go: %w", m.name, err)
	}
	return out, nil
}

// overlay writes what `go build -overlay` wants into dir, and returns its path. The
// working tree is left alone.
func (m mutant) overlay(dir, root string, r room) (string, error) {
	file := filepath.Join(root, r.path, m.file)
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text, err := m.mutate(string(source))
	if err != nil {
		return "", err
	}
	edited := filepath.Join(dir, m.name+".go")
	if err := os.WriteFile(edited, []byte(text), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: edited}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, m.name+".json")
	return path, os.WriteFile(path, list, 0o600)
}

// stage is a package whose tests may kill a mutant.
type stage struct {
	name, path string
	// runs are the arguments of its test binary, the cheapest run first.
	runs [][]string
	// of are the rooms whose mutants it may notice.
	of []string
}

const (
	templateRoom    = "plan/template"
	inPlaceRoom     = "plan/inplace"
	restartRoom     = "plan/restart"
	planRoom        = "plan/tapp"
	claimRoom       = "plan/claim"
	spreadRoom      = "plan/spread"
	clientRoom      = "crd/client"
	idsRoom         = "plan/ids"
	budgetRoom      = "plan/budget"
	trialRoom       = "plan/trial"
	problemRoom     = "plan/problem"
	refusalRoom     = "plan/refusal"
	terminationRoom = "plan/termination"
	deferralRoom    = "plan/deferral"
	keptRoom        = "plan/kept"
	shellRoom       = "controller/tapp"
	cacheRoom       = "controller/cache"
	writeRoom       = "controller/write"
	statusRoom      = "controller/status"
	loopRoom        = "controller/loop"
	eventsRoom      = "controller/events"
	hookRoom        = "webhook/tapp"
	reviewRoom      = "webhook/review"
	ruleRoom        = "webhook/rule"
	typesRoom       = "crd/tapp/v1"
	pluginRoom      = "plugin"
	migrateRoom     = "plugin/migrate"
	handsRoom       = "plugin/ownership"
	viewRoom        = "plan/view"
	messageRoom     = "plan/message"

	schemaRoom     = "controller/servedschema"
	fleetRoom      = "fleet"
	healthRoom     = "fleet/health"
	kubeconfigRoom = "fleet/kubeconfig"

	appSetRoom        = "plan/appset"
	foresightRoom     = "plan/foresight"
	rolloutRoom       = "plan/rollout"
	podSetRoom        = "plan/podset"
	budgetModelRoom   = "test/model/rollout"
	stagesModelRoom   = "test/model/stages"
	advDeploymentRoom = "plan/advdeployment"
	releaseRoom       = "plan/release"
	appSetShellRoom   = "controller/appset"

	appRoom      = "plan/app"
	manifestRoom = "plan/manifest"

	helmRoom       = "helm"
	helmEngineRoom = "helm/engine"
	helmSourceRoom = "helm/source"

	fleetSimulation   = "test/sim/fleet"
	releaseSimulation = "test/sim/release"
)

// quick is a run with few random cases, thorough one with all. What they find is
// not kept in the tree, and not made small.
var (
	quick    = []string{"-rapid.checks=20", "-rapid.nofailfile", "-rapid.shrinktime=0s"}
	thorough = []string{"-rapid.nofailfile", "-rapid.shrinktime=0s"}
)

// stages from the cheapest on, each room's own tests first.
var stages = []stage{
	{typesRoom, typesRoom, [][]string{nil}, []string{typesRoom}},
	{loopRoom, loopRoom, [][]string{nil}, []string{loopRoom}},
	{eventsRoom, eventsRoom, [][]string{nil}, []string{eventsRoom}},
	{migrateRoom, migrateRoom, [][]string{nil}, []string{migrateRoom}},
	{handsRoom, handsRoom, [][]string{nil}, []string{handsRoom}},
	{pluginRoom, pluginRoom, [][]string{nil}, []string{pluginRoom, migrateRoom, viewRoom}},
	{cacheRoom, cacheRoom, [][]string{nil}, []string{cacheRoom}},
	{schemaRoom, schemaRoom, [][]string{nil}, []string{schemaRoom}},
	{writeRoom, writeRoom, [][]string{nil}, []string{writeRoom}},
	{statusRoom, statusRoom, [][]string{nil}, []string{statusRoom}},
	{templateRoom, templateRoom, [][]string{quick, thorough}, []string{templateRoom}},
	{inPlaceRoom, inPlaceRoom, [][]string{quick, thorough}, []string{inPlaceRoom, templateRoom}},
	{restartRoom, restartRoom, [][]string{nil}, []string{restartRoom, templateRoom}},
	{idsRoom, idsRoom, [][]string{nil}, []string{idsRoom}},
	{budgetRoom, budgetRoom, [][]string{nil}, []string{budgetRoom}},
	{trialRoom, trialRoom, [][]string{nil}, []string{trialRoom}},
	{refusalRoom, refusalRoom, [][]string{nil}, []string{refusalRoom}},
	{terminationRoom, terminationRoom, [][]string{nil}, []string{terminationRoom}},
	{deferralRoom, deferralRoom, [][]string{nil}, []string{deferralRoom}},
	{keptRoom, keptRoom, [][]string{nil}, []string{keptRoom}},
	{claimRoom, claimRoom, [][]string{nil}, []string{claimRoom}},
	{spreadRoom, spreadRoom, [][]string{nil}, []string{spreadRoom}},
	{clientRoom, clientRoom, [][]string{nil}, []string{clientRoom}},
	{planRoom, planRoom, [][]string{quick, thorough}, []string{planRoom, trialRoom, problemRoom, claimRoom, inPlaceRoom, restartRoom, templateRoom, typesRoom}},
	{shellRoom, shellRoom, [][]string{nil}, []string{shellRoom, cacheRoom, writeRoom, statusRoom, planRoom, claimRoom, inPlaceRoom, templateRoom, typesRoom}},
	{reviewRoom, reviewRoom, [][]string{nil}, []string{reviewRoom}},
	{ruleRoom, ruleRoom, [][]string{nil}, []string{ruleRoom}},
	{healthRoom, healthRoom, [][]string{thorough}, []string{healthRoom}},
	{kubeconfigRoom, kubeconfigRoom, [][]string{nil}, []string{kubeconfigRoom}},
	{fleetRoom, fleetRoom, [][]string{nil}, []string{fleetRoom}},
	{hookRoom, hookRoom, [][]string{quick, thorough}, []string{hookRoom, planRoom, inPlaceRoom, templateRoom, typesRoom}},
	{rolloutRoom, rolloutRoom, [][]string{nil}, []string{rolloutRoom}},
	{podSetRoom, podSetRoom, [][]string{nil}, []string{podSetRoom}},
	{budgetModelRoom, budgetModelRoom, [][]string{{"-test.run=TestProtocol"}}, []string{rolloutRoom}},
	{stagesModelRoom, stagesModelRoom, [][]string{nil}, []string{rolloutRoom}},
	{appSetRoom, appSetRoom, [][]string{quick, thorough}, []string{appSetRoom}},
	{releaseRoom, releaseRoom, [][]string{nil}, []string{releaseRoom}},
	{advDeploymentRoom, advDeploymentRoom, [][]string{nil}, []string{advDeploymentRoom, releaseRoom}},
	{manifestRoom, manifestRoom, [][]string{nil}, []string{manifestRoom}},
	{appRoom, appRoom, [][]string{nil}, []string{appRoom, manifestRoom}},
	{appSetShellRoom, appSetShellRoom, [][]string{nil}, []string{appSetShellRoom}},
	{helmRoom, helmRoom, [][]string{quick}, []string{helmRoom}},
	{helmSourceRoom, helmSourceRoom, [][]string{nil}, []string{helmSourceRoom}},
	{helmEngineRoom, helmEngineRoom, [][]string{nil}, []string{helmEngineRoom}},
	{"the model", "test/model", [][]string{{"-test.run=TestSmallSpaces"}}, []string{planRoom, inPlaceRoom, templateRoom, typesRoom}},
	{"the simulation", "test/sim", [][]string{{"-test.run=TestSeeds"}}, []string{planRoom, claimRoom, inPlaceRoom, templateRoom, shellRoom, cacheRoom, writeRoom, statusRoom, loopRoom, typesRoom}},
	{"the simulation of Apps", "test/sim/app", [][]string{{"-test.run=TestSeeds"}}, []string{appRoom, manifestRoom}},
	{"the simulation of the fleet", fleetSimulation, [][]string{{"-test.run=TestSeeds"}}, []string{rolloutRoom, podSetRoom, appSetRoom, appSetShellRoom, fleetRoom, healthRoom, foresightRoom}},
}

// stagesFor the mutants of a room.
func stagesFor(r room) []stage {
	var out []stage
	for _, s := range stages {
		if slices.Contains(s.of, r.path) {
			out = append(out, s)
		}
	}
	return out
}
