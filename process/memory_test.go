package process

import "testing"

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 8 << 20: 200, 16 << 20: 100, 32 << 20: 50, 60 << 20: 25, 64 << 20: 25, 1 << 40: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB: %d%%, want %d%%", live>>20, got, want)
		}
	}
}
