package mount

import (
	"slices"
	"testing"
)

func TestBelow(t *testing.T) {
	info := `22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:30 / /x/nodes/a\040b rw - tmpfs tmpfs rw
31 30 0:31 / /x/nodes/a\040b/inner rw - overlay overlay rw
32 22 0:32 / /x/nodes2 rw - tmpfs tmpfs rw
33 22 0:33 / /x/node rw - tmpfs tmpfs rw
34 22 0:34 / /y rw - tmpfs tmpfs rw
`
	want := []string{"/y", "/x/nodes/a b/inner", "/x/nodes/a b"}
	if got := below(info, []string{"/x/nodes/", "/y"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
