package sim

import "slices"

// point is a write site and the side of it that a process crashes at.
type point struct{ site, crash string }

func (p point) String() string { return p.site + " | " + p.crash }

// points that have to be visited: all expected sites, from both sides.
func points() []point {
	var out []point
	for _, site := range expected() {
		out = append(out, point{site, crashBefore}, point{site, crashAfter})
	}
	return out
}

// way to a write site: what users do, and what goes wrong, so that the controller comes
// there.
type way struct {
	claims, tallies bool
	edits           []Edit
	faults          []Fault
}

// ways to the sites that not every run comes to. Numbers say what Edit.A and Fault.A do.
func ways() map[string]way {
	edits := func(list ...Edit) way { return way{edits: list} }
	image := func(n int) Edit { return Edit{Kind: "image", A: n} }
	return map[string]way{
		"patch pods/status drain":            edits(Edit{Kind: "drain", A: 0}, image(1)),
		"patch pods in place":                edits(image(1)),
		"patch pods/status undrain":          edits(image(1)),
		"delete pods to recreate":            edits(Edit{Kind: "env", A: 1}),
		"patch pods relabel":                 edits(Edit{Kind: "label", A: 1}),
		"delete pods killed":                 edits(Edit{Kind: "kill", A: 0}),
		"delete pods scaled down":            edits(Edit{Kind: "scale", A: 0}),
		"delete pods ended":                  {faults: []Fault{{Kind: podEnds, A: 0}, {Kind: evicted, A: 1}}},
		"create persistentvolumeclaims":      {claims: true},
		"patch persistentvolumeclaims owner": {claims: true, edits: []Edit{{Kind: "retention", A: 0}, {Kind: "retention", A: 1}}},
		"patch persistentvolumeclaims size":  {claims: true, edits: []Edit{{Kind: "grow"}}},
		"delete persistentvolumeclaims":      {claims: true, edits: []Edit{{Kind: "retention", A: 2}, {Kind: "scale", A: 0}}},
		"delete controllerrevisions":         edits(Edit{Kind: "limit", A: 0}, image(1), image(2), image(3), image(0)),
		"patch controllerrevisions":          edits(image(1), Edit{Kind: "rollback"}),
		"delete pods by force":               {edits: []Edit{{Kind: "force", A: 0}}, faults: []Fault{{Kind: nodeTainted, A: 60}, {Kind: nodeTainted, A: 61 + 1}, {Kind: nodeTainted, A: 62}}},
		"patch pods adopt":                   {faults: []Fault{{Kind: foreignOrphan, A: 0}}},
		"patch pods release":                 {faults: []Fault{{Kind: foreignLabel, A: 0}}},
		"patch pods/resize":                  {tallies: true, edits: []Edit{{Kind: "resources", A: 1}, {Kind: "resources", A: 2}}},
	}
}

// Toward is the plan with a process that crashes at the point, and with what leads there.
// Until then nothing else is done to the TApp, and nothing goes wrong.
func (p Plan) Toward(to point) Plan {
	w := ways()[to.site]
	app := appKeys()[0]
	p.Claims, p.Requests = p.Claims || w.claims, p.Requests || w.tallies
	p.Faults = append(slices.Clone(p.Faults), Fault{Kind: to.crash, Site: to.site})
	p.Edits = slices.Clone(p.Edits)
	step := 60
	for _, e := range w.edits {
		e.Step, e.App = step, app
		p.Edits = append(p.Edits, e)
		step += 40
	}
	for _, f := range w.faults {
		f.Step = step
		p.Faults = append(p.Faults, f)
		step += 5
	}
	p.sort()
	return p
}

// Straight is a run of a seed that is only about the point.
func Straight(seed int64, to point) Plan {
	p := Plan{Seed: seed, Horizon: 500, Edits: []Edit{{Step: 1, App: appKeys()[0], Kind: "create"}}}
	return p.Toward(to)
}
