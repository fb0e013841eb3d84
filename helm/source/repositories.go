package source

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxFile bounds the files of the operator.
const maxFile = 1 << 20

// Repository is an entry of a repositories file. The fields are Helm's.
type Repository struct {
	Name               string `json:"name"`
	URL                string `json:"url"`
	Username           string `json:"username"`
	Password           string `json:"password"`
	CertFile           string `json:"certFile"`
	KeyFile            string `json:"keyFile"`
	CAFile             string `json:"caFile"`
	InsecureSkipVerify bool   `json:"insecure_skip_tls_verify"`
	PassCredentialsAll bool   `json:"pass_credentials_all"`

	folder string
	others repositories
}

type repositories []*Repository

// readRepositories reads the file. One that is not there yet has no repositories.
func readRepositories(file string) (repositories, error) {
	if file == "" {
		return nil, nil
	}
	raw, err := readFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the repositories file: %w", err)
	}
	var content struct {
		Repositories repositories `json:"repositories"`
	}
	if err := yaml.Unmarshal(raw, &content); err != nil {
		// The message of the decoder may quote the file, which has passwords.
		return nil, errors.New("reading the repositories file: it is not in Helm's format")
	}
	for _, r := range content.Repositories {
		if r == nil {
			return nil, errors.New("reading the repositories file: an entry is empty")
		}
		if r.InsecureSkipVerify || r.PassCredentialsAll {
			return nil, fmt.Errorf("repository %s: insecure_skip_tls_verify and pass_credentials_all are not supported; name the CA in caFile, and the other host in an entry of its own", r.Name)
		}
		r.folder, r.others = filepath.Dir(file), content.Repositories
	}
	return content.Repositories, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", filepath.Base(name), maxFile)
	}
	return raw, err
}

// named finds a repository by its alias.
func (r repositories) named(alias string) (*Repository, error) {
	names := make([]string, 0, len(r))
	for _, repository := range r {
		if repository.Name == alias {
			return repository, nil
		}
		names = append(names, repository.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no repository %s: the operator has given no repositories file, or it has no entries (--chart-repositories)", alias)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("there is no repository %s: the operator's file has %s", alias, strings.Join(names, ", "))
}

// at finds the repository that a URL belongs to: of those with its host and scheme the
// one with the longest path above it, else any.
func (r repositories) at(target *url.URL) (found *Repository) {
	best := -1
	for _, repository := range r {
		base, err := repository.base()
		if err != nil || base.Scheme != target.Scheme || !strings.EqualFold(base.Host, target.Host) {
			continue
		}
		length := 0
		if strings.HasPrefix(target.Path, base.Path) {
			length = len(base.Path)
		}
		if length > best {
			found, best = repository, length
		}
	}
	return found
}

// of is like at. A host without an entry has no credentials and no CA of its own.
func (r repositories) of(target *url.URL) *Repository {
	if found := r.at(target); found != nil {
		return found
	}
	return &Repository{Name: target.Host, URL: target.Scheme + "://" + target.Host, others: r}
}

// atHost finds a repository of a host.
func (r repositories) atHost(host string) *Repository {
	for _, repository := range r {
		if base, err := repository.base(); err == nil && strings.EqualFold(base.Host, host) {
			return repository
		}
	}
	return nil
}

// base is the repository's URL, with a slash at its end.
func (r *Repository) base() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || !slices.Contains([]string{"http", "https", "oci"}, u.Scheme) {
		return nil, fmt.Errorf("repository %s: its url has to be http://, https:// or oci://, without credentials", r.Name)
	}
	if u.Scheme == "http" && r.Username != "" {
		return nil, fmt.Errorf("repository %s: credentials are sent by https only", r.Name)
	}
	return folder(u), nil
}

// tls is the configuration of connections to the repository.
func (r *Repository) tls() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CAFile != "" {
		raw, err := readFile(r.path(r.CAFile))
		if err != nil {
			return nil, fmt.Errorf("repository %s: caFile: %w", r.Name, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("repository %s: caFile has no certificate", r.Name)
		}
	}
	if r.CertFile != "" || r.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(r.path(r.CertFile), r.path(r.KeyFile))
		if err != nil {
			return nil, fmt.Errorf("repository %s: certFile and keyFile: %w", r.Name, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

func (r *Repository) path(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(r.folder, file)
}
