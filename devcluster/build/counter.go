package build

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// counter turns the names of packages that `go build -v` prints into progress.
type counter struct {
	total  int // packages, if the compiler's own cache has none of them
	update func(format string, args ...any)

	mu   sync.Mutex
	seen map[string]bool
	last string
}

// start shows the state every second, so that the clock moves while one package takes long.
func (c *counter) start() (stop func()) {
	ticker, done := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				c.show()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}

func (c *counter) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, program, linking := strings.Cut(c.last, "/devcluster/programs/")
	switch {
	case linking:
		c.update("%d of at most %d packages compiled, linking %s", len(c.seen), c.total, program)
	case c.last == "":
		c.update("checking %d packages", c.total)
	default:
		c.update("%d of at most %d packages compiled (%d%%): %s", len(c.seen), c.total, 100*len(c.seen)/max(c.total, 1), c.last)
	}
}

// read notes every package and returns what is none: errors of the compiler.
func (c *counter) read(r io.Reader) (rest string) {
	var problem strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading"), line == "":
		case strings.ContainsAny(line, " \t#:"):
			fmt.Fprintln(&problem, line)
		default:
			c.mu.Lock()
			c.seen[line], c.last = true, line
			c.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line that is too long: the writer must not block
	return problem.String()
}
