package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// judged is a mutant that an oracle of the fleet's simulations has to notice by its name, in
// some of these seeds. Whether other tests notice it, too, its room says.
type judged struct {
	mutant, oracle string
	// start is the first seed, by the distance to the next one, and seeds how many there are:
	// those of the class of plans that is made for it.
	start, by, seeds int
	// simulation is the package of its runs; empty: that of the fleet.
	simulation string
}

// oracles of the simulations of the fleet with mutants that each has to notice.
var oracles = []judged{
	{"others-are-free", "F1", 8, 8, 40, ""},
	{"charge-without-ceiling", "F1", 22, 64, 90, ""},
	{"absence-is-evidence", "F2", 14, 64, 40, ""},
	{"wanted-again-is-deleted", "F2", 14, 64, 40, ""},
	{"finalizer-dropped-early", "F3", 1, 1, 40, ""},
	{"gates-as-of-now", "F4", 18, 64, 20, ""},
	{"ids-from-zero", "F5", 2, 64, 20, ""},
	{"ids-at-once", "F5", 38, 64, 20, ""},
	{"as-of-probe", "F6", 1, 1, 40, ""},
	{"identity-ignored", "F7", 1, 1, 60, ""},
	{"lease-ignored", "F7", 34, 64, 40, ""},
	{"clusters-one-by-one", "F8", 10, 64, 61, ""},
	{"all-clusters-at-once", "F9", 1, 1, 60, ""},
	{"groups-are-one", "F9", 46, 64, 40, ""},
	{"halt-goes-on", "F10", 22, 64, 60, ""},
	{"chart-asked-anew", "F11", 30, 64, 40, ""},
	{"recorded-archive-swept", "F11", 30, 64, 120, ""},
	{"records-first", "F12", 1, 1, 60, releaseSimulation},
	{"install-is-not-pruned", "F12", 1, 1, 60, releaseSimulation},
	{"retry-ignored", "L2", 22, 64, 12, ""},
	{"given-up-is-proven", "L2", 42, 64, 60, ""},
}

// find the mutant in its room.
func (j *judged) find() (room, mutant) {
	for _, r := range rooms {
		for _, m := range r.mutants {
			if m.name == j.mutant {
				return r, m
			}
		}
	}
	return room{}, mutant{}
}

// name of the job, beside that of the mutant in its room.
func (j *judged) name() string { return j.oracle + "-" + j.mutant }

// stage is the runs in which the oracle has to notice the mutant.
func (j *judged) stage() stage {
	return stage{"the oracle " + j.oracle, cmp.Or(j.simulation, fleetSimulation), [][]string{{"-test.run=^TestSeeds$", "-sim.tell",
		"-sim.start=" + strconv.Itoa(j.start), "-sim.by=" + strconv.Itoa(j.by), "-sim.seeds=" + strconv.Itoa(j.seeds)}}, nil}
}

// killJudged returns how the oracle killed the mutant; empty: nothing did. That something
// else did is an error.
func (h hunting) killJudged(ctx context.Context, j *judged, overlay string) (string, error) {
	t, err := h.compile(ctx, j.stage(), overlay)
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", j.mutant, err)
	}
	by, output, err := t.output(ctx)
	switch {
	case err != nil || by == "":
		return "", err
	case !regexp.MustCompile(`(?m)seed [0-9]+: .*\b` + j.oracle + `: `).Match(output):
		return "", fmt.Errorf("mutant %s is not killed by the oracle %s: %s fails without a word of it", j.mutant, j.oracle, by)
	}
	return j.oracle + " of " + j.stage().path, nil
}
