// Tells upstream's main.go of the virtual environment in Pulumi.yaml.
//
// This version of the language host expects the runtime options on its command line, where engines of that time put
// them; newer engines send them in requests it does not read. Without this it would run programs with whatever python3
// is on PATH.
package main

import (
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

func init() {
	for _, argument := range os.Args[1:] {
		if strings.HasPrefix(strings.TrimLeft(argument, "-"), "virtualenv") {
			return
		}
	}
	if root, virtualenv := configured(); virtualenv != "" {
		os.Args = append([]string{os.Args[0], "-root", root, "-virtualenv", virtualenv}, os.Args[1:]...)
	}
}

// configured finds the project of the working directory, and its runtime option "virtualenv" if it has one.
func configured() (root, virtualenv string) {
	directory, err := os.Getwd()
	if err != nil {
		return "", ""
	}
	for {
		for _, name := range []string{"Pulumi.yaml", "Pulumi.yml"} {
			content, err := os.ReadFile(filepath.Join(directory, name))
			if err != nil {
				continue
			}
			return directory, option(content)
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", ""
		}
		directory = parent
	}
}

// option reads runtime.options.virtualenv; a runtime may also be a mere name, which does not decode.
func option(content []byte) string {
	var project struct {
		Runtime yaml.Node `yaml:"runtime"`
	}
	var runtime struct {
		Options struct {
			Virtualenv string `yaml:"virtualenv"`
		} `yaml:"options"`
	}
	if yaml.Unmarshal(content, &project) != nil || project.Runtime.Decode(&runtime) != nil {
		return ""
	}
	return runtime.Options.Virtualenv
}
