package report

import (
	"fmt"

	"tkestack.io/tapp/test/bench/record"
)

// plot is a chart as tools/plot reads it.
type plot struct {
	Name, Title, X, Y string
	Groups            []string `json:",omitempty"`
	Series            []series
	Log10X            bool `json:",omitempty"`
}

type series struct {
	Name   string
	Colour int       `json:",omitempty"`
	Values []float64 `json:",omitempty"`
	Points []point   `json:",omitempty"`
}

type point struct{ X, Y float64 }

// plots are those for which there are figures.
func (d data) plots() []plot {
	var out []plot
	for _, size := range d.sizes() {
		if p, ok := d.speedPlot(size); ok {
			out = append(out, p)
		}
	}
	for _, p := range []plot{d.scalePlot(), d.cpuPlot()} {
		if len(p.Series) > 0 {
			out = append(out, p)
		}
	}
	return out
}

func (d data) speedPlot(size record.Key) (plot, bool) {
	p := plot{
		Name:  fmt.Sprintf("speed-%dx%d", size.Objects, size.Instances),
		Title: sizeName(size) + " instances, without the gate: seconds until all pods are there", Y: "s",
		Series: []series{{Name: "limit: a bare client"}, {Name: "TApp"}, {Name: "StatefulSet (it recreates)"}},
	}
	for _, phase := range work() {
		ours, ok := d.find(size, record.TApp, phase, false)
		if !ok {
			continue
		}
		limit, _ := d.limit(ours)
		set, _ := d.statefulSet(ours)
		p.Groups = append(p.Groups, phaseName(phase))
		for i, r := range []record.Run{limit, ours, set} {
			p.Series[i].Values = append(p.Series[i].Values, r.Seconds)
		}
	}
	return p, len(p.Groups) > 0
}

// scalePlot shows whether the time for each pod stays the same.
func (d data) scalePlot() plot {
	p := plot{Name: "scale", Title: "Update in place of one TApp: time for each pod", X: "instances", Y: "ms", Log10X: true}
	for _, gate := range []bool{true, false} {
		for _, c := range []struct{ contender, name string }{{record.Bare, "limit"}, {record.TApp, "TApp"}} {
			s := series{Name: c.name + ", " + gateName(gate)}
			for _, size := range d.sizes() {
				if r, ok := d.find(size, c.contender, record.InPlace, gate); ok && size.Objects == 1 {
					s.Points = append(s.Points, point{float64(size.Instances), r.Seconds * 1000 / float64(r.Pods())})
				}
			}
			if len(s.Points) > 1 {
				p.Series = append(p.Series, s)
			}
		}
	}
	return p
}

// cpuPlot compares the controllers at the largest size of one object that both
// were measured with.
func (d data) cpuPlot() plot {
	p := plot{Name: "cpu", Title: "CPU seconds of the controller for 1,000 pods, without the gate", Y: "s"}
	for _, size := range d.sizes() {
		var groups []string
		ours, theirs := series{Name: "TApp", Colour: 2}, series{Name: "StatefulSet's share of kube-controller-manager", Colour: 3}
		for _, phase := range work() {
			r, ok := d.find(size, record.TApp, phase, false)
			share, has := d.share(r)
			if ok && has {
				groups = append(groups, phaseName(phase))
				ours.Values = append(ours.Values, perThousand(r.CPU[record.TApp], size))
				theirs.Values = append(theirs.Values, perThousand(share, size))
			}
		}
		if len(groups) > 0 && size.Objects == 1 {
			p.Groups, p.Series = groups, []series{ours, theirs}
			p.X = sizeName(size) + " instances"
		}
	}
	return p
}
