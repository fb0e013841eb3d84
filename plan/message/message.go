// Package message bounds the sentences that statuses, conditions and events carry. A
// status that is too large is refused as a whole, and all that waits for a stored status
// would wait with it.
package message

import (
	"fmt"
	"strings"
)

const (
	// most bytes of a message. Kubernetes bounds those of events the same.
	most = 1024
	// mostQuoted bytes of what somebody else wrote, such as a container runtime or a
	// storage driver: the sentence around it has to stay whole.
	mostQuoted = 512

	more = "..."
)

// Bound shortens a message to what a condition is to hold.
func Bound(text string) string { return Cut(text, most) }

// Quote shortens what somebody else wrote, to be told in a message.
func Quote(text string) string { return Cut(text, mostQuoted) }

// Join writes as many of the parts as a message has room for, and counts the rest. The
// first parts go before the others.
func Join(parts []string, separator string) string {
	const room = most - 32 // for the count
	var b strings.Builder
	for n, part := range parts {
		if b.Len() > 0 && b.Len()+len(separator)+len(part) > room {
			return b.String() + separator + fmt.Sprintf("and %d more", len(parts)-n)
		}
		if n > 0 {
			b.WriteString(separator)
		}
		b.WriteString(part)
	}
	return Bound(b.String())
}

// Cut a text to a size in bytes, with a sign that there was more.
func Cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size-len(more)], "") + more
}
