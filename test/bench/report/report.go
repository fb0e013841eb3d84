// Package report makes the page of the benchmark, and the data of its plots, from
// the record alone.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"tkestack.io/tapp/test/bench/record"
)

//go:embed performance.md.tmpl
var page string

// Write makes both files.
func Write(recordPath, pagePath, plotsPath string) error {
	file, err := record.Load(recordPath)
	if err != nil {
		return err
	}
	if len(file.Runs) == 0 {
		return fmt.Errorf("%s has no measurements: run the benchmark first", recordPath)
	}
	d := data{&file}
	text, err := d.page(filepath.Base(recordPath), strings.TrimSuffix(filepath.Base(pagePath), ".md"))
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := os.WriteFile(pagePath, text, 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	plots, err := json.MarshalIndent(d.plots(), "", " ")
	if err != nil {
		return fmt.Errorf("write the plots: %w", err)
	}
	if err := os.WriteFile(plotsPath, plots, 0o644); err != nil {
		return fmt.Errorf("write the plots: %w", err)
	}
	return nil
}

// data is the record with the questions of the page.
type data struct{ *record.File }

// page links to the record, and to plots in a directory beside the page.
func (d data) page(recordName, dir string) ([]byte, error) {
	t, err := template.New("performance.md").Parse(page)
	if err != nil {
		return nil, err
	}
	plots := map[string]bool{}
	for _, p := range d.plots() {
		plots[p.Name] = true
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Record": recordName, "Dir": dir,
		"Machine": d.Machine, "Memory": d.Machine.Memory >> 30, "Measured": d.measured(), "Plots": plots,
		"Goals": d.goals(), "WithoutGoal": d.withoutGoal(), "Speed": d.speed(), "Objects": d.objects(), "Writes": d.writes(), "Bytes": d.statusBytes(),
		"CPU": d.cpu(), "Memories": d.memory(), "Delay": d.delay(), "Away": d.away(), "Answers": d.answers(), "Restart": d.restart(), "Steady": d.steady(),
		"Kubelet": d.kubelet(), "Alone": d.alone(), "Micro": d.micro(), "Fleet": d.fleets(), "Failover": d.failover(),
	})
	return out.Bytes(), err
}

// sizes that were measured, in the order of their pods, one object before many.
func (d data) sizes() []record.Key {
	var out []record.Key
	for _, s := range []record.Key{{Objects: 1, Instances: 100}, {Objects: 1, Instances: 1000}, {Objects: 1, Instances: 10000}, {Objects: 1000, Instances: 10}} {
		for _, r := range d.Runs {
			if r.Objects == s.Objects && r.Instances == s.Instances {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

// find is the median run of a contender in a phase.
func (d data) find(size record.Key, contender, phase string, gate bool) (record.Run, bool) {
	size.Contender, size.Phase, size.Gate = contender, phase, gate
	return d.Find(size)
}

// measured says when, and with which version.
func (d data) measured() string {
	first, last := d.Runs[0], d.Runs[0]
	for _, r := range d.Runs {
		if r.At.Before(first.At) {
			first = r
		}
		if r.At.After(last.At) {
			last = r
		}
	}
	const day = "2006-01-02"
	when := first.At.Format(day)
	if end := last.At.Format(day); end != when {
		when += " to " + end
	}
	version := last.Version
	if first.Version != version {
		version = first.Version + " to " + version
	}
	return when + ", version " + version
}
