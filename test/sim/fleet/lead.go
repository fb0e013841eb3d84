package fleet

// ways to write sites that not every run comes to: what users do, and what goes wrong.
func ways() map[string]Plan {
	app := appKeys()[0]
	charted := Plan{Charted: true, Edits: []Edit{{Step: 150, App: app, Kind: "chart"}}}
	// Archives grow old that nothing uses, and that no process remembers.
	swept := Plan{Charted: true, Edits: []Edit{{Step: 150, App: app, Kind: "delete"}}, Faults: []Fault{{Step: 200, Kind: orderly}}}
	for step := 210; step < 400; step += 10 {
		swept.Faults = append(swept.Faults, Fault{Step: step, Kind: clockJump, A: 1})
	}
	return map[string]Plan{
		"hub create secrets":             charted,
		"hub delete secrets":             swept,
		"member create secrets":          charted,
		"member patch secrets":           {Charted: true, Edits: []Edit{{Step: 150, App: app, Kind: "scale"}}, Faults: []Fault{{Step: 140, Kind: orderly}}},
		"member delete secrets":          swept,
		"hub create configmaps":          {Edits: []Edit{{Step: 150, App: app, Kind: "abandon"}, {Step: 200, App: app, Kind: "delete"}}, Faults: []Fault{{Step: 140, Kind: down, A: 96}}},
		"hub delete configmaps":          {Edits: []Edit{{Step: 150, App: app, Kind: "abandon"}, {Step: 200, App: app, Kind: "delete"}}, Faults: []Fault{{Step: 140, Kind: down, A: 96}}},
		"hub delete controllerrevisions": {Edits: []Edit{{Step: 150, App: app, Kind: "delete"}}},
		"member delete advdeployments":   {Edits: []Edit{{Step: 150, App: app, Kind: "delete"}}},
	}
}

// Straight is a run of a seed in which a process crashes at a write site, and little else
// happens but what leads there.
func Straight(seed int64, site, crash string) Plan {
	way := ways()[site]
	app := appKeys()[0]
	p := Plan{Seed: seed, Horizon: 400, Members: 2 + int(seed%2), Charted: way.Charted}
	p.Edits = append(p.Edits, Edit{Step: 1, App: app, Kind: "create"}, Edit{Step: 100, App: app, Kind: "image", B: 1})
	p.Edits = append(p.Edits, way.Edits...)
	p.Faults = append([]Fault{{Kind: crash, Site: site}}, way.Faults...)
	return p
}
