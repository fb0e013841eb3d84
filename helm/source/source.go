// Package source fetches the archives of charts: from repositories that the operator
// names in a file, from OCI registries and by URL. What it fetches is bounded in size
// and time, is judged by the address that is dialled, and is checked against the
// digests and versions that the repository gives.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"tkestack.io/tapp/helm"
)

// Options say what may be fetched, and how.
type Options struct {
	// Repositories is a repositories file in Helm's format (`helm repo add` writes one),
	// usually a mounted Secret; empty: there are no repositories. It is read each time.
	// Beside http and https an entry may have a URL like oci://host/path, whose
	// credentials are the login. Files that it names are relative to its folder.
	Repositories string
	// AllowURLs allows hosts that no repository names (--allow-chart-urls).
	AllowURLs bool
	// AllowPrivate allows private, loopback and link-local addresses, and the proxies of
	// the environment, behind which addresses cannot be judged.
	AllowPrivate bool
	// Time that one chart may take; 0: 30 s.
	Time time.Duration
}

// Reference names a chart as an AppSet does.
type Reference struct {
	// URL is alias/name with the alias of a repository, oci://host/path/name, or the
	// https URL of an archive.
	URL string
	// Version is a version or a range of versions, as helm's --version; empty: the newest
	// one that is no prerelease. For an archive's URL it has to be the chart's version.
	Version string
}

// String is what errors call the chart, without what may be secret in a URL.
func (r Reference) String() string {
	name := r.URL
	if u, err := url.Parse(r.URL); err == nil && u.Host != "" {
		name = place(u)
	}
	return strings.TrimSpace(name + " " + r.Version)
}

// Chart is the archive of a chart.
type Chart struct {
	Archive []byte
	// Digest is "sha256:" and the sum of the archive.
	Digest string
	// Name and Version are those of its Chart.yaml.
	Name    string
	Version string
}

// Source fetches charts.
type Source struct {
	options Options
	// judge refuses addresses before they are dialled.
	judge func(address string) error
	slots chan struct{}
}

// atOnce is how many charts are fetched at the same time.
const atOnce = 4

// New makes a Source. Nothing is read or dialled before Resolve.
func New(options Options) *Source {
	if options.Time == 0 {
		options.Time = 30 * time.Second
	}
	s := &Source{options: options, judge: judge, slots: make(chan struct{}, atOnce)}
	if options.AllowPrivate {
		s.judge = func(string) error { return nil }
	}
	return s
}

// Resolve fetches a chart. What a reference means may change at any time, so whoever
// has to have the same bytes everywhere keeps the result. Errors name the chart and
// what was asked of whom; they hold no credentials.
func (s *Source) Resolve(parent context.Context, ref Reference) (*Chart, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-parent.Done():
		return nil, context.Cause(parent)
	}
	ctx, cancel := context.WithTimeoutCause(parent, s.options.Time, fmt.Errorf("not done within %s", s.options.Time))
	defer cancel()
	chart, err := s.resolve(ctx, ref)
	if err == nil {
		return chart, nil
	}
	if cause := context.Cause(parent); cause != nil {
		return nil, cause
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, fmt.Errorf("chart %s: %w", ref, err)
}

// Fetch is Resolve for whoever needs the archive alone.
func (s *Source) Fetch(ctx context.Context, url, version string) ([]byte, error) {
	chart, err := s.Resolve(ctx, Reference{URL: url, Version: version})
	if err != nil {
		return nil, err
	}
	return chart.Archive, nil
}

func (s *Source) resolve(ctx context.Context, ref Reference) (*Chart, error) {
	repositories, err := readRepositories(s.options.Repositories)
	if err != nil {
		return nil, err
	}
	scheme, rest, isURL := strings.Cut(ref.URL, "://")
	if !isURL {
		return s.byAlias(ctx, repositories, ref)
	}
	target, err := url.Parse(ref.URL)
	switch {
	case err != nil, target.Host == "", rest == "":
		return nil, errors.New("it is no URL")
	case target.User != nil:
		return nil, errors.New("credentials belong into the repositories file, not into the URL")
	case scheme != "https" && scheme != "oci":
		return nil, errors.New("charts come by https://, oci:// or alias/name")
	}
	if repositories.at(target) == nil && !s.options.AllowURLs {
		return nil, fmt.Errorf("host %s is in no repository of the operator's file, and other hosts are not allowed (--allow-chart-urls)", target.Host)
	}
	if scheme == "oci" {
		return s.pull(ctx, repositories, target, ref.Version)
	}
	return s.archive(ctx, repositories, target, expectation{version: ref.Version})
}

// byAlias resolves alias/name.
func (s *Source) byAlias(ctx context.Context, repositories repositories, ref Reference) (*Chart, error) {
	alias, name, ok := strings.Cut(ref.URL, "/")
	if !ok || alias == "" || name == "" {
		return nil, errors.New("write alias/name with the alias of a repository, oci://host/path/name, or the https URL of an archive")
	}
	repository, err := repositories.named(alias)
	if err != nil {
		return nil, err
	}
	base, err := repository.base()
	if err != nil {
		return nil, err
	}
	if base.Scheme == "oci" {
		return s.pull(ctx, repositories, base.JoinPath(name), ref.Version)
	}
	entry, err := s.lookUp(ctx, repository, base, name, ref.Version)
	if err != nil {
		return nil, err
	}
	target, err := base.Parse(entry.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("the index of repository %s gives version %s a URL that is none", alias, entry.Version)
	}
	want := expectation{name: name, version: entry.Version, digest: entry.Digest}
	switch target.Scheme {
	case "http", "https":
		return s.archive(ctx, repositories, target, want)
	case "oci":
		return s.pull(ctx, repositories, target, entry.Version)
	}
	return nil, fmt.Errorf("the index of repository %s gives version %s a URL with scheme %s", alias, entry.Version, target.Scheme)
}

// archive fetches an archive by http.
func (s *Source) archive(ctx context.Context, repositories repositories, target *url.URL, want expectation) (*Chart, error) {
	client, err := s.client(repositories.of(target), target.Host)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	raw, err := get(ctx, client, target, helm.MaxArchive)
	if err != nil {
		return nil, err
	}
	return want.check(raw)
}

// expectation is what has to be true of an archive; empty fields are not asked for.
type expectation struct{ name, version, digest string }

func (e expectation) check(raw []byte) (*Chart, error) {
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	if want := strings.TrimPrefix(e.digest, "sha256:"); want != "" && !strings.EqualFold(want, digest) {
		return nil, fmt.Errorf("the archive has the digest sha256:%s, and the index of the repository says sha256:%s", digest, want)
	}
	name, version, err := identity(raw)
	if err != nil {
		return nil, err
	}
	if e.name != "" && e.name != name {
		return nil, fmt.Errorf("the archive holds chart %s", name)
	}
	if e.version != "" && !sameVersion(e.version, version) {
		return nil, fmt.Errorf("the archive holds version %s", version)
	}
	return &Chart{Archive: raw, Digest: "sha256:" + digest, Name: name, Version: version}, nil
}

// folder of a URL's path, with a slash at its end: other paths are relative to it.
func folder(u *url.URL) *url.URL {
	out := *u
	if !strings.HasSuffix(out.Path, "/") {
		out.Path += "/"
	}
	out.Path = path.Clean(out.Path) + "/"
	if out.Path == "//" {
		out.Path = "/"
	}
	return &out
}
