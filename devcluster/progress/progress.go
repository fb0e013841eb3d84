// Package progress tells the user what happens: one line for each finished step with the time it took, and for a long
// step one line that moves (on a terminal), or a line now and then (everywhere else).
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// quiet is how often a long step says something where lines cannot be overwritten.
const quiet = 15 * time.Second

// Printer writes steps. Steps may run and end concurrently.
type Printer struct {
	out      io.Writer
	terminal bool
	start    time.Time

	mu    sync.Mutex
	live  bool      // the last line is a moving one
	spoke time.Time // when a long step last wrote a line of its own
}

// New returns a Printer whose clock starts now.
func New(out *os.File) *Printer {
	info, err := out.Stat()
	return &Printer{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, start: time.Now(), spoke: time.Now()}
}

// Elapsed is the time since New.
func (p *Printer) Elapsed() time.Duration { return time.Since(p.start) }

// Line prints one line.
func (p *Printer) Line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(fmt.Sprintf(format, args...))
}

// Step begins a step; the returned function ends it and prints its line: when it ended, its name and how long it took.
// A failed step prints nothing: its error is on the way to the user.
func (p *Printer) Step(name string) (done func(error)) {
	begun := time.Now()
	return func(err error) {
		if err != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.line(fmt.Sprintf("%6.1fs  %s (%.1fs)", p.Elapsed().Seconds(), name, time.Since(begun).Seconds()))
	}
}

// Update shows the state of a long step.
func (p *Printer) Update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("%6.1fs  ", p.Elapsed().Seconds()) + fmt.Sprintf(format, args...)
	switch {
	case p.terminal:
		p.write("\r\033[K%.79s", text) // a longer line would wrap, and stay
		p.live = true
	case time.Since(p.spoke) >= quiet:
		p.spoke = time.Now()
		p.line(text)
	}
}

func (p *Printer) line(text string) {
	if p.live {
		p.write("\r\033[K")
		p.live = false
	}
	p.write("%s\n", text)
}

// write ignores errors: nobody is there to tell them to.
func (p *Printer) write(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }
