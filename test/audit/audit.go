// Package audit reads the audit log of a Kubernetes API server and counts the
// requests in it: what a client really asked of the server, which no clock and no
// load of the machine can blur.
package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Request is one request that the API server has answered.
type Request struct {
	Verb      string
	User      string
	UserAgent string
	// Group, Resource, Subresource, Namespace and Name of what was asked for; all
	// empty when it was no object.
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// DryRun: the request only asked what it would come to.
	DryRun bool
	// Code is the HTTP status of the answer.
	Code int
	// Received is when the request arrived, Answered when the answer had been sent.
	Received time.Time
	Answered time.Time
}

// IsWrite says whether the request was made to change something.
func (r Request) IsWrite() bool {
	if r.DryRun {
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	verb := r.Verb
	if r.DryRun {
		verb = "dry-run " + verb
	}
	return fmt.Sprintf("%s %s %s %s/%s: %d (%s)",
		r.Received.Format("15:04:05.000"), verb, resource, r.Namespace, r.Name, r.Code, r.UserAgent)
}

// Filter selects requests; an empty field selects all.
type Filter struct {
	// Agent is how the user agent begins.
	Agent string
	// Verbs of what is no dry run.
	Verbs     []string
	Resource  string
	Namespace string
	// Subresource is compared only with a Resource: the pods resource alone does
	// not select its status. "*" selects all.
	Subresource string
}

// Match says whether the filter selects the request.
func (f Filter) Match(r Request) bool {
	if !strings.HasPrefix(r.UserAgent, f.Agent) || f.Namespace != "" && f.Namespace != r.Namespace {
		return false
	}
	if f.Resource != "" && (f.Resource != r.Resource || f.Subresource != "*" && f.Subresource != r.Subresource) {
		return false
	}
	return len(f.Verbs) == 0 || slices.Contains(f.Verbs, r.Verb) && !r.DryRun
}

// Select returns the requests that all filters select.
func Select(requests []Request, filters ...Filter) []Request {
	var out []Request
next:
	for _, r := range requests {
		for _, f := range filters {
			if !f.Match(r) {
				continue next
			}
		}
		out = append(out, r)
	}
	return out
}

// Count counts requests by a key, such as their verb or their second.
func Count[K comparable](requests []Request, key func(Request) K) map[K]int {
	out := map[K]int{}
	for _, r := range requests {
		out[key(r)]++
	}
	return out
}

// Busiest returns the most requests that were received in any span of time, and
// when that span began. The requests need not be in order of time.
func Busiest(requests []Request, span time.Duration) (int, time.Time) {
	times := make([]time.Time, 0, len(requests))
	for _, r := range requests {
		times = append(times, r.Received)
	}
	slices.SortFunc(times, time.Time.Compare)
	most, at, first := 0, time.Time{}, 0
	for i, t := range times {
		for t.Sub(times[first]) >= span {
			first++
		}
		if n := i - first + 1; n > most {
			most, at = n, times[first]
		}
	}
	return most, at
}

// Log follows an audit log from a moment on.
type Log struct {
	path   string
	offset int64
	rest   []byte // a line that was not finished yet
	// inside says that the first line to be read was begun before the log was followed.
	inside bool
}

// Follow starts at what is written from now on. A line that is just being written
// tells of a request that was answered before, and does not count.
func Follow(path string) (*Log, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("follow the audit log: %w", err)
	}
	// With the last byte that is there it is known whether a line ends with it.
	return &Log{path: path, offset: max(info.Size()-1, 0), inside: info.Size() > 0}, nil
}

// Read returns the requests that were answered since the last call.
func (l *Log) Read() ([]Request, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	if info.Size() < l.offset {
		rotated, err := l.rotated()
		if err != nil {
			return nil, err
		}
		if err := l.gather(rotated); err != nil {
			return nil, err
		}
		l.offset = 0
	}
	if err := l.gather(l.path); err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	whole := l.rest[:end]
	l.rest = bytes.Clone(l.rest[end:])
	if l.inside && end > 0 {
		l.inside = false
		whole = whole[bytes.IndexByte(whole, '\n')+1:]
	}
	return Parse(bytes.NewReader(whole))
}

// gather adds what a file has after the offset.
func (l *Log) gather(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	l.offset += int64(len(data))
	l.rest = append(l.rest, data...)
	return nil
}

// rotated is the file that the API server has given another name, to begin a new
// one: the last of those with a time in their names.
func (l *Log) rotated() (string, error) {
	ext := filepath.Ext(l.path)
	paths, err := filepath.Glob(strings.TrimSuffix(l.path, ext) + "-*" + ext)
	if err != nil {
		return "", fmt.Errorf("read the audit log: %w", err)
	}
	if len(paths) > 0 {
		path := slices.Max(paths)
		if info, err := os.Stat(path); err == nil && info.Size() >= l.offset {
			return path, nil
		}
	}
	return "", fmt.Errorf("read the audit log: %s was cut while it was followed, and its end is lost", l.path)
}

// event is what a line of the log has of use here.
type event struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
	At       time.Time `json:"stageTimestamp"`
}

// Parse reads audit events, one in JSON on each line. Only requests that were
// answered count, each once, whatever stages the server's policy records.
func Parse(r io.Reader) ([]Request, error) {
	var out []Request
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("audit log, line %d: %w", n, err)
			}
			if e.Stage == "ResponseComplete" || e.Stage == "Panic" {
				out = append(out, Request{
					Verb: e.Verb, User: e.User.Username, UserAgent: e.UserAgent,
					Group: e.ObjectRef.Group, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
					Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
					DryRun: strings.Contains(e.URI, "dryRun="),
					Code:   e.ResponseStatus.Code, Received: e.Received, Answered: e.At,
				})
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("audit log, line %d: %w", n, err)
		}
	}
}
