// Command image builds what a release of TApp consists of, without Docker: an archive with the container image for every
// platform (OCI layout, in a tar file), and the list of what is in it (SBOM, CycloneDX JSON).
//
//	image --source DIR --version V --revision COMMIT --platforms LIST --largest BYTES --archive FILE --sbom FILE
//
// The image holds one static program, the roots of trust of public certificate authorities, the licences of what is linked, and nothing else: no shell, no
// package manager. It runs as a user without a name. No clock goes in: equal sources, built by equal versions of Go, give
// equal digests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// platforms that a release's image is for.
const platforms = "linux/amd64,linux/arm64"

// options of one build.
type options struct {
	source            string // directory of the module
	version, revision string // of the source
	platforms         string // separated by commas
	archive, sbom     string // files to write
	// release: the chart, the licences by themselves and checksums are written beside the archive.
	release  bool
	licences []byte // of what is linked; empty: the image has none
	largest  int64  // bytes that the program may have; 0: any number
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	flags.StringVar(&o.source, "source", ".", "directory of the module")
	flags.StringVar(&o.version, "version", "devel", "version of the source")
	flags.StringVar(&o.revision, "revision", "", "commit of the source")
	flags.StringVar(&o.platforms, "platforms", platforms, "platforms, separated by commas")
	flags.StringVar(&o.archive, "archive", "dist/tapp-image.tar", "file for the image")
	flags.StringVar(&o.sbom, "sbom", "dist/tapp-sbom.json", "file for the list of what is in it")
	flags.BoolVar(&o.release, "release", false, "write the chart, its OCI artifact, the licences and SHA256SUMS beside the archive, too")
	flags.Int64Var(&o.largest, "largest", 0, "how many bytes the program may have on any platform; 0: any number")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tapp-image-*")
	if err != nil {
		return fmt.Errorf("temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var programs []program
	for name := range strings.SplitSeq(o.platforms, ",") {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return fmt.Errorf("--platforms: %w", err)
		}
		p, err := o.compile(ctx, *platform, dir)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	if o.licences, err = o.readLicences(ctx, platformsOf(programs)); err != nil {
		return err
	}
	index, err := o.index(programs)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	for _, path := range []string{o.archive, o.sbom} {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("directory for %s: %w", path, err)
		}
	}
	if err := o.writeArchive(index, filepath.Join(dir, "layout")); err != nil {
		return err
	}
	if err := o.writeSBOM(programs); err != nil {
		return err
	}
	fmt.Printf("%s  tapp:%s for %s: %s\n%s  what is in it\n", o.archive, o.version, names(programs), digest, o.sbom)
	if o.release {
		return o.writeRelease(dir)
	}
	return nil
}

// writeRelease writes what a release has beside the image and the list of what is in it.
func (o options) writeRelease(temp string) error {
	files, err := o.writeChart(temp)
	if err != nil {
		return err
	}
	texts := filepath.Join(filepath.Dir(o.archive), "tapp-"+licencesFile)
	if err := os.WriteFile(texts, o.licences, 0o644); err != nil { //nolint:gosec // to be given to others
		return fmt.Errorf("licences: %w", err)
	}
	sums := filepath.Join(filepath.Dir(o.archive), "SHA256SUMS")
	if err := writeChecksums(sums, append(files, o.archive, o.sbom, texts)); err != nil {
		return err
	}
	fmt.Printf("%s  the chart, to install\n%s  the chart, for a registry\n%s  licences of what is linked\n%s  checksums\n", files[0], files[1], texts, sums)
	return nil
}

func platformsOf(programs []program) (out []v1.Platform) {
	for _, p := range programs {
		out = append(out, p.platform)
	}
	return out
}

// program is TApp compiled for one platform.
type program struct {
	platform v1.Platform
	path     string
}

func names(programs []program) string {
	var all []string
	for _, p := range programs {
		all = append(all, p.platform.String())
	}
	return strings.Join(all, ", ")
}

// compile makes a static program into which neither paths nor times go.
func (o options) compile(ctx context.Context, platform v1.Platform, dir string) (program, error) {
	p := program{platform: platform, path: filepath.Join(dir, "tapp-"+platform.Architecture)}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X main.version="+o.version, "-o", p.path, ".")
	build.Dir = o.source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOWORK=off", "GOFLAGS=")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return p, fmt.Errorf("compile for %s: %w", platform, errors.Join(err, ctx.Err()))
	}
	return p, o.judge(p)
}

// judge whether the program is not too large.
func (o options) judge(p program) error {
	made, err := os.Stat(p.path)
	if err != nil {
		return fmt.Errorf("the program for %s: %w", p.platform, err)
	}
	if o.largest > 0 && made.Size() > o.largest {
		return fmt.Errorf("the program for %s has %d bytes, and may have %d: something large was linked", p.platform, made.Size(), o.largest)
	}
	return nil
}
