package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"tkestack.io/tapp/helm"
)

const (
	chartLayer       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	legacyChartLayer = "application/tar+gzip"
	maxOCIManifest   = 1 << 20
	maxTagPages      = 100
)

// pull fetches a chart from a registry. Content is checked against the digests of its
// manifest.
func (s *Source) pull(ctx context.Context, repositories repositories, target *url.URL, version string) (*Chart, error) {
	repository, err := remote.NewRepository(target.Host + target.Path)
	if err != nil {
		return nil, errors.New("it is no reference like oci://host/path/name")
	}
	r := repositories.of(target)
	client, err := s.client(r, repository.Reference.Host())
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	repository.TagListMaxPages = maxTagPages
	repository.MaxMetadataBytes = maxOCIManifest
	login := &auth.Client{Client: client, Cache: auth.NewCache(), Credential: func(_ context.Context, host string) (auth.Credential, error) {
		if r.Username == "" || host != repository.Reference.Host() {
			return auth.EmptyCredential, nil
		}
		return auth.Credential{Username: r.Username, Password: r.Password}, nil
	}}
	login.SetUserAgent("tapp")
	repository.Client = login

	want := expectation{version: version}
	if reference := repository.Reference.Reference; reference == "" {
		want.name = path.Base(target.Path)
	}
	reference, err := tagOf(ctx, repository, version)
	if err != nil {
		return nil, told(target, err)
	}
	raw, err := pullArchive(ctx, repository, reference)
	if err != nil {
		return nil, told(target, err)
	}
	return want.check(raw)
}

// tagOf finds what to fetch: the tag or digest of the reference; else the tag of the
// version; else the highest one of the range. A tag has "_" for "+".
func tagOf(ctx context.Context, repository *remote.Repository, version string) (string, error) {
	if repository.Reference.Reference != "" {
		return repository.Reference.Reference, nil
	}
	if version != "" {
		tag := strings.ReplaceAll(version, "+", "_")
		ref := registry.Reference{Registry: repository.Reference.Registry, Repository: repository.Reference.Repository, Reference: tag}
		if ref.ValidateReferenceAsTag() == nil {
			if _, err := repository.Resolve(ctx, tag); err == nil || !isNotFound(err) {
				return tag, err
			}
		}
	}
	var versions []string
	err := repository.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+"))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	found, err := choose(versions, version)
	return strings.ReplaceAll(found, "+", "_"), err
}

func isNotFound(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return response.StatusCode == http.StatusNotFound
	}
	return strings.HasSuffix(err.Error(), "not found")
}

func pullArchive(ctx context.Context, repository *remote.Repository, reference string) ([]byte, error) {
	descriptor, body, err := repository.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if descriptor.Size > maxOCIManifest {
		return nil, fmt.Errorf("its manifest has more than %d bytes", maxOCIManifest)
	}
	raw, err := content.ReadAll(body, descriptor)
	if err != nil {
		return nil, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, errors.New("its manifest is no JSON")
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType != chartLayer && layer.MediaType != legacyChartLayer {
			continue
		}
		if layer.Size > helm.MaxArchive {
			return nil, fmt.Errorf("the archive has %d bytes; at most %d are possible", layer.Size, helm.MaxArchive)
		}
		blob, err := repository.Blobs().Fetch(ctx, layer)
		if err != nil {
			return nil, err
		}
		defer blob.Close()
		return content.ReadAll(blob, layer)
	}
	return nil, errors.New("it holds no chart of helm")
}

// told says what a registry answered, without what may be secret in it.
func told(target *url.URL, err error) error {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		text := fmt.Sprintf("%s %s: the server says %d %s", response.Method, place(response.URL), response.StatusCode, http.StatusText(response.StatusCode))
		if len(response.Errors) > 0 {
			text += ": " + shortened(response.Errors[0].Message)
		}
		return errors.New(text)
	}
	return fmt.Errorf("%s: %w", place(target), bare(err))
}

// shortened bounds what a server says.
func shortened(text string) string {
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
