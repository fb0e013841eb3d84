package helm

import "testing"

func TestShare(t *testing.T) {
	const mib = 1 << 20
	limits := Limits{Memory: 512 * mib, AtOnce: 2}
	for _, c := range []struct {
		container, own, want int64
		err                  string
	}{
		{1 << 62, 80 * mib, 512 * mib, ""},
		{4096 * mib, 80 * mib, 512 * mib, ""},
		{1000 * mib, 100 * mib, 400 * mib, ""},
		{300 * mib, 78 * mib, 96 * mib, ""},
		{256 * mib, 80 * mib, 0, "charts cannot be rendered: the container has 256 MiB of memory, of which this process uses 80: raise its limit"},
		{128 * mib, 200 * mib, 0, "charts cannot be rendered: the container has 128 MiB of memory, of which this process uses 200: raise its limit"},
	} {
		got, err := share(limits, c.container, c.own)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%+v: got %d, %q", c, got, text)
		}
	}
	if resident() < mib {
		t.Error("this process has no memory")
	}
}
