// Command report reads what `go test -json` writes and prints what a person wants
// to see of it: a line per package, all that a failed test printed, and, while a
// long test is silent, a line that shows that it moves.
//
//	go test -json ./... | report -count dist/count -failures dist/failures
//
// Counts of several runs add up in the file given by -count.
//
// gotestsum does less of what `make test` needs: while tests are silent for minutes it
// prints nothing and does not say which ones run, and at the end it repeats all that a
// failed test has printed, which for one on a cluster is thousands of lines.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of build output
}

// count of tests, with their subtests.
type count struct{ Passed, Failed, Skipped int }

func main() {
	file := flag.String("count", "", "add the counts to those in `FILE`")
	failures := flag.String("failures", "", "append to `FILE` what failed, and why, in a few lines for each test")
	silence := flag.Duration("silence", 30*time.Second, "show that it moves after this long without a line")
	flag.Parse()
	r := &report{out: os.Stdout, output: map[string][]string{}, started: time.Now()}
	err := r.read(os.Stdin, *silence)
	if *file != "" && err == nil {
		err = add(*file, r.count)
	}
	if *failures != "" && err == nil {
		err = appendLines(*failures, r.failures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
	}
	if err != nil || r.failed {
		os.Exit(1)
	}
}

type report struct {
	out     io.Writer
	started time.Time
	count   count
	failed  bool
	output  map[string][]string // by package and test, until its end is known
	running []string

	failures []string // what failed, and why, to be read after all else
}

func (r *report) read(in io.Reader, silence time.Duration) error {
	events, failure := make(chan event), make(chan error, 1)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			e := event{}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				e = event{Action: "build-output", Output: lines.Text() + "\n"} // not from a test: as it is
			}
			events <- e
		}
		failure <- lines.Err()
	}()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return <-failure
			}
			r.take(e)
		case <-time.After(silence):
			now := "compiling"
			if len(r.running) > 0 {
				now = "now " + strings.Join(r.running, ", ")
			}
			fmt.Fprintf(r.out, "... %v, %d tests passed, %s\n", time.Since(r.started).Round(time.Second), r.count.Passed, now)
		}
	}
}

func (r *report) take(e event) {
	id := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.failed = true
	case "run", "cont":
		if !strings.Contains(e.Test, "/") {
			r.running = append(r.running, e.Test)
		}
	case "pause":
		r.ends(e.Test)
	case "output":
		r.output[id] = append(r.output[id], e.Output)
	case "pass", "skip", "fail":
		r.end(e, id)
	}
}

func (r *report) end(e event, id string) {
	r.ends(e.Test)
	output := r.output[id]
	delete(r.output, id)
	if e.Action == "fail" {
		r.failed = true
	}
	if e.Test == "" {
		r.endPackage(e, output)
		return
	}
	switch e.Action {
	case "pass":
		r.count.Passed++
	case "skip":
		r.count.Skipped++
	case "fail":
		r.count.Failed++
		r.fails(id, output)
		fmt.Fprint(r.out, strings.Join(output, ""))
	}
}

// endPackage prints the line of the package; of a failed one, all that it and its
// unfinished tests have printed.
func (r *report) endPackage(e event, output []string) {
	if e.Action != "fail" {
		for _, line := range output {
			if strings.HasPrefix(line, "ok ") {
				fmt.Fprint(r.out, line)
			}
		}
		return
	}
	for id, unfinished := range r.output {
		if strings.HasPrefix(id, e.Package+" ") {
			r.fails(id, unfinished)
			fmt.Fprint(r.out, strings.Join(unfinished, ""))
			delete(r.output, id)
		}
	}
	fmt.Fprint(r.out, strings.Join(output, ""))
}

var (
	// said matches what a test has said itself, not the program that it tests.
	said = regexp.MustCompile(`^\s*\w+\.go:\d+: |^panic: `)
	// logged matches what a library has logged by way of the test.
	logged = regexp.MustCompile(`^\s*\w+\.go:\d+: [IWE]\d{4} `)
	// more matches a further line of what a test has said.
	more = regexp.MustCompile(`^ {8}\s*\S`)
	// script matches the line at which a script of testscript failed.
	script = regexp.MustCompile(`^\s*FAIL: \S+:\d+: `)
)

// fails keeps the last messages of a failed test: its errors come after what it logs,
// and before what its end logs. Of a script it keeps what its last commands printed. A
// test whose subtest failed has no message.
func (r *report) fails(id string, output []string) {
	const messages, further, before, width = 5, 2, 8, 300
	var why [][]string
	for n, line := range output {
		if script.MatchString(line) {
			why = [][]string{output[max(0, n-before) : n+1]}
			break
		}
		switch last := len(why) - 1; {
		case logged.MatchString(line):
		case said.MatchString(line):
			why = append(why[max(0, len(why)-messages+1):], []string{line})
		case last >= 0 && len(why[last]) <= further && more.MatchString(line):
			why[last] = append(why[last], line)
		}
	}
	if len(why) > 0 {
		r.failures = append(r.failures, id)
	}
	for _, line := range slices.Concat(why...) {
		r.failures = append(r.failures, fmt.Sprintf("  %.*s", width, strings.TrimSpace(line)))
	}
}

func appendLines(file string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

func (r *report) ends(test string) {
	r.running = slices.DeleteFunc(r.running, func(t string) bool { return t == test })
}

func add(file string, c count) error {
	sum := count{}
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &sum)
	} else if os.IsNotExist(err) {
		err = nil
	}
	if err != nil {
		return err
	}
	sum = count{sum.Passed + c.Passed, sum.Failed + c.Failed, sum.Skipped + c.Skipped}
	if content, err = json.Marshal(sum); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
