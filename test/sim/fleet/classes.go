package fleet

import "math/rand/v2"

// add to the plans of some seeds what the others do not have, or seldom.
func (p *Plan) add() {
	rng := rand.New(rand.NewPCG(uint64(p.Seed), 3))
	app := appKeys()[0]
	switch p.Seed % 64 {
	case 2:
		p.Shared = true
		for range 3 {
			p.Edits = append(p.Edits, Edit{Step: 60 + rng.IntN(p.Horizon), App: app, Kind: []string{"scale", "image", "add cluster", "drop podSet", "add podSet"}[rng.IntN(5)], A: rng.IntN(60), B: rng.IntN(60)})
		}
	case 6: // in the midst of a rollout, with clusters that are not seen
		at := 120 + rng.IntN(100)
		p.Edits = append(p.Edits, Edit{Step: 100, App: app, Kind: "image", B: rng.IntN(60)})
		for range rng.IntN(3) {
			p.Faults = append(p.Faults, Fault{Step: at, Kind: []string{cutThere, down}[rng.IntN(2)], A: 40 + rng.IntN(60)})
		}
		p.Faults = append(p.Faults, Fault{Step: at + 1, Kind: recordsLost})
	case 10:
		p.silence(rng)
	case 14:
		p.depart(rng)
	case 18:
		p.gate(rng)
	case 22:
		p.fail(rng)
	case 26:
		p.swap(rng)
	case 30:
		p.charts(rng)
	case 34:
		p.contend(rng)
	case 38:
		p.move(rng)
	case 42:
		p.neverRun(rng)
	case 46:
		p.group(rng)
	}
}

// begin anew with so many members and one AppSet that is created at once.
func (p *Plan) begin(members, horizon int) {
	p.Members, p.Horizon, p.Faults = members, horizon, nil
	p.Edits = []Edit{{Step: 1, App: appKeys()[0], Kind: "create"}}
}

func (p *Plan) edits(step int, kind string, a, b int) {
	p.Edits = append(p.Edits, Edit{Step: step, App: appKeys()[0], Kind: kind, A: a, B: b})
}

func (p *Plan) strikes(step int, kind string, a int) {
	p.Faults = append(p.Faults, Fault{Step: step, Kind: kind, A: a})
}

// of is a number that names the n-th of three members and is no less than least.
func of(n, least int) int { return least + (n-least%3+3)%3 }

// depart has parts be where no AppSet asks for them, or not any more: the hub is brought
// back to before there was the AppSet; or a cluster that is silent leaves, is given up, and
// is wanted again before it is back.
func (p *Plan) depart(rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		p.begin(2+rng.IntN(2), 250)
		p.strikes(30+rng.IntN(50), hubRestored, 19)
		return
	}
	p.begin(3, 300)
	n := rng.IntN(3)
	p.edits(70, "add cluster", n, rng.IntN(4))
	p.strikes(110, []string{down, cutThere}[rng.IntN(2)], of(n, 90))
	p.edits(115, "drop cluster", n, 0)
	p.edits(116, "abandon", n, 0)
	p.strikes(125+rng.IntN(10), clockJump, 5+rng.IntN(10))
	p.edits(160+rng.IntN(20), "add cluster", n, rng.IntN(4))
	p.strikes(185, clockJump, 25+rng.IntN(10)) // and everybody knows
}

// gate has a rollout wait, and users who want to be past the gate without a word of who may
// say so: they write the gate away, and confirm what nobody asked.
func (p *Plan) gate(rng *rand.Rand) {
	p.begin(2+rng.IntN(3), 350)
	p.Gated = true
	p.edits(90, "image", 0, 1+rng.IntN(50))
	for range 2 + rng.IntN(3) {
		kind := []string{"stages", "stages", "confirm wrongly", "confirm again", "confirm"}[rng.IntN(5)]
		p.edits(140+rng.IntN(200), kind, rng.IntN(60), rng.IntN(60))
	}
	p.sort()
}

// fail has a rollout halt while the part of one cluster is given what failed, and nobody has
// begun with it there. Later users may ask for something else that fails. Either all clusters
// answer, or few of their answers come in time.
func (p *Plan) fail(rng *rand.Rand) {
	p.begin(3, 560)
	p.Tight, p.Breaking, p.Orderly = true, true, rng.IntN(3) > 0
	begins, again := 220, 320
	if !p.Orderly {
		p.Horizon, begins, again = 420, 150, 270
	}
	n, at := rng.IntN(3), 100+rng.IntN(40)
	p.edits(90, "bad image", 0, 1+rng.IntN(50))
	p.strikes(at, podSetsLate, of(n, begins+rng.IntN(100)))
	if rng.IntN(3) > 0 {
		p.strikes(at+rng.IntN(10), workerLate, of(n, begins+90+rng.IntN(60)))
	}
	if rng.IntN(3) > 0 {
		p.edits(again+rng.IntN(40), "bad image", 0, 51+rng.IntN(9))
	}
	for step := at + 10; !p.Orderly && step < 330; step += 8 {
		p.strikes(step, clockJump, 1)
	}
	p.sort()
}

// swap the kubeconfigs of two members before they are first used: the first cluster that
// answers under a name is that one.
func (p *Plan) swap(rng *rand.Rand) {
	p.begin(2+rng.IntN(4), 300)
	p.strikes(0, swapped, rng.IntN(60))
	for range 2 {
		p.edits(80+rng.IntN(150), []string{"image", "stages", "scale", "add cluster"}[rng.IntN(4)], rng.IntN(60), rng.IntN(60))
	}
	p.edits(100, "image", 0, rng.IntN(60))
	p.sort()
}

// move has clusters that share ids hand them over to each other, while workers and podSets are late,
// clusters are silent, and some of them leave and come back.
func (p *Plan) move(rng *rand.Rand) {
	p.begin(2+rng.IntN(3), 400)
	p.Shared = true
	for range 2 + rng.IntN(4) {
		p.edits(70+rng.IntN(250), []string{"move ids", "move ids", "move ids, scale", "move ids, image", "scale", "image", "drop cluster", "add cluster"}[rng.IntN(8)], rng.IntN(60), rng.IntN(60))
	}
	for range rng.IntN(5) {
		p.strikes(70+rng.IntN(250), []string{down, cutThere, cutBack, slow, dumb, workerLate, podSetsLate, clockJump}[rng.IntN(8)], 5+rng.IntN(90))
	}
	p.sort()
}

// neverRun has an installation of which nothing ever runs, or only what came up before users asked
// for something bad in its place. It is corrected in some clusters when they ask for something
// else again: what does not come up uses the budget up.
func (p *Plan) neverRun(rng *rand.Rand) {
	p.begin(3+rng.IntN(3), 300)
	bad := 2
	if rng.IntN(2) > 0 {
		bad = 40 + rng.IntN(50)
	}
	p.edits(bad, "bad image", 0, 1+rng.IntN(50))
	p.edits(bad+60+rng.IntN(40), "image", 0, 1+rng.IntN(50))
	for range 1 + rng.IntN(2) {
		p.edits(bad+100+rng.IntN(80), []string{"image", "labels", "env", "bad image"}[rng.IntN(4)], rng.IntN(60), 1+rng.IntN(50))
	}
	for range rng.IntN(3) {
		p.strikes(60+rng.IntN(150), []string{workerLate, podSetsLate, slow}[rng.IntN(3)], 5+rng.IntN(90))
	}
	p.sort()
}

// group has stages be about groups: canaries change before their clusters do, and users scale, drop and
// add the podSets of groups while gates wait.
func (p *Plan) group(rng *rand.Rand) {
	p.begin(2+rng.IntN(3), 560)
	p.Grouped = true
	p.edits(150, "image", 0, 1+rng.IntN(50))
	for range 2 + rng.IntN(4) {
		kinds := []string{"image", "image", "bad image", "undo", "stages", "scale", "add podSet", "drop podSet", "drop cluster", "add cluster", "budget", "confirm wrongly", "confirm", "retry", "pause"}
		p.edits(170+rng.IntN(380), kinds[rng.IntN(len(kinds))], rng.IntN(60), rng.IntN(60))
	}
	for range rng.IntN(4) {
		kinds := []string{down, cutThere, cutBack, slow, dumb, workerLate, podSetsLate, clockJump, orderly, instanceFails, crashAfter, lostAnswer, conflict}
		p.strikes(70+rng.IntN(450), kinds[rng.IntN(len(kinds))], 5+rng.IntN(60))
	}
	p.sort()
}
