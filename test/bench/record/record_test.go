package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	f, err := Load(path)
	if err != nil || len(f.Runs) > 0 {
		t.Fatalf("a record that is not there yet: %v, %v", f, err)
	}
	key := Key{Contender: TApp, Phase: Create, Objects: 1, Instances: 100}
	other := key
	other.Gate = true
	for round, seconds := range []float64{5, 1, 9} {
		f.Add(Run{Key: key, Round: round, Seconds: seconds})
	}
	f.Add(Run{Key: other, Seconds: 4})
	f.Add(Run{Key: key, Round: 2, Seconds: 3}) // measured again
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	if f, err = Load(path); err != nil {
		t.Fatal(err)
	}
	if r, ok := f.Find(key); !ok || r.Seconds != 3 || r.Round != 2 || len(f.Runs) != 4 {
		t.Errorf("the median of 5, 1 and 3: got %+v of %d runs", r, len(f.Runs))
	}
	f.Add(Run{Key: key, Round: 1, Seconds: 7, Boot: "another"})
	if r, ok := f.Find(key); !ok || r.Seconds != 7 || len(f.Runs) != 2 {
		t.Errorf("measured on another machine: got %+v of %d runs", r, len(f.Runs))
	}
	other.Phase = Zero
	if r, ok := f.Find(other); ok {
		t.Errorf("nobody measured %+v", r)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil {
		t.Error("a broken record must be an error")
	}
}

// A run that measures a part replaces that part only.
func TestAddMicro(t *testing.T) {
	f := File{Micro: []Micro{{Name: "a", Nanos: 1}, {Name: "b", Nanos: 2}}}
	f.AddMicro([]Micro{{Name: "c", Nanos: 3}, {Name: "a", Nanos: 4}})
	if want := []Micro{{Name: "a", Nanos: 4}, {Name: "b", Nanos: 2}, {Name: "c", Nanos: 3}}; !slices.Equal(f.Micro, want) {
		t.Errorf("%v", f.Micro)
	}
}
