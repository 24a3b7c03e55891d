package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	kumulus "github.com/kumulus-io/kumulus/contrib/go"
	"github.com/kumulus-io/kumulus/contrib/go/provider"
)

var environment env.Environment

func TestMain(m *testing.M) {
	environment = env.New()
	environment.Setup(
		envfuncs.CreateClusterWithOpts(provider.NewProvider(), "test", provider.With(kumulus.Nodes(5))),
		envfuncs.CreateNamespace("mine"),
	)
	environment.Finish(envfuncs.DestroyCluster("test"))
	os.Exit(environment.Run(m))
}

func TestFiveNodesAreReady(t *testing.T) {
	nodes := features.New("nodes").Assess("all are Ready", func(
		ctx context.Context, t *testing.T, config *envconf.Config,
	) context.Context {
		var found corev1.NodeList
		if err := config.Client().Resources().List(ctx, &found); err != nil {
			t.Fatal(err)
		}
		if len(found.Items) != 5 {
			t.Fatalf("%d nodes", len(found.Items))
		}
		return ctx
	})
	environment.Test(t, nodes.Feature())
}

const objects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gears, kind: Gear}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: example.com/v1
kind: Gear
metadata: {name: one}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

func TestObjectsAreCreatedOfKindsThatAreJustDefined(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	created := func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
		ctx, err := provider.CreateObjects(filepath.Join(folder, "*.yaml"))(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
	refused := func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
		for pattern, expected := range map[string]string{"*.yaml": "gears.example.com", "*.json": "no object"} {
			_, err := provider.CreateObjects(filepath.Join(folder, pattern))(ctx, config)
			if err == nil || !strings.Contains(err.Error(), expected) {
				t.Fatalf("%s: %v", pattern, err)
			}
		}
		return ctx
	}
	environment.Test(t, features.New("objects").Setup(created).
		Assess("run", provider.Until("deployment/web", "Available")).
		Assess("are not made again", refused).Feature())
}
