package process

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Names is a flag of names with commas between them. Given again, it replaces what
// was given before, the default too.
type Names []string

// Set implements cli.Generic.
func (n *Names) Set(text string) error {
	*n = nil
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*n = append(*n, name)
		}
	}
	return nil
}

// String implements cli.Generic.
func (n *Names) String() string { return strings.Join(*n, ",") }

// Among says what is wrong with the value of a flag whose names are to be some of
// these, and at least one.
func (n Names) Among(flag string, all ...string) error {
	if len(n) == 0 {
		return fmt.Errorf("%s is empty; name some of %s", flag, strings.Join(all, ", "))
	}
	var errs []error
	for _, name := range n {
		if !slices.Contains(all, name) {
			errs = append(errs, fmt.Errorf("%s names %q; there are %s", flag, name, strings.Join(all, ", ")))
		}
	}
	return errors.Join(errs...)
}
