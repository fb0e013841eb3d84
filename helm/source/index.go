package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

const (
	// maxIndex bounds an index.yaml. Those of public repositories have up to 20 MB.
	maxIndex = 32 << 20
	// maxEntry bounds what it says of one chart, which is all that is decoded.
	maxEntry = 4 << 20
)

// entry is a version of a chart in an index.
type entry struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
	Removed bool     `json:"removed"`
}

// lookUp finds a version of a chart in the repository's index.
func (s *Source) lookUp(ctx context.Context, r *Repository, base *url.URL, name, version string) (*entry, error) {
	client, err := s.client(r, base.Host)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	index, err := get(ctx, client, base.JoinPath("index.yaml"), maxIndex)
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(index, name)
	if err != nil {
		return nil, fmt.Errorf("the index of repository %s: %w", r.Name, err)
	}
	versions := make([]string, 0, len(entries))
	for _, e := range entries {
		if len(e.URLs) > 0 && !e.Removed {
			versions = append(versions, e.Version)
		}
	}
	found, err := choose(versions, version)
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", r.Name, err)
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.Version == found && len(e.URLs) > 0 && !e.Removed })
	return &entries[i], nil
}

// entriesOf decodes what an index says of one chart: the lines of its key in entries,
// as helm writes it. An index in another form is decoded whole, if it is small.
func entriesOf(index []byte, name string) ([]entry, error) {
	block := block(index, name)
	if block == nil {
		block = index
	}
	if len(block) > maxEntry {
		return nil, fmt.Errorf("it has more than %d bytes about chart %s", maxEntry, name)
	}
	var content struct {
		Entries map[string][]entry `json:"entries"`
	}
	if err := yaml.Unmarshal(block, &content); err != nil {
		return nil, errors.New("it is no index of charts")
	}
	entries := content.Entries[name]
	if len(entries) == 0 {
		return nil, fmt.Errorf("it has no chart %s", name)
	}
	return entries, nil
}

// block cuts the lines about one chart out of an index: a key below entries, and all
// that is indented below it, or is an item of its list. nil: the index is not written
// in blocks.
func block(index []byte, name string) []byte {
	var out []byte
	inside, found, indent := false, false, -1
	for line := range bytes.Lines(index) {
		text := bytes.TrimRight(line, " \r\n")
		depth := len(text) - len(bytes.TrimLeft(text, " "))
		content := text[depth:]
		switch {
		case len(content) == 0 || content[0] == '#':
			continue
		case depth == 0 && content[0] != '-':
			inside, found = string(text) == "entries:", false
			if inside {
				out = append(out, line...)
			}
			continue
		case !inside:
			continue
		case indent < 0:
			indent = depth
		}
		if depth == indent && content[0] != '-' {
			key := strings.Trim(string(content), `"'`)
			found = key == name+":" || string(content) == `"`+name+`":` || string(content) == `'`+name+`':`
		}
		if found {
			out = append(out, line...)
		}
	}
	return out
}

// choose finds a version as helm does: the very one, else the highest one in the range;
// without a range the highest one that is no prerelease.
func choose(versions []string, want string) (string, error) {
	if want != "" && slices.Contains(versions, want) {
		return want, nil
	}
	constraint, err := semver.NewConstraint(cmp.Or(want, "*"))
	if err != nil {
		return "", fmt.Errorf("%q is no version and no range of versions", want)
	}
	var best *semver.Version
	for _, v := range versions {
		if parsed, err := semver.NewVersion(v); err == nil && constraint.Check(parsed) && (best == nil || parsed.GreaterThan(best)) {
			best = parsed
		}
	}
	if best == nil {
		return "", fmt.Errorf("there is no version %s", cmp.Or(want, "that is no prerelease"))
	}
	return best.Original(), nil
}

// sameVersion: a chart's v1.2.3 is 1.2.3, and 1.2 in a range of one is 1.2.0.
func sameVersion(want, have string) bool {
	if want == have {
		return true
	}
	constraint, err := semver.NewConstraint(want)
	if err != nil {
		return false
	}
	version, err := semver.NewVersion(have)
	return err == nil && constraint.Check(version)
}
