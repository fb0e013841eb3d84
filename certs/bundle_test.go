package certs

import (
	"bytes"
	"testing"
	"time"
)

func TestBundle(t *testing.T) {
	const leaf = 7 * 24 * time.Hour
	now := time.Now()
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	fresh := newCA(t, "fresh", day(-1), day(300))
	settled := newCA(t, "settled", day(-8), day(300))
	old := newCA(t, "old", day(-200), day(100))
	expired := newCA(t, "expired", day(-300), day(-1))
	for name, c := range map[string]struct {
		present []byte
		current ca
		want    []byte
	}{
		"nothing yet":                      {nil, fresh, fresh.pem},
		"as it shall be":                   {fresh.pem, fresh, fresh.pem},
		"no certificate":                   {[]byte("x"), fresh, fresh.pem},
		"replaced":                         {old.pem, fresh, join(fresh.pem, old.pem)},
		"replaced, and known":              {join(old.pem, fresh.pem), fresh, join(old.pem, fresh.pem)},
		"replaced longer than a leaf ago":  {join(settled.pem, old.pem), settled, settled.pem},
		"the last one has expired":         {join(fresh.pem, expired.pem), fresh, fresh.pem},
		"we are the last to know":          {join(fresh.pem, settled.pem), settled, join(fresh.pem, settled.pem)},
		"we are the last to know, and old": {join(fresh.pem, old.pem), old, join(fresh.pem, old.pem)},
		"twice":                            {join(fresh.pem, fresh.pem), fresh, fresh.pem},
		"with text around":                 {join([]byte("# ours\n"), fresh.pem), fresh, join([]byte("# ours\n"), fresh.pem)},
	} {
		t.Run(name, func(t *testing.T) {
			got := bundle(c.present, c.current.Certificate, now, leaf)
			if !bytes.Equal(got, c.want) {
				t.Errorf("got %v, want %v", names(got), names(c.want))
			}
			if again := bundle(got, c.current.Certificate, now, leaf); !bytes.Equal(again, got) {
				t.Errorf("again: %v", names(again))
			}
		})
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func names(text []byte) (all []string) {
	for _, c := range parse(text) {
		all = append(all, c.Subject.CommonName)
	}
	return all
}
