//go:build cluster

package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/creack/pty"
)

// terminal is a program for the scripts: it runs a command on a terminal, prints
// what the command showed there, and ends as the command did. testscript's own ttyin
// and ttyout lose the last lines now and then: they close the terminal when the
// command ends, whether or not all was read.
//
//	exec terminal COMMAND...
func terminal() {
	err := runOnTerminal(os.Args[1:], os.Stdout)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		os.Exit(ended.ExitCode()) //nolint:forbidigo // the main of a program
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1) //nolint:forbidigo // the main of a program
	}
}

func runOnTerminal(command []string, out io.Writer) (err error) {
	if len(command) == 0 {
		return errors.New("usage: terminal COMMAND")
	}
	screen, tty, err := pty.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, screen.Close(), tty.Close()) }()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	// What a command wrote may be lost when the last one closes the terminal, so this
	// keeps it open, and marks the end.
	const end = "\x00"
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_, failure := tty.WriteString(end)
		ended <- errors.Join(err, failure)
	}()
	shown, err := bufio.NewReader(screen).ReadString(end[0])
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, strings.TrimSuffix(shown, end))
	return errors.Join(err, <-ended)
}
