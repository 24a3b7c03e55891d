// Package main writes the SDK of a Pulumi package in a language, from its schema, with Pulumi's own generators.
//
// `pulumi package gen-sdk` asks the language's host for it. The hosts of Node.js, Go and Python that can be had as Go
// modules are too old to answer.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/hashicorp/hcl/v2"
	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const usage = "usage: pulumi-gen-sdk go|nodejs|python SCHEMA.json DIRECTORY"

func main() {
	if len(os.Args) != 4 {
		fail(usage)
	}
	language, source, target := os.Args[1], os.Args[2], os.Args[3]
	text, err := os.ReadFile(source)
	check(err)
	var spec schema.PackageSpec
	check(json.Unmarshal(text, &spec))
	// Unlike ImportSpec, this compares the text with Pulumi's schema of schemas.
	loader := schema.NewCachedLoader(nothing{})
	pkg, found, err := schema.BindSpec(spec, loader, schema.ValidationOptions{})
	check(err)
	if tell(found) {
		os.Exit(1)
	}
	files, err := generate(language, pkg, loader)
	check(err)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		path := filepath.Join(target, name)
		check(os.MkdirAll(filepath.Dir(path), 0o755))
		check(os.WriteFile(path, files[name], 0o644))
	}
	fmt.Printf("%d files in %s\n", len(names), target)
}

func generate(language string, pkg *schema.Package, loader schema.ReferenceLoader) (map[string][]byte, error) {
	const tool = "pulumi-gen-sdk"
	switch language {
	case "nodejs":
		return nodejs.GeneratePackage(tool, pkg, nil, nil, true, loader)
	case "go":
		return gogen.GeneratePackage(tool, pkg, nil)
	case "python":
		return python.GeneratePackage(tool, pkg, nil, loader)
	}
	return nil, fmt.Errorf("no generator for %q; %s", language, usage)
}

// nothing loads no other package: a schema for this program has to stand by itself.
type nothing struct{ schema.ReferenceLoader }

func tell(found hcl.Diagnostics) bool {
	for _, each := range found {
		fmt.Fprintln(os.Stderr, each.Error())
	}
	return found.HasErrors()
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}
