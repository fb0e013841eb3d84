package helm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Command is the name of the command that renders: it reads a Request from its standard
// input and writes an Answer to its standard output.
const Command = "render"

const (
	// maxAnswer bounds what is read from the child process.
	maxAnswer = 64 << 20
	// maxComplaint bounds what is kept of its standard error.
	maxComplaint = 64 << 10
)

// Progress is how the child process tells on its standard error what it works on, one
// line for each chart and file: if it has to be killed, the error can name them.
const (
	ProgressChart = "rendering chart "
	ProgressFile  = "rendering file "
)

// Answer is what the child process writes.
type Answer struct {
	Rendered *Rendered `json:"rendered,omitempty"`
	Error    *Error    `json:"error,omitempty"`
}

// Limits of one rendering. A chart is somebody else's program.
type Limits struct {
	// Time is how long it may take; 0: 10 s.
	Time time.Duration
	// Memory is how many bytes a child process may have; 0: 512 MiB. It has less where all
	// of them would not fit into the container.
	Memory int64
	// AtOnce is how many child processes there may be; 0: 2.
	AtOnce int
}

// Renderer renders charts, each in a child process of its own.
type Renderer struct {
	limits  Limits
	program []string
	slots   chan struct{}
}

// NewRenderer makes a Renderer. program is the command line of the child process;
// empty: this program with the argument Command.
func NewRenderer(limits Limits, program ...string) *Renderer {
	if limits.Time == 0 {
		limits.Time = 10 * time.Second
	}
	if limits.Memory == 0 {
		limits.Memory = 512 << 20
	}
	if limits.AtOnce == 0 {
		limits.AtOnce = 2
	}
	return &Renderer{limits: limits, program: program, slots: make(chan struct{}, limits.AtOnce)}
}

// Render renders a chart by Helm's engine. An *Error is the chart's or its values'
// fault; other errors are this machine's, and may be gone when tried again. The child
// process is gone when Render returns.
func (r *Renderer) Render(ctx context.Context, request Request) (*Rendered, error) {
	if len(request.Chart) > MaxArchive {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d bytes; at most %d are possible", len(request.Chart), MaxArchive)}
	}
	input, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to render: %w", err)
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return r.run(ctx, input)
}

func (r *Renderer) run(parent context.Context, input []byte) (*Rendered, error) {
	ctx, cancel := context.WithTimeoutCause(parent, r.limits.Time, errTooLong)
	defer cancel()
	program, err := r.commandLine()
	if err != nil {
		return nil, err
	}
	memory, err := r.memory()
	if err != nil {
		return nil, err
	}
	answer, complaint := &bounded{max: maxAnswer}, &bounded{max: maxComplaint}
	child := exec.CommandContext(ctx, program[0], program[1:]...)
	child.Args[0] = "tapp"
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(input), answer, complaint
	child.Dir = "/"
	child.Env = environment(memory)
	child.WaitDelay = time.Second
	if err := child.Run(); err != nil {
		return nil, r.failure(ctx, parent, err, death{complaint.kept.String(), memory})
	}
	if answer.full {
		return nil, &Error{Chart: last(complaint.kept.String(), ProgressChart), Message: fmt.Sprintf("it renders to more than %d bytes", maxAnswer)}
	}
	var a Answer
	if err := json.Unmarshal(answer.kept.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("reading what the render process wrote: %w", err)
	}
	switch {
	case a.Error != nil:
		return nil, a.Error
	case a.Rendered == nil:
		return nil, errors.New("the render process wrote no answer")
	}
	return a.Rendered, nil
}

var errTooLong = errors.New("it took too long")

func (r *Renderer) commandLine() ([]string, error) {
	if len(r.program) > 0 {
		return r.program, nil
	}
	// The file may have been replaced since this program was started.
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", Command}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program to render with: %w", err)
	}
	return []string{self, Command}, nil
}

// environment of the child process: no credentials, no proxies, nothing of ours.
func environment(memory int64) []string {
	return []string{
		// The collector works harder before the limit is hit.
		"GOMEMLIMIT=" + strconv.FormatInt(memory/8*7, 10),
		"GOTRACEBACK=none",
		MemoryVariable + "=" + strconv.FormatInt(memory, 10),
	}
}

// MemoryVariable tells the child process how many bytes it may have.
const MemoryVariable = "TAPP_RENDER_MEMORY"

// death is what a child process left that gave no answer.
type death struct {
	complaint string
	memory    int64
}

// failure says why the child process gave no answer.
func (r *Renderer) failure(ctx, parent context.Context, err error, d death) error {
	complaint := d.complaint
	if cause := context.Cause(parent); cause != nil {
		return cause
	}
	chart, file := last(complaint, ProgressChart), last(complaint, ProgressFile)
	at := func(text string) error {
		if file != "" {
			text = file + ": " + text
		}
		return &Error{Chart: chart, Message: text}
	}
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		return at(fmt.Sprintf("rendering did not end within %s", r.limits.Time))
	case strings.Contains(complaint, "out of memory"), strings.Contains(complaint, "cannot allocate memory"):
		return at(fmt.Sprintf("rendering needs more than %d MiB of memory", d.memory>>20))
	case strings.Contains(complaint, "stack exceeds"), strings.Contains(complaint, "stack overflow"):
		return at("rendering nests too deeply")
	}
	lines := strings.Split(strings.TrimSpace(complaint), "\n")
	return fmt.Errorf("rendering chart %s in a child process: %w: %s", cmp.Or(chart, "(not read yet)"), err, cmp.Or(lines[len(lines)-1], "it said nothing"))
}

// last finds the last line that begins so, and gives its rest.
func last(text, prefix string) string {
	found := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			found = strings.TrimSpace(rest)
		}
	}
	return found
}

// bounded keeps the beginning of what is written to it. It has no ReadFrom, which would
// go round Write.
type bounded struct {
	kept bytes.Buffer
	max  int
	full bool
}

// Write takes all, so that the child process is not blocked, and keeps what fits.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.kept.Len(); len(p) > room {
		b.full = true
		b.kept.Write(p[:room])
		return len(p), nil
	}
	return b.kept.Write(p)
}
