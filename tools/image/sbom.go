package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// rootsModule is where rootsOfTrust come from.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// writeSBOM lists the modules that the linker has noted in the programs, the standard library, and the roots of trust.
func (o options) writeSBOM(programs []program) error {
	modules := map[string]cyclonedx.Component{}
	files := []cyclonedx.Component{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p.path)
		if err != nil {
			return fmt.Errorf("what is in %s: %w", p.path, err)
		}
		for _, module := range info.Deps {
			add(modules, module)
		}
		add(modules, &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
		text, err := os.ReadFile(p.path)
		if err != nil {
			return fmt.Errorf("what is in %s: %w", p.path, err)
		}
		sum := sha256.Sum256(text)
		files = append(files, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeFile, Name: "/tapp (" + p.platform.String() + ")", Hashes: hashes(sum[:]),
		})
	}
	self, ok := debug.ReadBuildInfo()
	i := -1
	if ok {
		i = slices.IndexFunc(self.Deps, func(m *debug.Module) bool { return m.Path == rootsModule })
	}
	if i < 0 {
		return errors.New("this program does not know the version of the roots of trust")
	}
	add(modules, self.Deps[i])

	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeContainer, Name: "tapp", Version: o.version, BOMRef: "tapp",
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Components: &files,
	}}
	components := slices.SortedFunc(maps.Values(modules), func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	bom.Components = &components
	return o.encode(bom)
}

func (o options) encode(bom *cyclonedx.BOM) error {
	out, err := os.Create(o.sbom)
	if err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	err = cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	return nil
}

func add(modules map[string]cyclonedx.Component, module *debug.Module) {
	if module.Replace != nil {
		module = module.Replace
	}
	url := "pkg:golang/" + module.Path + "@" + module.Version
	component := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, BOMRef: url, PackageURL: url,
	}
	// go.sum's hash is a SHA-256 over the names and hashes of the module's files.
	if sum, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			component.Hashes = hashes(raw)
		}
	}
	modules[url] = component
}

func hashes(sum []byte) *[]cyclonedx.Hash {
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
}
