package effect

import "testing"

// TestSentences: how changes read.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{UpdateInPlace, []int{0, 2}, "image of web from web:1 to web:2"}, "2 instances are updated in place (0,2): image of web from web:1 to web:2"},
		{Change{Recreate, []int{5}, "env changed"}, "1 instance is recreated (5): env changed"},
		{Change{Resize, []int{0, 1}, "cpu"}, "2 instances get other resources without a restart (0-1): cpu"},
		{Change{Relabel, []int{1}, "labels"}, "1 instance gets other labels or annotations without a restart (1): labels"},
		{Change{Kill, []int{1, 2}, "Killed"}, "2 instances are killed (1-2): Killed"},
		{Change{ScaleDown, []int{1, 2}, "fewer"}, "2 instances are removed (1-2): fewer"},
		{Change{Create, []int{1}, "missing"}, "1 instance is created (1): missing"},
		{Change{Wait, []int{1}, "its claim goes"}, "1 instance waits (1): its claim goes"},
		{Change{Hold, []int{1, 3}, "InPlaceOnly"}, "2 instances stay on their old template (1,3): InPlaceOnly"},
	} {
		if got := c.change.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
